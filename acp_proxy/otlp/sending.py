"""One attempt to post one request, and what its answer means. Never shows a URL or a header."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Literal

import httpx2
from msgspec import Struct

from acp_proxy.config import ConfigError
from acp_proxy.notify.posting import client_of, seconds_of, words
from acp_proxy.otlp.common import partial_success, status_message
from acp_proxy.otlp.settings import Target
from acp_proxy.system.errors import reason_of

TYPE = "application/x-protobuf"

_LARGEST = 65_536  # bytes of an answer that are read
_LATER = {
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
}
# The address or the key is wrong, not what was sent: it is sent again, seldom, for somebody may have mended that.
_ELSEWHERE = {
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED,
    HTTPStatus.PROXY_AUTHENTICATION_REQUIRED,
}


class Outcome(Struct, frozen=True):
    """`sent` (perhaps not all of it), `later`, `elsewhere` (much later), `smaller`, or `refused` (never again).

    `error` is a few words without the URL; `wait` is for how many seconds the receiver wants to be left alone.
    """

    result: Literal["sent", "later", "elsewhere", "smaller", "refused"]
    error: str | None = None
    wait: float = 0.0
    rejected: int = 0  # of what was sent, as the receiver says


class Poster:
    """To one target. `clock` is Unix ns. Raises ConfigError for certificates that cannot be used."""

    def __init__(self, to: Target, clock: Callable[[], int]) -> None:
        self.to = to
        self._clock = clock
        self._client = client_of(to.timeout, "otlp", _certificates(to))
        self._headers = {**to.headers, "content-type": TYPE}
        if to.gzip:
            self._headers["content-encoding"] = "gzip"

    async def aclose(self) -> None:
        await self._client.aclose()

    async def post(self, content: bytes) -> Outcome:
        """`content` is compressed already, if it is to be."""
        try:
            async with asyncio.timeout(self.to.timeout):
                async with self._client.stream("POST", self.to.url, content=content, headers=self._headers) as response:
                    return await self._judged(response)
        except (TimeoutError, httpx2.TimeoutException):
            return Outcome("later", f"no answer within {self.to.timeout:g} s")
        except httpx2.TransportError as error:
            return Outcome("later", words(error))
        except (httpx2.InvalidURL, httpx2.RequestError) as error:
            return Outcome("elsewhere", type(error).__name__)

    async def _judged(self, response: httpx2.Response) -> Outcome:
        status = response.status_code
        answer = await _beginning(response)
        if 200 <= status < 300:
            partly = partial_success(answer)
            error = partly.message or (f"{partly.rejected} rejected" if partly.rejected else None)
            return Outcome("sent", error, rejected=partly.rejected)
        said = f"HTTP {status}" + (f": {message}" if (message := status_message(answer)) else "")
        if status in _LATER:
            return Outcome("later", said, seconds_of(response.headers.get("retry-after"), self._clock()))
        if status in _ELSEWHERE or 300 <= status < 400:  # a redirect, which is not followed
            return Outcome("elsewhere", said)
        return Outcome("smaller" if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE else "refused", said)


async def _beginning(response: httpx2.Response) -> bytes:
    """So much that an answer of no end is not kept. What cannot be decompressed is no answer."""
    found = bytearray()
    try:
        async for piece in response.aiter_bytes():
            found += piece
            if len(found) >= _LARGEST:
                break
    except httpx2.DecodingError:
        return b""
    return bytes(found[:_LARGEST])


def _certificates(to: Target) -> ssl.SSLContext | bool:
    files: Iterable[tuple[str, str | None]] = (
        ("certificate", to.certificate),
        ("client_certificate", to.client_certificate),
        ("client_key", to.client_key),
    )
    if not any(path for _, path in files):
        return True
    try:
        context = ssl.create_default_context(cafile=to.certificate)
        if to.client_certificate:
            context.load_cert_chain(to.client_certificate, to.client_key)
    except (OSError, ssl.SSLError) as error:
        named = ", ".join(f"{key} {path}" for key, path in files if path)
        reason = "expected PEM" if isinstance(error, ssl.SSLError) else reason_of(error)
        raise ConfigError(f"otlp: {named}: {reason}") from error
    return context

"""One attempt to post one notice: what is sent, and what its answer means. Never shows a URL."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus

import httpx2
from msgspec import Struct

from acp_proxy.core.notice import Notice
from acp_proxy.core.windows import SECOND
from acp_proxy.ledger.notices import Result
from acp_proxy.notify.destinations import Destination
from acp_proxy.notify.formats import body, signature
from acp_proxy.notify.posting import client_of, seconds_of, words

TIMEOUT = 10.0  # seconds
_MAY_PASS = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}


class Outcome(Struct, frozen=True):
    """`error` is a few words without the URL; `wait` is for how many seconds the server wants to be left alone."""

    result: Result
    error: str | None = None
    wait: float = 0.0


class Sender:
    """`clock` is Unix time in nanoseconds, `timeout` in seconds for all of an attempt.

    Raises ConfigError for proxies and certificates of the environment that cannot be used.
    """

    def __init__(self, clock: Callable[[], int], timeout: float = TIMEOUT) -> None:
        self._clock = clock
        self._timeout = timeout
        self._client = client_of(timeout, "notify")

    async def aclose(self) -> None:
        await self._client.aclose()

    async def send(self, to: Destination, notice: Notice) -> Outcome:
        content = body(notice, to.format)
        headers = {"Content-Type": "application/json", **self._marks(to, notice, content)}
        try:
            async with asyncio.timeout(self._timeout):
                async with self._client.stream("POST", to.url, content=content, headers=headers) as response:
                    return self._judged(response.status_code, response.headers.get("retry-after"))
        except (TimeoutError, httpx2.TimeoutException):
            return Outcome("retried", f"no answer within {self._timeout:g} s")
        except httpx2.TransportError as error:
            return Outcome("retried", words(error))
        except (httpx2.InvalidURL, httpx2.RequestError) as error:
            return Outcome("failed", type(error).__name__)

    def _marks(self, to: Destination, notice: Notice, content: bytes) -> dict[str, str]:
        """By which a receiver of JSON tells a notice that it has from a new one, and ours from others'."""
        if to.format != "json":
            return {}
        now = self._clock() // SECOND
        marks = {"webhook-id": notice.id, "webhook-timestamp": str(now)}
        if to.secret is not None:
            marks["webhook-signature"] = signature(to.secret, notice.id, now, content)
        return marks

    def _judged(self, status: int, retry_after: str | None) -> Outcome:
        if 200 <= status < 300:
            return Outcome("sent")
        if status in _MAY_PASS or status >= 500:
            return Outcome("retried", f"HTTP {status}", seconds_of(retry_after, self._clock()))
        moved = ", a redirect, which is not followed" if 300 <= status < 400 else ""
        return Outcome("failed", f"HTTP {status}{moved}")

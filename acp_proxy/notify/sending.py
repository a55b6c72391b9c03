"""One attempt to post one notice: what is sent, and what its answer means. Never follows a redirect, never shows a URL.

A proxy named by the environment (`HTTPS_PROXY`) is used, and so are the system's certificates.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import ssl
from collections.abc import Callable
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import httpx2
from msgspec import Struct

from acp_proxy import __version__
from acp_proxy.config import ConfigError
from acp_proxy.core.notice import Notice
from acp_proxy.core.windows import SECOND
from acp_proxy.ledger.notices import Result
from acp_proxy.notify.destinations import Destination
from acp_proxy.notify.formats import body, signature
from acp_proxy.system.errors import reason_of

TIMEOUT = 10.0  # seconds
_MOST_TO_WAIT = 3600  # seconds, whatever a server asks for
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
        # It logs the URL of every request, where all who know it can post.
        logging.getLogger("httpx2").setLevel(logging.WARNING)
        self._client = _client(timeout)

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
            return Outcome("retried", _words(error))
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
            return Outcome("retried", f"HTTP {status}", self._seconds(retry_after))
        moved = ", a redirect, which is not followed" if 300 <= status < 400 else ""
        return Outcome("failed", f"HTTP {status}{moved}")

    def _seconds(self, retry_after: str | None) -> float:
        """The seconds of a `Retry-After`, which is a number or a date; None if it is neither."""
        if not retry_after:
            return 0.0
        try:
            seconds = float(retry_after)
        except ValueError:
            try:
                moment = parsedate_to_datetime(retry_after)
                seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - self._clock() / SECOND
            except (ValueError, OverflowError):  # the latter for a time zone of any number of hours
                return 0.0
        return min(max(0.0, seconds), _MOST_TO_WAIT)  # in this order "nan" is nothing, too


def _client(timeout: float) -> httpx2.AsyncClient:
    try:
        return httpx2.AsyncClient(
            follow_redirects=False, timeout=timeout, headers={"User-Agent": f"acp-proxy/{__version__}"}
        )
    except ImportError:
        raise ConfigError("notify: the environment names a SOCKS proxy, which cannot be used") from None
    except OSError as error:
        why = "the environment names certificates that cannot be used"
        raise ConfigError(f"notify: {why}: {reason_of(error)}") from error
    except (ValueError, httpx2.InvalidURL):  # which may have a password in it
        raise ConfigError("notify: the environment names a proxy by something that is no URL") from None


def _words(error: httpx2.TransportError) -> str:
    """What the system says of a connection names hosts at most; without numbers, and without lines of C."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno and not isinstance(cause, (ssl.SSLError, socket.gaierror)):
            return os.strerror(cause.errno)  # the others only say that all attempts failed
        cause = cause.__cause__ or cause.__context__
    said = str(error).partition("\n")[0] if isinstance(error, httpx2.ConnectError) else ""
    return re.sub(r"^\[[^\]]*\] | \(_ssl\.c:\d+\)$", "", said)[:100] or type(error).__name__

"""The shell around a provider's API: one GET after the other, with bounded tries. The only module here with a network.

Redirects are not followed, because the key would go along. Answers that say "later" are tried again.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from urllib.parse import urlsplit

from msgspec import Struct

from acp_proxy import __version__
from acp_proxy.bills import BillError
from acp_proxy.reconcile.api.listings import Listing, Provided
from acp_proxy.system.errors import UsageError, reason_of

_TRIES = 3
_LONGEST_PAUSE = 60  # seconds that are waited for at most
_LARGEST = 256 * 1024**2  # bytes of one page
_TIMEOUT = 60  # seconds without a byte
_LONGEST_ANSWER = 120  # seconds, however steadily it drips
_LONGEST_NUMBER = 9  # digits of seconds
_LATER = (429, 500, 502, 503, 504, 529)
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class LaterError(BillError):
    """Somebody is away or busy: the same question may be answered in `wait` seconds, or when nothing is said of it."""

    def __init__(self, text: str, wait: float = 0) -> None:
        super().__init__(text)
        self.wait = wait


class _Answer(Struct, frozen=True):
    status: int
    retry_after: str | None
    body: bytes


class Client:
    """`ask` is an `Ask` of `pages`."""

    def __init__(
        self,
        base: str,
        provided: Provided,
        key: str,
        pause: Callable[[float], object],
        *,
        named: str = "--url",
        longest: float = _LONGEST_ANSWER,
    ) -> None:
        """`named` is where the address was given. Raises UsageError for one to which no key may go."""
        try:
            parts = urlsplit(base)
            host, _ = parts.hostname or "", parts.port
        except ValueError:
            raise UsageError(f"{named}: expected an address such as https://llm.example.com") from None
        if parts.scheme not in ("https", "http") or not host or "@" in parts.netloc:
            raise UsageError(f"{named}: expected an address such as https://llm.example.com, not {base!r}")
        if parts.scheme == "http" and host not in _LOOPBACK:
            raise UsageError(f"{named}: expected https://, because the key goes there in the clear: {base}")
        self._base, self._host, self._pause, self._longest = base, host, pause, longest
        self._headers = {
            provided.header: f"{provided.prefix}{key}",
            "Accept": "application/json",
            "User-Agent": f"acp-proxy/{__version__}",
            **dict(provided.more),
        }

    def ask(self, name: str, listing: Listing, page: str | None) -> bytes:
        """The body. Raises BillError."""
        url = listing.url(self._base, page)
        for left in reversed(range(_TRIES)):
            answer = self._get(name, url)
            if answer.status == 200:
                return answer.body
            pause = _seconds(answer.retry_after, _TRIES - left)
            if answer.status not in _LATER:
                raise BillError(f"{name}: {self._host} {_said(answer)}")
            if not left or pause > _LONGEST_PAUSE:
                raise LaterError(f"{name}: {self._host} {_said(answer)}", pause if answer.retry_after else 0)
            self._pause(pause)
        raise AssertionError

    def _get(self, name: str, url: str) -> _Answer:
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        connection = (
            HTTPSConnection(self._host, parts.port, timeout=_TIMEOUT, context=ssl.create_default_context())
            if secure
            else HTTPConnection(self._host, parts.port, timeout=_TIMEOUT)
        )
        in_time = _InTime(connection, self._longest)
        try:
            with in_time:
                connection.request("GET", f"{parts.path}?{parts.query}", headers=self._headers)
                with connection.getresponse() as response:
                    return _Answer(response.status, response.getheader("Retry-After"), self._body(name, response))
        except (HTTPException, OSError) as error:
            if in_time.is_over:
                raise LaterError(f"{name}: {self._host} did not answer within {self._longest:g} s") from None
            raise LaterError(f"{name}: {self._host} {_failed(error)}") from None
        finally:
            connection.close()

    def _body(self, name: str, response: HTTPResponse) -> bytes:
        body = response.read(_LARGEST + 1)
        if len(body) > _LARGEST:
            raise BillError(f"{name}: expected a page of at most {_LARGEST // 1024**2} MiB")
        if response.length:  # `read` with a size takes an early end for the end
            raise IncompleteRead(body, response.length)
        return body


class _InTime:
    """Ends a connection that takes too long: a timeout alone never comes where a byte does from time to time."""

    def __init__(self, connection: HTTPConnection, longest: float) -> None:
        self._connection = connection
        self._timer = threading.Timer(longest, self._end)
        self._timer.daemon = True
        self.is_over = False

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def _end(self) -> None:
        self.is_over = True
        if (sock := self._connection.sock) is not None:
            with suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)  # under TLS, which is another thread's


def _failed(error: HTTPException | OSError) -> str:
    match error:
        case IncompleteRead():
            return f"ended its answer early, after {len(error.partial):,} bytes"
        case HTTPException():
            return f"did not answer in HTTP: {type(error).__name__}"
    return f"cannot be reached: {reason_of(error)}"


def _seconds(retry_after: str | None, tried: int) -> float:
    """A date in `Retry-After` counts as none."""
    if retry_after and retry_after.strip().isdecimal() and len(retry_after) <= _LONGEST_NUMBER:
        return float(retry_after)
    return 2.0 ** (tried - 1)


def _said(answer: _Answer) -> str:
    match answer.status:
        case 401 | 403:
            return f"refused the key ({answer.status}): expected an admin key of the organisation"
        case 404:
            return "does not know this question (404): expected the address of its API as --url"
        case 429:
            wait = answer.retry_after
            return f"is asked too often (429): try again {f'in {wait} s' if wait else 'later'}"
        case status if status >= 500:
            return f"cannot answer now ({status}): try again later"
        case status:
            return f"answered {status}: expected 200"

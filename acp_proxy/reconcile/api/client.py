"""The shell around a provider's API: one GET after the other, with bounded tries. The only module here with a network.

Redirects are not followed, because the key would go along. Answers that say "later" are tried again.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
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
_TIMEOUT = 60
_LATER = (429, 500, 502, 503, 504, 529)
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class _Answer(Struct, frozen=True):
    status: int
    retry_after: str | None
    body: bytes


class Client:
    """`ask` is an `Ask` of `pages`."""

    def __init__(self, base: str, provided: Provided, key: str, pause: Callable[[float], None]) -> None:
        """Raises UsageError for an address to which no key may go."""
        parts = urlsplit(base)
        if parts.scheme not in ("https", "http") or not parts.hostname:
            raise UsageError(f"--url: expected an address such as https://llm.example.com, not {base!r}")
        if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
            raise UsageError(f"--url: expected https://, because the key goes there in the clear: {base}")
        self._base, self._host, self._pause = base, parts.hostname, pause
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
            if answer.status not in _LATER or not left or pause > _LONGEST_PAUSE:
                raise BillError(f"{name}: {self._host} {_said(answer)}")
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
        try:
            connection.request("GET", f"{parts.path}?{parts.query}", headers=self._headers)
            with connection.getresponse() as response:
                return _Answer(response.status, response.getheader("Retry-After"), self._body(name, response))
        except IncompleteRead as error:
            raise BillError(
                f"{name}: {self._host} ended its answer early, after {len(error.partial):,} bytes"
            ) from None
        except HTTPException as error:
            raise BillError(f"{name}: {self._host} did not answer in HTTP: {type(error).__name__}") from None
        except OSError as error:
            raise BillError(f"{name}: {self._host} cannot be reached: {reason_of(error)}") from error
        finally:
            connection.close()

    def _body(self, name: str, response: HTTPResponse) -> bytes:
        body = response.read(_LARGEST + 1)
        if len(body) > _LARGEST:
            raise BillError(f"{name}: expected a page of at most {_LARGEST // 1024**2} MiB")
        if response.length:  # `read` with a size takes an early end for the end
            raise IncompleteRead(body, response.length)
        return body


def _seconds(retry_after: str | None, tried: int) -> float:
    """A date in `Retry-After` counts as none."""
    if retry_after and retry_after.strip().isdigit():
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

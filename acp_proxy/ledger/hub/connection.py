"""One kept connection to the first of a team's hubs that answers, and another one for each long answer.

Blocks, and belongs to one thread. Every call may be made again: the ids in it see to that.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import TypeVar

import msgspec
from msgspec import Struct

from acp_proxy import __version__
from acp_proxy.ledger import (
    LedgerChangedError,
    LedgerError,
    LedgerForbiddenError,
    LedgerUnavailableError,
    RowRefusedError,
)
from acp_proxy.ledger.hub.wire import WITHOUT_BODY, Call, Nothing, Problem
from acp_proxy.ledger.hub_address import Hub
from acp_proxy.system.decoding import json_decoder
from acp_proxy.system.errors import reason_of

Authorization = Callable[[bool], str]
"""The header of that name; with True a new one, because the last was refused. Raises LedgerError."""

_HEADERS = {"User-Agent": f"acp-proxy/{__version__}", "Accept": "application/json"}
_NO_MORE: Mapping[str, str] = {}
_PASSING = (408, 425, 429, 500, 502, 503, 504)  # statuses of what may do later
_IN_VAIN = (HTTPException, OSError)

Q = TypeVar("Q")
A = TypeVar("A")


class _Request(Struct, frozen=True):
    method: str
    path: str
    body: bytes | None
    headers: dict[str, str]

    def sent(self, connection: HTTPConnection, hub: Hub) -> HTTPResponse:
        """The head of its answer."""
        connection.request(self.method, hub.path + self.path, self.body, self.headers)
        return connection.getresponse()


class HubConnection:
    """`seconds` bound how long a call waits for bytes. `url` names the hubs in errors."""

    def __init__(self, url: str, hubs: Sequence[Hub], authorization: Authorization, seconds: float) -> None:
        self._url = url
        self._hubs = list(hubs)  # who answered last comes first
        self._authorization = authorization
        self._seconds = seconds
        self._tls: ssl.SSLContext | None = None
        self._kept: HTTPConnection | None = None

    def call(self, call: Call[Q, A], asked: Q | None = None, *, if_match: str | None = None) -> A:
        """The answer. With an ETag it is LedgerChangedError where there is another one by now. Raises LedgerError."""
        more = _NO_MORE if if_match is None else {"If-Match": if_match}
        response, body = self._exchanged(self._request(call, asked, renew=False, more=more))
        if response.status == 401:
            response, body = self._exchanged(self._request(call, asked, renew=True, more=more))
        self._check(response, body)
        return self._decoded(call.answers, body or b"{}")

    def tagged(self, call: Call[Nothing, A], tag: str | None) -> tuple[str, A] | None:
        """The answer with its ETag; None where it is still the one with that of `tag`. Raises LedgerError."""
        asked = {} if tag is None else {"If-None-Match": tag}
        response, body = self._exchanged(self._request(call, None, renew=False, more=asked))
        if response.status == 401:
            response, body = self._exchanged(self._request(call, None, renew=True, more=asked))
        if response.status == 304:
            return None
        self._check(response, body)
        return response.headers["ETag"] or "", self._decoded(call.answers, body)

    def stream(self, call: Call[Q, A], asked: Q | None = None) -> Iterator[A]:
        """Each of many answers, on a connection of its own: others may be asked meanwhile. Raises LedgerError."""
        connection, response = self._opened(self._request(call, asked, renew=False))
        if response.status == 401:
            _end(connection, response)
            connection, response = self._opened(self._request(call, asked, renew=True))
        try:
            if response.status != 200:
                self._check(response, response.read())
            while (line := response.readline()) not in (b"\n", b""):
                yield self._decoded(call.answers, line)
        except _IN_VAIN as error:
            raise self._unavailable(error) from error
        finally:
            _end(connection, response)
        if not line:  # an answer that was cut looks like its end
            raise LedgerUnavailableError(f"ledger {self._url}: the answer ended too early")

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _request(
        self, call: Call[Q, A], asked: Q | None, *, renew: bool, more: Mapping[str, str] = _NO_MORE
    ) -> _Request:
        path, body = written(call, asked)
        headers = {**_HEADERS, **more, "Authorization": self._authorization(renew)}
        if body is not None:
            headers["Content-Type"] = "application/json"
        return _Request(call.method, path, body, headers)

    def _exchanged(self, request: _Request) -> tuple[HTTPResponse, bytes]:
        """An answer with its body, on the connection that is kept if there is one."""
        kept, self._kept = self._kept, None
        if kept is not None:
            try:
                return self._read(kept, request.sent(kept, self._hubs[0]))
            except TimeoutError as error:  # who is slow is not asked twice
                kept.close()
                raise self._unavailable(error) from error
            except _IN_VAIN:  # it was idle for long, or its hub is gone
                kept.close()
        connection, response = self._opened(request)
        try:
            return self._read(connection, response)
        except _IN_VAIN as error:
            connection.close()
            raise self._unavailable(error) from error

    def _read(self, connection: HTTPConnection, response: HTTPResponse) -> tuple[HTTPResponse, bytes]:
        body = response.read()
        if response.will_close:
            connection.close()
        else:
            self._kept = connection
        return response, body

    def _opened(self, request: _Request) -> tuple[HTTPConnection, HTTPResponse]:
        """A new connection to the first hub that answers on it, which then comes first."""
        failed: list[BaseException] = []
        for hub in list(self._hubs):
            connection = self._to(hub)
            try:
                response = request.sent(connection, hub)
            except _IN_VAIN as error:
                connection.close()
                failed.append(error)
                continue
            self._hubs.remove(hub)
            self._hubs.insert(0, hub)
            return connection, response
        raise self._unavailable(failed[0]) from failed[0]

    def _to(self, hub: Hub) -> HTTPConnection:
        host = hub.host.strip("[]")
        if not hub.secure:
            return HTTPConnection(host, hub.port, timeout=self._seconds)
        self._tls = self._tls or ssl.create_default_context()
        return HTTPSConnection(host, hub.port, timeout=self._seconds, context=self._tls)

    def _check(self, response: HTTPResponse, body: bytes) -> None:
        """Raises what the status means."""
        status = response.status
        if status in (200, 204):
            return
        told = f"ledger {self._url}: {_detail(response, body)}"
        match status:
            case 401 | 403:
                raise LedgerForbiddenError(told)
            case 404 | 405:
                raise LedgerError(
                    f"ledger {self._url}: the hub does not know this question; one of both needs an update"
                )
            case 412:
                raise LedgerChangedError(told)
            case 422:
                raise RowRefusedError(_detail(response, body))
        raise LedgerUnavailableError(told) if status in _PASSING else LedgerError(told)

    def _decoded(self, kind: type[A], body: bytes) -> A:
        try:
            return json_decoder(kind).decode(body)
        except msgspec.MsgspecError as error:
            raise LedgerError(f"ledger {self._url}: what answers there is no hub, or one of another version") from error

    def _unavailable(self, error: BaseException) -> LedgerUnavailableError:
        if isinstance(error, TimeoutError):
            reason = "no answer in time"
        elif isinstance(error, ssl.SSLCertVerificationError):
            reason = f"its certificate is not trusted: {error.verify_message}"
        else:
            reason = reason_of(error) if isinstance(error, OSError) and error.strerror else "the connection was closed"
        return LedgerUnavailableError(f"ledger {self._url}: {reason}")


def written(call: Call[Q, A], asked: Q | None) -> tuple[str, bytes | None]:
    """Path and body. Fields that the path names stand there, too; without a body the others are its query.

    Raises RowRefusedError for what is no text, or a number that no ledger can keep.
    """
    if asked is None:
        return call.path, None
    try:
        body = None if call.method in WITHOUT_BODY else msgspec.json.encode(asked)
    except (UnicodeEncodeError, OverflowError) as error:
        raise RowRefusedError("a value does not fit") from error
    if body is not None and "{" not in call.path:
        return call.path, body
    from urllib.parse import quote, urlencode

    fields: dict[str, str | list[str]] = msgspec.to_builtins(asked)
    path = call.path
    for name, value in list(fields.items()):
        if f"{{{name}}}" in path:
            path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
            del fields[name]
    query = f"?{urlencode(fields, doseq=True)}" if fields and body is None else ""
    return path + query, body


def _end(connection: HTTPConnection, response: HTTPResponse) -> None:
    response.close()
    connection.close()


def _detail(response: HTTPResponse, body: bytes) -> str:
    """One line of what was wrong, by a problem document if there is one."""
    with suppress(msgspec.MsgspecError):
        problem = json_decoder(Problem).decode(body)
        return " ".join((problem.detail or problem.title).split())
    return f"{response.status} {response.reason}"

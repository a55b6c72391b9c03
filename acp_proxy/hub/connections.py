"""Connections of proxies and browsers: thousands that rest, and an end for each that dawdles.

A request has so long to come, and who is answered so long to take it. uvicorn bounds neither, nor with httptools how
large a head may be.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Literal

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

LONGEST_HEAD = 10.0  # seconds from a request's first byte, or the connection's begin, to the end of its head
LONGEST_BODY = 300.0  # seconds from there to its end: 16 MiB on a slow line
LONGEST_PAUSE = 60.0  # seconds in which a client may take nothing of an answer, or of our refusal
LARGEST_HEAD = 16 * 1024  # bytes of a request's line and headers
_KEPT_FREE = 128  # files for the ledger and all else
_TOO_LARGE = f"expected at most {LARGEST_HEAD} bytes of line and headers"


def allow_many() -> int:
    """Let this process have as many files open as it may; how many of them can be connections."""
    if sys.platform == "win32":  # where no such limit is
        return 10_000
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return max(soft - _KEPT_FREE, _KEPT_FREE)


class HubConnection(HttpToolsProtocol):
    """One of at most `most`: for the next one, one that rests is cut."""

    most = 10_000

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._limit: asyncio.TimerHandle | None = None
        self._at: Literal["rest", "head", "body"] = "rest"
        self._unread = 0  # bytes that came of a head that has no end yet
        self._head = 0  # bytes of its lines that are whole
        self._waits = False  # for a client that does not read
        self._refused = False  # what came is no HTTP, or too much of it, or too late

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(transport)
        if len(self.connections) > self.most:
            _cut_one([each for each in self.connections if isinstance(each, HubConnection) and each is not self])
        self._allow(LONGEST_HEAD)

    def connection_lost(self, exc: Exception | None) -> None:
        self._allow(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._at == "rest" and self._limit is None:
            self._allow(LONGEST_HEAD)
        self._unread += len(data)
        super().data_received(data)
        if self._at == "body":
            self._unread = 0
        elif self._unread > LARGEST_HEAD and not self._refused:  # of a line without an end the parser tells nothing
            self._refuse(431, _TOO_LARGE)

    def on_message_begin(self) -> None:
        self._at, self._head = "head", 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(name, value)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._at = "body"
        self._allow(LONGEST_BODY)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._at, self._unread = "rest", 0
        self._allow_rest()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        if self._head > LARGEST_HEAD:
            self._refuse(431, _TOO_LARGE)
        else:
            self._refuse(400, msg)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._waits = True
        self._allow_rest()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._waits = False
        self._allow_rest()

    def timeout_keep_alive_handler(self) -> None:
        if self.transport.get_write_buffer_size():  # it would wait for who does not read, for ever
            self.transport.abort()
        super().timeout_keep_alive_handler()

    @property
    def rests(self) -> bool:
        """Nothing is asked, or all of it was answered."""
        return self._at != "body" and (self.cycle is None or self.cycle.response_complete)

    def _count(self, *parts: bytes) -> None:
        self._head += sum(map(len, parts))
        if self._head > LARGEST_HEAD:
            raise httptools.HttpParserError(_TOO_LARGE)

    def _allow_rest(self) -> None:
        self._allow(LONGEST_PAUSE if self._waits else LONGEST_BODY if self._at == "body" else None)

    def _allow(self, seconds: float | None) -> None:
        """So much time from now on; None while nothing is to be waited for."""
        if self._limit is not None:
            self._limit.cancel()
        self._limit = None if seconds is None else self.loop.call_later(seconds, self._over)

    def _over(self) -> None:
        self._limit = None
        if self._refused or self.transport.get_write_buffer_size() or (self._at == "rest" and not self._unread):
            self.transport.abort()
        else:
            self._refuse(408, "the request did not come in time")

    def _refuse(self, status: int, detail: str) -> None:
        """In place of an answer, unless one has begun; what still comes is not read."""
        self._refused = True
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            begun, cycle.disconnected = cycle.response_started, True  # its application has no client any more
            cycle.message_event.set()
            if begun:
                self.transport.abort()
                return
        head = b"content-type: text/plain; charset=utf-8\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s\n"
        self.transport.write(STATUS_LINE[status] + head % (len(detail) + 1, detail.encode()))
        # Closed at once, the system would reset the connection, and take the answer from who has not read it yet.
        if self.transport.can_write_eof():
            self.transport.write_eof()
            self._allow(LONGEST_HEAD)
        else:
            self.transport.close()


def _cut_one(others: Sequence[HubConnection]) -> None:
    """The first that rests, of whichever address has most of them."""
    resting = [each for each in others if each.rests] or others
    counts = Counter(_address(each) for each in resting)
    most = max(counts, key=counts.__getitem__)
    next(each for each in resting if _address(each) == most).transport.abort()


def _address(connection: HubConnection) -> str:
    return connection.client[0] if connection.client else ""

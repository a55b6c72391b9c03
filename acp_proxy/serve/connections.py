"""Connections with an end: an exchange that takes too long is cut, and a client that dawdles gives way to others.

uvicorn bounds how large a request's head may be and how long a connection may idle, but not how slowly bytes may come
or be taken: to it an answer is done when it is in a buffer. Who is one of many from one address gives way first.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import h11
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

LONGEST_HEAD = 5.0  # seconds in which a request must have come
LONGEST_EXCHANGE = 20.0  # seconds from there to the last byte of its answer
LARGEST_HEAD = 16 * 1024  # bytes of a request's line and headers
MOST_UNASKED = 128  # connections on which no question is open: for the next one that comes, one of them is cut
# Connections, below the 1024 files that a process may commonly have open: for the next, one that does not read is cut.
MOST = 512
MOST_ASKED = 350  # questions that wait for an answer; more are refused, so that there is a connection for `/livez`
AHEAD = 128 * 1024  # bytes that the system keeps for who does not read: by itself it would take 4 MB, of each

_Everyone = dict["BoundedProtocol", None]  # in the order in which they came, or had their last answer


class BoundedProtocol(H11Protocol):
    """A connection that has so long for its question, and so long for the answer; and a place among all others."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._limit: asyncio.TimerHandle | None = None
        self._answered = False  # all that came
        self._refused = False  # what came is no HTTP, or too much of it

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(transport)
        unasked = [each for each in self._everyone if each.is_unasked]
        if len(unasked) >= MOST_UNASKED:
            _one_of(unasked).cut()
        elif len(self._everyone) >= MOST - 1 and (slow := [each for each in self._everyone if each.is_slow]):
            _one_of(slow).cut()
        self._everyone[self] = None
        self._allow(LONGEST_HEAD)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._limit is None:
            self._allow(LONGEST_HEAD)
        self._answered = False
        last = self.cycle
        super().data_received(data)
        if self.cycle is not last:
            self._allow(LONGEST_EXCHANGE)

    def send_400_response(self, msg: str) -> None:
        """Called by uvicorn for what is no HTTP. It would close at once, and where part of the request is still unread
        the system then resets the connection, and takes the answer away from who has not read it yet."""
        error = sys.exception()
        too_large = isinstance(error, h11.RemoteProtocolError) and error.error_status_hint == 431
        status = 431 if too_large else 400
        said = f"expected at most {LARGEST_HEAD} bytes of line and headers\n" if too_large else f"{msg}\n"
        headers = [("Content-Type", "text/plain; charset=utf-8"), ("Connection", "close")]
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):  # or it is the body of what has its answer
            for event in (
                h11.Response(status_code=status, headers=headers),
                h11.Data(said.encode()),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        if self.cycle is not None:
            self.cycle.disconnected = self.cycle.response_complete = True  # its application has no client any more
        self._refused = True
        self.transport.write_eof()  # the client closes when it has read this, or is cut like any that dawdles

    def on_response_complete(self) -> None:
        last = self.cycle
        super().on_response_complete()
        if self.cycle is not last:  # the next question came with this one
            self._allow(LONGEST_EXCHANGE)
        else:
            self._answered = True
            if not self.is_slow:
                self._allow(None)
        if self in self._everyone:
            del self._everyone[self]
            self._everyone[self] = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._allow(None)
        self._everyone.pop(self, None)
        super().connection_lost(exc)

    @property
    def is_unasked(self) -> bool:
        """Nothing was asked yet, or all of it has been answered and taken."""
        return not self.is_slow and (self.cycle is None or self.cycle.response_complete)

    @property
    def is_slow(self) -> bool:
        """Part of an answer waits for its reader."""
        return self.transport.get_write_buffer_size() > 0

    @property
    def address(self) -> str:
        return self.client[0] if self.client else ""

    def cut(self) -> None:
        """At once, whatever is still to be written."""
        self._everyone.pop(self, None)
        self.transport.abort()

    @property
    def _everyone(self) -> _Everyone:
        """Of the whole server: uvicorn's state is what its connections share."""
        state: Any = self.server_state
        if not hasattr(state, "everyone"):
            state.everyone = {}
        everyone: _Everyone = state.everyone
        return everyone

    def _allow(self, seconds: float | None) -> None:
        """So much time from now on; None while nothing is asked, which uvicorn bounds itself."""
        if self._limit is not None:
            self._limit.cancel()
        self._limit = None if seconds is None else self.loop.call_later(seconds, self._over)

    def _over(self) -> None:
        """The time is up; an answer that was taken meanwhile was not noticed."""
        self._limit = None
        if not self._answered or self.is_slow:
            self.cut()


class Crowd:
    """ASGI middleware: of too many questions at once some are refused. `/livez` never is: who asks would end us."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._asked: set[object] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] == "/livez":
            await self._app(scope, receive, send)
            return
        if len(self._asked) >= MOST_ASKED:
            refusal = PlainTextResponse("too many questions at once\n", 503, {"Retry-After": "5"})
            await refusal(scope, receive, send)
            return
        question = object()

        async def answer(message: Message) -> None:
            self._asked.discard(question)  # who does not read the answer is cut when others come
            await send(message)

        self._asked.add(question)
        try:
            await self._app(scope, receive, answer)
        except asyncio.CancelledError:  # the server ends; raised on, each question would be a traceback in its log
            if question in self._asked:
                await PlainTextResponse("the server ends\n", 503)(scope, receive, send)
        finally:
            self._asked.discard(question)


def _one_of(some: Sequence[BoundedProtocol]) -> BoundedProtocol:
    """The first one of whichever address has the most of them."""
    counts = Counter(each.address for each in some)
    most = max(counts.values())
    return next(each for each in some if counts[each.address] == most)

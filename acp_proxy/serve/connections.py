"""Connections with an end: an exchange that takes too long is cut, and a client that dawdles gives way to others.

uvicorn bounds how large a request's head may be and how long a connection may idle, but not how slowly bytes may come.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

LONGEST_HEAD = 5.0  # seconds in which a request must have come
LONGEST_EXCHANGE = 20.0  # seconds from there to the last byte of its answer
LARGEST_HEAD = 16 * 1024  # bytes of a request's line and headers
MOST_UNASKED = 128  # connections that wait for no answer, not yet or no more; of more the oldest is cut
MOST = 512  # connections, below the 1024 files that a process may commonly have open

_Unasked = dict["BoundedProtocol", None]  # in the order in which they came


class BoundedProtocol(H11Protocol):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        unasked = self._unasked
        if len(unasked) >= MOST_UNASKED:
            next(iter(unasked)).cut()
        unasked[self] = None
        self._allow(LONGEST_HEAD)

    def data_received(self, data: bytes) -> None:
        if self._limit is None:
            self._allow(LONGEST_HEAD)
        last = self.cycle
        super().data_received(data)
        if self.cycle is not last:
            self._unasked.pop(self, None)
            self._allow(LONGEST_EXCHANGE)

    def on_response_complete(self) -> None:
        self._allow(None)
        last = self.cycle
        super().on_response_complete()
        if self.cycle is not last:  # the next question came with this one
            self._allow(LONGEST_EXCHANGE)
        elif not self.transport.is_closing():
            self._unasked[self] = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._allow(None)
        self._unasked.pop(self, None)
        super().connection_lost(exc)

    def cut(self) -> None:
        """At once, whatever is still to be written."""
        self._unasked.pop(self, None)
        self.transport.abort()

    @property
    def _unasked(self) -> _Unasked:
        """Of the whole server: uvicorn's state is what its connections share."""
        state: Any = self.server_state
        if not hasattr(state, "unasked"):
            state.unasked = {}
        unasked: _Unasked = state.unasked
        return unasked

    def _allow(self, seconds: float | None) -> None:
        """So much time from now on; None while nothing is asked, which uvicorn bounds itself."""
        if self._limit is not None:
            self._limit.cancel()
        self._limit = None if seconds is None else self.loop.call_later(seconds, self.cut)

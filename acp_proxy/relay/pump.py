"""One direction of the wire: a pump reads and frames, an outlet writes (`outlet.py`).

Never copies what arrives whole and never sets a timer. Beside what the inspector holds, it holds no more than one read
brings, or when the stream is cut, than a pipe does.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from functools import partial
from time import monotonic_ns as clock
from typing import TYPE_CHECKING

from acp_proxy.core.events import Side
from acp_proxy.core.traffic import ONE_IN, Traffic
from acp_proxy.core.wire.framing import Framer, Part
from acp_proxy.core.wire.peek import NEWLINE
from acp_proxy.relay.outlet import Outlet
from acp_proxy.relay.stdio import End

if TYPE_CHECKING:
    from acp_proxy.relay.inspector import Inspector

READ = 1 << 16  # a pipe's size: larger reads are slower
FLOOD = 20_000  # ns between two reads of one side, with none of the other between; agents' bursts come every 50 us
FLOOD_OVER = 8  # reads that are further apart
_CLOCKED = (0, ONE_IN - 1)  # a chunk that is timed, and the next one: what is between them tells of a flood
PIPE_AT_MOST = 1 << 20  # what a pipe can hold at all

sched_yield: Callable[[], None] = getattr(os, "sched_yield", lambda: None)


class Pump:
    """Reads one side to its end and shows the inspector each run of lines."""

    def __init__(
        self,
        sender: Side,
        source: End,
        outlet: Outlet,
        inspector: Inspector,
        on_end: Callable[[], None],
        traffic: Traffic,
    ) -> None:
        self._sender = sender
        self._source = source
        self._read = source.read
        self._outlet = outlet
        self._inspector = inspector
        self._scan = inspector.scan(sender)
        self._on_end = on_end
        self._flow, self._back = traffic.flows(sender)
        self._framer = Framer(partial(inspector.streams, sender), gives_up=partial(inspector.gives_up, sender))
        outlet.refill = self._refill
        self._at_once = READ  # bytes to read
        self._reading = False
        self._watching = 0  # so many reads still look at the clock after the last one of a flood
        self._last_read = 0  # of those that looked at it, ns
        self._came_back = -1  # bytes from the other side up to then
        self.ended = False

    def start(self) -> None:
        """Reads a first time unasked: epoll never tells of a named pipe whose writer left before we came."""
        asyncio.get_running_loop().call_soon(self._first)
        self._resume()

    def balance(self) -> None:
        """Stops or resumes reading, as the outlet demands."""
        if self._outlet.congested is not self._reading or self.ended:
            return
        if self._reading:
            self.stop()
        else:
            self._resume()

    def stop(self) -> None:
        self._reading = False
        self._source.unwatch()

    def cut(self) -> None:
        """The stream ends with what is in the pipe by now, which waits where the outlet is congested."""
        if not self.ended:
            for data in self._rest():
                self._show(self._framer.feed(data))
                self._flow.bytes += len(data)
            self.finish()

    def finish(self) -> None:
        """Ends the stream: the unterminated line, then `ended`. Does nothing the second time."""
        if self.ended:
            return
        self.ended = True
        self.stop()
        self._show(self._framer.finish())
        self._inspector.ended(self._sender)
        self._on_end()

    def close(self) -> None:
        self._source.close()

    def _resume(self) -> None:
        self._reading = True
        self._source.watch(self._ready)

    def _first(self) -> None:
        if self._reading:
            self._ready()

    def _ready(self) -> None:
        """The path of every byte: what can be asked once is not asked here.

        What an attribute holds is called by a local name: an attribute that is called is looked for in the class first.
        """
        read, scan = self._read, self._scan
        outlet, flow = self._outlet, self._flow
        untimed = flow.untimed
        began = self._look_at_clock() if self._watching or untimed in _CLOCKED else 0
        try:
            data = read(self._at_once)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.finish()
            return
        size = len(data)
        if data[-1] != NEWLINE or not self._framer.between_lines:
            framer = self._framer
            if (framer.streaming and NEWLINE not in data) or (size == READ and framer.begins(data)):
                self._inspector.part(self._sender, data, last=False)
            else:
                self._cut_apart(data)
        elif scan(data):
            take = outlet.take
            try:
                taken = take(data)
            except OSError:
                taken = 0
            if taken < size:
                outlet.write(data[taken:])
        flow.bytes += size
        if untimed:
            flow.untimed = untimed - 1
        else:
            flow.timed(clock() - began)
        if outlet.congested and self._reading:
            self.stop()

    def _look_at_clock(self) -> int:
        """When a read begins, ns. Before one of a flood the processor is given up: one read for many lines."""
        now, came_back = clock(), self._back.bytes
        if now - self._last_read < FLOOD and came_back == self._came_back:
            self._watching = FLOOD_OVER
            sched_yield()  # a peer that writes line after line gets to write more of them
            now = clock()
        elif self._watching:
            self._watching -= 1
        self._last_read, self._came_back = now, came_back
        return now

    def _refill(self) -> None:
        """Reads once while it pauses: mostly there is more, and the loop need not be asked."""
        if not (self._reading or self.ended):
            self._ready()

    def _cut_apart(self, data: bytes) -> None:
        """A chunk that begins or ends within a line."""
        self._show(self._framer.feed(data))
        held = self._framer.held  # no more than fits into a pipe with it, or writing the run would take two turns
        self._at_once = READ - held if held < READ // 2 else READ

    def _rest(self) -> list[bytes]:
        """All of it before any is looked at: a process that still has the pipe's other end may write for ever."""
        rest: list[bytes] = []
        with contextlib.suppress(OSError):
            while len(rest) * READ < PIPE_AT_MOST and (data := self._read(READ)):
                rest.append(data)
                if len(data) < READ:  # that was all
                    break
        return rest

    def _show(self, pieces: list[bytes | Part]) -> None:
        for piece in pieces:
            if isinstance(piece, bytes):
                self._inspector.lines(self._sender, piece)
            else:
                self._inspector.part(self._sender, piece.data, last=piece.last)

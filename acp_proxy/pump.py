"""One direction of the wire: a pump reads and frames, an outlet writes. A slow reader pauses its pump, nothing else.

Never copies what arrives whole, never sets a timer, and holds no more than one read and what the inspector holds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from acp_proxy.core.events import Side
from acp_proxy.core.framing import Framer, Part
from acp_proxy.stdio import End

if TYPE_CHECKING:
    from acp_proxy.relay import Inspector

READ = 1 << 16  # a pipe's size: larger reads are slower
HOLDING_AT_MOST = 4 << 20  # bytes of client lines that wait for admission
PIPE_AT_MOST = 1 << 20  # what a pipe can hold at all


class Outlet:
    """Where lines to one side go. Order is the order of `write`."""

    def __init__(self, end: End, may_go_on: Callable[[], None], on_loss: Callable[[], None] = lambda: None) -> None:
        self._end = end
        self._take = end.write
        self._may_go_on = may_go_on
        self._on_loss = on_loss
        self._waiting: deque[memoryview] = deque()
        self._finishing = False
        self._open = True
        self.congested = False  # the kernel did not take all; the pump that feeds this outlet pauses
        self.lost = False  # nobody reads the other end
        self.moved = 0  # bytes that the kernel took so far

    def write(self, data: bytes) -> None:
        """Whole lines, or a piece of one. Never blocks; dropped when nobody is there to read it."""
        if self.congested:
            self._waiting.append(memoryview(data))
            return
        if not self._open:
            return
        try:
            taken = self._take(data)
        except BlockingIOError:
            taken = 0
        except OSError:
            self.lose()
            return
        self.moved += taken
        if taken < len(data):
            self._waiting.append(memoryview(data)[taken:])
            self.congested = True
            self._end.watch(self._flush)

    def resume_reading(self) -> None:
        """The inspector holds less than it did: its source may be read again."""
        self._may_go_on()

    def finish(self) -> None:
        """Closes once all is taken: half of the connection ends."""
        self._finishing = True
        if not self.congested:
            self.close()

    def lose(self) -> None:
        self.lost = True
        self.close()
        self._on_loss()

    def close(self) -> None:
        """At once; what waits is dropped."""
        if self._open:
            self._open = False
            self.congested = False
            self._waiting.clear()
            self._end.close()

    def _flush(self) -> None:
        waiting = self._waiting
        while waiting:
            try:
                taken = self._take(waiting[0])
            except BlockingIOError:
                return
            except OSError:
                self.lose()
                return
            self.moved += taken
            if taken < len(waiting[0]):
                waiting[0] = waiting[0][taken:]
                return
            waiting.popleft()
        self.congested = False
        self._end.unwatch()
        if self._finishing:
            self.close()
        self._may_go_on()


class Pump:
    """Reads one side to its end and shows the inspector each run of lines."""

    def __init__(
        self, sender: Side, source: End, outlet: Outlet, inspector: Inspector, on_end: Callable[[], None]
    ) -> None:
        self._sender = sender
        self._source = source
        self._read = source.read
        self._outlet = outlet
        self._inspector = inspector
        self._on_end = on_end
        self._framer = Framer(partial(inspector.streams, sender))
        self._holds = sender is Side.CLIENT  # only clients' lines wait for admission
        self._paused = True
        self._left: int | None = None  # bytes that may still come, once it was cut
        self.ended = False

    def start(self) -> None:
        """Reads a first time unasked: epoll never tells of a named pipe whose writer left before we came."""
        asyncio.get_running_loop().call_soon(self._ready)
        self._resume()

    def balance(self) -> None:
        """Pauses or resumes, as the outlet and the inspector's held lines demand."""
        pause = self._outlet.congested or (self._holds and self._inspector.holding() > HOLDING_AT_MOST)
        if pause is self._paused or self.ended:
            return
        if pause:
            self.stop()
        else:
            self._resume()

    def stop(self) -> None:
        self._paused = True
        self._source.unwatch()

    def cut(self) -> None:
        """The stream ends with what is in the pipe by now."""
        self._left = PIPE_AT_MOST
        if not self._paused:
            self._resume()

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
        self._paused = False
        if self._left is None:
            self._source.watch(self._ready)
            return
        self._source.unwatch()
        while not (self.ended or self._paused):
            self._ready()

    def _ready(self) -> None:
        if self._paused:
            return
        held = self._framer.held
        try:  # no more than fits into a pipe with what is held, or writing the run would take two turns
            data = self._read(READ - held if held < READ // 2 else READ)
        except BlockingIOError:
            if self._left is not None:
                self.finish()
            return
        except OSError:
            data = b""
        if self._left is not None:
            self._left -= len(data)
        if data:
            self._show(self._framer.feed(data))
            self.balance()
        if not data or (self._left is not None and self._left <= 0):
            self.finish()

    def _show(self, pieces: list[bytes | Part]) -> None:
        for piece in pieces:
            if isinstance(piece, bytes):
                self._inspector.lines(self._sender, piece)
            else:
                self._inspector.part(self._sender, piece.data, piece.first, piece.last)

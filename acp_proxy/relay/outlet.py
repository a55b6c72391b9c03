"""The output for lines to one side, written at once or when the reader is ready. A slow reader pauses only its pump."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from acp_proxy.relay.stdio import End

HOLDING_AT_MOST = 4 << 20  # bytes of lines that the inspector holds back, and of our own that are not read

_nothing: Callable[[object], int] = ().count  # a `take` that takes no byte of anything: 0, without a call into Python


class Outlet:
    """The output for lines to one side, in the order of `write`.

    `may_go_on` is called when little waits any more, and when the other end is closed.
    """

    def __init__(self, end: End, may_go_on: Callable[[], None]) -> None:
        self._end = end
        self.take: Callable[[bytes | memoryview], int] = end.write
        """Writes as much of whole lines as goes out at once, in bytes; the rest is for `write`. Raises OSError."""
        self.refill: Callable[[], None] = _nobody
        """Called when all that waited has been written, to bring more in its place."""
        self._may_go_on = may_go_on
        self._waiting: deque[bytes | memoryview] = deque()
        self._held_back = 0  # bytes
        self._own = self._owed = 0  # bytes of our own lines that wait, here and elsewhere
        self._answers: Outlet | None = None
        self._unread = False  # the sender of what goes out here leaves too much of our own lines to it unread
        self._finishing = False
        self._open = True
        self.congested = False  # something waits: the pump that feeds this outlet pauses
        self.lost = False  # the other end is closed
        self.moved = 0  # bytes that the kernel took so far by `write`

    def start(self) -> None:
        self._end.watch_loss(self.lose)

    def write(self, data: bytes) -> None:
        """Whole lines, or a piece of one. Never blocks; dropped when the reader is gone."""
        try:
            taken = self.take(data)
        except BlockingIOError:
            taken = 0
        except OSError:
            self.lose()
            return
        self.moved += taken
        if taken < len(data) and self._open:
            if self.take is not _nothing:
                self.take = _nothing
                self._end.watch(self._flush)
            self._waiting.append(memoryview(data)[taken:] if taken else data)
            self.congested = True

    def hold_back(self, size: int) -> None:
        """The inspector keeps so many bytes of lines to itself now; with too many of them their source is not read."""
        less, self._held_back = size < self._held_back, size
        self._weigh()
        if less:
            self._may_go_on()

    def answers(self, other: Outlet) -> None:
        """Lines from our reader go to `other`, which pauses while too many bytes that we insert here are unread."""
        self._answers = other

    def insert(self, line: bytes) -> None:
        """Insert a whole line of our own. A peer that leaves too many of these unread is not read either."""
        self.write(line)
        if self._waiting:
            self._own += len(line)
            self._weigh_own()

    def owe(self, size: int) -> None:
        """So many bytes of our own lines are still to be inserted."""
        self._owed = size
        self._weigh_own()

    def _weigh_own(self) -> None:
        other, unread = self._answers, self._open and self._own + self._owed > HOLDING_AT_MOST
        if other is not None and other._unread is not unread:
            other._unread = unread
            other._weigh()
            if not unread:
                other._may_go_on()

    @property
    def delivered(self) -> bool:
        """Whether the kernel has all."""
        return not self._waiting

    def finish(self) -> None:
        """Closes once all is delivered: half of the connection ends."""
        self._finishing = True
        if not self._waiting:
            self.close()

    def lose(self) -> None:
        """The other end is gone."""
        if not self.lost:
            self.lost = True
            self.close()
            self._weigh_own()
            self._may_go_on()

    def close(self) -> None:
        """At once; what waits is dropped."""
        if self._open:
            self._open = self.congested = False
            self.take = _nothing
            self._waiting.clear()
            self._end.close()

    def _weigh(self) -> None:
        self.congested = self._open and (bool(self._waiting) or self._held_back > HOLDING_AT_MOST or self._unread)

    def _flush(self) -> None:
        """Writes what waits, and has more read in its place without asking the loop.

        In a flood each chunk finds the pipe still full of the one before it: so one wait is enough for both ends.
        """
        waiting, write = self._waiting, self._end.write
        try:
            while waiting:
                taken = write(waiting[0])
                self.moved += taken
                if taken < len(waiting[0]):
                    waiting[0] = memoryview(waiting[0])[taken:]
                    return
                waiting.popleft()
        except BlockingIOError:
            return
        except OSError:
            self.lose()
            return
        if self._own:
            self._own = 0
            self._weigh_own()
        if self._held_back <= HOLDING_AT_MOST and not self._unread:
            self.refill()
        if self._waiting or not self._open:
            return
        self._end.unwatch()
        self.take = write
        if self._finishing:
            self.close()
        self._weigh()
        self._may_go_on()


def _nobody() -> None:
    """Feeds an outlet that no pump feeds."""

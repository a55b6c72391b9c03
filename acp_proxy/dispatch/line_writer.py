"""One direction of the wire as the dispatcher writes it: lines that are forwarded, and our own between whole ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acp_proxy.core.wire.long_lines import LongLine

if TYPE_CHECKING:
    from acp_proxy.relay.inspector import Sink


class LineWriter:
    """Bytes that are forwarded go through unchanged; nothing of ours ever stands inside a line."""

    def __init__(self, outlet: Sink) -> None:
        self.outlet = outlet
        self._long: LongLine | None = None  # a line of which a part is out already
        self._delayed: list[bytes] = []
        self._owed = 0  # bytes of these
        self._broken_off = False  # the last line lacks its newline, for its sender is gone

    def forward(self, run: bytes) -> None:
        """Whole lines. What had to wait comes behind a last line that lacks its newline, not onto it."""
        if run:
            self.outlet.write(b"\n" + run if self._broken_off else run)
            self._broken_off = not run.endswith(b"\n")

    def piece(self, data: bytes, *, last: bool) -> LongLine | None:
        """A piece of a line that is too long to be held; the line's two ends, when it is through."""
        self.outlet.write(data)
        long = self._long = self._long or LongLine()
        long.keep(data)
        if not last:
            return None
        self._long = None
        self._broken_off = not data.endswith(b"\n")
        return long

    def insert(self, line: bytes) -> None:
        """A line of our own, given without its newline: now, or when the line that is half out is through."""
        if self._long is not None:
            self._delayed.append(line)
            self._owed += len(line)
            self.outlet.owe(self._owed)
            return
        self.outlet.insert(b"\n" + line + b"\n" if self._broken_off else line + b"\n")
        self._broken_off = False

    def insert_delayed(self) -> None:
        """After what the long line itself has caused."""
        delayed, self._delayed, self._owed = self._delayed, [], 0
        for line in delayed:
            self.insert(line)
        if delayed:
            self.outlet.owe(self._owed)

"""The interfaces between the relay and an inspector of its lines. Types only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from acp_proxy.core.events import Side


class Sink(Protocol):
    """The output for lines to one side (an `outlet.Outlet`). Writing never blocks and keeps the order."""

    def write(self, data: bytes) -> None: ...

    def insert(self, line: bytes) -> None: ...

    def owe(self, size: int) -> None: ...

    def hold_back(self, size: int) -> None: ...


class Inspector(Protocol):
    """Inspects lines, and writes those to forward to the given outlets. No method may raise."""

    def attach(self, to_client: Sink, to_agent: Sink) -> None:
        """Comes first, once, on the running loop."""

    def scan(self, sender: Side) -> Callable[[bytes], bool]:
        """A function that the pump calls, after `attach`, with whole lines as they come, each with its newline.

        True: the pump forwards them as they are. False: the inspector has seen to them, as `lines` does.
        """

    def lines(self, sender: Side, run: bytes) -> None:
        """See to one or more whole lines with their newlines; only the very last of a stream may lack its own."""

    def streams(self, sender: Side, head: bytes) -> bool:
        """Whether a line longer than 64 KiB may be forwarded as it comes; `head` is its first 64 KiB."""

    def gives_up(self, sender: Side, size: int) -> bool:
        """Whether a line that may not stream is forwarded after all, now that `size` bytes of it are stored.

        Asked when they are more than 64 MiB, and at each piece from then on.
        """

    def part(self, sender: Side, data: bytes, *, last: bool) -> None:
        """A piece of a line that streams. The last ends with the newline, or is empty where the stream broke off."""

    def ended(self, sender: Side) -> None:
        """That side's stream ended, after its last line. Not called for a client that outlives the agent."""

    def holding(self) -> int:
        """Bytes of client lines held back for admission. Whenever it changes, tell `to_agent.hold_back()`."""

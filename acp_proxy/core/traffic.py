"""What passes through a relay: plain integers that only grow, counted on the path of every byte."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from typing import Literal

# Nanoseconds from the read of a chunk until it was written; the last are above all.
BOUNDS = (10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 10**6, 2_500_000, 5 * 10**6, 10**7, 25 * 10**6, 50 * 10**6)

Error = Literal["interceptor", "rows_dropped"]
Exit = Literal["ok", "failed", "signal", "stopped"]
ERRORS: tuple[Error, ...] = ("interceptor", "rows_dropped")
EXITS: tuple[Exit, ...] = ("ok", "failed", "signal", "stopped")


class Flow:
    """What came from one side."""

    __slots__ = ("_traffic", "bytes", "chunks", "messages", "nanoseconds")

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self.messages = 0
        self.bytes = 0
        self.nanoseconds = 0
        self.chunks = [0] * (len(BOUNDS) + 1)  # by what they took

    def passed(self, size: int, took: int) -> None:
        """A chunk of so many bytes; 0.2 us."""
        self.bytes += size
        self.nanoseconds += took
        self.chunks[bisect_left(BOUNDS, took)] += 1
        if self._traffic.quiet:
            self._traffic.stir()


class Traffic:
    """Both directions, and how it ended. `stirred` is called at the first chunk after `quiet` was set."""

    def __init__(self) -> None:
        self.quiet = False
        self.stirred: Callable[[], object] = _nobody
        self.from_client = Flow(self)
        self.from_agent = Flow(self)
        self.errors: Counter[Error] = Counter()
        self.exits: Counter[Exit] = Counter()

    def watch(self, stirred: Callable[[], object]) -> None:
        self.quiet = True
        self.stirred = stirred

    def stir(self) -> None:
        self.quiet = False
        self.stirred()


def _nobody() -> None:
    """Nobody wants to know."""

"""What passes through a relay: plain integers that only grow, counted on the path of every byte."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

# Nanoseconds from the read of a chunk until it was written; the last are above all.
BOUNDS = (10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 10**6, 2_500_000, 5 * 10**6, 10**7, 25 * 10**6, 50 * 10**6)

_TOGETHER = 256  # chunks

Error = Literal["interceptor", "rows_dropped"]
Exit = Literal["ok", "failed", "signal", "stopped"]
ERRORS: tuple[Error, ...] = ("interceptor", "rows_dropped")
EXITS: tuple[Exit, ...] = ("ok", "failed", "signal", "stopped")


class Flow:
    """What came from one side. What its chunks took is sorted many at a time: one alone would take longer."""

    __slots__ = ("_buckets", "_full", "_nanoseconds", "bytes", "full_at", "messages", "times")

    def __init__(self, full: Callable[[], object]) -> None:
        """`full` is called after the chunk with which `times` has `full_at`."""
        self.messages = 0
        self.bytes = 0
        self.times: list[int] = []  # ns, of the latest chunks
        self.full_at = _TOGETHER
        self._full = full
        self._buckets = [0] * (len(BOUNDS) + 1)
        self._nanoseconds = 0

    def passed(self, size: int, took: int) -> None:
        """A chunk of so many bytes. `pump.py` has these lines once more, where each call counts."""
        self.bytes += size
        self.times.append(took)
        if len(self.times) >= self.full_at:
            self.sort()

    def sort(self) -> None:
        self._sort()
        self._full()

    def took(self) -> tuple[Sequence[int], int]:
        """How many chunks took up to each of `BOUNDS` and more than the one before, or longer; and all of them, ns."""
        self._sort()
        return self._buckets, self._nanoseconds

    def _sort(self) -> None:
        times, below = self.times, 0
        times.sort()
        for index, bound in enumerate(BOUNDS):
            at = bisect_right(times, bound, below)
            self._buckets[index] += at - below
            below = at
        self._buckets[-1] += len(times) - below
        self._nanoseconds += sum(times)
        times.clear()


class Traffic:
    """Both directions, and how it ended. After `watch` and after each `rest`, `stirred` is called at the next chunk."""

    def __init__(self) -> None:
        self._stirred: Callable[[], object] | None = None
        self._resting = False
        self.from_client = Flow(self._stir)
        self.from_agent = Flow(self._stir)
        self.errors: Counter[Error] = Counter()
        self.exits: Counter[Exit] = Counter()

    def watch(self, stirred: Callable[[], object]) -> None:
        self._stirred = stirred
        self.rest()

    def rest(self) -> None:
        self._resting = True
        self.from_client.full_at = self.from_agent.full_at = 1

    def _stir(self) -> None:
        if self._resting:
            self._resting = False
            self.from_client.full_at = self.from_agent.full_at = _TOGETHER
            if self._stirred is not None:
                self._stirred()

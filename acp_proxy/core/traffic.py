"""Traffic counters of a relay: plain integers that only grow, updated on the path of every byte."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from typing import Literal

from acp_proxy.core.events import Side

# Of a histogram, in nanoseconds from the read of a chunk until it was written. One more bucket is above all of them.
BOUNDS = (10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 10**6, 2_500_000, 5 * 10**6, 10**7, 25 * 10**6, 50 * 10**6)

ONE_IN = 64  # chunks is timed: to look at the clock twice and to sort what it says costs as much as a lone chunk

Error = Literal["interceptor", "rows_dropped", "partly_read"]
Exit = Literal["ok", "failed", "signal", "stopped"]
ERRORS: tuple[Error, ...] = ("interceptor", "rows_dropped", "partly_read")
EXITS: tuple[Exit, ...] = ("ok", "failed", "signal", "stopped")


class Flow:
    """The messages and bytes from one side."""

    __slots__ = ("_on_timed", "buckets", "bytes", "messages", "nanoseconds", "untimed")

    def __init__(self, on_timed: Callable[[], object]) -> None:
        """`on_timed` is called with each chunk that is timed."""
        self.messages = 0
        self.bytes = 0
        self.untimed = 0  # so many chunks pass until one is timed; the code that forwards them counts down
        self.buckets = [0] * (len(BOUNDS) + 1)
        """How many of the timed took up to each of `BOUNDS` and more than the one before, or longer than all."""
        self.nanoseconds = 0  # all of these together
        self._on_timed = on_timed

    def timed(self, took: int) -> None:
        """A chunk, in nanoseconds."""
        self.untimed = ONE_IN - 1
        self.buckets[bisect_left(BOUNDS, took)] += 1
        self.nanoseconds += took
        self._on_timed()


class Traffic:
    """Both directions, and how it ended. `watch` and `rearm` have the next chunk told."""

    def __init__(self) -> None:
        self._on_activity: Callable[[], object] | None = None
        self._armed = False
        self.from_client = Flow(self._activity)
        self.from_agent = Flow(self._activity)
        self.errors: Counter[Error] = Counter()
        self.exits: Counter[Exit] = Counter()

    def flows(self, sender: Side) -> tuple[Flow, Flow]:
        """The counters of one side, and those of the other."""
        there_and_back = self.from_client, self.from_agent
        return there_and_back if sender is Side.CLIENT else there_and_back[::-1]

    def watch(self, on_activity: Callable[[], object]) -> None:
        """Calls it once, at the next chunk; and once after each `rearm`."""
        self._on_activity = on_activity
        self.rearm()

    def rearm(self) -> None:
        self._armed = True
        self.from_client.untimed = self.from_agent.untimed = 0

    def _activity(self) -> None:
        if self._armed:
            self._armed = False
            if self._on_activity is not None:
                self._on_activity()

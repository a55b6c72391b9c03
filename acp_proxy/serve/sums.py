"""Sums of the ledger by interval, each kept until rows are added to a day that is in it.

The days that have new rows are found by how many rows each has: first of which four weeks that changed, then of which
days in those.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Protocol

from acp_proxy.ledger import Query, Sums
from acp_proxy.ledger.reading.recent import Recent
from acp_proxy.ledger.sums.buckets import A_DAY, EVER, FOUR_WEEKS, QUARTER_HOUR
from acp_proxy.serve.periods import Interval

Where = tuple[tuple[str, str | None], ...]  # as in `Query`

_FRESH = 0.2  # seconds for which it is not asked again whether there are new rows
_MOST_KEPT = 5000  # sums, before all are forgotten


class Summing(Protocol):
    """The methods of a ledger that are used here."""

    @property
    def recent(self) -> Recent: ...

    def summed(self, query: Query, by: Sequence[str]) -> list[Sums]: ...


class KeptSums:
    """Sums of one organisation's rows. Runs in the ledger's thread; raises what the ledger raises."""

    def __init__(self, ledger: Summing, organisation: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._ledger = ledger
        self._organisation = organisation
        self._clock = clock
        self._asked_at: float | None = None
        self._round = 0  # of looking for changes
        self._four_weeks: Mapping[int, int] = {}
        self._days: dict[int, Mapping[int, int]] = {}  # of four weeks that have changed since they were first seen
        self._changed: dict[int, int] = {}  # day -> the round in which it was seen to have new rows
        self._kept: dict[tuple[Interval, tuple[str, ...], Where], tuple[int, Sequence[Sums]]] = {}

    def version(self) -> str:
        """Another one when rows were added."""
        self._look()
        return blake2b(repr(sorted(self._four_weeks.items())).encode(), digest_size=8).hexdigest()

    def of(self, since: int | None, until: int | None, by: Sequence[str], where: Where = ()) -> Sequence[Sums]:
        """As `Ledger.summed`, of rows that are `where` says; as of the last `version`."""
        key = ((since, until), tuple(by), where)
        kept = self._kept.get(key)
        if kept is not None and kept[0] >= self._changed_in(since, until):
            return kept[1]
        sums = self._ledger.summed(Query(since, until, (("organisation", self._organisation), *where)), by)
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        self._kept[key] = (self._round, sums)
        return sums

    def _look(self) -> None:
        now = self._clock()
        if self._asked_at is not None and now - self._asked_at < _FRESH:
            return
        found = self._ledger.recent.rows_by_four_weeks(self._organisation)
        self._round += 1
        for block in found.keys() | self._four_weeks.keys():
            if self._round > 1 and found.get(block) != self._four_weeks.get(block):
                self._look_into(block)
        self._four_weeks = found
        self._asked_at = now

    def _look_into(self, block: int) -> None:
        first = block * FOUR_WEEKS // A_DAY
        before = self._days.get(block)
        found = self._ledger.recent.rows_by_day(self._organisation, block)
        for day in range(first, first + FOUR_WEEKS // A_DAY):
            if before is None or found.get(day) != before.get(day):
                self._changed[day] = self._round
        self._days[block] = found

    def _changed_in(self, since: int | None, until: int | None) -> int:
        first = -EVER if since is None else since // (A_DAY * QUARTER_HOUR)
        last = EVER if until is None else (until - 1) // (A_DAY * QUARTER_HOUR)
        return max((seen for day, seen in self._changed.items() if first <= day <= last), default=0)

"""What was spent in each day, week or month of a time zone, in order. Reads sums only, never rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from acp_proxy.core.windows import Window
from acp_proxy.ledger import Ledger, Query, Sums
from acp_proxy.times import PERIODS, SECOND, Zone

_QUARTER_HOUR = 900 * SECOND
_LAST = 2**63 - 1  # of what a ledger's column holds
_MOST = 60  # periods that are asked for one by one: of a year the weeks, and not the days


def sums_by_period(ledger: Ledger, by: str, query: Query, zone: Zone, total: Sums) -> Iterator[tuple[str, list[Sums]]]:
    """Each period that has rows, as `PERIODS` writes it, with sums that together are its own.

    `total` is of all rows of the query.
    """
    periods = _one_by_one(ledger, by, query, zone, total)
    if sum(sums.rows for _, sums in periods) != total.rows:  # too many, or clocks that were set
        periods = _of_quarter_hours(ledger, by, query, zone)
    for key, found in groupby(periods, lambda period: period[0]):
        yield key, [sums for _, sums in found]


def _one_by_one(ledger: Ledger, by: str, query: Query, zone: Zone, total: Sums) -> Sequence[tuple[str, Sums]]:
    """A ledger adds a week up from days; none where there are too many periods, or the zone has no rules."""
    intervals = list(_intervals(by, zone, total))
    if len(intervals) > _MOST:
        return ()
    found = [
        (PERIODS[by](zone.local(start)), ledger.summed(_within(query, start, end), ())) for start, end in intervals
    ]
    return [(key, sums) for key, group in found for sums in group]


def _intervals(by: str, zone: Zone, total: Sums) -> Iterator[tuple[int, int]]:
    """One more than `_MOST` at most."""
    window, at = Window.parse(by), total.started_at
    for _ in range(_MOST + 1):
        bounds = window.bounds(at, zone.info) if zone.info else None
        if bounds is None or bounds.start is None or bounds.end is None or at > total.ended_at:
            return
        yield bounds.start, bounds.end
        at = bounds.end


def _within(query: Query, start: int, end: int) -> Query:
    since = start if query.since is None else max(start, query.since)
    until = min(end, _LAST if query.until is None else query.until)
    return replace(query, since=since, until=until)


def _of_quarter_hours(ledger: Ledger, by: str, query: Query, zone: Zone) -> Sequence[tuple[str, Sums]]:
    period = PERIODS[by]
    groups = ledger.summed(query, ("quarter_hour",))
    return sorted(((period(zone.local(int(sums.key[0] or 0) * _QUARTER_HOUR)), sums) for sums in groups), key=_first)


def _first(period: tuple[str, Sums]) -> str:
    return period[0]

"""Spend by day, week or month in a time zone, in order. Reads sums only, never rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby

from msgspec.structs import replace

from acp_proxy.core.windows import DAY, HOUR, Window
from acp_proxy.ledger import LedgerReader, Query, Sums
from acp_proxy.ledger.sums.buckets import QUARTER_HOUR
from acp_proxy.report import sums_of_all
from acp_proxy.text.times import PERIODS, SECOND, Zone, instant, midnight

_LAST = 2**63 - 1  # of what a ledger's column holds
_MOST = 60  # periods that are asked for one by one: of a year the weeks, and not the days
_EPOCH = datetime(1970, 1, 1)  # a local day has no zone
_LOOKED_AT = 7 * DAY  # how far apart: a zone keeps its distance to UTC for weeks
_AT_ONCE = timedelta(days=7)  # whose sums are in memory


def sums_by_period(
    ledger: LedgerReader, by: str, query: Query, zone: Zone, total: Sums
) -> Iterator[tuple[str, list[Sums]]]:
    """Each period that has rows, as `PERIODS` writes it, with sums that together are its own.

    `total` is of all rows of the query.
    """
    periods = () if by == "hour" else _one_by_one(ledger, by, query, zone, total)
    if not _is_all(periods, total) and by != "hour":  # too many
        periods = _of_days(ledger, by, query, zone, total)
    if not _is_all(periods, total):  # clocks that were set, or a zone without rules
        periods = _of_quarter_hours(ledger, by, query, zone)
    for key, found in groupby(periods, lambda period: period[0]):
        yield key, [sums for _, sums in found]


def sums_by_day(
    ledger: LedgerReader, query: Query, zone: Zone, by: Sequence[str]
) -> Iterator[tuple[datetime, list[Sums]]]:
    """Each day that has rows, as its local midnight without a zone, with sums by `by`: a week is read at a time.

    A key comes more than once where clocks change in a day.
    """
    at = _first_start(ledger, query)
    while at is not None:
        end = _week_after(zone, at)
        found: dict[datetime, list[Sums]] = {}
        for day, sums in _by_day(ledger, query, zone, at, end, by):
            found.setdefault(day, []).append(replace(sums, key=sums.key[1:]))
        yield from sorted(found.items())
        at = end if found else _first_start(ledger, _within(query, end, _LAST))


def _first_start(ledger: LedgerReader, query: Query) -> int | None:
    """When the last one begins is not known: a clock may have been set back before it ended."""
    total = sums_of_all(ledger, query)
    return total.started_at if total else None


def _week_after(zone: Zone, at: int) -> int:
    """A midnight around which no clock is set: a day that is left and comes back is on one side of it."""
    day = midnight(zone.local(at)) + _AT_ONCE
    while True:
        begun = instant(day)
        if zone.local(begun + 2 * HOUR) - zone.local(begun - 2 * HOUR) == timedelta(hours=4):
            return begun
        day += timedelta(days=1)


def _by_day(
    ledger: LedgerReader, query: Query, zone: Zone, start: int, end: int, by: Sequence[str]
) -> Iterator[tuple[datetime, Sums]]:
    steady = list(_steady(zone, start, end))
    if steady and not any(offset % QUARTER_HOUR for _, _, offset in steady):
        for since, until, offset in steady:
            for sums in ledger.summed(_within(query, since, until), (_days(offset), *by)):
                yield _EPOCH + timedelta(days=int(sums.key[0] or 0)), sums
        return
    for sums in ledger.summed(_within(query, start, end), ("quarter_hour", *by)):
        yield midnight(zone.local(int(sums.key[0] or 0) * QUARTER_HOUR)).replace(tzinfo=None), sums


def _is_all(periods: Sequence[tuple[str, Sums]], total: Sums) -> bool:
    return sum(sums.rows for _, sums in periods) == total.rows


def _one_by_one(ledger: LedgerReader, by: str, query: Query, zone: Zone, total: Sums) -> Sequence[tuple[str, Sums]]:
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


def _of_days(ledger: LedgerReader, by: str, query: Query, zone: Zone, total: Sums) -> Sequence[tuple[str, Sums]]:
    """Days of UTC, or such as begin some quarter hours before; a day is in parts where clocks change in it."""
    found: list[tuple[str, Sums]] = []
    for start, end, offset in _steady(zone, total.started_at, total.ended_at + 1):
        if offset % QUARTER_HOUR:
            return ()
        days = ledger.summed(_within(query, start, end), (_days(offset),))
        found += [(PERIODS[by](_EPOCH + timedelta(days=int(sums.key[0] or 0))), sums) for sums in days]
    return sorted(found, key=_first)


def _days(offset: int) -> str:
    """What a ledger calls days of clocks that are so many ns ahead of UTC: whole quarter hours."""
    return f"day{offset // QUARTER_HOUR:+d}" if offset else "day"


def _steady(zone: Zone, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Intervals with what the zone's clocks are ahead of UTC in them, all in ns; none where the zone has no rules."""
    if zone.info is None:
        return
    began, offset, at = start, _offset(zone, start), start
    while at < end:
        following = min(at + _LOOKED_AT, end)
        if _offset(zone, following) != offset:
            changed = _change(zone, at, following)
            yield began, changed, offset
            began, offset = changed, _offset(zone, changed)
        at = following
    yield began, end, offset


def _change(zone: Zone, before: int, after: int) -> int:
    """The first second at which the clocks are set otherwise than `before`."""
    old, early, late = _offset(zone, before), before // SECOND, after // SECOND
    while late - early > 1:
        middle = (early + late) // 2
        early, late = (middle, late) if _offset(zone, middle * SECOND) == old else (early, middle)
    return late * SECOND


def _offset(zone: Zone, at: int) -> int:
    return int((zone.local(at).utcoffset() or timedelta()).total_seconds()) * SECOND


def _of_quarter_hours(ledger: LedgerReader, by: str, query: Query, zone: Zone) -> Sequence[tuple[str, Sums]]:
    period = PERIODS[by]
    groups = ledger.summed(query, ("quarter_hour",))
    return sorted(((period(zone.local(int(sums.key[0] or 0) * QUARTER_HOUR)), sums) for sums in groups), key=_first)


def _first(period: tuple[str, Sums]) -> str:
    return period[0]

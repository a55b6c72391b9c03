"""Today, this week, this month …, or from one date to another, and the steps that a chart of them has.

Calendars of a time zone; has no clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Literal

from msgspec import Struct

from acp_proxy.core.windows import DAY, HOUR
from acp_proxy.text.times import Zone, begin_of, instant, midnight

RANGES = ("today", "week", "month", "last-month", "year", "all")
MOST_MONTHS = 120  # of a chart; its first step has all that was before
MOST_DAYS = 92  # of dates whose chart has a step for each day
_YEARS = range(1970, 2200)  # a ledger holds times up to 2262

Interval = tuple[int | None, int | None]  # half-open, Unix ns; None is open
Step = Literal["hour", "day", "month"]


class Steps(Struct, frozen=True):
    """`starts` are Unix ns, ascending; each step ends where the next one starts, the last one at `end`, None: never."""

    step: Step
    starts: tuple[int, ...]
    end: int | None = None

    @property
    def bounds(self) -> Iterator[Interval]:
        yield from zip(self.starts, (*self.starts[1:], self.end), strict=True)


def bounds_of(period: str, zone: Zone, now: int) -> Interval:
    """When a period began, None for all time, and when it ended, None for those that run. It is checked already."""
    if ".." in period:
        first, last = dates_of(period)
        since = None if first is None else _midnight_of(first, zone)
        return since, None if last is None else _midnight_of(last + timedelta(days=1), zone)
    match period:
        case "all":
            return None, None
        case "last-month":
            until = begin_of("month", zone, now)
            return begin_of("month", zone, until - 1), until
    return begin_of(period, zone, now), None


def steps_of(period: str, zone: Zone, now: int, first: int | None) -> Steps:
    """The steps from the period's start to its end or now. `first` is the first row's start, for all time."""
    if ".." in period:
        return _steps_of_dates(*bounds_of(period, zone, now), zone, now, first)
    match period:
        case "last-month":
            until = begin_of("month", zone, now)
            return Steps("day", days(begin_of("month", zone, until - 1), zone, until - 1), until)
        case "today":
            return Steps("hour", tuple(range(begin_of(period, zone, now), now + 1, HOUR)))
        case "week" | "month":
            return Steps("day", days(begin_of(period, zone, now), zone, now))
        case "year":
            return Steps("month", _months(begin_of(period, zone, now), zone, now))
    return Steps("month", _months(now if first is None else min(first, now), zone, now))


def dates_of(period: str) -> tuple[date | None, date | None]:
    """The first and the last day of `2026-11-01..2026-11-15`, of which one may be left out.

    Raises ValueError with a line for the user.
    """
    before, _, after = period.partition("..")
    first, last = _date_of(before), _date_of(after)
    if not (first or last):
        raise ValueError("expected a date before or after the two dots")
    if first and last and last < first:
        raise ValueError("expected the first date not to be after the last")
    return first, last


def _date_of(text: str) -> date | None:
    if not text:
        return None
    try:
        found = datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError:
        found = None
    if found is None or found.year not in _YEARS or len(text) != len("2026-11-01"):
        raise ValueError(f"expected a date such as 2026-11-01, not {text!r}")
    return found


def _midnight_of(day: date, zone: Zone) -> int:
    return instant(datetime(day.year, day.month, day.day, tzinfo=zone.info))


def _steps_of_dates(since: int | None, until: int | None, zone: Zone, now: int, first: int | None) -> Steps:
    last = now if until is None else min(now, until - 1)
    start = since if since is not None else last if first is None else min(first, last)
    last = max(last, start)  # days to come are one step
    if zone.local(start).date() == zone.local(last).date():
        return Steps("hour", tuple(range(begin_of("today", zone, start), last + 1, HOUR)), until)
    if last - start <= MOST_DAYS * DAY:
        return Steps("day", days(start, zone, last), until)
    months = _months(start, zone, last)
    return Steps("month", months if since is None else (since, *months[1:]), until)


def days(since: int, zone: Zone, now: int) -> tuple[int, ...]:
    """The midnights from that of `since` to the last one."""
    day = midnight(zone.local(since))
    found = [instant(day)]
    while (following := instant(day + timedelta(days=1))) <= now:
        day += timedelta(days=1)
        found.append(following)
    return tuple(found)


def _months(since: int, zone: Zone, now: int) -> tuple[int, ...]:
    month = zone.local(now).replace(day=1)
    found: list[int] = []
    while not found or (found[-1] > since and len(found) < MOST_MONTHS):
        found.append(instant(midnight(month)))
        month = (midnight(month) - timedelta(days=1)).replace(day=1)
    return tuple(reversed(found))

"""Today, this week, this month …, and the steps that a chart of them has: calendars of a time zone. Has no clock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

from acp_proxy.core.windows import HOUR
from acp_proxy.times import SECOND, Zone

RANGES = ("today", "week", "month", "year", "all")
MOST_MONTHS = 120  # of a chart; its first step has all that was before

Interval = tuple[int | None, int | None]  # half-open, Unix ns; None is open
Step = Literal["hour", "day", "month"]


class Steps(Struct, frozen=True):
    """`starts` are Unix ns, ascending; each step ends where the next one starts, the last one does not end."""

    step: Step
    starts: tuple[int, ...]

    @property
    def bounds(self) -> Iterator[Interval]:
        yield from zip(self.starts, (*self.starts[1:], None), strict=True)


def start_of(period: str, zone: Zone, now: int) -> int | None:
    """When the running one of `RANGES` began; None for all time."""
    return None if period == "all" else begin_of(period, zone, now)


def begin_of(period: str, zone: Zone, now: int) -> int:
    """The same for those that have a beginning. Weeks begin on Monday."""
    today = _midnight(zone.local(now))
    match period:
        case "week":
            return _instant(today - timedelta(days=today.weekday()))
        case "month":
            return _instant(today.replace(day=1))
        case "year":
            return _instant(today.replace(month=1, day=1))
    return _instant(today)


def steps_of(period: str, zone: Zone, now: int, first: int | None) -> Steps:
    """The steps from the period's start to now. `first` is the first row's start, for all time."""
    match period:
        case "today":
            return Steps("hour", tuple(range(begin_of(period, zone, now), now + 1, HOUR)))
        case "week" | "month":
            return Steps("day", days(begin_of(period, zone, now), zone, now))
        case "year":
            return Steps("month", _months(begin_of(period, zone, now), zone, now))
    return Steps("month", _months(now if first is None else min(first, now), zone, now))


def days(since: int, zone: Zone, now: int) -> tuple[int, ...]:
    """The midnights from that of `since` to the last one."""
    day = _midnight(zone.local(since))
    found = [_instant(day)]
    while (following := _instant(day + timedelta(days=1))) <= now:
        day += timedelta(days=1)
        found.append(following)
    return tuple(found)


def day_after(midnight: int, zone: Zone) -> int:
    """The midnight that follows one."""
    return _instant(_midnight(zone.local(midnight)) + timedelta(days=1))


def _months(since: int, zone: Zone, now: int) -> tuple[int, ...]:
    month = zone.local(now).replace(day=1)
    found: list[int] = []
    while not found or (found[-1] > since and len(found) < MOST_MONTHS):
        found.append(_instant(_midnight(month)))
        month = (_midnight(month) - timedelta(days=1)).replace(day=1)
    return tuple(reversed(found))


def _midnight(moment: datetime) -> datetime:
    """The day's beginning, which some zones do not have at 00:00 when clocks change."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


def _instant(moment: datetime) -> int:
    return int(moment.timestamp()) * SECOND

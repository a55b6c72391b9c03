"""Today, this week, this month …, and the steps that a chart of them has: calendars of a time zone. Has no clock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Literal

from msgspec import Struct

from acp_proxy.core.windows import HOUR
from acp_proxy.text.times import Zone, begin_of, instant, midnight

RANGES = ("today", "week", "month", "last-month", "year", "all")
MOST_MONTHS = 120  # of a chart; its first step has all that was before

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
    """When one of `RANGES` began, None for all time, and when it ended, None for those that run."""
    match period:
        case "all":
            return None, None
        case "last-month":
            until = begin_of("month", zone, now)
            return begin_of("month", zone, until - 1), until
    return begin_of(period, zone, now), None


def steps_of(period: str, zone: Zone, now: int, first: int | None) -> Steps:
    """The steps from the period's start to its end or now. `first` is the first row's start, for all time."""
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

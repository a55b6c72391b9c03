"""Over which time a budget counts: named windows, calendar ones in the budget's own time zone.

Pure: the zone comes in as a `tzinfo`. Times are Unix nanoseconds, intervals half-open.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import Literal, cast, get_args

from msgspec import Struct

SECOND = 1_000_000_000
HOUR = 3600 * SECOND
QUARTER_HOUR = HOUR // 4
DAY = 24 * HOUR
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)
_HOURS = {"h": 1, "d": 24, "w": 168}
_LONGEST = 87_600  # hours, ten years: the start stays far inside of what a ledger column holds

WindowName = Literal["turn", "session", "day", "week", "month", "quarter", "total", "rolling"]
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_NAMES = ("turn", "session", "day", "week", "month", "quarter", "total")
_WEEKDAYS = get_args(Weekday)


class Bounds(Struct, frozen=True):
    """Which start times count: `start <= t < end` in Unix ns; None is open on that side."""

    start: int | None = None
    end: int | None = None

    def cover(self, at: int) -> bool:
        return (self.start is None or self.start <= at) and (self.end is None or at < self.end)


class Window(Struct, frozen=True):
    """`hours` is only given, and then above 0, with the name "rolling", `week_start` only with "week"."""

    name: WindowName
    hours: int = 0
    week_start: Weekday = "monday"

    @classmethod
    def parse(cls, text: str) -> Window:
        """From the word of a configuration: `day`, or `rolling:24h`, for which `24h` and `1d` are short.

        Raises ValueError with a line for the user.
        """
        if text in _NAMES:
            return cls(cast(WindowName, text))
        length = text.removeprefix("rolling:")
        number, unit = length[:-1], _HOURS.get(length[-1:], 0)
        digits = number.isascii() and number.isdigit() and len(number) <= len(str(_LONGEST))
        if unit and digits and 0 < int(number) * unit <= _LONGEST:
            return cls("rolling", int(number) * unit)
        raise ValueError(f"expected {', '.join(_NAMES)}, or rolling:24h (1 to {_LONGEST:,} hours), not {text!r}")

    @property
    def text(self) -> str:
        """As a configuration says it; `week_start` is a key of its own."""
        return f"rolling:{self.hours}h" if self.name == "rolling" else self.name

    def bounds(self, at: int, zone: tzinfo) -> Bounds:
        """The window that `at` is in.

        A calendar window begins with the first instant of its first day in `zone`: local midnight, the first of two,
        or where the clock skips midnight, the moment it does. A rolling window ends with the quarter hour that is over
        an hour ahead: the clocks of two machines differ, and one is set back, but what is dated next year counts then.
        """
        match self.name:
            case "turn" | "session" | "total":
                return Bounds()
            case "rolling":
                return Bounds(at - self.hours * HOUR, -(-at // QUARTER_HOUR) * QUARTER_HOUR + HOUR)
        first = self._first_day((_EPOCH + timedelta(seconds=at // SECOND)).astimezone(zone).date())
        following = self._next(first)
        while (end := _start_of(following, zone)) <= at:  # the clock was set back over midnight: the day goes on
            first, following = following, self._next(following)
        return Bounds(_start_of(first, zone), end)

    def _first_day(self, day: date) -> date:
        match self.name:
            case "week":
                return day - (day.weekday() - _WEEKDAYS.index(self.week_start)) % 7 * _DAY
            case "month":
                return day.replace(day=1)
            case "quarter":
                return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        return day

    def _next(self, first: date) -> date:
        """The first day of the window after the one that begins on `first`."""
        days = {"week": 7, "month": 31, "quarter": 92}.get(self.name, 1)  # at least as long, and shorter than two
        return self._first_day(first + days * _DAY)


@lru_cache(maxsize=64)  # each prompt asks for its budgets' windows
def _start_of(day: date, zone: tzinfo) -> int:
    """The first instant at which the local date is `day` or later."""
    midnight = datetime.combine(day, time.min, zone)  # fold 0: of two midnights the first
    start = midnight.astimezone(UTC)
    if start.astimezone(zone).replace(tzinfo=None) != midnight.replace(tzinfo=None):
        start = _end_of_gap(midnight)
    return (start - _EPOCH) // timedelta(seconds=1) * SECOND


def _end_of_gap(skipped: datetime) -> datetime:
    """When the clock was put forward over the local time `skipped`; it may skip a day, at the date line."""
    before, after = skipped.replace(fold=1).astimezone(UTC), skipped.astimezone(UTC)
    while after - before > timedelta(seconds=1):
        middle = before + (after - before) // timedelta(seconds=2) * timedelta(seconds=1)
        if middle.astimezone(skipped.tzinfo).replace(tzinfo=None) < skipped.replace(tzinfo=None):
            before = middle
        else:
            after = middle
    return after

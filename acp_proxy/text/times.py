"""Points in time as a user writes them (`2026-11-01`, RFC 3339, `7d`), and as reports show and group them.

Times are Unix nanoseconds; the clock and the environment come in as parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from acp_proxy.core.windows import SECOND as SECOND

_MOST = 2**63 - 1  # what a ledger column holds: the year 2262
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAYS = ("today", "yesterday")
_RUNNING = ("week", "month", "year")
_UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}


class Zone(Struct, frozen=True):
    """A time zone. `info` is None for the computer's own, whose rules the C library has."""

    name: str
    info: tzinfo | None

    def local(self, at: int) -> datetime:
        return datetime.fromtimestamp(at // SECOND, self.info)


_UTC = ("UTC", "Etc/UTC")
UTC_ZONE = Zone("UTC", UTC)  # also where no zone database is installed


def zone(name: str) -> Zone:
    """An IANA zone. Raises ValueError with a line for the user."""
    return UTC_ZONE if name in _UTC else Zone(name, zone_info(name))


def zone_info(name: str) -> tzinfo:
    """The result of `zone` without the name, for callers that only compute in it."""
    if name in _UTC:
        return UTC
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # 4 ms, and many a server has no zone but UTC

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        if not _has_zones():
            raise ValueError("expected UTC: this machine has no other time zones; install tzdata") from error
        raise ValueError(f"expected a time zone such as Europe/Berlin or UTC, not {name!r}") from error


def _has_zones() -> bool:
    """Images of containers often come without."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return bool(ZoneInfo("Europe/Berlin"))
    except ZoneInfoNotFoundError:
        return False


def local_zone(environ: Mapping[str, str], localtime: Path = Path("/etc/localtime")) -> Zone:
    """The computer's zone: `TZ`, else what /etc/localtime points to, else UTC where there is no such file."""
    source = environ.get("TZ", "").removeprefix(":")
    if not source and not localtime.exists():
        return UTC_ZONE
    if not source and localtime.is_symlink():
        source = str(localtime.readlink())
    try:
        return zone(source.rpartition("zoneinfo/")[2])
    except ValueError:  # a copy without a name, or POSIX rules such as CET-1CEST
        return Zone("local", None)


def system_zone(environ: Mapping[str, str], localtime: Path = Path("/etc/localtime")) -> Zone:
    """`local_zone` for callers that only need the starts of days, from the C library: `zoneinfo` takes 4 ms to load."""
    if environ.get("TZ") or not (localtime.is_symlink() and localtime.exists()):
        return local_zone(environ, localtime)
    name = str(localtime.readlink()).rpartition("zoneinfo/")[2]
    return UTC_ZONE if name in _UTC else Zone(name or "local", None)


def parse(text: str, zone: Zone, now: int) -> int:
    """Unix nanoseconds of a date (its midnight in `zone`), an RFC 3339 time, or so long before `now`: 90m 12h 7d 2w.

    A week (2026-W47) or a month (2026-11), as `PERIODS` writes them, is its first midnight; so are today, yesterday,
    and week, month or year for the running one.
    Raises ValueError with a line for the user.
    """
    number, unit = text[:-1], text[-1:]
    try:
        if text in DAYS or text in _RUNNING:
            return _named(text, zone, now)
        if number.isascii() and number.isdigit() and unit in _UNITS:
            return _storable(now - int(number) * _UNITS[unit] * SECOND)
        written = text.strip().upper()
        is_month = len(written) == len("2026-11") and written[4] == "-"
        moment = datetime.fromisoformat(f"{written}-01" if is_month else written)
        return _storable(_nanoseconds(moment if moment.tzinfo else moment.replace(tzinfo=zone.info)))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"expected a date such as 2026-11-01, today, an RFC 3339 time or 7d, not {text!r}") from error


def _named(name: str, zone: Zone, now: int) -> int:
    if name != "yesterday":
        return begin_of(name, zone, now)
    return instant(midnight(zone.local(begin_of("today", zone, now)) - timedelta(hours=12)))


def duration(text: str) -> int:
    """Nanoseconds of 90m, 12h, 7d or 2w, above 0. Raises ValueError with a line for the user."""
    number, unit = text[:-1], text[-1:]
    if number.isascii() and number.isdigit() and len(number) < 10 and int(number) and unit in _UNITS:
        return int(number) * _UNITS[unit] * SECOND
    raise ValueError(f"expected a duration such as 90m, 2h, 7d or 2w, not {text!r}")


def begin_of(period: str, zone: Zone, now: int) -> int:
    """When the running "today", "week" (from Monday), "month" or "year" of a zone began, in Unix nanoseconds."""
    today = midnight(zone.local(now))
    match period:
        case "week":
            return instant(today - timedelta(days=today.weekday()))
        case "month":
            return instant(today.replace(day=1))
        case "year":
            return instant(today.replace(month=1, day=1))
    return instant(today)


def day_after(at: int, zone: Zone) -> int:
    """When the day after that of `at` begins; both in Unix nanoseconds."""
    return instant(midnight(zone.local(at)) + timedelta(days=1))


def midnight(moment: datetime) -> datetime:
    """The beginning of a local day: the first of two where clocks go back over midnight."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


def instant(moment: datetime) -> int:
    """Unix nanoseconds of a local time, in whole seconds."""
    return int(moment.timestamp()) * SECOND


def rfc3339(at: int) -> str:
    """In UTC, with the second's fraction where there is one: 2026-11-01T00:00:00Z, 2026-11-01T09:30:12.25Z."""
    fraction = f".{at % SECOND:09d}".rstrip("0").rstrip(".")
    return f"{_seconds(at)}{fraction}Z"


def to_the_second(at: int) -> str:
    """In UTC, as people read it who want to know how long ago it was: 2026-11-01T09:30:12Z."""
    return f"{_seconds(at)}Z"


def rfc3339_or_none(at: int | None) -> str | None:
    """As JSON has a time that may be unknown, or not apply."""
    return None if at is None else rfc3339(at)


def milliseconds(at: int) -> str:
    """In UTC, always with three digits, so that text sorts as time does: 2026-11-01T09:30:12.250Z."""
    return f"{_seconds(at)}.{at % SECOND // 1_000_000:03d}Z"


def _seconds(at: int) -> str:
    day, second = divmod(at // SECOND, 86_400)
    minute, second = divmod(second, 60)
    return f"{_date(day)}T{minute // 60:02d}:{minute % 60:02d}:{second:02d}"


@lru_cache(maxsize=4096)  # a report of a million turns has few days
def _date(day: int) -> str:
    return (_EPOCH + timedelta(days=day)).isoformat()[:10]


def _nanoseconds(moment: datetime) -> int:
    return (moment.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1) * 1000


def _storable(at: int) -> int:
    if abs(at) > _MOST:
        raise ValueError("out of range")
    return at


def _week(moment: datetime) -> str:
    year, week, _ = moment.isocalendar()
    return f"{year}-W{week:02d}"


PERIODS: Mapping[str, Callable[[datetime], str]] = {
    "hour": lambda moment: moment.strftime("%Y-%m-%d %H:00"),
    "day": lambda moment: moment.strftime("%Y-%m-%d"),
    "week": _week,
    "month": lambda moment: moment.strftime("%Y-%m"),
}
"""How a period is written, from a local time in it: 2026-11-21 14:00, 2026-11-21, 2026-W47 (ISO), 2026-11.

Where clocks are set back, an hour that comes twice is one period.
"""

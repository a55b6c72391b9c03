"""Windows in every time zone there is: they follow each other without gap or overlap, whatever the clocks do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from itertools import pairwise, product
from typing import get_args
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from acp_proxy.core.windows import HOUR, QUARTER_HOUR, SECOND, Bounds, Weekday, Window
from tests.cases import each_of
from tests.core.accounts import NOW, instant

WEEKDAYS: tuple[Weekday, ...] = get_args(Weekday)
WEEKS = [Window("week", week_start=day) for day in WEEKDAYS]
CALENDAR = [Window("day"), *WEEKS, Window("month"), Window("quarter")]
DAY = 24 * HOUR
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Clocks that skip or repeat midnight, change at odd times, or cross the date line; always tried beside the sample.
ODD = {
    "America/Sao_Paulo": "2018-11-04T03:00",  # midnight is skipped
    "Asia/Beirut": "2026-03-28T22:00",  # midnight is skipped
    "America/St_Johns": "2010-11-07T02:31",  # set back from 00:01 to 23:01 of the day before
    "America/Toronto": "1919-03-31T04:30",  # set forward from 23:30 to 00:30
    "America/Havana": "2025-11-02T05:00",  # midnight comes twice
    "Atlantic/Azores": "2026-10-25T01:00",  # midnight comes twice
    "Pacific/Apia": "2011-12-30T10:00",  # a day is left out
    "Pacific/Kwajalein": "1993-08-21T12:00",  # a day is left out
    "America/Sitka": "1867-10-19T00:31",  # a day comes twice
    "Australia/Lord_Howe": "2026-04-04T15:00",  # half an hour
    "Europe/Dublin": "2026-03-29T01:00",  # the winter is the exception
    "Africa/Monrovia": "1972-01-07T00:44",  # an offset of 44 min 30 s ends
}
SAMPLE = sorted(available_timezones())[::12] + sorted(ODD)

zones = st.sampled_from(SAMPLE).map(ZoneInfo)
instants = st.integers(instant("1880-01-01"), instant("2100-01-01"))


def local(at: int, zone: tzinfo) -> datetime:
    return (EPOCH + timedelta(seconds=at // SECOND)).astimezone(zone)


def known(bounds: Bounds) -> tuple[int, int]:
    assert bounds.start is not None
    assert bounds.end is not None
    return bounds.start, bounds.end


def length(day: str, zone: str) -> int:
    start, end = known(Window("day").bounds(instant(day, ZoneInfo(zone)), ZoneInfo(zone)))
    return end - start


def around(zone: tzinfo, at: int) -> Iterator[int]:
    """Instants near a change of the clock: before, at and after it, by seconds and by hours."""
    for seconds in (-90_000, -7200, -3600, -3599, -1800, -61, -1, 0, 1, 59, 1800, 3599, 3600, 7200, 43_200, 90_000):
        yield at + seconds * SECOND


def changes(zone: tzinfo, year: int) -> list[int]:
    """When the clock is changed in a year, to the second."""
    hours = range(instant(f"{year}-01-01"), instant(f"{year + 1}-01-01"), 12 * HOUR)
    return [_first_with_other_offset(zone, *pair) for pair in pairwise(hours) if _differ(zone, *pair)]


def _differ(zone: tzinfo, one: int, other: int) -> bool:
    return local(one, zone).utcoffset() != local(other, zone).utcoffset()


def _first_with_other_offset(zone: tzinfo, before: int, after: int) -> int:
    while after - before > SECOND:
        middle = (before + after) // 2 // SECOND * SECOND
        before, after = (before, middle) if _differ(zone, before, middle) else (middle, after)
    return after


def assert_tiled(window: Window, zone: tzinfo, at: int) -> None:
    """`at` is in its window, everything in the window is in no other, and the neighbours meet it."""
    bounds = window.bounds(at, zone)
    start, end = known(bounds)
    assert start <= at < end
    assert window.bounds(start, zone) == window.bounds(end - 1, zone) == bounds
    assert window.bounds(end, zone).start == end
    assert window.bounds(start - 1, zone).end == start


def assert_starts_with_a_day(window: Window, zone: tzinfo, start: int) -> None:
    here, before = local(start, zone), local(start - SECOND, zone)
    if (here.hour, here.minute, here.second) != (0, 0, 0):
        assert here.utcoffset() != before.utcoffset(), "neither midnight nor the moment that skips it"
        assert here.date() > before.date()
    if here.date() == before.date() + timedelta(days=1):  # where a day is left out, so may be the first of the month
        assert window.name != "week" or f"{here:%A}".lower() == window.week_start
        assert window.name not in ("month", "quarter") or here.day == 1
        assert window.name != "quarter" or here.month in (1, 4, 7, 10)


@given(st.sampled_from(CALENDAR), zones, instants)
def test_every_instant_is_in_one_window_and_the_next_begins_where_it_ends(
    window: Window, zone: ZoneInfo, at: int
) -> None:
    assert_tiled(window, zone, at)


@given(st.sampled_from(CALENDAR), zones, instants)
def test_a_window_begins_at_local_midnight_or_with_the_first_instant_after_a_skipped_one(
    window: Window, zone: ZoneInfo, at: int
) -> None:
    assert_starts_with_a_day(window, zone, known(window.bounds(at, zone))[0])


@each_of(SAMPLE)
def test_windows_meet_without_gap_or_overlap_around_the_clock_changes_of_a_year(zone: str) -> None:
    info = ZoneInfo(zone)
    for change in changes(info, 2026):
        for at in around(info, change):
            assert_tiled(Window("day"), info, at)
            assert_starts_with_a_day(Window("day"), info, known(Window("day").bounds(at, info))[0])


@each_of(product(CALENDAR, ODD))
def test_windows_meet_without_gap_or_overlap_where_clocks_do_odd_things(case: tuple[Window, str]) -> None:
    window, zone = case
    info, at = ZoneInfo(zone), instant(ODD[zone])
    assert _differ(info, at - 1800 * SECOND, at + 1800 * SECOND), "there is no change to test"
    for near in around(info, at):
        assert_tiled(window, info, near)
        assert_starts_with_a_day(window, info, known(window.bounds(near, info))[0])


@given(zones, st.integers(1980, 2037), st.integers(1, 366))
def test_a_day_is_24_hours_but_for_what_the_clock_was_moved_in_it(zone: ZoneInfo, year: int, day: int) -> None:
    start, end = known(Window("day").bounds(instant(f"{year}-01-01") + (day - 1) * DAY + 12 * HOUR, zone))
    first, following = local(start, zone), local(end, zone)
    forward = (following.utcoffset() or timedelta()) - (first.utcoffset() or timedelta())
    assume(abs(forward) <= timedelta(hours=3))  # more is a move over the date line, which leaves out or repeats a day
    assert following.date() == first.date() + timedelta(days=1)
    if first.time() == following.time() == time.min:
        assert timedelta(seconds=(end - start) // SECOND) == timedelta(hours=24) - forward


@given(st.sampled_from(WEEKS), zones, instants)
def test_a_week_is_seven_days_of_the_local_calendar_whichever_it_begins_with(
    window: Window, zone: ZoneInfo, at: int
) -> None:
    start, end = (local(each, zone) for each in known(window.bounds(at, zone)))
    forward = (end.utcoffset() or timedelta()) - (start.utcoffset() or timedelta())
    assume(abs(forward) <= timedelta(hours=3))  # more is a move over the date line, which leaves out or repeats a day
    assert end.date() == start.date() + timedelta(days=7)


@pytest.mark.parametrize(
    ("day", "zone", "hours"),
    [
        ("2026-03-29T12:00", "Europe/Berlin", 23),
        ("2026-10-25T12:00", "Europe/Berlin", 25),
        ("2026-10-25T02:30", "Europe/Berlin", 25),  # an hour that comes twice
        ("2026-11-21T12:00", "Europe/Berlin", 24),
        ("2018-11-04T12:00", "America/Sao_Paulo", 23),  # begins at 01:00
        ("2018-02-17T12:00", "America/Sao_Paulo", 25),
        ("2025-11-02T12:00", "America/Havana", 25),  # begins with the first of two midnights
        ("2026-04-05T12:00", "Australia/Lord_Howe", 24.5),
        ("2011-12-29T12:00", "Pacific/Apia", 24),
        ("2011-12-31T12:00", "Pacific/Apia", 24),
    ],
)
def test_a_day_has_the_hours_of_the_local_calendar(day: str, zone: str, hours: float) -> None:
    assert length(day, zone) == hours * HOUR


def test_the_minutes_that_come_again_before_midnight_belong_to_the_day_that_had_begun() -> None:
    # 00:01 on 7 November 2010 was 23:01 again: the new day had lasted a minute.
    zone = ZoneInfo("America/St_Johns")
    again = instant("2010-11-07T02:31") + 600 * SECOND
    assert local(again, zone).strftime("%d %H:%M") == "06 23:11"
    start, _ = known(Window("day").bounds(again, zone))
    assert local(start, zone).strftime("%d %H:%M") == "07 00:00"
    assert again - start == 660 * SECOND


@pytest.mark.parametrize(
    ("window", "at", "start", "end"),
    [
        ("day", "2026-11-21T23:59:59", "2026-11-21", "2026-11-22"),
        ("day", "2026-11-22T00:00", "2026-11-22", "2026-11-23"),
        ("week", "2026-11-22T12:00", "2026-11-16", "2026-11-23"),  # a Sunday
        ("week", "2026-11-23T00:00", "2026-11-23", "2026-11-30"),
        ("week", "2027-01-01T12:00", "2026-12-28", "2027-01-04"),
        ("month", "2026-11-30T23:00", "2026-11-01", "2026-12-01"),
        ("month", "2028-02-29T12:00", "2028-02-01", "2028-03-01"),
        ("month", "2026-12-31T12:00", "2026-12-01", "2027-01-01"),
        ("quarter", "2026-11-21T12:00", "2026-10-01", "2027-01-01"),
        ("quarter", "2026-02-28T12:00", "2026-01-01", "2026-04-01"),
        ("quarter", "2026-09-30T12:00", "2026-07-01", "2026-10-01"),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kathmandu"])
def test_calendar_windows_are_those_of_the_zone(window: str, at: str, start: str, end: str, zone: str) -> None:
    info = ZoneInfo(zone)
    expected = Bounds(instant(start, info), instant(end, info))
    assert Window.parse(window).bounds(instant(at, info), info) == expected


@pytest.mark.parametrize(
    ("week_start", "at", "start", "end"),
    [
        ("sunday", "2026-11-21T23:59:59", "2026-11-15", "2026-11-22"),  # a Saturday
        ("sunday", "2026-11-22T00:00", "2026-11-22", "2026-11-29"),
        ("sunday", "2026-10-26T12:00", "2026-10-25", "2026-11-01"),  # in Berlin its first day has 25 hours
        ("saturday", "2026-11-20T12:00", "2026-11-14", "2026-11-21"),
        ("saturday", "2027-01-01T12:00", "2026-12-26", "2027-01-02"),
        ("monday", "2026-11-22T12:00", "2026-11-16", "2026-11-23"),
        ("tuesday", "2026-11-23T12:00", "2026-11-17", "2026-11-24"),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kathmandu"])
def test_a_week_begins_on_the_day_that_is_said(week_start: Weekday, at: str, start: str, end: str, zone: str) -> None:
    info = ZoneInfo(zone)
    expected = Bounds(instant(start, info), instant(end, info))
    assert Window("week", week_start=week_start).bounds(instant(at, info), info) == expected


def test_a_fixed_offset_is_a_zone_too() -> None:
    zone = timezone(timedelta(hours=5, minutes=30))
    assert Window("day").bounds(instant("2026-11-21T20:00"), zone) == Bounds(
        instant("2026-11-21T18:30"), instant("2026-11-22T18:30")
    )


@given(zones, instants, st.integers(1, 8784))
def test_a_rolling_window_looks_back_exactly_so_many_hours_whatever_the_clocks_did(
    zone: ZoneInfo, at: int, hours: int
) -> None:
    assert Window("rolling", hours).bounds(at, zone).start == at - hours * HOUR


@given(instants, instants)
def test_a_rolling_window_counts_what_is_dated_an_hour_ahead_and_no_more_than_a_quarter_later(
    at: int, later: int
) -> None:
    end = Window("rolling", 24).bounds(at, UTC).end
    assert end is not None
    assert HOUR <= end - at < HOUR + QUARTER_HOUR
    assert Window("rolling", 24).bounds(at, UTC).cover(later) is (at - 24 * HOUR <= later < end)


@pytest.mark.parametrize("name", ["turn", "session", "total"])
def test_windows_that_no_clock_ends_are_open_on_both_sides(name: str) -> None:
    bounds = Window.parse(name).bounds(NOW, UTC)
    assert bounds == Bounds(None, None)
    assert bounds.cover(-(2**63))
    assert bounds.cover(2**63 - 1)


def test_bounds_hold_their_start_and_not_their_end() -> None:
    bounds = Bounds(10, 20)
    assert [at for at in (9, 10, 19, 20) if bounds.cover(at)] == [10, 19]


@pytest.mark.parametrize(
    "text",
    [
        "turn",
        "session",
        "day",
        "week",
        "month",
        "quarter",
        "total",
        "rolling:1h",
        "rolling:24h",
        "rolling:720h",
        "rolling:87600h",
    ],
)
def test_a_window_is_written_as_it_is_read(text: str) -> None:
    assert Window.parse(text).text == text


@pytest.mark.parametrize(
    ("text", "hours"), [("5h", 5), ("1d", 24), ("rolling:30d", 720), ("1w", 168), ("52w", 8736), ("521w", 87_528)]
)
def test_a_rolling_window_is_so_many_hours_days_or_weeks(text: str, hours: int) -> None:
    assert Window.parse(text) == Window("rolling", hours)


def test_no_other_window_has_hours() -> None:
    assert [Window.parse(each).hours for each in ("turn", "session", "day", "week", "total")] == [0] * 5


@pytest.mark.parametrize(
    "text",
    [
        *("", "Day", "days", "h", "24", "rolling", "rolling:", "rolling:h", "rolling:24", "rolling:7y", "1.5d"),
        *("rolling:0h", "rolling:-1h", "rolling:1.5h", "rolling:24hh", "rolling: 24h", "rolling:²h", "rolling:87601h"),
        *("522w", "3651d", "rolling:0w"),
        f"rolling:{'9' * 5000}h",
    ],
)
def test_any_other_word_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(ValueError, match="expected turn, session, day, week, month, quarter, total, or rolling:24h"):
        Window.parse(text)


def test_times_are_nanoseconds_since_1970() -> None:
    at = 1_795_294_800_000_000_000  # 2026-11-21T21:00Z
    assert Window("day").bounds(at, UTC) == Bounds(1_795_219_200_000_000_000, 1_795_305_600_000_000_000)
    assert Window("rolling", 24).bounds(at, UTC) == Bounds(1_795_208_400_000_000_000, 1_795_298_400_000_000_000)
    later = Window("rolling", 1).bounds(at + 1, UTC)
    assert later == Bounds(1_795_291_200_000_000_001, 1_795_299_300_000_000_000)


class PutForward(tzinfo):
    """UTC until an instant, from which on its clocks are so much ahead."""

    def __init__(self, when: datetime, by: timedelta) -> None:
        self._when, self._by = when, by

    def utcoffset(self, local: datetime | None) -> timedelta:
        assert local is not None
        since = local.replace(tzinfo=None, fold=0) - self._when
        return timedelta(0) if since < (timedelta(0) if local.fold else self._by) else self._by

    def dst(self, local: datetime | None) -> timedelta:
        return timedelta(0)

    def tzname(self, local: datetime | None) -> None:
        return None

    def fromutc(self, at: datetime) -> datetime:
        return at if at.replace(tzinfo=None) < self._when else at + self._by


@given(st.integers(1, 86_399), st.data())
def test_a_day_whose_midnight_is_skipped_begins_when_the_clock_is_put_forward(by: int, data: st.DataObject) -> None:
    when = datetime(2026, 3, 2) - timedelta(seconds=data.draw(st.integers(0, by - 1)))
    at = int(when.replace(tzinfo=UTC).timestamp()) * SECOND
    assert Window("day").bounds(at - 1, PutForward(when, timedelta(seconds=by))).end == at

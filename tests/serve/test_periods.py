"""Periods begin where reports say that days, weeks and months begin, whatever clocks do; steps have no gaps."""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.serve.periods import MOST_DAYS, MOST_MONTHS, RANGES, bounds_of, steps_of
from acp_proxy.text.times import PERIODS, SECOND, Zone, zone

ZONES = ("UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Kathmandu", "Australia/Lord_Howe", "Asia/Beirut")

zones = st.sampled_from(ZONES).map(zone)
instants = st.integers(946_684_800, 2_208_988_800).map(lambda seconds: seconds * SECOND)  # 2000 to 2040


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND


@given(zones, instants, st.sampled_from(["day", "week", "month"]))
def test_a_period_begins_with_the_first_instant_of_its_name(zone: Zone, now: int, name: str) -> None:
    since, until = bounds_of({"day": "today"}.get(name, name), zone, now)
    assert since is not None
    assert until is None
    assert since <= now
    named = PERIODS[name]
    assert named(zone.local(since)) == named(zone.local(now))
    assert named(zone.local(since - SECOND)) != named(zone.local(now))


@given(zones, instants)
def test_the_last_month_ends_where_this_one_begins(zone: Zone, now: int) -> None:
    since, until = bounds_of("last-month", zone, now)
    assert since is not None
    assert until is not None
    assert until == bounds_of("month", zone, now)[0]
    last = zone.local(until - SECOND)
    named = PERIODS["month"]
    assert named(zone.local(since)) == named(last) != named(zone.local(now))
    assert named(zone.local(since - SECOND)) != named(last)
    assert len(steps_of("last-month", zone, now, None).starts) == monthrange(last.year, last.month)[1]


@given(zones, instants, instants, st.sampled_from(RANGES))
def test_steps_follow_each_other_up_to_now(zone: Zone, now: int, first: int, period: str) -> None:
    steps = steps_of(period, zone, now, first)
    bounds = list(steps.bounds)
    assert list(steps.starts) == sorted(set(steps.starts))
    since, until = bounds_of(period, zone, now)
    assert [end for _, end in bounds] == [*steps.starts[1:], until]
    assert steps.starts[-1] <= now
    if since is not None:
        assert steps.starts[0] == since
    else:
        assert steps.starts[0] <= min(first, now) or len(steps.starts) == MOST_MONTHS


@pytest.mark.parametrize(
    ("day", "hours"), [("2026-03-29T20:00", 23), ("2026-10-25T22:30", 25), ("2026-06-01T21:30", 24)]
)
def test_a_day_has_as_many_hours_as_it_lasts(day: str, hours: int) -> None:
    berlin = zone("Europe/Berlin")
    steps = steps_of("today", berlin, at(day), None)
    last = berlin.local(steps.starts[-1])
    assert (len(steps.starts) + 23 - last.hour, steps.step) == (hours, "hour")


def test_weeks_begin_on_monday_and_years_with_january() -> None:
    berlin, now = zone("Europe/Berlin"), at("2026-11-22T23:30")  # Monday there
    assert bounds_of("week", berlin, now) == (at("2026-11-22T23:00"), None)
    assert bounds_of("year", berlin, now) == (at("2025-12-31T23:00"), None)
    assert bounds_of("all", berlin, now) == (None, None)


def test_a_first_row_of_a_broken_clock_makes_no_endless_chart() -> None:
    assert len(steps_of("all", zone("UTC"), at("2026-11-22"), 0).starts) == MOST_MONTHS
    assert len(steps_of("all", zone("UTC"), at("2026-11-22"), at("2050-01-01")).starts) == 1


@given(zones, instants, instants, st.integers(0, 9000), st.sampled_from(["..", "from", "to"]))
def test_dates_are_whole_days_of_the_zone_in_steps_without_a_gap(
    zone: Zone, now: int, begin: int, length: int, given_ends: str
) -> None:
    first = zone.local(begin).date()
    last = first + timedelta(days=length)
    period = {"..": f"{first}..{last}", "from": f"{first}..", "to": f"..{last}"}[given_ends]
    since, until = bounds_of(period, zone, now)
    if since is not None:
        assert zone.local(since).date() == first != zone.local(since - SECOND).date()
    if until is not None:
        assert zone.local(until).date() == last + timedelta(days=1) != zone.local(until - SECOND).date()
    steps = steps_of(period, zone, now, begin)
    assert list(steps.starts) == sorted(set(steps.starts))
    assert 0 < len(steps.starts) <= max(MOST_DAYS + 2, MOST_MONTHS)
    assert steps.end == until
    if since is not None:
        assert steps.starts[0] == since


@pytest.mark.parametrize(
    ("period", "step", "count"),
    [
        ("2026-11-10..2026-11-10", "hour", 24),
        ("2026-11-22..", "hour", 13),
        ("2026-11-09..2026-11-15", "day", 7),
        ("2026-11-09..2027-11-15", "day", 14),
        ("2025-11-09..2026-11-15", "month", 13),
        ("..2026-11-15", "day", 6),
        ("2027-01-01..2027-01-31", "hour", 1),
    ],
)
def test_dates_have_steps_of_hours_days_or_months_up_to_now(period: str, step: str, count: int) -> None:
    steps = steps_of(period, zone("UTC"), at("2026-11-22T12:30"), at("2026-11-10"))
    assert (steps.step, len(steps.starts)) == (step, count)

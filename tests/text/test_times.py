"""Times as users write them, the computer's zone, and the periods of reports."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.text.times import (
    PERIODS,
    SECOND,
    UTC_ZONE,
    Zone,
    duration,
    local_zone,
    milliseconds,
    parse,
    rfc3339,
    system_zone,
    zone,
)

BERLIN = zone("Europe/Berlin")
NOW = int(datetime(2026, 11, 21, 12, 0, tzinfo=UTC).timestamp()) * SECOND


def utc(text: str, zone: Zone = UTC_ZONE) -> str:
    return rfc3339(parse(text, zone, NOW))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-01", "2026-11-01T00:00:00Z"),
        ("2026-11-01T09:30:00Z", "2026-11-01T09:30:00Z"),
        ("2026-11-01t09:30:00z", "2026-11-01T09:30:00Z"),
        ("2026-11-01T09:30:00+02:00", "2026-11-01T07:30:00Z"),
        ("2026-11-01T09:30:00.250Z", "2026-11-01T09:30:00.25Z"),
        ("2026-11-01 09:30", "2026-11-01T09:30:00Z"),
        ("7d", "2026-11-14T12:00:00Z"),
        ("2w", "2026-11-07T12:00:00Z"),
        ("12h", "2026-11-21T00:00:00Z"),
        ("90m", "2026-11-21T10:30:00Z"),
        ("0d", "2026-11-21T12:00:00Z"),
        ("2026-11", "2026-11-01T00:00:00Z"),
        ("2026-W47", "2026-11-16T00:00:00Z"),
    ],
)
def test_a_time_is_a_date_an_rfc_3339_time_or_so_long_ago(text: str, expected: str) -> None:
    assert utc(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "d",
        "7",
        "7y",
        "-7d",
        "7.5d",
        "tomorrow",
        "2026-13-01",
        "2026-13",
        "2026-1-1",
        "2026-W4",
        "0001-01-01",
        "9999-12-31",
        "9" * 30 + "d",
    ],
)
def test_anything_else_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(ValueError, match="expected a date such as 2026-11-01, today, an RFC 3339 time or 7d, not "):
        parse(text, UTC_ZONE, NOW)


def test_a_date_begins_at_midnight_of_the_zone_also_where_the_clock_is_changed() -> None:
    assert utc("2026-11-01", BERLIN) == "2026-10-31T23:00:00Z"
    assert utc("2026-07-01", BERLIN) == "2026-06-30T22:00:00Z"
    assert parse("2026-10-26", BERLIN, NOW) - parse("2026-10-25", BERLIN, NOW) == 25 * 3600 * SECOND


@given(st.integers(0, 2**62), st.sampled_from(sorted(PERIODS)))
def test_a_key_of_a_report_by_time_is_when_that_period_began(at: int, period: str) -> None:
    began = parse(PERIODS[period](BERLIN.local(at)), BERLIN, NOW)
    assert began <= at
    assert PERIODS[period](BERLIN.local(began)) == PERIODS[period](BERLIN.local(at))
    assert PERIODS[period](BERLIN.local(began - SECOND)) != PERIODS[period](BERLIN.local(at))


@given(st.integers(-(2**62), 2**62))
def test_a_time_that_was_shown_can_be_given_back_to_the_microsecond(at: int) -> None:
    assert parse(rfc3339(at), UTC_ZONE, NOW) == at // 1000 * 1000


@pytest.mark.parametrize(("text", "minutes"), [("1m", 1), ("90m", 90), ("2h", 120), ("7d", 10_080), ("2w", 20_160)])
def test_a_duration_is_a_number_with_a_unit(text: str, minutes: int) -> None:
    assert duration(text) == minutes * 60 * SECOND


@pytest.mark.parametrize("text", ["", "h", "0h", "-2h", "2", "2y", "1.5h", "２h", "9999999999h", "2 h"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration such as 90m, 2h, 7d or 2w, not "):
        duration(text)


@given(st.lists(st.integers(0, 2**62)))
def test_times_with_milliseconds_sort_as_text(times: list[int]) -> None:
    assert [milliseconds(at) for at in sorted(times)] == sorted(milliseconds(at) for at in times)


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "../../etc/passwd", "Europe/Berlin\0", "/etc/localtime"])
def test_a_zone_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="expected a time zone such as Europe/Berlin or UTC, not "):
        zone(name)


def test_where_there_are_no_zones_at_all_it_is_said_what_is_missing() -> None:
    code = """
import sys, zoneinfo
sys.modules["tzdata"] = None
zoneinfo.reset_tzpath(to=[])
from acp_proxy.text.times import UTC_ZONE, zone
assert zone("UTC") == UTC_ZONE
try:
    zone("Europe/Paris")
except ValueError as error:
    print(error)
"""
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]).stdout
    assert said == "expected UTC: this machine has no other time zones; install tzdata\n"


@pytest.mark.parametrize(
    ("variable", "name"),
    [("Europe/Berlin", "Europe/Berlin"), (":Europe/Berlin", "Europe/Berlin"), ("UTC", "UTC"), ("CET-1CEST", "local")],
)
def test_the_local_zone_is_that_of_the_environment(variable: str, name: str) -> None:
    assert local_zone({"TZ": variable}).name == name


def test_without_it_the_zone_is_what_the_computers_clock_points_to(tmp_path: Path) -> None:
    link = tmp_path / "localtime"
    assert local_zone({}, link) == UTC_ZONE
    link.symlink_to("/usr/share/zoneinfo/Etc/UTC")
    if link.exists():  # else there is no zone database here
        assert local_zone({}, link) == UTC_ZONE
    link.unlink()
    link.write_bytes(b"a copy has no name")
    assert local_zone({}, link) == Zone("local", None)


def test_the_systems_zone_has_the_name_of_the_local_one_and_the_rules_of_the_c_library(tmp_path: Path) -> None:
    link = tmp_path / "localtime"
    assert system_zone({"TZ": "Europe/Berlin"}, link) == BERLIN
    assert system_zone({}, link) == UTC_ZONE
    link.symlink_to(tmp_path / "zoneinfo/Europe/Berlin")
    assert system_zone({}, link) == UTC_ZONE  # a link to nowhere
    (tmp_path / "zoneinfo/Europe").mkdir(parents=True)
    (tmp_path / "zoneinfo/Europe/Berlin").touch()
    assert system_zone({}, link) == Zone("Europe/Berlin", None)


def test_a_zone_without_a_name_is_the_computers_own() -> None:
    at = NOW + 1
    assert Zone("local", None).local(at) == datetime.fromtimestamp(NOW // SECOND)
    assert (
        parse("2026-11-21T13:00:00", Zone("local", None), NOW) == int(datetime(2026, 11, 21, 13).timestamp()) * SECOND
    )


@pytest.mark.parametrize(
    ("period", "at", "expected"),
    [
        ("day", "2026-11-21T23:30:00Z", "2026-11-22"),
        ("week", "2026-11-21T12:00:00Z", "2026-W47"),
        ("week", "2027-01-01T12:00:00Z", "2026-W53"),
        ("month", "2026-11-30T23:30:00Z", "2026-12"),
    ],
)
def test_a_moment_belongs_to_the_period_that_it_has_in_the_zone(period: str, at: str, expected: str) -> None:
    assert PERIODS[period](BERLIN.local(parse(at, UTC_ZONE, NOW))) == expected

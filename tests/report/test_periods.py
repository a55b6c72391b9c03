"""Days, weeks and months of a report: however they are added up, a row is in the period of its start."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_proxy.ledger import Query, Row, open_ledger
from acp_proxy.report import report
from acp_proxy.text import times
from harness.rows import MINUTE, NOON, line, row

QUARTER_HOUR = 15 * MINUTE
DAY = 96 * QUARTER_HOUR
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")


@pytest.mark.parametrize("by", times.PERIODS)
@settings(max_examples=15, deadline=None)
@given(
    days=st.sampled_from([3, 50, 300]),  # few periods, or more than are asked for one by one
    starts=st.lists(st.floats(0, 1), min_size=1, max_size=20),
    zone=st.sampled_from(ZONES),
    cut=st.tuples(st.floats(0, 0.5), st.floats(0.5, 1)),
)
def test_a_row_is_in_the_period_of_its_start(
    tmp_path_factory: pytest.TempPathFactory,
    by: str,
    days: int,
    starts: list[float],
    zone: str,
    cut: tuple[float, float],
) -> None:
    rows = [row(line(input=7), at=NOON + int(start * days * DAY)) for start in starts]
    since, until = (NOON + int(each * days * DAY) for each in cut)
    within = Counter(key_of(by, zone, each) for each in rows if since <= each.entry.started_at < until)
    assert turns(tmp_path_factory.mktemp("report"), by, zone, Query(since, until), rows) == within


def test_a_row_that_ended_before_it_began_is_not_lost(tmp_path: Path) -> None:
    """The clock was set back while a turn ran."""
    late = row(at=NOON + 20 * DAY, took=-20 * DAY)
    assert turns(tmp_path, "week", "UTC", Query(), [row(), late]) == {"2026-W47": 1, "2026-W50": 1}


def test_the_last_moment_that_a_ledger_can_keep_is_in_a_period(tmp_path: Path) -> None:
    last = row(at=2**63 - 1 - MINUTE)
    assert turns(tmp_path, "month", "UTC", Query(), [last]) == {"2262-04": 1}


def key_of(by: str, zone: str, of: Row) -> str:
    return times.PERIODS[by](times.zone(zone).local(of.entry.started_at))


def turns(directory: Path, by: str, zone: str, query: Query, rows: list[Row]) -> dict[str, int]:
    ledger = open_ledger(f"sqlite:///{directory}/ledger.db", journals=())
    ledger.append(rows)
    found = report(ledger, by, query, times.zone(zone))
    ledger.close()
    assert sum(each.turns for each in found.lines) == found.total.turns
    return {each.key: each.turns for each in found.lines}

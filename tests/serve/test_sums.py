"""Kept sums are the ledger's own, whatever was added since, wherever in time; and asking again costs little."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.ledger import Query, Sums, open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.serve.spend import spend
from acp_proxy.serve.sums import KeptSums
from acp_proxy.text import times
from harness.rows import NOON, line, row

HOUR = 3600 * 10**9
DAY = 24 * HOUR
HERE = (("organisation", "default"),)

instants = st.integers(-40 * 24, 40 * 24).map(lambda hours: NOON + hours * HOUR)
intervals = st.tuples(st.none() | instants, st.none() | instants)
rounds = st.lists(
    st.tuples(st.lists(instants, max_size=4), st.lists(intervals, min_size=1, max_size=4)), min_size=1, max_size=6
)


@given(rounds)
def test_kept_sums_are_those_of_the_ledger(rounds: list[tuple[list[int], list[tuple[int | None, int | None]]]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        ledger = open_ledger(f"sqlite:///{directory}/ledger.db", journals=())
        seconds = count()
        kept = KeptSums(ledger, "default", lambda: float(next(seconds)))
        asked: list[tuple[int | None, int | None]] = []
        for added, intervals in rounds:
            ledger.append([row(at=at) for at in added])
            asked += intervals
            kept.version()
            for since, until in asked:
                expected = ledger.summed(Query(since, until, HERE), ("agent",))
                assert Counter(kept.of(since, until, ("agent",))) == Counter(expected)
        ledger.close()


def test_a_late_row_of_an_old_day_is_seen(tmp_path: Path) -> None:
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())
    seconds = count()
    kept = KeptSums(ledger, "default", lambda: float(next(seconds)))
    ledger.append([row(at=NOON - 300 * DAY), row(at=NOON)])
    before = kept.version()
    (year,) = kept.of(NOON - 365 * DAY, None, ())
    ledger.append([row(line("opus", "1"), at=NOON - 200 * DAY)])
    assert kept.version() != before
    assert kept.of(NOON - 365 * DAY, None, ())[0].rows == year.rows + 1
    ledger.close()


def test_the_version_stays_while_nothing_is_added(tmp_path: Path) -> None:
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())
    seconds = count()
    kept = KeptSums(ledger, "default", lambda: float(next(seconds)))
    ledger.append([row(at=NOON)])
    before = kept.version()
    assert kept.version() == before
    ledger.append([row(at=NOON)])
    assert kept.version() != before
    ledger.close()


def test_a_day_that_did_not_change_is_not_added_up_again(tmp_path: Path) -> None:
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())
    seconds = count()
    kept = KeptSums(ledger, "default", lambda: float(next(seconds)))
    ledger.append([row(at=NOON - 3 * DAY), row(at=NOON)])
    kept.version()
    ledger.append([row(at=NOON)])
    kept.version()  # from here on it knows the days
    quiet = kept.of(NOON - 4 * DAY, NOON - 2 * DAY, ())
    ledger.append([row(at=NOON)])
    kept.version()
    assert kept.of(NOON - 4 * DAY, NOON - 2 * DAY, ()) is quiet
    ledger.close()


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "America/Los_Angeles", "Pacific/Auckland"])
def test_a_row_of_today_has_only_today_asked_for_again(tmp_path: Path, name: str) -> None:
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())
    seconds = count()
    noted = Noted(ledger)
    kept = KeptSums(noted, "default", lambda: float(next(seconds)))
    ledger.append([row(at=NOON - 3 * DAY), row(at=NOON), row(at=NOON + 40 * DAY)])  # the last by a clock that is ahead
    for _ in range(3):
        ledger.append([row(at=NOON)])
        noted.asked.clear()
        found = spend(kept, "year", "agent", times.zone(name), NOON)
    ledger.close()
    assert found["total"]["turns"] == 6
    asked = [(query.since, query.until) for query in noted.asked if query.since is not None]
    assert (
        asked
    )  # where usage and cost come from, and by agent: of today, and of the day that shares one of UTC with it
    assert all(NOON - 2 * DAY < since <= NOON and until and until < NOON + 3 * DAY for since, until in asked)


class Noted:
    """A ledger, and what it was asked for."""

    def __init__(self, ledger: BudgetLedger) -> None:
        self._ledger = ledger
        self.recent = ledger.recent
        self.asked: list[Query] = []

    def summed(self, query: Query, by: Sequence[str]) -> list[Sums]:
        self.asked.append(query)
        return self._ledger.summed(query, by)

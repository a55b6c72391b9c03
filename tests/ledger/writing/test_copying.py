"""A ledger that is copied into another one, of either kind: what can be asked of it has the same answers there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from acp_proxy.core.entry import SessionState
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Counters
from acp_proxy.core.windows import DAY
from acp_proxy.ledger import LedgerError, Query, Row, open_ledger
from acp_proxy.ledger.budgets import BudgetLedger, Grant
from acp_proxy.ledger.writing.copying import Copied, copy
from harness.rows import ALICE, BOB, MINUTE, NOON, line, row
from tests.core.accounts import usd
from tests.ledger.conftest import ONE_AT_A_TIME
from tests.ledger.holds import CAP, NOTHING_KNOWN, ended, hold
from tests.ledger.warned import Warnings

EVERYTHING = Query()
STATE = SessionState(500, 200_000, True, (), Money.of("1", "USD"), Counters(input=1), "opus", "A title")
GRANT = Grant("g", "default", "user", "daily", None, 5 * 10**9, "USD", NOON, NOON + DAY, "alice", "release")

pytestmark = ONE_AT_A_TIME


@pytest.fixture
def file(tmp_path: Path) -> Iterator[BudgetLedger]:
    """Another ledger, in a file."""
    with closing(open_ledger(f"sqlite:///{tmp_path}/another.db", journals=())) as ledger:
        yield ledger


@pytest.fixture(params=["into a file", "out of a file"])
def ends(request: pytest.FixtureRequest, ledger: BudgetLedger, file: BudgetLedger) -> tuple[BudgetLedger, BudgetLedger]:
    return (ledger, file) if request.param == "into a file" else (file, ledger)


def test_rows_sums_sessions_and_grants_are_the_same(ends: tuple[BudgetLedger, BudgetLedger]) -> None:
    source, target = ends
    source.append([row(at=NOON + number * MINUTE, session=f"s{number % 7}") for number in range(600)])
    source.append([row(line("opus"), line("haiku", "2", "credits"), origin=BOB), row(line(cost=None), at=NOON - DAY)])
    source.append([row(session="s1", at=NOON + DAY, state=STATE), row(origin=replace(ALICE, organisation="other"))])
    source.grant(GRANT)
    assert copy(source, target, titles=True) == Copied(604, 1, 604)
    assert list(target.rows(EVERYTHING)) == list(source.rows(EVERYTHING))
    for by in ((), ("model",), ("organisation", "user", "team"), ("day",)):
        assert sorted(target.summed(EVERYTHING, by), key=repr) == sorted(source.summed(EVERYTHING, by), key=repr)
    assert list(target.sessions(EVERYTHING)) == list(source.sessions(EVERYTHING))
    for session in source.sessions(EVERYTHING):
        found = target.state_of(session.origin, session.session)
        assert found == source.state_of(session.origin, session.session)
    assert target.grants("default") == [GRANT]


def test_a_second_copy_adds_what_came_since(ledger: BudgetLedger, file: BudgetLedger) -> None:
    ledger.append([row(), row()])
    copy(ledger, file, titles=True)
    ledger.append([row(state=STATE, at=NOON + MINUTE)])
    ledger.grant(GRANT)
    assert copy(ledger, file, titles=True) == Copied(1, 1, 3)
    assert copy(ledger, file, titles=True) == Copied(0, 0, 3)
    assert list(file.rows(EVERYTHING)) == list(ledger.rows(EVERYTHING))
    assert file.state_of(ALICE, "s1") == ledger.state_of(ALICE, "s1")


class Busy:
    """A ledger that gets a row while its first one is copied."""

    def __init__(self, ledger: BudgetLedger, late: Row) -> None:
        self._ledger = ledger
        self._late = late

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def rows(self, query: Query) -> Iterator[Row]:
        first, *_ = self._ledger.rows(query)
        yield first
        self._ledger.append([self._late])
        yield from list(self._ledger.rows(query))[1:]


def test_a_session_that_goes_on_while_it_is_copied_stands_as_after_the_last_row_that_came_along(
    ledger: BudgetLedger, file: BudgetLedger
) -> None:
    ledger.append([row(state=STATE)])
    later = replace(STATE, agent_cost=Money.of("3", "USD"), title="Later")
    busy: Any = Busy(ledger, row(at=NOON + MINUTE, state=later))
    copy(busy, file, titles=True)
    assert file.state_of(ALICE, "s1") == ledger.state_of(ALICE, "s1")


def test_several_ledgers_become_one(ledger: BudgetLedger, file: BudgetLedger) -> None:
    ledger.append([row(at=NOON), row(origin=BOB, at=NOON + 1)])
    file.append([row(origin=replace(ALICE, host="desktop"), at=NOON + 2)])
    theirs = list(file.rows(EVERYTHING))
    copy(ledger, file, titles=True)
    assert list(file.rows(EVERYTHING)) == [*ledger.rows(EVERYTHING), *theirs]


def test_a_session_that_went_on_elsewhere_stands_as_it_does_there(ledger: BudgetLedger, file: BudgetLedger) -> None:
    later = replace(STATE, agent_cost=Money.of("3", "USD"), title="Later")
    ledger.append([row(state=STATE)])
    file.append([row(at=NOON + MINUTE, state=later)])
    copy(ledger, file, titles=True)
    found = file.state_of(ALICE, "s1")
    assert found == replace(later, costs=(Money.of("0.02", "USD"),))


def test_budgets_stand_as_they_stood_and_announce_nothing_twice(ledger: BudgetLedger, file: BudgetLedger) -> None:
    hold(ledger, "a", (CAP, "0.4"))
    ledger.append([ended("crashed", NOTHING_KNOWN), row()])
    ledger.grant(GRANT)
    assert ledger.announce(CAP, 50)
    (stood,) = ledger.standing([CAP], NOON)
    copy(ledger, file, titles=True)
    assert file.standing([CAP], NOON) == [stood]
    assert (stood.spent, stood.granted) == (usd("0.41"), usd("5"))
    assert not file.announce(CAP, 50)


def test_titles_are_left_behind_where_they_are_not_shared(ledger: BudgetLedger, file: BudgetLedger) -> None:
    ledger.append([row(state=STATE)])
    copy(ledger, file, titles=False)
    assert [session.title for session in file.sessions(EVERYTHING)] == [None]


def test_a_row_that_the_other_ledger_refuses_is_told_and_bars_no_other(
    ledger: BudgetLedger, file: BudgetLedger, warnings: Warnings
) -> None:
    if ledger.url.startswith("sqlite"):
        pytest.skip("takes whatever a file takes")
    too_long = replace(ALICE, agent=os.urandom(5000).hex())  # for an index of PostgreSQL's
    file.append([row(origin=too_long, at=NOON), row(at=NOON + 1)])
    assert copy(file, ledger, titles=True, warn=warnings) == Copied(1, 0, 2)
    assert [found.origin for found in ledger.rows(EVERYTHING)] == [ALICE]
    assert warnings.events == ["ledger.row_refused"]


def test_a_ledger_is_not_copied_into_itself(url: str, ledger: BudgetLedger) -> None:
    with closing(open_ledger(url, journals=())) as same, pytest.raises(LedgerError, match="into itself"):
        copy(ledger, same, titles=True)

"""Prompts and rows of several that come at one moment, as a hub hands them in: as each would be by itself."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.ledger import OpenTurn, Query, RowRefusedError
from acp_proxy.ledger.accounts.batched_holds import Prompt
from acp_proxy.ledger.budgets import EXPIRY, Held
from acp_proxy.ledger.owners import Owner
from acp_proxy.ledger.sql_ledger import SqlLedger
from harness.rows import ALICE, BOB, MINUTE, NOON, line, row
from tests.core.accounts import budget, usd
from tests.ledger.conftest import ONE_AT_A_TIME, Open
from tests.ledger.holds import account, held, hold

SHARED = account(budget("1 USD"))


@pytest.fixture
def ledger(another: Open) -> SqlLedger:
    found = another()
    assert isinstance(found, SqlLedger)
    return found


def prompt(number: int, size: str = "0.4", *, text: str = "") -> Prompt:
    turn = OpenTurn(f"t{number}{text}", ALICE, "s1", NOON, Owner.this(), "opus")
    return Prompt(turn, [(SHARED, HoldSize(usd(size), usd(size)))], NOON, NOON + EXPIRY)


def is_in(held: Held | RowRefusedError) -> bool:
    return isinstance(held, Held) and held.admitted


@ONE_AT_A_TIME
def test_prompts_that_come_together_hold_no_more_than_there_is(ledger: SqlLedger) -> None:
    hold(ledger, "before", (SHARED, "0.1"))  # its sum is kept from now on
    found = ledger.hold_together([prompt(number) for number in range(5)])
    assert sorted(map(is_in, found)) == [False, False, False, True, True]
    assert held(ledger, SHARED) == (0, usd("0.9"))


@ONE_AT_A_TIME
def test_a_prompt_that_is_asked_again_stays_as_it_was(ledger: SqlLedger) -> None:
    hold(ledger, "before", (SHARED, "0.1"))
    for _ in range(3):
        assert all(map(is_in, ledger.hold_together([prompt(0), prompt(0), prompt(1)])))
    assert held(ledger, SHARED) == (0, usd("0.9"))


@ONE_AT_A_TIME
def test_a_prompt_that_cannot_be_kept_keeps_no_other_out(ledger: SqlLedger) -> None:
    hold(ledger, "before", (SHARED, "0.1"))
    bad = replace(prompt(1), until=2**70)
    found = ledger.hold_together([prompt(0), bad, prompt(2)])
    assert [type(each) for each in found] == [Held, RowRefusedError, Held]
    assert held(ledger, SHARED) == (0, usd("0.9"))


@ONE_AT_A_TIME
def test_rows_that_come_together_are_those_that_would_come_one_by_one(ledger: SqlLedger) -> None:
    hold(ledger, "before", (SHARED, "0.1"))
    ledger.append([row(session="s1", at=NOON)])  # a session that goes on
    ledger.hold_together([prompt(0), prompt(1)])
    ended = [row(line(cost="0.2"), id=f"t{number}", session="s1", at=NOON + MINUTE) for number in range(2)]
    begun = [row(id="b1", origin=BOB, session="s2"), row(id="b2", origin=BOB, session="s2")]
    assert ledger.append_together([[ended[0]], begun, [], [ended[1]]]) == [1, 2, 0, 1]
    assert ledger.append_together([[ended[0]], [begun[0], row(id="b3")], [row(id="b3")]]) == [0, 1, 0]
    assert len(list(ledger.rows(Query()))) == 6
    assert held(ledger, SHARED) == (usd("0.44"), usd("0.1"))


@pytest.mark.parametrize("url", ["read committed", "repeatable read", "serializable"], indirect=True)
def test_prompts_that_come_together_are_one_transaction_of_a_server(ledger: SqlLedger) -> None:
    hold(ledger, "before", (SHARED, "0.1"))
    before = _transactions(ledger)
    assert all(map(is_in, ledger.hold_together([prompt(number, "0.01") for number in range(20)])))
    assert _transactions(ledger) - before <= 2  # that of the question itself may be counted


def _transactions(ledger: SqlLedger) -> int:
    """That have written something, so far: each of these has a number."""
    ((number,),) = ledger.tables.rows("SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS BIGINT)")
    return int(number)

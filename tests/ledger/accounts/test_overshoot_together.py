"""How far turns went beyond their budgets that are booked together: each counts by itself, whatever others do."""

from __future__ import annotations

from msgspec.structs import replace

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.ledger import OpenTurn
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger
from acp_proxy.ledger.owners import Owner
from harness.rows import ALICE, NOON, line, row
from tests.core.accounts import budget, usd
from tests.ledger.conftest import ONE_AT_A_TIME
from tests.ledger.holds import CAP, account, hold, overshot

pytestmark = ONE_AT_A_TIME


def test_one_that_stayed_within_its_hold_hides_no_other(ledger: BudgetLedger) -> None:
    for turn in "ab":
        hold(ledger, turn, (CAP, "0.5"))
    ledger.append([row(line(cost="0.5"), id="a"), row(line(cost="0.9"), id="b")])
    assert overshot(ledger) == {"daily": usd("0.4")}


def test_one_whose_budget_has_enough_left_hides_no_other(ledger: BudgetLedger) -> None:
    hold(ledger, "a", (account(budget("9 USD", name="large")), "0.1"))
    hold(ledger, "b", (CAP, "0.1"))
    ledger.append([row(line(cost="0.2"), id="a"), row(line(cost="1.2"), id="b")])
    assert overshot(ledger) == {"daily": usd("0.4")}


def test_one_that_was_admitted_by_a_higher_limit_adds_nothing_to_another(ledger: BudgetLedger) -> None:
    hold(ledger, "a", (account(budget("2 USD")), "0.1"))
    hold(ledger, "b", (CAP, "0.1"))
    ledger.append([row(line(cost="0.8"), id="a"), row(line(cost="0.7"), id="b")])
    assert overshot(ledger) == {"daily": usd("0.5")}


def test_a_budget_of_one_run_counts_the_turns_of_that_run(ledger: BudgetLedger) -> None:
    of_run = account(budget("1 USD", "total", "--budget", layer="flag"))
    turn = OpenTurn("a", ALICE, "s1", NOON, Owner.this(), "opus", "p1")
    ledger.hold(turn, [(of_run, HoldSize(usd("0.1"), 1))], NOON, NOON + EXPIRY)
    ledger.append([replace(row(line(cost="1.5"), id="a"), process="p1")])
    assert overshot(ledger) == {"--budget": usd("0.5")}


def test_a_turn_in_a_session_that_is_known_counts_as_one_in_a_new_one(ledger: BudgetLedger) -> None:
    for number in range(4):
        hold(ledger, f"t{number}", (CAP, "0.1"))
        ledger.append([row(line(cost="0.3"), id=f"t{number}")])
    assert overshot(ledger) == {"daily": usd("0.2")}


def test_a_turn_within_its_hold_counts_once_a_row_that_held_nothing_has_used_the_rest(ledger: BudgetLedger) -> None:
    """The first hold of a budget, whose sum is made with it."""
    hold(ledger, "a", (CAP, "0.5"))
    ledger.append([row(line(cost="0.8"), id="held nothing")])
    ledger.append([row(line(cost="0.5"), id="a")])
    assert overshot(ledger) == {"daily": usd("0.3")}

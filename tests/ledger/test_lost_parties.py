"""Turns whose client or agent was lost before anything was known of them: aborting is no way not to pay."""

from __future__ import annotations

import pytest

from acp_proxy.core.budget.charge import charge
from acp_proxy.core.entry import UsageLine
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.core.windows import HOUR
from acp_proxy.ledger import Row
from acp_proxy.ledger.budgets import BudgetLedger
from harness.rows import ALICE, NOON, line
from tests.core.accounts import budget, usd
from tests.ledger.conftest import AND_HUB
from tests.ledger.holds import CAP, NOTHING_KNOWN, account, ended, held, hold

pytestmark = AND_HUB

TOKENS = account(budget("1000 tokens", name="tokens"))
TURNS = account(budget("9 turns", name="turns"))


@pytest.mark.parametrize("stop_reason", ["disconnected", "crashed"])
def test_it_is_charged_what_it_held_and_its_row_stays_unknown(ledger: BudgetLedger, stop_reason: str) -> None:
    hold(ledger, "a", (CAP, "0.4"), (TOKENS, 300), (TURNS, 1))
    row = ended(stop_reason, NOTHING_KNOWN)
    ledger.append([row])
    assert held(ledger, CAP) == (usd("0.4"), 0)
    assert held(ledger, TOKENS) == (300, 0)
    assert held(ledger, TURNS) == (1, 0)
    assert charge(CAP, ALICE, row.entry, hold=usd("0.4")) == usd("0.4")
    assert charge(TURNS, ALICE, row.entry, hold=1) == 1


@pytest.mark.parametrize("stop_reason", ["disconnected", "crashed"])
def test_it_is_charged_the_tokens_that_it_held_where_only_its_cost_was_told(
    ledger: BudgetLedger, stop_reason: str
) -> None:
    hold(ledger, "a", (CAP, "0.4"), (TOKENS, 300), (TURNS, 1))
    row = ended(stop_reason, UsageLine("opus", Usage(), Money.of("0.1", "USD")))
    ledger.append([row])
    assert held(ledger, CAP) == (usd("0.1"), 0)
    assert held(ledger, TOKENS) == (300, 0)
    assert held(ledger, TURNS) == (1, 0)
    assert charge(TOKENS, ALICE, row.entry, hold=300) == 300


def test_what_it_was_charged_in_one_unit_is_nothing_in_another(ledger: BudgetLedger) -> None:
    hold(ledger, "a", (CAP, "0.4"))
    ledger.append([ended("crashed", NOTHING_KNOWN)])
    assert held(ledger, account(budget("1000 tokens"))) == (0, 0)


def test_it_is_charged_once_however_often_its_row_comes(ledger: BudgetLedger) -> None:
    hold(ledger, "a", (CAP, "0.4"))
    for _ in range(2):
        ledger.append([ended("disconnected", NOTHING_KNOWN)])
    assert held(ledger, CAP) == (usd("0.4"), 0)


def test_of_two_rows_that_come_together_the_one_that_is_written_says_what_it_is_charged(ledger: BudgetLedger) -> None:
    hold(ledger, "a", (CAP, "0.4"))
    assert ledger.append([ended("end_turn", line(cost="0.1")), ended("crashed", NOTHING_KNOWN)]) == 1
    assert held(ledger, CAP) == (usd("0.1"), 0)


@pytest.mark.parametrize(
    "row",
    [
        ended("disconnected", line(cost="0.1")),
        ended("crashed", line(cost="0.1")),
        ended("end_turn", NOTHING_KNOWN),
        ended("cancelled", NOTHING_KNOWN),  # its agent lives, and tells later
    ],
    ids=["known when the client went", "known when the agent went", "ended", "cancelled"],
)
def test_others_are_charged_what_is_known_of_them(ledger: BudgetLedger, row: Row) -> None:
    hold(ledger, "a", (CAP, "0.4"))
    ledger.append([row])
    known = sum(cost.nano for cost in row.entry.costs)
    assert held(ledger, CAP) == (known, 0)
    assert charge(CAP, ALICE, row.entry, hold=usd("0.4")) == known


def test_one_that_held_nothing_is_charged_nothing(ledger: BudgetLedger) -> None:
    ledger.append([ended("disconnected", NOTHING_KNOWN)])
    assert held(ledger, CAP) == (0, 0)


def test_a_window_that_moves_leaves_behind_what_it_was_charged(ledger: BudgetLedger) -> None:
    rolling = budget("1 USD", "rolling:1h")
    now, later = account(rolling), account(rolling, at=NOON + HOUR + 1)
    hold(ledger, "a", (now, "0.4"))
    ledger.append([ended("crashed", NOTHING_KNOWN)])
    assert [each.spent for each in ledger.standing([now, later], NOON)] == [usd("0.4"), 0]


def test_totals_made_anew_do_not_forget_it(ledger: BudgetLedger) -> None:
    hold(ledger, "a", (CAP, "0.4"))
    ledger.append([ended("crashed", NOTHING_KNOWN)])
    ledger.rebuild()
    assert held(ledger, CAP) == (usd("0.4"), 0)

"""Where estimates count: what a turn is charged that misses a price, by the lines that its budget is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from acp_proxy.core.budget.charge import charge
from acp_proxy.core.scope import Scope
from acp_proxy.core.windows import HOUR
from acp_proxy.ledger import Row
from acp_proxy.ledger.accounts.standings import Question
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.sql_ledger import SqlLedger
from harness.rows import ALICE, NOON, line, row
from tests.core.accounts import budget, usd
from tests.ledger.conftest import ONE_AT_A_TIME
from tests.ledger.holds import account, held, hold

pytestmark = ONE_AT_A_TIME

OPUS = account(budget("9 USD", on_unpriced="estimate", scope=Scope(model=("sonnet", "op*"))))


@pytest.mark.parametrize(
    ("made", "charged"),
    [
        (row(line("opus", None), id="a"), "0.6"),
        (row(line("opus", None), line("opera", "0.1"), id="a"), "0.6"),
        (row(line("opus", None), line("opera", "0.1", "EUR"), id="a"), "0.6"),
        (row(line("opus", None), line("opera", "0.7"), id="a"), "0.7"),
        (row(line("opus", None), line("haiku", "5"), id="a"), "0.6"),
        (row(line("opus", "0.1"), line("haiku", None), id="a"), "0.1"),
        (row(line("opus", "0.1"), line(None, None), id="a"), "0.1"),
        (row(line("opus", "0.1"), line("opera", None, input=0), id="a"), "0.1"),
        (row(line("opus", None), id="a", cost_source="parent"), "0"),
    ],
    ids=[
        "no price",
        "a part",
        "a part in another currency",
        "a part beyond the hold",
        "a price of another model",
        "no price of another model",
        "no price of no model",
        "no tokens",
        "in its parent's cost",
    ],
)
def test_a_hold_stands_for_the_price_of_models_in_scope(ledger: BudgetLedger, made: Row, charged: str) -> None:
    hold(ledger, "a", (OPUS, "0.6"))
    ledger.append([made])
    assert held(ledger, OPUS) == (usd(charged), 0)
    assert charge(OPUS, ALICE, made.entry, hold=usd("0.6")) == usd(charged)


def test_a_limit_of_tokens_needs_no_price(ledger: BudgetLedger) -> None:
    tokens = account(budget("900 tokens", on_unpriced="estimate"))
    hold(ledger, "a", (tokens, 300))
    ledger.append([row(line("opus", None), id="a")])
    assert held(ledger, tokens) == (110, 0)


def test_what_a_hold_reads_does_not_grow_with_the_turns_that_estimates_stand_for(ledger: BudgetLedger) -> None:
    assert isinstance(ledger, SqlLedger)
    found: list[int] = []

    def read(sql: str, values: Sequence[Any]) -> list[Any]:
        rows = ledger._read(sql, values)
        found.append(len(rows))
        return rows

    for turns in (1, 4):
        for number in range(turns):
            hold(ledger, f"{turns}{number}", (OPUS, "0.6"))
            ledger.append([row(line("opus", None), id=f"{turns}{number}")])
        Question([OPUS], NOON, ledger.dialect).ask(read)
    assert found[0] == found[1]
    assert held(ledger, OPUS) == (usd("3"), 0)


def test_in_a_rolling_window_a_hold_stands_as_long_as_its_turn_counts(ledger: BudgetLedger) -> None:
    rolling = budget("9 USD", "rolling:2h", on_unpriced="estimate")
    early, late = account(rolling), account(rolling, at=NOON + HOUR)
    hold(ledger, "a", (early, "0.6"))
    ledger.append([row(line("opus", None), id="a", at=NOON - HOUR)])
    hold(ledger, "b", (late, "0.4"))
    ledger.append([row(line("opus", None), id="b", at=NOON - HOUR - 1)])
    hold(ledger, "c", (late, "0.1"))
    ledger.append([row(line("opus", None), id="c")])
    assert early.key == late.key
    spent = [standing.spent for standing in ledger.standing([early, late], NOON)]
    assert spent == [usd("1.1"), usd("0.7")]

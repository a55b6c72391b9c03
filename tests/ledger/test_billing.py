"""How rows are billed, kept with each row: in sums, in budgets of money, and of what was before there was any of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from acp_proxy.core.budget import Budget, Limit, accounts_for
from acp_proxy.core.money import NANO, Money
from acp_proxy.core.scope import EVERYTHING, Scope
from acp_proxy.core.windows import DAY, HOUR, Window
from acp_proxy.ledger import Query, open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.migrations import MIGRATIONS
from acp_proxy.ledger.sums.totals import BILLING
from acp_proxy.text.times import zone_info
from harness.rows import ALICE, NOON, line, row
from tests.ledger.holds import hold
from tests.ledger.steps import undone_since

ON_PLAN, BILLED = replace(ALICE, billing="plan"), replace(ALICE, billing="tokens")
EVER = Query()
EDGES = Query(NOON - 7, NOON + DAY - 3)  # no sums of quarter hours have these


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[BudgetLedger]:
    made = open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())
    made.append(
        [
            row(line(cost="1"), origin=ON_PLAN),
            row(line(cost="2"), origin=BILLED),
            row(line(cost="4"), origin=ALICE),
        ]
    )
    yield made
    made.close()


def dollars(amount: int) -> tuple[Money, ...]:
    return (Money(amount * NANO, "USD"),)


@pytest.mark.parametrize("query", [EVER, EDGES])
def test_sums_say_what_of_a_cost_is_not_billed(ledger: BudgetLedger, query: Query) -> None:
    (whole,) = ledger.summed(query, ())
    assert (whole.costs, whole.not_billed) == (dollars(7), dollars(1))
    by_billing = {sums.key[0]: sums.costs for sums in ledger.summed(query, ("billing",))}
    assert by_billing == {"plan": dollars(1), "tokens": dollars(2), None: dollars(4)}


@pytest.mark.parametrize("ahead", ["day", "day+4", "day-8"])
def test_days_of_any_zone_say_it(ledger: BudgetLedger, ahead: str) -> None:
    (day,) = ledger.summed(EVER, (ahead,))
    assert (day.costs, day.not_billed) == (dollars(7), dollars(1))


def test_a_row_is_read_back_with_it(ledger: BudgetLedger) -> None:
    assert [found.origin.billing for found in ledger.rows(EVER)] == ["plan", "tokens", None]


@pytest.mark.parametrize(("window", "limit"), [("month", "USD"), ("total", "USD"), ("session", "USD"), ("day", "USD")])
def test_a_budget_of_money_leaves_it_out_where_it_is_to(ledger: BudgetLedger, window: str, limit: str) -> None:
    def spent(scope: Scope = EVERYTHING) -> int:
        budget = Budget("b", "user", Window.parse(window), Limit(100 * NANO, limit), scope)
        subject = ALICE.subject(session="s1")
        accounts = accounts_for([budget], subject, NOON + HOUR, zone_info, "")
        (standing,) = ledger.standing(accounts, NOON + HOUR)
        return standing.spent // NANO

    assert spent() == 7
    assert spent(Scope(without_plans=True)) == 6


def test_a_kept_sum_leaves_it_out_as_rows_come(ledger: BudgetLedger) -> None:
    budgets = [
        Budget("all", "user", Window("month"), Limit(100 * NANO, "USD")),
        Budget("billed", "user", Window("month"), Limit(100 * NANO, "USD"), Scope(without_plans=True)),
    ]
    accounts = accounts_for(budgets, ALICE.subject(), NOON, zone_info, "")
    hold(ledger, "t", *[(account, 1) for account in accounts])
    ledger.append([row(line(cost="8"), origin=ON_PLAN), row(line(cost="16"), origin=BILLED)])
    assert [standing.spent // NANO for standing in ledger.standing(accounts, NOON)] == [31, 22]


def test_a_budget_without_plans_is_not_about_a_prompt_that_is_known_to_be_under_one() -> None:
    budget = Budget("b", "user", Window("day"), Limit(NANO, "USD"), Scope(without_plans=True))
    assert [budget.matches(origin.subject()) for origin in (ON_PLAN, BILLED, ALICE)] == [False, True, True]


def test_rebuilt_totals_are_the_same(ledger: BudgetLedger) -> None:
    assert ledger.rebuild()
    (whole,) = ledger.summed(EVER, ())
    assert whole.not_billed == dollars(1)


def test_a_ledger_of_before_goes_on_with_its_series(tmp_path: Path, make_old: Callable[[Path], None]) -> None:
    path = tmp_path / "old.db"
    make_old(path)
    ledger = open_ledger(f"sqlite:///{path}", journals=())
    ledger.append([row(line(cost="1"), origin=ON_PLAN), row(line(cost="2"))])
    (whole,) = ledger.summed(EVER, ())
    assert (whole.rows, whole.costs, whole.not_billed) == (3, dollars(7), dollars(1))
    ledger.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM series").fetchone() == (2,)


@pytest.fixture
def make_old() -> Callable[[Path], None]:
    """A ledger of a version that knew nothing of billing, with one row."""

    def make(path: Path) -> None:
        ledger = open_ledger(f"sqlite:///{path}", journals=())
        ledger.append([row(line(cost="4"))])
        ledger.close()
        with sqlite3.connect(path) as connection:
            version = next(number for number, step in enumerate(MIGRATIONS) if BILLING[0] in step)
            for statement in undone_since(version):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {version}")

    return make

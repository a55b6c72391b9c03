"""What accounts have spent is found without a look at rows and totals that are not theirs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from acp_proxy.core.budget import Account, Budget
from acp_proxy.core.scope import Scope
from acp_proxy.core.windows import DAY, Bounds
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.accounts.balances import balance_key_of
from acp_proxy.ledger.accounts.parts import union_all
from acp_proxy.ledger.accounts.spending import spent
from acp_proxy.ledger.accounts.standings import Question
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.dialects import SQLITE
from acp_proxy.ledger.sqlite.ledger import SqliteLedger
from acp_proxy.system.ids import uuid7
from harness.rows import ALICE, BOB, MINUTE, NOON, line, row
from tests.core.accounts import budget, usd
from tests.ledger.conftest import AND_HUB
from tests.ledger.holds import account, held, hold


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqliteLedger]:
    with closing(SqliteLedger(tmp_path / "ledger.db")) as ledger:
        yield ledger


@pytest.mark.parametrize("analyzed", [False, True], ids=["", "analyzed"])
@pytest.mark.parametrize("amount", ["9 USD", "9 tokens", "9 turns"])
@pytest.mark.parametrize(
    ("of", "index"),
    [
        ({"window": "session"}, "turn_by_session"),
        ({"window": "session", "scope": Scope(model=("op*",))}, "turn_by_session"),
        ({"window": "total", "layer": "flag"}, "turn_by_process"),
        ({"window": "session", "layer": "flag"}, "turn_by_session"),
    ],
    ids=["session", "session and model", "run", "session in a run"],
)
def test_a_session_or_a_run_is_added_up_without_a_look_at_all_lines(
    tmp_path: Path, of: dict[str, Any], index: str, amount: str, *, analyzed: bool
) -> None:
    path = tmp_path / "ledger.db"
    with closing(open_ledger(f"sqlite:///{path}", journals=())) as ledger:
        ledger.append([row(), row(session="s2")])
    asked = union_all(spent(0, account(budget(amount, **of)), Bounds(), SQLITE))
    with closing(sqlite3.connect(path)) as connection:
        if analyzed:
            connection.execute("ANALYZE")
        plan = [step[3] for step in connection.execute(f"EXPLAIN QUERY PLAN {asked[0]}", asked[1])]
    assert [index in step for step in plan if step.startswith("SEARCH t ")] == [True]
    assert [step for step in plan if step.startswith("SCAN") or step.endswith("(org_id=?)")] == []


def test_what_estimates_charged_before_a_moving_window_is_passed_over(sqlite: SqliteLedger) -> None:
    rolling = account(budget("9 USD", "rolling:24h", on_unpriced="estimate"))
    for days in (0, 0.5, 1.5, 400):  # with an id as a prompt has it
        at = NOON - int(days * DAY)
        turn = uuid7(at)
        hold(sqlite, turn, (rolling, "0.6"))
        sqlite.append([row(line("opus", None), id=turn, at=at)])
    assert held(sqlite, rolling) == (usd("1.2"), 0)

    def planned(sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        plan.extend(step[3] for step in sqlite._read(f"EXPLAIN QUERY PLAN {sql}", values))
        return []

    plan: list[str] = []
    Question([rolling], NOON, SQLITE).ask(planned)
    assert "SEARCH s USING PRIMARY KEY (org_id=? AND account=? AND turn>?)" in plan


def test_turns_of_one_model_are_counted_without_a_look_at_lines() -> None:
    """A first hold would have others wait for as long as it takes to read them all."""
    (asked,) = spent(0, account(budget("9 turns", "total", scope=Scope(model=("opus",)))), Bounds(), SQLITE)
    assert "line l" not in asked[0]


def test_what_moves_in_a_quarter_of_an_hour_has_no_totals_looked_through() -> None:
    key = balance_key_of(of := account(budget("9 USD", "rolling:24h"), at=NOON + MINUTE))
    assert key is not None
    assert key.edge is not None
    (asked,) = spent(0, of, key.edge, SQLITE)
    assert "total" not in asked[0]


@AND_HUB
def test_accounts_with_and_without_a_kept_sum_stand_as_their_rows_say(ledger: BudgetLedger) -> None:
    ledger.append([row(), row(origin=BOB), row(session="s2", at=NOON + MINUTE)])
    accounts = [account(each, origin) for each in _budgets() for origin in (ALICE, BOB)]
    before = ledger.standing(accounts, NOON)
    hold(ledger, "t", (accounts[0], "1"))
    ledger.release("default", "t")
    assert ledger.standing(accounts, NOON) == before
    assert [each.spent for each in before] == [usd("0.02"), usd("0.01"), 1, 1, 330, 330]


def test_a_sum_that_is_missing_has_only_its_own_account_added_up(sqlite: SqliteLedger) -> None:
    kept, missing = account(budget("9 USD", per="user")), account(budget("9 USD", per="user"), BOB)
    sqlite.append([row(), row(origin=BOB)])
    hold(sqlite, "t", (kept, "1"))
    asked = _asked(sqlite, [kept, missing])
    assert [(sql.count("FROM kept_sum"), sql.count("FROM series")) for sql in asked] == [(2, 0), (1, 1)]


def test_sums_that_are_forgotten_while_others_are_added_up_are_not_taken_for_nothing(sqlite: SqliteLedger) -> None:
    kept, missing = account(budget("9 USD", per="user")), account(budget("9 USD", per="user"), BOB)
    sqlite.append([row(), row(origin=BOB)])
    hold(sqlite, "t", (kept, "1"))
    sqlite.release("default", "t")

    def read(sql: str, values: Sequence[Any]) -> list[Any]:
        found = sqlite._read(sql, values)
        sqlite.rebuild()  # forgets all of them
        return found

    standings = Question([kept, missing], NOON, SQLITE).ask(read).standings
    assert [each.spent for each in standings] == [usd("0.01"), usd("0.01")]


def _budgets() -> list[Budget]:
    return [budget("9 USD", per="user"), budget("9 turns", "session"), budget("999 tokens", "total")]


def _asked(ledger: SqliteLedger, accounts: Sequence[Account]) -> list[str]:
    """The statements of one question."""
    asked = list[str]()

    def read(sql: str, values: Sequence[Any]) -> list[Any]:
        asked.append(sql)
        return ledger._read(sql, values)

    Question(accounts, NOON, SQLITE).ask(read)
    return asked

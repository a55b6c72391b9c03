"""Sums that holds keep say what the rows say, whoever adds rows; and without them everything is still known."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.core.budget import Budget
from acp_proxy.core.budget.charge import charge
from acp_proxy.core.money import Money
from acp_proxy.core.scope import Scope
from acp_proxy.core.windows import HOUR
from acp_proxy.ledger import Query, open_ledger
from acp_proxy.ledger.accounts.balances import ANEW, TABLES
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.migrations import MIGRATIONS
from harness.rows import ALICE, BOB, MINUTE, NOON, line, row
from tests.core.accounts import budget, usd
from tests.ledger.conftest import Open
from tests.ledger.holds import ELSEWHERE, account, any_rows, hold, keep, standing, unique
from tests.ledger.steps import undone_since

DAY = 24 * HOUR
CAP = account(budget("9 USD"))


@pytest.mark.parametrize(
    "of",
    [
        budget("9 USD"),
        budget("9 USD", per="user"),
        budget("9 EUR", "month", zone="Europe/Berlin"),
        budget("9 EUR", "month", rates=(("USD", 2 * 10**9),)),
        budget("9 tokens", "rolling:5h"),
        budget("9 USD", "rolling:1h", per="team"),
        budget("9 turns", "week", zone="Asia/Kathmandu", per="agent"),
        budget("9 turns", "total", scope=Scope(model=("op*", "haiku"))),
        budget("9 turns", "month", scope=Scope(model=("opus",)), zone="Asia/Kathmandu"),
        budget("9 USD", "quarter", scope=Scope(model=("op*",), user=("alice", "carol"))),
        budget("9 tokens", "session", scope=Scope(model=("op*",))),
        budget("9 USD", "turn"),
        budget("9 tokens", scope=Scope(user=("alice",))),
        budget("9 turns", "rolling:2h", scope=Scope(agent=(ALICE.agent,), project=("web", "infra"), model=("op*",))),
        budget("9 USD", "total", scope=Scope(project=("w[e]b", "*eb"), agent=("claude*",)), per="project"),
        budget("9 USD", "total", layer="flag"),
        budget("9 turns", "session", layer="flag"),
        budget("9 turns", "rolling:3h", layer="flag", per="user"),
    ],
    ids=lambda of: f"{of.limit.unit} {of.window.text} {of.per} {dict(of.scope.texts)} {of.layer}",
)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_what_is_kept_is_what_all_rows_charge(sqlite: BudgetLedger, of: Budget, data: st.DataObject) -> None:
    """Rows come before and after the first hold, some of them twice."""
    ledger = sqlite
    organisation = f"org {sum(1 for _ in ledger.rows(Query()))}"  # examples share the ledger
    rows = [unique(each, number, organisation) for number, each in enumerate(data.draw(any_rows))]
    before = data.draw(st.integers(0, len(rows)))
    wide = replace(of, limit=replace(of.limit, amount=10**15))
    one = account(wide, replace(ALICE, organisation=organisation), turn=rows[0].entry.id if rows else "t")
    ledger.append(rows[:before])
    hold(ledger, f"{organisation} first", (one, 1), owner=ELSEWHERE)
    for each in rows[before:]:
        ledger.append([each])
    ledger.append(rows[before // 2 :])
    kept = standing(ledger, one)
    assert kept.spent == sum(charge(one, each.origin, each.entry, process=each.process) for each in rows)
    ledger.rebuild()
    assert standing(ledger, one) == kept


class TestWhatChanges:
    def test_a_sum_counts_what_another_process_books_late_and_once(self, ledger: BudgetLedger, another: Open) -> None:
        keep(ledger, CAP)
        other = another()
        other.append([row(line(cost="0.5"), id="late", at=NOON - 11 * HOUR), row(line(cost="0.25"))])
        other.append([row(line(cost="0.5"), id="late", at=NOON - 11 * HOUR)])
        ledger.append([row(line(cost="4"), at=NOON - DAY), row(line(cost="1", currency="EUR")), row(line(cost=None))])
        found = standing(ledger, CAP)
        assert (found.spent, found.not_counted, found.unpriced) == (usd("0.75"), (Money.of("1", "EUR"),), 1)

    def test_what_has_no_price_counts_in_a_sum_as_it_does_without_one(self, ledger: BudgetLedger) -> None:
        opus = account(budget("9 USD", name="opus", scope=Scope(model=("op*",))))
        keep(ledger, CAP, opus)
        ledger.append([row(line("opus", None), line("opera", None), line("haiku", None))])
        ledger.append([row(line("opus", None, input=0), line("haiku"))])
        ledger.append([row(line("opus", None), cost_source="parent", kind="subagent")])
        kept = ledger.standing([CAP, opus], NOON)
        assert [each.unpriced for each in kept] == [1, 2]
        ledger.rebuild()
        assert ledger.standing([CAP, opus], NOON) == kept

    def test_the_sum_of_a_window_that_is_over_keeps_no_other_from_counting(self, ledger: BudgetLedger) -> None:
        keep(ledger, account(budget("9 USD"), at=NOON - DAY), now=NOON - DAY)
        keep(ledger, CAP)
        ledger.append([row()])
        assert standing(ledger, CAP).spent == usd("0.01")

    def test_two_budgets_of_one_name_have_sums_of_their_own(self, ledger: BudgetLedger) -> None:
        two, everybody = (account(budget("9 USD", scope=Scope(user=users))) for users in (("alice", "carol"), ()))
        in_berlin, tokens = account(budget("9 USD", zone="Europe/Berlin")), account(budget("9 tokens"))
        several = (two, everybody, in_berlin, tokens)
        assert len({each.key for each in several}) < len(several)
        for each in several:
            keep(ledger, each)
        ledger.append([row(), row(origin=BOB), row(at=NOON - 12 * HOUR - MINUTE)])
        assert [standing(ledger, each).spent for each in several] == [usd("0.01"), usd("0.02"), usd("0.03"), 220]

    def test_of_a_budget_for_each_user_each_reads_its_own(self, ledger: BudgetLedger) -> None:
        both = [account(budget("9 USD", per="user"), origin) for origin in (ALICE, BOB)]
        for each in both:
            keep(ledger, each)
        ledger.append([row(line(cost="1")), row(line(cost="2"), origin=BOB)])
        assert [standing(ledger, each).spent for each in both] == [usd("1"), usd("2")]

    def test_a_limit_that_changes_and_a_budget_that_is_renamed_read_the_same_sum(self, path: Path) -> None:
        with closing(open_ledger(f"sqlite:///{path}", journals=())) as ledger:
            for name, amount in (("a", "9 USD"), ("a", "4 USD"), ("b", "9 USD")):
                keep(ledger, account(budget(amount, name=name)))
            assert len(sums_of(path)) == 1

    def test_a_window_that_moves_leaves_behind_what_it_has_passed(self, ledger: BudgetLedger) -> None:
        of = budget("9 turns", "rolling:1h")
        ledger.append([row(at=NOON + number * MINUTE) for number in range(60)])
        for minutes in (59, 60, 67, 68, 75, 76, 118, 119, 120):
            now = account(of, at=NOON + minutes * MINUTE)
            keep(ledger, now, now=NOON + minutes * MINUTE)
            assert standing(ledger, now).spent == max(0, 120 - minutes if minutes >= 60 else 60), minutes

    def test_rebuilding_makes_them_anew(self, path: Path) -> None:
        with closing(open_ledger(f"sqlite:///{path}", journals=())) as ledger:
            keep(ledger, CAP)
            with database(path) as connection:
                connection.execute('UPDATE kept_sum SET spent = \'{"nano":{"USD":7}}\'')
            assert standing(ledger, CAP).spent == 7
            ledger.rebuild()
            assert standing(ledger, CAP).spent == 0

    @pytest.mark.parametrize("sign", ["", "-"])
    def test_a_sum_beyond_all_columns_refuses_no_row(self, ledger: BudgetLedger, sign: str) -> None:
        keep(ledger, CAP)
        most = Money(2**63 - 1, "USD").text
        for number in range(1, 5):
            ledger.append([row(line(cost=f"{sign}{most}"))])
            assert standing(ledger, CAP).spent == int(f"{sign}{number}") * (2**63 - 1)

    def test_what_is_too_much_to_keep_is_summed_as_before(self, ledger: BudgetLedger) -> None:
        keep(ledger, CAP)
        most = Money(2**63 - 1, "USD").text
        ledger.append([row(line(cost=most)), row(line(cost=most))])
        assert not hold(ledger, "a", (CAP, 1)).admitted
        ledger.append([row(line(cost="0.000000003"))])
        assert standing(ledger, CAP).spent == 2**64 + 1


class TestFile:
    def test_a_hold_asks_no_totals_once_its_sum_is_there(self, path: Path) -> None:
        with closing(open_ledger(f"sqlite:///{path}", journals=())) as ledger:
            ledger.append([row(line(cost="3"), origin=replace(ALICE, user=f"user {number}")) for number in range(2)])
            keep(ledger, CAP)
            with database(path) as connection:
                connection.executescript("DELETE FROM total; DELETE FROM series; DELETE FROM line")
            assert [each.spent for each in hold(ledger, "a", (CAP, "1")).standings] == [usd("6")]
            ledger.append([row(line(cost="2"), id="a")])
            assert not hold(ledger, "b", (CAP, usd("2"))).verdict.holds[0][1] > usd("1")

    def test_sums_that_nobody_will_ask_for_are_forgotten(self, path: Path) -> None:
        with closing(open_ledger(f"sqlite:///{path}", journals=())) as ledger:
            windows = ("day", "rolling:1h", "total", "session", "month")
            for day in range(8):
                at = NOON + day * DAY
                keep(ledger, *(account(budget("9 USD", window, window), at=at) for window in windows), now=at)
            assert len(sums_of(path)) == len(windows)

    def test_the_sum_of_a_session_is_kept_for_a_week(self, path: Path) -> None:
        with closing(open_ledger(f"sqlite:///{path}", journals=())) as ledger:
            keep(ledger, account(budget("9 USD", "session")))
            for after, is_kept in ((7 * DAY, True), (7 * DAY + 1, False)):  # a sum that is made takes the old ones away
                now = NOON + after
                keep(ledger, account(budget("9 USD", "day", zone=f"Etc/GMT+{after % 2}"), at=now), now=now)
                assert any("session" in whose for whose, _ in sums_of(path)) is is_kept

    def test_of_budgets_for_one_user_each_a_row_looks_at_its_own(self, path: Path) -> None:
        with closing(open_ledger(f"sqlite:///{path}", journals=())) as ledger:
            for user in ("alice", "bob"):
                keep(ledger, account(budget("9 USD", scope=Scope(user=(user,))), replace(ALICE, user=user)))
            assert [whose for whose, _ in sums_of(path)] == ['{"user":"alice"}', '{"user":"bob"}']

    def test_a_ledger_from_before_them_has_all_that_was_spent(self, path: Path) -> None:
        url = f"sqlite:///{path}"
        with closing(open_ledger(url, journals=())) as ledger:
            ledger.append([row(line(cost="3"))])
        with database(path) as connection:
            for statement in undone_since(MIGRATIONS.index(TABLES)):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {MIGRATIONS.index(TABLES)}")
        with closing(open_ledger(url, journals=())) as ledger:
            keep(ledger, CAP)
            ledger.append([row(line(cost="2"))])
            assert standing(ledger, CAP).spent == usd("5")

    def test_one_from_before_it_said_of_how_many_rows_not_all_was_told_is_made_anew(self, path: Path) -> None:
        url = f"sqlite:///{path}"
        with closing(open_ledger(url, journals=())) as ledger:
            ledger.append([row(line(cost="3"), usage_source="partial")])
            keep(ledger, CAP)
        with database(path) as connection:
            for statement in undone_since(MIGRATIONS.index(ANEW) + 1):
                connection.execute(statement)
            connection.execute('UPDATE kept_sum SET spent = \'{"nano":{"USD":3000000000}}\'')
            connection.execute(f"PRAGMA user_version = {MIGRATIONS.index(ANEW)}")
        with closing(open_ledger(url, journals=())) as ledger:
            keep(ledger, CAP)
            assert (standing(ledger, CAP).spent, standing(ledger, CAP).untold) == (usd("3"), 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def sqlite(path: Path) -> Iterator[BudgetLedger]:
    """The backend whose writers come one after the other; for the other one there is `test_pending_rows.py`."""
    with closing(open_ledger(f"sqlite:///{path}", journals=())) as ledger:
        yield ledger


def sums_of(path: Path) -> list[tuple[str, str]]:
    with database(path) as connection:
        return connection.execute("SELECT whose, what FROM kept_sum").fetchall()


@contextmanager
def database(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection

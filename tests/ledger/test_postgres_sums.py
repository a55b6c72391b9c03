"""Sums that PostgreSQL keeps as of a snapshot say what the rows say, however transactions overlap."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.core.charge import charge
from acp_proxy.core.scope import Scope
from acp_proxy.core.windows import HOUR
from acp_proxy.ledger import Query, Row, open_ledger
from acp_proxy.ledger.appending import Appending
from acp_proxy.ledger.postgres import PostgresLedger
from acp_proxy.ledger.totals import Run
from tests.core.accounts import budget, usd
from tests.ledger.rows import ALICE, MINUTE, NOON, line, row
from tests.ledger.server import Server
from tests.ledger.test_budgets import ELSEWHERE, account, any_rows, hold, unique
from tests.ledger.test_kept_sums import CAP, keep, standing

BUDGETS = (
    budget("9 USD"),
    budget("9 USD", per="user"),
    budget("9 EUR", "month", zone="Europe/Berlin"),
    budget("9 tokens", "rolling:5h"),
    budget("9 USD", "rolling:1h", per="team"),
    budget("9 turns", "week", per="agent"),
    budget("9 turns", "total", scope=Scope(model=("op*", "haiku"))),
    budget("9 USD", "quarter", scope=Scope(model=("op*",), user=("alice", "carol"))),
    budget("9 turns", "rolling:2h", scope=Scope(agent=(ALICE.agent,), project=("web", "infra"), model=("op*",))),
    budget("9 USD", "total", scope=Scope(project=("w[e]b", "*eb"), agent=("claude*",)), per="project"),
)
_numbers = iter(range(10**6))


@pytest.fixture
def url(postgres: Server) -> str:
    return postgres.create(f"sums{next(_numbers)}")


@pytest.fixture
def ledger(url: str) -> Iterator[PostgresLedger]:
    with closing(PostgresLedger(url)) as opened:
        yield opened


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read", "serializable"])
def test_what_is_kept_is_what_all_rows_charge(postgres: Server, isolation: str) -> None:
    url = postgres.create(f"sums{next(_numbers)}", isolation)
    with closing(open_ledger(url, journals=())) as ledger, closing(open_ledger(url, journals=())) as other:

        @settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(rows=any_rows, data=st.data())
        def is_exact(rows: Sequence[Row], data: st.DataObject) -> None:
            organisation = f"org {sum(1 for _ in ledger.rows(Query()))}"  # examples share the ledger
            some = [unique(each, number, organisation) for number, each in enumerate(rows)]
            origin = replace(ALICE, organisation=organisation)
            wide = [replace(of, name=f"{n}", limit=replace(of.limit, amount=10**15)) for n, of in enumerate(BUDGETS)]
            accounts = [account(each, origin) for each in wide]
            before = data.draw(st.integers(0, len(some)))
            other.append(some[:before])
            hold(ledger, f"{organisation} first", *((each, 1) for each in accounts), owner=ELSEWHERE)
            for each in some[before:]:
                other.append([each])
            other.append(some[before // 2 :])
            for one in accounts:
                charged = sum(charge(one, each.origin, each.entry, process=each.process) for each in some)
                assert standing(ledger, one).spent == charged, one.budget

        is_exact()


def test_a_row_that_was_on_its_way_when_the_sum_was_made_counts_when_it_has_come(ledger: PostgresLedger) -> None:
    ledger.append([row(line(cost="1"))])
    with closing(PostgresLedger(ledger._address.dsn)) as other:

        def slowly(run: Run) -> None:
            Appending([row(line(cost="2"))]).write(run, set(), other.dialect, other._lock)
            keep(ledger, CAP)
            assert standing(ledger, CAP).spent == usd("1")

        other._write(slowly)
    assert standing(ledger, CAP).spent == usd("3")
    keep(ledger, CAP)
    ledger.append([row(line(cost="4"))])
    assert standing(ledger, CAP).spent == usd("7")


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
def test_sums_stay_exact_while_others_append(postgres: Server, isolation: str) -> None:
    url = postgres.create(f"sums{next(_numbers)}", isolation)
    with closing(open_ledger(url, journals=(), patience=30)) as ledger:
        writers = [threading.Thread(target=append_some, args=(url, name, 15)) for name in "abc"]
        for writer in writers:
            writer.start()
        while any(writer.is_alive() for writer in writers):
            keep(ledger, CAP)
            execute(url, "UPDATE sum_as_of SET kept_until = 0 WHERE random() < 0.3")
        assert standing(ledger, CAP).spent == usd("0.45")


def test_a_hold_asks_no_totals_once_its_sum_is_there(ledger: PostgresLedger, url: str) -> None:
    ledger.append([row(line(cost="6"))])
    keep(ledger, CAP)
    execute(url, "DELETE FROM total; DELETE FROM series")
    ledger.append([row(line(cost="2"))])
    assert [each.spent for each in hold(ledger, "a", (CAP, "1")).standings] == [usd("8")]


def test_a_sum_is_moved_on_from_time_to_time_and_found_anew_when_it_is_far_behind(
    ledger: PostgresLedger, url: str
) -> None:
    snapshots = []
    for count in (0, 10, 30, 600):
        ledger.append([row() for _ in range(count)])
        keep(ledger, CAP)
        snapshots.append(asked(url, "SELECT as_of FROM sum_as_of"))
    assert snapshots[0] == snapshots[1]
    assert len({str(each) for each in snapshots}) == 3
    assert standing(ledger, CAP).spent == usd("6.4")
    ledger.append([row() for _ in range(600)])
    assert standing(ledger, CAP).spent == usd("12.4")


def test_a_sum_that_came_with_the_dump_of_another_server_is_not_used(ledger: PostgresLedger, url: str) -> None:
    keep(ledger, CAP)
    execute(url, 'UPDATE sum_as_of SET spent = \'{"nano":{"USD":7}}\'')
    assert standing(ledger, CAP).spent == 7
    execute(url, "UPDATE sum_as_of SET cluster = cluster + 1")
    assert standing(ledger, CAP).spent == 0
    keep(ledger, CAP)
    assert asked(url, "SELECT spent FROM sum_as_of") == [("{}",)]


def test_rebuilding_makes_them_anew(ledger: PostgresLedger, url: str) -> None:
    keep(ledger, CAP)
    ledger.rebuild()
    assert asked(url, "SELECT count(*) FROM sum_as_of") == [(0,)]


def test_of_budgets_for_one_user_none_is_kept(ledger: PostgresLedger, url: str) -> None:
    for of in (budget("9 USD", per="user"), budget("9 USD", scope=Scope(user=("alice",))), budget("9 USD", "session")):
        keep(ledger, account(of))
    assert asked(url, "SELECT count(*) FROM sum_as_of") == [(0,)]


def test_sums_that_nobody_asks_for_are_forgotten(ledger: PostgresLedger, url: str) -> None:
    for hours in range(4):
        at = NOON + hours * (HOUR + MINUTE)
        keep(ledger, account(budget("9 USD", "rolling:1h"), at=at), now=at)
    assert asked(url, "SELECT count(*) FROM sum_as_of") == [(1,)]


def test_a_scope_as_long_as_a_list_of_everybody_has_a_sum(ledger: PostgresLedger) -> None:
    everybody = account(budget("9 USD", scope=Scope(user=("alice", *(f"user {number}" for number in range(2000))))))
    ledger.append([row(line(cost="3"))])
    keep(ledger, everybody)
    assert standing(ledger, everybody).spent == usd("3")


def test_a_ledger_from_before_them_has_all_that_was_spent(url: str) -> None:
    with closing(open_ledger(url, journals=())) as ledger:
        ledger.append([row(line(cost="3"))])
    execute(
        url, "DROP TABLE sum_as_of; ALTER TABLE turn DROP COLUMN written_in; UPDATE acp_proxy_schema SET version = 9"
    )
    with closing(open_ledger(url, journals=())) as ledger:
        keep(ledger, CAP)
        ledger.append([row(line(cost="2"))])
        assert standing(ledger, CAP).spent == usd("5")


def append_some(url: str, name: str, count: int) -> None:
    with closing(open_ledger(url, journals=(), patience=30)) as ledger:
        for number in range(count):
            ledger.append([row(id=f"{name}{number}")])


def execute(url: str, sql: str) -> None:
    asked(url, sql)


def asked(url: str, sql: str) -> list[tuple[object, ...]]:
    async def ask() -> list[tuple[object, ...]]:
        connection = await asyncpg.connect(url)
        try:
            if ";" in sql or not sql.startswith("SELECT"):
                await connection.execute(sql)
                return []
            return [tuple(record) for record in await connection.fetch(sql)]
        finally:
            await connection.close()

    return asyncio.run(ask())

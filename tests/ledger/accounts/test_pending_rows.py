"""Sums on PostgreSQL say what the rows say in every snapshot, however those who append, add up and make one overlap."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import count

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.core.budget.charge import charge
from acp_proxy.core.scope import Scope
from acp_proxy.ledger import Query, Row, open_ledger
from acp_proxy.ledger.accounts.pending_rows import is_due
from acp_proxy.ledger.accounts.standings import Question
from acp_proxy.ledger.migrations import MIGRATIONS
from acp_proxy.ledger.postgres.ledger import PostgresLedger
from acp_proxy.ledger.statements import Run
from acp_proxy.ledger.writing.appending import Appending
from acp_proxy.ledger.writing.at_once import Known
from acp_proxy.system.ids import uuid7
from harness.postgres import Server, asked
from harness.rows import ALICE, NOON, line, row
from tests.core.accounts import budget, usd
from tests.ledger.conftest import ISOLATIONS
from tests.ledger.holds import ELSEWHERE, account, any_rows, hold, keep, standing, unique
from tests.ledger.steps import gone_since

CAP = account(budget("9 USD"))
BUDGETS = (
    budget("9 USD"),
    budget("9 USD", per="user"),
    budget("9 EUR", "month", zone="Europe/Berlin"),
    budget("9 tokens", "rolling:5h"),
    budget("9 USD", "rolling:1h", per="team"),
    budget("9 turns", "week", per="agent"),
    budget("9 turns", "total", scope=Scope(model=("op*", "haiku"))),
    budget("9 USD", "quarter", scope=Scope(model=("op*",), user=("alice", "carol"))),
    budget("9 tokens", "session", scope=Scope(model=("op*",))),
    budget("9 turns", "rolling:2h", scope=Scope(agent=(ALICE.agent,), project=("web", "infra"), model=("op*",))),
    budget("9 USD", "total", scope=Scope(project=("w[e]b", "*eb"), agent=("claude*",)), per="project"),
    budget("9 turns", "session", layer="flag"),
)
DUE = next(f"row {number}" for number in count() if is_due(f"row {number}"))
LATER = [f"row {number}" for number in range(20) if not is_due(f"row {number}")]
_numbers = iter(range(10**6))


@pytest.fixture
def url(postgres: Server) -> str:
    return postgres.create(f"sums{next(_numbers)}")


@pytest.fixture
def ledger(url: str) -> Iterator[PostgresLedger]:
    with closing(PostgresLedger(url)) as opened:
        yield opened


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_what_is_kept_is_what_all_rows_charge(postgres: Server, isolation: str) -> None:
    """Rows come before and after the first hold, some of them twice, and are added up at some time between."""
    url = postgres.create(f"sums{next(_numbers)}", isolation)
    with closing(PostgresLedger(url)) as ledger, closing(PostgresLedger(url)) as other:

        @settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(rows=any_rows, data=st.data())
        def is_exact(rows: Sequence[Row], data: st.DataObject) -> None:
            organisation = f"org {sum(1 for _ in ledger.rows(Query()))}"  # examples share the ledger
            some = [unique(each, number, organisation) for number, each in enumerate(rows)]
            origin = replace(ALICE, organisation=organisation)
            wide = [replace(of, name=f"{n}", limit=replace(of.limit, amount=10**15)) for n, of in enumerate(BUDGETS)]
            accounts = [account(each, origin) for each in wide]
            before, added = data.draw(st.integers(0, len(some))), data.draw(st.integers(0, len(some)))
            other.append(some[:before])
            hold(ledger, f"{organisation} first", *((each, 1) for each in accounts), owner=ELSEWHERE)
            for number, each in enumerate(some[before:], before):
                other.append([each])
                if number == added:
                    add_up(ledger, organisation)
            other.append(some[before // 2 :])
            for adding in (False, True):
                if adding:
                    add_up(ledger, organisation)
                for one in accounts:
                    charged = sum(charge(one, each.origin, each.entry, process=each.process) for each in some)
                    assert standing(ledger, one).spent == charged, one.budget
            found = [standing(ledger, one) for one in accounts]
            ledger._write(lambda run: run("DELETE FROM kept_sum WHERE org_id = ?", (organisation,)))
            assert [standing(ledger, one) for one in accounts] == found

        is_exact()


class TestRowsOnTheirWay:
    def test_one_that_is_not_committed_when_the_sum_is_made_counts_from_its_commit(
        self, ledger: PostgresLedger, url: str
    ) -> None:
        ledger.append([row(line(cost="1"))])
        with closing(PostgresLedger(url)) as other:

            def slowly(run: Run) -> None:
                slow(other, run, row(line(cost="2")))
                keep(ledger, CAP)
                assert standing(ledger, CAP).spent == usd("1")

            other._write(slowly)
        assert standing(ledger, CAP).spent == usd("3")
        add_up(ledger)
        assert standing(ledger, CAP).spent == usd("3")

    def test_one_that_is_not_committed_when_others_are_added_up_is_left_for_the_next_time(
        self, ledger: PostgresLedger, url: str
    ) -> None:
        keep(ledger, CAP)
        ledger.append([row(line(cost="1"))])
        with closing(PostgresLedger(url)) as other:

            def slowly(run: Run) -> None:
                slow(other, run, row(line(cost="2"), id=LATER[0]))
                add_up(ledger)
                assert standing(ledger, CAP).spent == usd("1")

            other._write(slowly)
        assert standing(ledger, CAP).spent == usd("3")
        assert asked(url, "SELECT turn FROM unsummed") == [(LATER[0],)]

    def test_those_of_another_organisation_are_left_for_it(self, ledger: PostgresLedger) -> None:
        others = replace(ALICE, organisation="another")
        both = (CAP, account(budget("9 USD"), others))
        for each in both:
            keep(ledger, each)
        ledger.append([row(line(cost="1"), id=LATER[0]), row(line(cost="2"), id=LATER[0], origin=others)])
        for organisation in ("default", "another"):
            add_up(ledger, organisation)
            assert [standing(ledger, each).spent for each in both] == [usd("1"), usd("2")]

    def test_who_makes_a_sum_waits_for_who_adds_up_and_the_other_way_round(
        self, ledger: PostgresLedger, url: str
    ) -> None:
        keep(ledger, CAP)
        ledger.append([row(line(cost="1"))])
        everybody = account(budget("9 USD", "total"))
        with closing(PostgresLedger(url)) as other:
            maker = threading.Thread(target=in_a_ledger, args=(url, lambda each: keep(each, everybody)))

            def slowly(run: Run) -> None:
                other._add_up("default", run)
                maker.start()
                until_somebody_waits(url)

            other._write(slowly)
            maker.join(30)
        ledger.append([row(line(cost="2"))])
        assert [standing(ledger, each).spent for each in (CAP, everybody)] == [usd("3")] * 2


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_every_snapshot_shows_what_its_rows_add_up_to(postgres: Server, isolation: str) -> None:
    """Three append, while sums are made, forgotten and added to all the time; one looks at both in one transaction."""
    url = postgres.create(f"sums{next(_numbers)}", isolation)
    open_ledger(url, journals=()).close()
    writers = [threading.Thread(target=append_some, args=(url, name, 25)) for name in "abc"]
    ended = threading.Event()
    makers = [threading.Thread(target=make_and_add_up, args=(url, ended)) for _ in range(2)]
    seen = set[int]()
    with closing(PostgresLedger(url, patience=30)) as observer:
        observer._transactions.check = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
        for thread in (*makers, *writers):
            thread.start()
        while any(writer.is_alive() for writer in writers):
            kept, rows = observer._write(kept_and_rows)
            assert kept == rows
            seen.add(kept)
        ended.set()
        for thread in (*makers, *writers):
            thread.join(60)
        assert observer._write(kept_and_rows) == (usd("0.75"), usd("0.75"))
    assert len(seen) > 5


def test_a_hold_asks_no_totals_once_its_sum_is_there(ledger: PostgresLedger, url: str) -> None:
    ledger.append([row(line(cost="6"))])
    keep(ledger, CAP)
    execute(url, "DELETE FROM total; DELETE FROM series")
    ledger.append([row(line(cost="2"))])
    assert [each.spent for each in hold(ledger, "a", (CAP, "1")).standings] == [usd("8")]


def test_some_rows_have_all_added_up(ledger: PostgresLedger, url: str) -> None:
    """About one in 32: enough that a hold has few to count, and seldom enough that most rows cost nothing more."""
    assert 200 < sum(is_due(uuid7(number)) for number in range(10_000)) < 450
    keep(ledger, CAP)
    ledger.append([row(id=name) for name in (*LATER[:3], DUE)])
    assert asked(url, "SELECT spent FROM kept_sum") == [('{"nano":{"USD":40000000}}',)]
    ledger.append([row(id=LATER[3])])
    assert asked(url, "SELECT turn FROM unsummed") == [(LATER[3],)]
    assert standing(ledger, CAP).spent == usd("0.05")


def test_however_many_rows_have_gathered_all_are_added_up(ledger: PostgresLedger, url: str) -> None:
    keep(ledger, CAP)
    names = [name for name in (f"row {number}" for number in range(500)) if not is_due(name)]
    ledger.append([row(id=name) for name in names])
    assert asked(url, "SELECT spent FROM kept_sum") == [("{}",)]
    add_up(ledger)
    assert asked(url, "SELECT spent FROM kept_sum") == [(f'{{"nano":{{"USD":{len(names) * 10_000_000}}}}}',)]
    assert asked(url, "SELECT count(*) FROM unsummed") == [(0,)]


def test_rows_that_cannot_be_added_up_count_all_the_same(ledger: PostgresLedger, url: str) -> None:
    """What another writer holds for longer than one waits keeps nobody from appending."""
    keep(ledger, CAP)
    with closing(PostgresLedger(url, patience=1.0)) as hasty:

        def locked(run: Run) -> None:
            ledger._lock_sums(run, "default")
            run("SELECT 1", ())  # with this it goes to the server
            hasty.append([row(id=DUE)])

        ledger._write(locked)
    assert asked(url, "SELECT turn FROM unsummed") == [(DUE,)]
    assert standing(ledger, CAP).spent == usd("0.01")


def test_without_budgets_nothing_gathers(ledger: PostgresLedger, url: str) -> None:
    ledger.append([row(id=name) for name in (*LATER[:9], DUE)])
    assert asked(url, "SELECT count(*) FROM unsummed") == [(0,)]


def test_rows_are_added_to_the_sums_of_their_own_organisation_alone(ledger: PostgresLedger, url: str) -> None:
    others = replace(ALICE, organisation="others")
    keep(ledger, CAP)
    ledger.append([row(origin=others, id=LATER[0]), row(id=LATER[0])])
    add_up(ledger)
    assert asked(url, "SELECT org_id FROM unsummed") == [("others",)]
    assert standing(ledger, CAP).spent == usd("0.01")


def test_rebuilding_makes_them_anew(ledger: PostgresLedger, url: str) -> None:
    keep(ledger, CAP)
    ledger.append([row(line(cost="3"))])
    ledger.rebuild()
    assert asked(url, "SELECT count(*) FROM kept_sum") == [(0,)]
    keep(ledger, CAP)
    assert standing(ledger, CAP).spent == usd("3")


def test_a_name_that_the_database_cannot_hold_has_no_sum_and_counts_all_the_same(ledger: PostgresLedger) -> None:
    mallory = replace(ALICE, user="mal\0lory")
    budgets = budget("9 USD", per="user"), budget("9 USD", scope=Scope(user=("mal\0*",)))
    accounts = [account(each, mallory) for each in budgets]
    keep(ledger, *accounts)
    ledger.append([row(line(cost="2"), origin=mallory)])
    add_up(ledger)
    assert [standing(ledger, each).spent for each in accounts] == [usd("2")] * 2


def test_a_ledger_from_before_them_has_all_that_was_spent(url: str) -> None:
    with closing(open_ledger(url, journals=())) as ledger:
        ledger.append([row(line(cost="3"))])
    version = MIGRATIONS.index(())
    gone = f"DROP INDEX total_by_bucket; {gone_since(version)}"
    execute(url, f"{gone}; UPDATE acp_proxy_schema SET version = {version}")
    with closing(open_ledger(url, journals=())) as ledger:
        keep(ledger, CAP)
        ledger.append([row(line(cost="2"))])
        assert standing(ledger, CAP).spent == usd("5")


def add_up(ledger: PostgresLedger, organisation: str = "default") -> None:
    ledger._write(lambda run: ledger._add_up(organisation, run))


def slow(ledger: PostgresLedger, run: Run, one: Row) -> None:
    """Append it in a transaction that goes on."""
    Appending([one], Known(), ledger.dialect, 0, in_order=False).write(run, ledger._lock)


def kept_and_rows(run: Run) -> tuple[int, int]:
    """Of one snapshot; the sum is as a hold reads it, or as it does where none is kept."""
    (found,) = Question([CAP], NOON, PostgresLedger.dialect).ask(run).standings
    ((rows,),) = run("SELECT coalesce(sum(cost_nano), 0) FROM line", ())
    return found.spent, int(rows)


def append_some(url: str, name: str, number: int) -> None:
    def append(ledger: PostgresLedger) -> None:
        for each in range(number):
            ledger.append([row(id=f"{name}{each}")])

    in_a_ledger(url, append)


def make_and_add_up(url: str, ended: threading.Event) -> None:
    def work(ledger: PostgresLedger) -> None:
        for number in count():
            if ended.is_set():
                return
            keep(ledger, CAP)
            add_up(ledger)
            if number % 3 == 0:
                ledger._write(lambda run: run("UPDATE kept_sum SET kept_until = 0", ()))

    in_a_ledger(url, work)


def in_a_ledger(url: str, work: Callable[[PostgresLedger], None]) -> None:
    with closing(PostgresLedger(url, patience=30)) as ledger:
        work(ledger)


def until_somebody_waits(url: str) -> None:
    deadline = time.monotonic() + 30
    waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    while not asked(url, waiting):
        assert time.monotonic() < deadline, "nobody waits"


def execute(url: str, sql: str) -> None:
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        connection.execute(sql.encode())

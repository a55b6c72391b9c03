"""How often a ledger and its server wait for each other, and how long a connection is kept and believed in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Thread

import psycopg
import pytest

from acp_proxy.core.windows import HOUR
from acp_proxy.ledger import LedgerUnavailableError, Query, jobs, open_ledger
from acp_proxy.ledger.budgets import Grant
from acp_proxy.ledger.journal.writer import open_journal
from acp_proxy.ledger.postgres import transactions
from acp_proxy.ledger.postgres.ledger import PostgresLedger
from acp_proxy.ledger.worker import LedgerWorker
from harness.daemons import until
from harness.faults.link import Link, linked
from harness.postgres import Server, asked
from harness.rows import NOON, line, row
from tests.core.accounts import budget, usd
from tests.ledger.holds import CAP, account, held, hold, overshot
from tests.ledger.warned import Warnings

WIDE = account(budget("1000 USD", name="wide"))
WARNED = account(budget("1 USD", mode="warn"))


@pytest.fixture
def direct(postgres: Server, tmp_path: Path) -> str:
    """The URL of an empty ledger."""
    url = postgres.create(tmp_path.name)
    open_ledger(url, journals=()).close()
    return url


@pytest.fixture
def link(postgres: Server) -> Iterator[Link]:
    with linked(postgres.port) as link:
        yield link


@pytest.fixture
def url(direct: str, postgres: Server, link: Link) -> str:
    """The URL of the same one, by way of the link."""
    return direct.replace(f":{postgres.port}/", f":{link.port}/")


def test_statements_that_need_no_answer_cost_no_journey(url: str, link: Link) -> None:
    def journeys(work: Callable[[], object]) -> int:
        before = link.journeys
        work()
        return link.journeys - before

    with closing(PostgresLedger(url)) as ledger:
        # The second time series, sessions and sums are known; from the third on statements are prepared. Rows of these
        # ids are not added up yet.
        for number in range(4):
            turn = f"0000000{number}-0000-7000-8000-000000000001"
            holding = journeys(partial(hold, ledger, turn, (CAP, "0.01")))
            releasing = journeys(partial(ledger.release, "default", f"no {turn}"))
            beating = journeys(partial(ledger.beat, "default", [turn], 2**62))
            appending = journeys(partial(ledger.append, [row(id=turn)]))
        assert (holding, releasing, beating, appending) == (1, 1, 1, 1)
        assert journeys(partial(held, ledger, CAP)) == 1


def test_many_budgets_cost_a_prompt_no_more_journeys_than_one(url: str, link: Link) -> None:
    many = [(account(budget("1 USD", name=f"budget {number}")), "0.01") for number in range(9)]
    with closing(PostgresLedger(url)) as ledger:
        for turn in ("first", "second"):
            before = link.journeys
            assert hold(ledger, turn, *many).admitted
        assert link.journeys - before == 1


def test_the_first_prompt_of_a_session_costs_two_journeys_and_its_sum_is_kept_after_the_turn(
    url: str, link: Link
) -> None:
    of_session = account(budget("1 USD", "session", name="session"))
    with closing(PostgresLedger(url)) as ledger:
        ledger.append([row(line(cost="0.25"))])
        hold(ledger, "warm", (CAP, "0.01"))
        before = link.journeys
        assert hold(ledger, "first", (CAP, "0.01"), (of_session, "0.01")).standings[1].spent == usd("0.25")
        assert link.journeys - before == 2
        ledger.append([row(line(cost="0.5"), id="first")])
        before = link.journeys
        assert hold(ledger, "second", (CAP, "0.01"), (of_session, "0.01")).standings[1].spent == usd("0.75")
        assert link.journeys - before == 1


def test_an_append_costs_two_journeys_at_most(url: str, link: Link, tmp_path: Path) -> None:
    def journeys(work: Callable[[], object]) -> int:
        before = link.journeys
        work()
        return link.journeys - before

    found = {}
    with closing(PostgresLedger(url, journals=[tmp_path])) as ledger:
        for number in range(2):  # the second finds the connection, and its number in the ledger
            begun = row(session=f"new {number}", id=f"0000000{number}-0000-7000-8000-000000000001")
            found["begins a session"] = journeys(partial(ledger.append, [begun]))
            found["is asked whether a failover keeps it"] = journeys(ledger.is_sure)
            hold(ledger, f"{number}", (CAP, "0.3"))
            found["goes on"] = journeys(partial(ledger.append, [row(id=f"{number}")]))
        hold(ledger, "waits", (WIDE, "0.9"))
        ledger.rest()
        ledger.grants("default")
        found["was admitted by a connection before"] = journeys(partial(ledger.append, [row(id="waits")]))
        hold(ledger, "beyond", (CAP, "0.9"))
        found["exceeds its limit"] = journeys(partial(ledger.append, [row(line(cost="2"), id="beyond")]))
        hold(ledger, "warned", (WARNED, "0.1"))
        found["goes on beyond its limit"] = journeys(partial(ledger.append, [row(line(cost="0.1"), id="warned")]))
        hold(ledger, "first", (WARNED, "0.1"))
        found["begins a session beyond its limit"] = journeys(
            partial(ledger.append, [row(line(cost="0.1"), id="first", session="another")])
        )
        ledger.grant(Grant("g", "default", "user", "daily", None, usd("9"), "USD", NOON, NOON + HOUR, "carol", "why"))
        hold(ledger, "granted", (CAP, "0.1"))
        held_by = ledger._read("SELECT sum(holds) FROM account", ())
        found["goes on by a grant"] = journeys(partial(ledger.append, [row(line(cost="0.1"), id="granted")]))
        assert ledger._read("SELECT sum(holds) FROM account", ()) == held_by, "others wait for it"
        found["is there already"] = journeys(partial(ledger.append, [begun]))
        found["is there, as others are"] = journeys(partial(ledger.append, [begun, row(id="beyond")]))
        assert overshot(ledger) == {"daily": usd("1.25")}
    assert found == {
        "begins a session": 2,
        "is asked whether a failover keeps it": 2,
        "goes on": 1,
        "was admitted by a connection before": 2,
        "exceeds its limit": 2,
        "goes on beyond its limit": 2,
        "begins a session beyond its limit": 2,
        "goes on by a grant": 2,
        "is there already": 2,
        "is there, as others are": 2,
    }


def test_an_append_costs_a_journey_more_where_what_others_did_is_found_out_by_it(
    url: str, direct: str, link: Link, tmp_path: Path
) -> None:
    def journeys(work: Callable[[], object]) -> int:
        before = link.journeys
        work()
        return link.journeys - before

    with closing(PostgresLedger(url, journals=[tmp_path])) as ledger, closing(PostgresLedger(direct)) as other:
        hold(ledger, "known", (CAP, "0.1"))
        ledger.append([row(line(cost="0.1"), id="known")])
        hold(ledger, "mine", (CAP, "0.1"))
        other.append([row(line(cost="0.85"), id="theirs")])
        assert journeys(partial(ledger.append, [row(line(cost="0.1"), id="mine")])) == 3
        assert overshot(ledger) == {"daily": usd("0.05")}
        other.append([row(id="of both")])
        rows = [row(id="of both"), row(id="new")]
        assert journeys(partial(ledger.append, rows)) == 4
        assert {each.entry.id for each in ledger.rows(Query())} == {"known", "mine", "theirs", "of both", "new"}


def test_a_connection_of_which_nothing_comes_any_more_is_not_waited_for_after_a_rest(
    url: str, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(PostgresLedger(url, patience=1)) as ledger:
        ledger.append([row(id="before")])
        link.forget()
        with pytest.raises(LedgerUnavailableError, match="no answer in time"):
            ledger.append([row(id="at once")])
        ledger.append([row(id="later")])
        link.forget()
        monkeypatch.setattr(transactions, "_IDLE", 0)
        ledger.append([row(id="after a rest")])
        assert {each.entry.id for each in ledger.rows(Query())} == {"before", "later", "after a rest"}


def test_a_connection_that_died_without_a_word_costs_no_prompt_a_refusal(
    url: str, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "_DOUBTED", 0)
    with closing(PostgresLedger(url, patience=1)) as ledger:
        for number in range(3):
            link.forget()
            assert hold(ledger, f"{number}", (CAP, "0.01")).admitted
            link.forget()
            assert held(ledger, CAP) == (0, usd("0.01") * (number + 1))


def test_to_doubt_a_connection_costs_no_journey(url: str, link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "_DOUBTED", 0)
    monkeypatch.setattr(transactions, "_LEAST", 10)
    with closing(PostgresLedger(url, patience=60)) as ledger:
        for number in range(4):  # from the fourth on all are prepared, and short
            before = link.journeys
            hold(ledger, f"{number}", (CAP, "0.01"))
            ledger.grants("default")
        assert link.journeys - before == 2


def test_a_prompt_that_waits_for_others_waits_on_a_doubted_connection_too(
    url: str, direct: str, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "_DOUBTED", 0)
    monkeypatch.setattr(transactions, "_LEAST", 1)  # s: on a busy machine an answer may take more than a tenth
    waits = "wait_event_type = 'Lock' AND clock_timestamp() - query_start > interval '1.2 seconds'"
    ours = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'acp-proxy'"
    with closing(PostgresLedger(url, patience=60)) as ledger, closing(psycopg.connect(direct)) as another:
        hold(ledger, "first", (CAP, "0.01"))
        another.execute("UPDATE account SET holds = holds + 1")
        before = asked(direct, ours)
        thread = Thread(target=hold, args=(ledger, "second", (CAP, "0.01")))
        thread.start()
        until(lambda: asked(direct, f"{ours} AND {waits}"), "it waits for a lock")
        another.rollback()
        thread.join(60)
        assert held(ledger, CAP) == (0, usd("0.02"))
        assert asked(direct, ours) == before


def test_a_proxy_without_anything_to_do_gives_its_connection_back_and_takes_another_when_it_has(
    direct: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_IDLE", 0.01)
    monkeypatch.setattr(jobs, "_FIRST_LOOK", 0.001)
    warnings = Warnings()
    worker = LedgerWorker(
        lambda: open_ledger(direct, journals=()), open_journal([tmp_path], direct, warnings), warnings
    )
    connections = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'acp-proxy'"
    for number in range(2):
        worker.append(row(id=f"{number}"))
        until(lambda: worker.pending == 0, "the row is in the ledger")
        until(lambda: not asked(direct, connections), "the connection is given back")
    assert worker.close(30) == 0
    with closing(open_ledger(direct, journals=())) as ledger:
        assert {each.entry.id for each in ledger.rows(Query())} == {"0", "1"}
    assert warnings.events == []

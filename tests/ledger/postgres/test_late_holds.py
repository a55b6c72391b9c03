"""What a server reads late, on a connection that its client has given up: no hold comes of it that nobody ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.ledger import LedgerUnavailableError, OpenTurn, open_ledger
from acp_proxy.ledger.accounts.batched_holds import Prompt
from acp_proxy.ledger.accounts.holding import HoldRequest
from acp_proxy.ledger.accounts.standings import Question
from acp_proxy.ledger.budgets import EXPIRY
from acp_proxy.ledger.owners import Owner
from acp_proxy.ledger.postgres import transactions
from acp_proxy.ledger.postgres.ledger import PostgresLedger
from acp_proxy.ledger.statements import Run
from harness.daemons import until
from harness.faults.link import Link, linked
from harness.postgres import Server, asked
from harness.rows import ALICE, NOON, line, row
from tests.core.accounts import usd
from tests.ledger.holds import CAP, held, hold

CONNECTIONS = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'acp-proxy'"
Ask = Callable[[PostgresLedger], object]


@pytest.fixture
def link(postgres: Server) -> Iterator[Link]:
    with linked(postgres.port) as link:
        yield link


@pytest.fixture
def direct(postgres: Server, tmp_path: Path) -> str:
    url = postgres.create(tmp_path.name)
    open_ledger(url, journals=()).close()
    return url


@pytest.fixture
def ledger(direct: str, postgres: Server, link: Link) -> Iterator[PostgresLedger]:
    """Whose connection knows of everything, and is then forgotten by a router."""
    url = direct.replace(f":{postgres.port}/", f":{link.port}/")
    with closing(PostgresLedger(url, patience=1)) as ledger:
        for turn in ("first", "second", "third"):
            hold(ledger, turn, (CAP, "0.01"))
            ledger.append([row(line(cost="0.01"), id=turn)])
        link.forget()
        yield ledger


def one(ledger: PostgresLedger) -> object:
    return hold(ledger, "late", (CAP, "0.5"))


def two(ledger: PostgresLedger) -> object:
    """At one moment, as a hub does."""
    wants = [(CAP, HoldSize(usd("0.25"), 1))]
    prompts = [
        Prompt(OpenTurn(turn, ALICE, "s1", NOON, Owner.this(), "opus"), wants, NOON, NOON + EXPIRY)
        for turn in ("late", "later")
    ]
    return ledger.hold_together(prompts)


def read_late(ledger: PostgresLedger, link: Link, direct: str) -> None:
    ledger.rest()
    link.remember()
    until(lambda: not asked(direct, CONNECTIONS), "the server has read all that was sent")


@pytest.mark.parametrize("ask", [one, two])
def test_what_is_read_late_is_held_where_nobody_gave_it_up(
    ledger: PostgresLedger, link: Link, direct: str, ask: Ask
) -> None:
    with pytest.raises(LedgerUnavailableError):
        ask(ledger)
    read_late(ledger, link, direct)
    assert held(ledger, CAP) == (usd("0.03"), usd("0.5"))


@pytest.mark.parametrize("ask", [one, two])
def test_what_is_read_after_its_turn_was_given_up_holds_nothing(
    ledger: PostgresLedger, link: Link, direct: str, ask: Ask
) -> None:
    with pytest.raises(LedgerUnavailableError):
        ask(ledger)
    for turn in ("late", "later"):
        ledger.release("default", turn)
    read_late(ledger, link, direct)
    assert held(ledger, CAP) == (usd("0.03"), 0)
    assert asked(direct, "SELECT turn FROM open_turn") == []


def test_what_is_read_after_its_turn_was_given_up_by_another_connection_holds_nothing(
    ledger: PostgresLedger, link: Link, direct: str
) -> None:
    with pytest.raises(LedgerUnavailableError):
        one(ledger)
    with closing(PostgresLedger(direct)) as other:
        other.release("default", "late", asked_elsewhere=True)
    read_late(ledger, link, direct)
    assert held(ledger, CAP) == (usd("0.03"), 0)
    assert asked(direct, "SELECT turn FROM open_turn") == []


def test_what_is_read_after_its_turn_was_asked_again_and_has_ended_holds_nothing(
    ledger: PostgresLedger, link: Link, direct: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "_DOUBTED", 0)
    assert hold(ledger, "late", (CAP, "0.5")).admitted
    ledger.append([row(line(cost="0.25"), id="late")])
    read_late(ledger, link, direct)
    assert held(ledger, CAP) == (usd("0.28"), 0)
    assert asked(direct, "SELECT turn FROM open_turn") == []


def test_what_is_done_late_while_its_turn_is_given_up_is_waited_for(direct: str) -> None:
    """The server works at what was lost at that moment: it has the lock, and the release sees what it did."""
    turn = OpenTurn("late", ALICE, "s1", NOON, Owner.this(), "opus")
    waits = f"{CONNECTIONS} AND wait_event_type = 'Lock'"
    with closing(PostgresLedger(direct)) as ledger, closing(PostgresLedger(direct)) as other:
        ledger._known.not_answered("late", [CAP])
        thread = Thread(target=ledger.release, args=("default", "late"))

        def late(run: Run) -> None:
            request = HoldRequest(turn, [(CAP, HoldSize(usd("0.5"), 1))], NOON + EXPIRY, unpriced=False)
            other._hold(request, Question([CAP], NOON, other.dialect, "late"), NOON, run, look_for_dead=False)
            thread.start()
            until(lambda: asked(direct, waits), "the release waits for it")

        other._write(late)
        thread.join(60)
        assert asked(direct, "SELECT turn FROM open_turn") == []

"""A hub that dies at each statement of an admission and its row: of a file, of a server.

Its proxy asks again, as one does, at another hub on the same database: each row is there once, and nothing is held on.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.ledger import LedgerUnavailableError, OpenTurn, Query, open_ledger
from acp_proxy.ledger.accounts.batched_holds import Prompt
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger, Held
from acp_proxy.ledger.owners import Owner
from acp_proxy.ledger.sql_ledger import SqlLedger
from harness import hub
from harness.faults.gate import Break, Gate, How, gated
from harness.postgres import Server
from harness.rows import ALICE, NOON, line, row
from tests.core.accounts import budget, usd
from tests.ledger.holds import ELSEWHERE, account, held

POOL = account(budget("99 USD"))
SIZE = usd("0.4")
_KILLED = 137
_connect = sqlite3.connect
_numbers = count()


@pytest.fixture
def database(postgres: Server) -> str:
    return postgres.create(f"killed{next(_numbers)}")


@pytest.fixture
def gate(postgres: Server) -> Iterator[Gate]:
    with gated(postgres.port) as gate:
        yield gate


def a_turn(ledger: BudgetLedger, turn: str, *, held_again: bool) -> None:
    opened = OpenTurn(turn, ALICE, "s1", NOON, Owner.this(), "opus")
    for _ in range(1 + held_again):  # replayed
        found = ledger.hold(opened, [(POOL, HoldSize(SIZE, SIZE))], NOON, NOON + EXPIRY)
        assert found.admitted
    ledger.append([row(line(cost="0.1"), id=turn, session="s1")], in_order=True)


@pytest.mark.parametrize("how", ["cut before", "cut after"])
def test_a_hub_that_is_cut_off_at_any_statement_loses_and_doubles_nothing(
    database: str, gate: Gate, postgres: Server, how: How, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACP_PROXY_HUB_TOKEN", "any")
    through = database.replace(f":{postgres.port}/", f":{gate.port}/")
    with (
        hub.running(through, clock=lambda: NOON) as dying,
        hub.running(database, clock=lambda: NOON) as other,
        closing(open_ledger(dying, journals=())) as first,
        closing(open_ledger(other, journals=())) as second,
    ):
        a_turn(first, "warm", held_again=False)
        turns = ["warm"]
        for number in count(1):
            turn = f"t{number}"
            gate.arm(Break(number, how))
            with suppress(LedgerUnavailableError):
                a_turn(first, turn, held_again=False)
            is_over = gate.is_armed  # it has fewer statements
            gate.arm(None)
            a_turn(second, turn, held_again=True)
            turns.append(turn)
            if is_over:
                break
        assert number > 10
        with closing(open_ledger(database, journals=())) as ledger:
            assert sorted(found.entry.id for found in ledger.rows(Query())) == sorted(turns)
            assert held(ledger, POOL) == (len(turns) * usd("0.1"), 0)


def _dies_at(number: int, url: str, turn: str) -> bool:
    """Whether a process of its own that does what a hub does came to that statement, at which it ends as by kill -9."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == _KILLED
    try:
        left = [number]

        def counted(_: str) -> None:
            left[0] -= 1
            if left[0] == 0:
                os._exit(_KILLED)

        def connected(*arguments: Any, **named: Any) -> sqlite3.Connection:
            connection: sqlite3.Connection = _connect(*arguments, **named)
            connection.set_trace_callback(counted)
            return connection

        sqlite3.connect = connected  # type: ignore[assignment]
        a_turn_at_a_desk(url, turn)
    finally:
        os._exit(0)


def a_turn_at_a_desk(url: str, turn: str) -> None:
    """As the hub's thread has it: what several asked for at one moment, on one connection."""
    with closing(open_ledger(url, journals=(), clock=lambda: NOON)) as ledger:
        assert isinstance(ledger, SqlLedger)
        opened = OpenTurn(turn, ALICE, "s1", NOON, ELSEWHERE, "opus")
        prompt = Prompt(opened, [(POOL, HoldSize(SIZE, SIZE))], NOON, NOON + EXPIRY)
        (found,) = ledger.hold_together([prompt])
        assert isinstance(found, Held)
        assert found.admitted
        ledger.append_together([[row(line(cost="0.1"), id=turn, session="s1")]], in_order=True)


def test_a_hub_that_is_killed_at_any_statement_of_a_file_loses_and_doubles_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    a_turn_at_a_desk(url, "warm")
    turns = ["warm"]
    for number in count(1):
        turn = f"t{number}"
        died = _dies_at(number, url, turn)
        a_turn_at_a_desk(url, turn)
        turns.append(turn)
        if not died:
            break
    assert number > 20
    with closing(open_ledger(url, journals=(), clock=lambda: NOON)) as ledger:
        assert sorted(found.entry.id for found in ledger.rows(Query())) == sorted(turns)
        assert held(ledger, POOL) == (len(turns) * usd("0.1"), 0)

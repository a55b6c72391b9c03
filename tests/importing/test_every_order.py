"""Relayed turns and imports of the same sessions, in any order, and with imports that are killed: each call once."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from acp_proxy.ledger import Row
from acp_proxy.ledger.journal.writer import open_journal
from tests.importing.homes import Home
from tests.importing.turns import by_session, calls_in, relayed, turns, used
from tests.ledger.warned import Warnings

ORDERS = [("first", "second", "killed"), ("first", "killed", "second"), ("killed", "second", "first")]
KILLS = ["1", "-1", "2", "-2", "3", "-3"]  # before or after a write


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "home").mkdir()
    return Home(tmp_path / "home", tmp_path / "ledger.db")


def killed(home: Home, at: str) -> int:
    """The status of an import that kills itself there; 0 where it had less to write."""
    command = [sys.executable, "-m", "tests.importing.killed_import", str(home.path), str(home.ledger), at]
    return subprocess.run(command, env={**os.environ, **home.environ}, timeout=60, check=False).returncode


def parts(home: Home) -> tuple[list[Row], list[Row], list[Row]]:
    """Calls of two relayed turns of Gemini CLI, and of another session, which went around the relay."""
    home.put("gemini", "tools")
    home.put("gemini", "loaded")
    sessions = sorted(by_session(calls_in(home)).values(), key=len, reverse=True)
    return sessions[0][:2], sessions[0][2:], [*itertools.chain(*sessions[1:])]


def into_journal(home: Home, row: Row) -> None:
    """As a relay leaves it that was killed before its ledger had the row."""
    home.journals.mkdir(parents=True, exist_ok=True)
    journal = open_journal([home.journals], home.url, Warnings())
    assert journal.write(row) is not None
    journal.close()


@pytest.mark.parametrize("at", KILLS)
@pytest.mark.parametrize("order", ORDERS, ids=" ".join)
def test_each_call_is_counted_once(home: Home, order: Sequence[str], at: str) -> None:
    """A turn is relayed, and booked, before its calls are imported: what an import finds of one that runs it leaves."""
    first, second, around = parts(home)
    everything = used([*first, *second, *around])
    rows = {"first": relayed(first), "second": relayed(second)}
    booked: list[str] = []
    for step in order:
        if step != "killed":
            booked.append(step)
            home.append(rows[step])
            continue
        for other in rows.keys() - set(booked):
            into_journal(home, rows[other])
        assert killed(home, at) in (0, -9)
    home.imports()
    after = turns(home)
    assert [now.entry.usage for now in after] == [used(first), used(second)]
    assert {now.entry.usage_source for now in after} == {"agent"}
    assert used([*after, *home.rows()]) == everything
    again = home.imports()["gemini-cli"]
    assert (again.calls, again.completed) == (0, 0)


def test_an_import_is_killed_at_each_of_its_writes(home: Home) -> None:
    """So that the test above does what it says: it appends, and completes one turn after the other."""
    first, second, around = parts(home)
    home.append(relayed(first), relayed(second))
    found = [(killed(home, at), len(home.rows()), completed(home)) for at in ("1", "2", "2", "9")]
    assert found == [(-9, 0, 0), (-9, len(around), 0), (-9, len(around), 1), (0, len(around), 2)]


def completed(home: Home) -> int:
    return sum(row.entry.usage_source == "agent" for row in turns(home))

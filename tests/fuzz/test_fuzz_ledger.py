"""A ledger with one value changed: whatever it is, each command shows the rest, or says in one line what is wrong."""

from __future__ import annotations

import io
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.cli import main
from acp_proxy.core.entry import SessionState
from acp_proxy.core.usage import Counters
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.budgets import Grant
from acp_proxy.report import BY
from harness.rows import ALICE, BOB, NOON, line, row
from tests.core.accounts import budget
from tests.fuzz.limits import FUZZ
from tests.ledger.holds import account, hold

BUDGETS = """
[[budget]]
name = "daily"
per = "user"
window = "day"
limit = { amount = "4", currency = "USD" }
[[budget]]
name = "session"
window = "session"
limit = { tokens = 100000 }
"""
COMMANDS = [
    *(["report", "--by", by, *form] for by in BY for form in ([], ["--json"], ["--csv"])),
    *(["session", name, *form] for name in ("s1", "flaky") for form in ([], ["--json"], ["--all"])),
    *(["report", "--by", by, "--since", "2026-11-20"] for by in ("day", "model")),
    *(["export", *form] for form in ([], ["--json"])),
    *(["budget", action, *form] for action in ("list", "grants") for form in ([], ["--json"])),
    *(["budget", "check", "--agent", "claude-agent-acp"], ["budget", "simulate"]),
    *(["status"], ["status", "--json"], ["metrics"], ["doctor"], ["doctor", "--rebuild"], ["session", "last"]),
]
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, -1, 1, 2**63 - 1, -(2**63), 2**62, 10**15])
TEXTS = st.text(max_size=40) | st.sampled_from(
    ["", "null", "{", '["a"]', "[1]", '{"nano": 1}', "\0", "\x1b[2J", "9" * 30]
)


class Bent:
    """The file of a ledger, and what is in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sound, self.path = root / "sound.db", root / "ledger.db"
        with closing(open_ledger(f"sqlite:///{self.sound}", journals=())) as ledger:
            state = SessionState(1000, 200_000, counters=Counters(1, 2, 3), title="the flaky test")
            two = (line("opus", "0.2"), line("haiku", None, input=5))
            hold(ledger, "t1", (account(budget("5 USD")), "0.4"), (account(budget("5 turns", name="turns")), 1))
            ledger.append(
                [row(line(cost="0.5"), id="t1", session="s1", state=state), row(*two, origin=BOB, session="s2")]
            )
            ledger.append([row(session="s3", origin=replace(ALICE, agent="codex"), context_used=5, context_size=9)])
            hold(ledger, "t2", (account(budget("5 USD")), "0.4"), now=NOON + 1)
            ledger.grant(Grant("g1", "default", "user", "daily", None, 5, "USD", NOON, NOON + 10**15, "bob", "because"))
            ledger.announce(account(budget("5 USD")), 80)
            ledger.tallied.expect("default", "claude-agent-acp", "core", "opus")
        with closing(sqlite3.connect(self.sound)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            self.columns = [
                (table, column, kind, bool(required or key))
                for (table,) in tables
                for _, column, kind, required, _, key in connection.execute(f"PRAGMA table_info({table})").fetchall()
                if connection.execute(f"SELECT count(*) FROM {table}").fetchone() != (0,)
            ]

    def bend(self, table: str, column: str, value: object) -> bool:
        """Whether one of its rows, or all of them, can have that value."""
        for file in self.root.glob("ledger.db*"):
            file.unlink()
        shutil.copy(self.sound, self.path)
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            try:
                connection.execute(f"UPDATE {table} SET {column} = ?", (value,))
            except (sqlite3.Error, UnicodeEncodeError):  # of several rows one key
                return False
        return True


@pytest.fixture(scope="module")
def bent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bent]:
    root = tmp_path_factory.mktemp("bent")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(root))
        patch.delenv("XDG_STATE_HOME", raising=False)
        patch.delenv("XDG_CONFIG_HOME", raising=False)
        (root / "budgets.toml").write_text(BUDGETS)
        yield Bent(root)


@FUZZ
@given(st.data())
def test_no_value_of_a_ledger_ends_a_command_but_with_one_line(bent: Bent, data: st.DataObject) -> None:
    table, column, kind, required = data.draw(st.sampled_from(bent.columns))
    value = data.draw((NUMBERS if kind == "INTEGER" else TEXTS) | (st.nothing() if required else st.none()))
    command = data.draw(st.sampled_from(COMMANDS))
    if not bent.bend(table, column, value):
        return
    out, complaint = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    with redirect_stdout(out), redirect_stderr(complaint):
        options = ["--config", str(bent.root / "budgets.toml"), "--ledger", f"sqlite:///{bent.path}"]
        status = main([*command, *options])
    assert status in (0, 1, 2, 3)
    if status == 2:
        assert complaint.getvalue().startswith("acp-proxy: ")
        assert complaint.getvalue().count("\n") == 1

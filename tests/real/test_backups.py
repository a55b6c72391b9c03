"""The commands of docs/operating.md for a backup, on real ledgers: the copy reports the same."""

from __future__ import annotations

import re
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from harness.postgres import running
from tests.real.team import Team

OPERATING = (Path(__file__).parents[2] / "docs/operating.md").read_text(encoding="utf-8")


def documented(beginning: str) -> str:
    (found,) = re.findall(rf"`({beginning}[^`]+)`", OPERATING)
    return str(found)


def test_a_copy_of_an_sqlite_ledger_reports_the_same(tmp_path: Path) -> None:
    team = Team(tmp_path, f"sqlite:///{tmp_path}/ledger.db")
    team.play("claude-agent-acp-0.100.0/basic")
    reported = team.report("turn")
    _, file, statement = shlex.split(documented("sqlite3 "))
    with closing(sqlite3.connect(tmp_path / file)) as ledger:
        ledger.execute(statement.replace("copy.db", str(tmp_path / "copy.db")))
    assert Team(tmp_path, f"sqlite:///{tmp_path}/copy.db").report("turn") == reported
    assert reported["rows"] != []


def test_a_copy_that_is_restored_is_whole_also_where_a_killed_process_left_its_log(tmp_path: Path) -> None:
    team = Team(tmp_path, f"sqlite:///{tmp_path}/ledger.db")
    team.play("claude-agent-acp-0.100.0/basic")
    reported = team.report("turn")
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as ledger:
        ledger.execute(f"VACUUM INTO '{tmp_path}/copy.db'")
    writes = "db = sqlite3.connect('ledger.db'); db.execute('UPDATE line SET input = 0'); db.commit()"
    dies = f"import os, sqlite3; {writes}; os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", dies], cwd=tmp_path, check=False)
    assert (tmp_path / "ledger.db-wal").stat().st_size
    subprocess.run(["sh", "-c", documented("mkdir ")], cwd=tmp_path, check=True)
    assert team.report("turn") == reported
    assert (tmp_path / "ledger.db").stat().st_mode & 0o777 == 0o600


def test_a_restored_dump_of_a_postgresql_ledger_reports_the_same(tmp_path: Path) -> None:
    with running() as server:
        team = Team(tmp_path, server.create("acp_proxy"))
        team.play("claude-agent-acp-0.100.0/basic")
        reported = team.report("turn")  # which takes over what is still in a journal
        restored = Team(tmp_path, server.create("EMPTY"))
        for command in (documented("pg_dump "), documented("pg_restore ")):
            program, *arguments = shlex.split(command)
            where = ["--host=127.0.0.1", f"--port={server.port}", "--username=owner"]
            subprocess.run([server.program(program), *where, *arguments], cwd=tmp_path, check=True, timeout=60)
        assert restored.report("turn") == reported
        assert reported["rows"] != []

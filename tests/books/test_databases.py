"""Databases as agents leave them and as they have them open: one clear outcome each, and no trace of a reader."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from acp_proxy.books.databases import DatabaseUnreadableError, missing, reading

# An agent: a process that has the database open, because the locks of one process do not keep that process out.
AGENT = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in sys.argv[2:]:
    database.execute(statement).fetchall()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """In WAL mode, closed: no file stands beside it."""
    path = tmp_path / "books" / "agent.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE call (tokens INTEGER, model TEXT)")
        database.execute("INSERT INTO call VALUES (1, 'a')")
        database.commit()
    assert listing(path) == ["agent.db"]
    return path


def test_a_closed_database_in_wal_mode_is_read_and_no_file_is_made(path: Path) -> None:
    assert tokens(path) == [1]
    assert listing(path) == ["agent.db"]


def test_a_database_with_a_rollback_journal_is_read_and_no_file_is_made(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
    assert tokens(path) == [1]
    assert listing(path) == ["agent.db"]


def test_what_an_open_agent_has_committed_is_read_and_what_it_has_not_is_not(path: Path) -> None:
    with agent(path, "INSERT INTO call VALUES (2, 'a')", "BEGIN IMMEDIATE", "INSERT INTO call VALUES (3, 'a')"):
        before = listing(path)
        assert tokens(path) == [1, 2]
        assert listing(path) == before == ["agent.db", "agent.db-shm", "agent.db-wal"]


def test_what_a_killed_agent_had_committed_is_read(path: Path) -> None:
    with agent(path, "INSERT INTO call VALUES (2, 'a')") as process:
        process.kill()
        process.wait()
        before = states(path)
        assert tokens(path) == [1, 2]
        assert states(path) == before


def test_a_reader_sees_one_snapshot_and_the_agent_writes_meanwhile(path: Path) -> None:
    with (
        agent(path, "INSERT INTO call VALUES (2, 'a')"),
        reading(path, path.parent) as connection,
        agent(path, "INSERT INTO call VALUES (3, 'a')", "PRAGMA wal_checkpoint"),
    ):
        assert _tokens(connection) == [1, 2]
    assert tokens(path) == [1, 2, 3]


def test_an_agent_that_ends_meanwhile_leaves_its_log_to_the_reader(path: Path) -> None:
    with agent(path, "INSERT INTO call VALUES (2, 'a')") as process, reading(path, path.parent) as connection:
        process.communicate()
        assert _tokens(connection) == [1, 2]
    assert tokens(path) == [1, 2]


def test_an_agent_that_starts_to_write_while_a_closed_database_is_read_makes_it_unreadable_for_now(path: Path) -> None:
    with pytest.raises(DatabaseUnreadableError, match="wrote to it meanwhile"):  # noqa: PT012, SIM117
        with reading(path, path.parent) as connection:
            assert _tokens(connection) == [1]
            with agent(path, "INSERT INTO call VALUES (2, 'a')"):
                pass
    assert tokens(path) == [1, 2]


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_a_database_that_is_locked_exclusively_is_busy(mode: str, path: Path) -> None:
    statements = (f"PRAGMA journal_mode = {mode}", "PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE")
    with agent(path, *statements, "INSERT INTO call VALUES (2, 'a')"):
        before = listing(path)
        assert unreadable(path) == "it is busy"
        assert listing(path) == before


def test_a_log_without_its_index_is_left_to_the_agent(path: Path) -> None:
    with agent(path, "INSERT INTO call VALUES (2, 'a')") as process:
        process.kill()
        process.wait()
    (path.parent / "agent.db-shm").unlink()
    assert unreadable(path) == "its -wal file has no -shm file: readable once the agent has opened it again"
    assert listing(path) == ["agent.db", "agent.db-wal"]


def test_an_empty_log_without_its_index_holds_nothing(path: Path) -> None:
    (path.parent / "agent.db-wal").touch()
    assert tokens(path) == [1]
    assert listing(path) == ["agent.db", "agent.db-wal"]


def test_a_transaction_that_a_kill_cut_short_is_left_to_the_agent(path: Path) -> None:
    grow = "INSERT INTO call SELECT tokens, hex(randomblob(1000)) FROM call CROSS JOIN (VALUES (1),(1),(1),(1))"
    begin = ("PRAGMA journal_mode = DELETE", "PRAGMA cache_size = 1", "BEGIN IMMEDIATE", *[grow] * 4)
    with agent(path, *begin) as process:
        process.kill()
        process.wait()
    before = states(path)
    assert "agent.db-journal" in before
    assert unreadable(path).startswith("SQLite cannot read it: SQLITE_READONLY")
    assert states(path) == before


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (b"SQLite format 3\x00", "it is not an SQLite database"),
        (b"notes of a person\n" * 50, "it is not an SQLite database"),
        (b"SQLite format 3\x00" + bytes(4080), "SQLite cannot read it: SQLITE_NOTADB"),
    ],
    ids=["empty", "header cut short", "text", "zeros"],
)
def test_a_file_that_is_no_database_says_so(content: bytes, why: str, path: Path) -> None:
    path.write_bytes(content)
    assert unreadable(path) == why
    assert listing(path) == ["agent.db"]


def test_a_database_without_tables_is_empty_as_while_the_agent_makes_it(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
    assert unreadable(path) == "it is empty"
    assert listing(path) == ["agent.db"]


def test_an_index_with_a_function_is_no_reason_against_the_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE INDEX odd ON call (json_extract(model, '$.a')) WHERE json_valid(model)")
    assert tokens(path) == [1]


def test_a_truncated_database_is_unreadable_though_its_head_is_sound(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.executemany("INSERT INTO call VALUES (?, ?)", [(number, "a" * 500) for number in range(1000)])
        database.commit()
    os.truncate(path, 100_000)
    assert unreadable(path) == "SQLite cannot read it: SQLITE_CORRUPT"
    assert listing(path) == ["agent.db"]


def test_a_schema_that_is_no_text_is_unreadable(path: Path) -> None:
    content = path.read_bytes()
    assert content.count(b"CREATE TABLE call (tokens") == 1
    path.write_bytes(content.replace(b"CREATE TABLE call (tokens", b"CREATE TABLE call \xff\xfe okens"))
    assert unreadable(path).startswith("SQLite cannot read it: ")


def test_text_that_is_no_utf_8_spoils_no_other_row(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("INSERT INTO call VALUES (2, CAST(x'ff61' AS TEXT))")
        database.commit()
    with reading(path, path.parent) as connection:
        assert connection.execute("SELECT model FROM call").fetchall() == [("a",), ("\ufffda",)]


def test_a_link_inside_the_root_is_followed_and_one_that_leads_out_is_not(path: Path) -> None:
    inside = path.parent / "link.db"
    inside.symlink_to(path)
    assert tokens(inside) == [1]
    outside = path.parent.parent / "other" / "link.db"
    outside.parent.mkdir()
    outside.symlink_to(path)
    assert unreadable(outside) == "it is a link that leads elsewhere"


def test_a_log_that_is_a_link_is_not_followed(path: Path) -> None:
    other = path.parent.parent / "other"
    other.write_bytes(b"something")
    (path.parent / "agent.db-wal").symlink_to(other)
    assert unreadable(path) == "it is not a plain file"


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["directory", "pipe"])
def test_what_is_no_file_is_refused_at_once(make: object, path: Path) -> None:
    path.unlink()
    assert callable(make)
    make(path)
    assert unreadable(path) == "it is not a plain file"


def test_a_file_that_is_gone_says_so(path: Path) -> None:
    path.unlink()
    assert unreadable(path) == "it is gone"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("name", ["agent.db", "agent.db-wal"])
def test_a_file_of_another_user_is_refused(name: str, path: Path) -> None:
    (path.parent / name).touch()
    os.chown(path.parent / name, 12345, -1)
    assert unreadable(path) == "it belongs to another user"


def test_a_name_with_signs_of_a_uri_is_a_name(path: Path) -> None:
    odd = path.with_name("100% of #1? ü.db")
    shutil.copy(path, odd)
    assert tokens(odd) == [1]


def test_nothing_can_be_written(path: Path) -> None:
    with agent(path, "INSERT INTO call VALUES (2, 'a')"):
        with pytest.raises(DatabaseUnreadableError, match="SQLITE_READONLY"):  # noqa: SIM117
            with reading(path, path.parent) as connection:
                connection.execute("DELETE FROM call")
        assert tokens(path) == [1, 2]


def test_the_first_table_or_column_that_is_missing_is_named(path: Path) -> None:
    with reading(path, path.parent) as connection:
        assert missing(connection, {"call": ("tokens", "model")}) is None
        assert missing(connection, {"call": ("tokens", "cost", "price")}) == "column cost of table call"
        assert missing(connection, {"turn": ("tokens",)}) == "table turn"


@contextmanager
def agent(path: Path, *statements: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", AGENT, str(path), *statements]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process
        if process.stdin is not None and not process.stdin.closed:
            process.stdin.close()


def tokens(path: Path) -> list[int]:
    with reading(path, path.parent) as connection:
        return _tokens(connection)


def _tokens(connection: sqlite3.Connection) -> list[int]:
    return [number for (number,) in connection.execute("SELECT tokens FROM call ORDER BY tokens")]


def unreadable(path: Path) -> str:
    with pytest.raises(DatabaseUnreadableError) as caught:
        tokens(path)
    return str(caught.value)


def listing(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir())


def states(path: Path) -> dict[str, tuple[int, int]]:
    return {file.name: (file.stat().st_size, file.stat().st_mtime_ns) for file in path.parent.iterdir()}

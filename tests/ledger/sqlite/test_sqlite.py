"""What is SQLite's own: one file, many processes, and the ways in which a file can be bad."""

from __future__ import annotations

import os
import pwd
import resource
import shutil
import sqlite3
import stat
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import pytest

from acp_proxy.ledger import LedgerError, LedgerUnavailableError, Query, open_ledger, places
from acp_proxy.ledger.backends import backend_at
from acp_proxy.ledger.columns import key_values
from acp_proxy.ledger.dialects import SQLITE
from acp_proxy.ledger.migrations import MIGRATIONS
from acp_proxy.ledger.reading.rows import read_rows
from acp_proxy.ledger.sqlite.file import connect, identity, patiently, refuse_old_library, set_aside
from acp_proxy.ledger.sqlite.ledger import SqliteLedger
from acp_proxy.ledger.sqlite.reader import SqliteReader
from acp_proxy.ledger.writing.rows import costs_of
from harness.rows import ALICE, NOON, line, row
from tests.core.accounts import budget
from tests.ledger.holds import GONE, account, hold
from tests.ledger.processes import Process
from tests.ledger.warned import Warnings


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@contextmanager
def opened(path: Path, patience: float = 5.0, warn: Warnings | None = None) -> Iterator[SqliteLedger]:
    with closing(SqliteLedger(path, patience=patience, warn=warn or Warnings())) as ledger:
        yield ledger


@pytest.mark.parametrize(("asked", "level"), [("", 1), ("?synchronous=normal", 1), ("?synchronous=full", 2)])
def test_each_transaction_is_on_the_disk_where_the_url_asks_for_it(path: Path, asked: str, level: int) -> None:
    with closing(backend_at(f"sqlite:///{path}{asked}")()) as ledger:
        assert isinstance(ledger, SqliteLedger)
        assert ledger.url == f"sqlite:///{path}"
        assert ledger.check().endswith(", synchronous") == (level == 2)
        path.rename(path.with_name("elsewhere"))  # a file that takes its place is written in the same way
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        ledger.append([row()])
        assert ledger._read("PRAGMA synchronous", ()) == [(level,)]


def test_another_way_of_writing_is_no_part_of_a_files_name(path: Path) -> None:
    with pytest.raises(LedgerError, match="expected synchronous=full or synchronous=normal after the path"):
        backend_at(f"sqlite:///{path}?synchronous=ful")


def ids(path: Path) -> list[str]:
    with opened(path) as ledger:
        return [found.entry.id for found in ledger.rows(Query())]


def ids_with_log(moved: Path, warnings: Warnings) -> list[str]:
    """Of a file that was moved away without its log, which has been set aside."""
    ((event, fields),) = warnings.told
    assert event == "ledger.log_left"
    Path(str(fields["moved_to"])).rename(f"{moved}-wal")
    return ids(moved)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


class TestFile:
    def test_files_are_private_in_private_directories(self, tmp_path: Path) -> None:
        path = tmp_path / "state" / "acp-proxy" / "ledger.db"
        with opened(path) as ledger:
            ledger.append([row()])
            assert {mode(file) for file in path.parent.iterdir()} == {0o600}
            assert [mode(directory) for directory in (path.parent, path.parent.parent)] == [0o700, 0o700]

    def test_a_directory_that_is_there_keeps_its_mode(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o755)
        with opened(tmp_path / "ledger.db"):
            assert mode(tmp_path) == 0o755

    def test_a_second_opener_in_one_process_does_not_drop_the_locks_of_the_first(self, path: Path) -> None:
        with opened(path) as ledger:
            ledger.append([row()])
            with opened(path):
                pass
            other = Process("first_open", ledger.url)
            other.until_ready()
            other.go_on()
            assert other.wait() == 0
            # Who believes to be the last one removes the log when it closes.
            assert path.with_name("ledger.db-wal").exists()

    def test_tables_are_strict_and_lead_their_keys_with_the_organisation(self, path: Path) -> None:
        with opened(path), closing(sqlite3.connect(path)) as connection:
            tables = connection.execute("SELECT name, strict FROM pragma_table_list WHERE schema = 'main'").fetchall()
            assert {name: strict for name, strict in tables if not name.startswith("sqlite_")} == {
                "turn": 1,
                "line": 1,
                "session": 1,
                "series": 1,
                "total": 1,
                "open_turn": 1,
                "hold": 1,
                "surcharge": 1,
                "granted": 1,
                "announced": 1,
                "decision": 1,
                "overshoot": 1,
                "settings": 1,
                "tally": 1,
                "relayed": 1,
                "label": 1,
                "label_count": 1,
                "notice": 1,
                "delivery": 1,
                "restored": 1,
                "delivery_count": 1,
                "kept_sum": 1,
                "session_key": 1,
                "plan_window": 1,
                "plan_change": 1,
                "correction": 1,
                "peak": 1,
                "exporter": 1,
                "unexported": 1,
                "exported": 1,
                "work": 1,
                "capture": 1,
                "capture_detail": 1,
                "bill_source": 1,
            }
            indexes = connection.execute("SELECT i.name FROM sqlite_master m, pragma_index_list(m.name) i").fetchall()
            for (index,) in indexes:
                columns = connection.execute("SELECT name FROM pragma_index_info(?) ORDER BY seqno", (index,))
                assert columns.fetchone() == ("org_id",)

    def test_the_rows_of_a_session_are_found_without_a_look_at_all_turns(self, path: Path) -> None:
        with opened(path) as ledger:
            ledger.append([row(id="a"), row(id="b", session="s2")])
        plans = list[str]()

        def read(sql: str, values: Sequence[Any]) -> list[Any]:
            plans.extend(step[3] for step in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values))
            return connection.execute(sql, values).fetchall()

        leading = ("organisation", "user", "host", "agent")
        where = tuple((name, getattr(ALICE, name)) for name in leading)
        with closing(sqlite3.connect(path)) as connection:
            query = Query(where=(*where, ("session", "s2")))
            assert [found.entry.id for found in read_rows(read, query, SQLITE)] == ["b"]
        assert any("turn_by_session" in step for step in plans)
        assert [step for step in plans if step.startswith("SCAN") or step.endswith("(org_id=?)")] == []

    def test_what_a_session_has_cost_is_found_without_a_look_at_all_turns(self, path: Path) -> None:
        with opened(path) as ledger:
            ledger.append([row(id="a"), row(id="b", session="s2")])
        question, values = costs_of(SQLITE, key_values(ALICE, "s2"))
        with closing(sqlite3.connect(path)) as connection:
            plan = [step[3] for step in connection.execute(f"EXPLAIN QUERY PLAN {question}", values)]
            assert connection.execute(question, values).fetchall() == [("USD", 0, 10**7, None, None)]
        assert [step for step in plan if step.endswith("(org_id=?)")] == []
        assert sum("turn_by_session" in step for step in plan) == 2

    def test_a_file_that_was_removed_is_made_again(self, path: Path) -> None:
        with opened(path) as ledger:
            ledger.append([row(id="a")])
            for file in path.parent.iterdir():
                file.unlink()
            ledger.append([row(id="b")])
        assert ids(path) == ["b"]


class TestVersions:
    def test_a_ledger_of_a_newer_version_is_refused_in_one_line(self, path: Path) -> None:
        with opened(path):
            pass
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
        with pytest.raises(LedgerError, match=rf"^ledger {path}: written by a newer acp-proxy .*update it$"):
            SqliteLedger(path)

    def test_the_database_of_another_program_is_refused_and_left_alone(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE precious (x)")
        with pytest.raises(LedgerError, match="another program"):
            SqliteLedger(path)
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("precious",)]

    def test_a_migration_that_was_interrupted_is_done_by_the_next_opener(self, path: Path) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            for statement in MIGRATIONS[0][:2]:
                connection.execute(str(statement))
        with opened(path) as ledger:
            ledger.append([row(id="a")])
        assert ids(path) == ["a"]

    def test_processes_that_open_a_new_ledger_at_once_all_get_it(self, path: Path) -> None:
        url = f"sqlite:///{path}"
        processes = [Process("first_open", url) for _ in range(6)]
        for process in processes:
            process.until_ready()
        for process in processes:
            process.go_on()
        assert [process.wait() for process in processes] == [0] * 6
        assert ids(path) == []


class TestManyWriters:
    def test_sixteen_processes_that_append_at_once_lose_nothing(self, path: Path) -> None:
        processes = [Process("append", f"sqlite:///{path}", f"p{number}", "20") for number in range(16)]
        for process in processes:
            process.until_ready()
        for process in processes:
            process.go_on()
        assert [process.wait() for process in processes] == [0] * 16
        assert set(ids(path)) == {f"p{number}-{turn}" for number in range(16) for turn in range(20)}

    def test_reading_does_not_hold_a_writer_up(self, path: Path) -> None:
        with opened(path) as ledger, opened(path, patience=0) as writer:
            ledger.append([row(id=f"{number:05}", at=NOON + number) for number in range(2500)])
            reading = ledger.rows(Query())
            next(reading)
            writer.append([row(id="while reading")])
            assert sum(1 for _ in reading) >= 2499

    def test_a_writer_holds_no_reader_up(self, path: Path) -> None:
        with opened(path, patience=0) as ledger, closing(sqlite3.connect(path, isolation_level=None)) as writer:
            ledger.append([row()])
            writer.execute("BEGIN IMMEDIATE")
            assert len(list(ledger.rows(Query()))) == 1
            with opened(path, patience=0) as another:
                assert len(another.summed(Query(), ())) == 1

    def test_a_lock_is_waited_for_until_it_is_free(self, path: Path) -> None:
        tries = 0

        def begin() -> sqlite3.Cursor:
            nonlocal tries
            tries += 1
            if tries == 3:
                holder.execute("COMMIT")
            return waiting.execute("BEGIN IMMEDIATE")

        with closing(connect(path, 1)[0]) as holder, closing(connect(path, 1)[0]) as waiting:
            holder.execute("BEGIN IMMEDIATE")
            patiently(begin, 60)
            assert tries == 3

    def test_a_lock_that_lasts_longer_than_the_patience_is_unavailability(self, path: Path) -> None:
        with opened(path, patience=0.02) as ledger, closing(sqlite3.connect(path, isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            with pytest.raises(LedgerUnavailableError, match=rf"^ledger {path}: database is locked$"):
                ledger.append([row(id="a")])
            holder.execute("COMMIT")
            ledger.append([row(id="a")])
        assert ids(path) == ["a"]


class TestDamage:
    def test_a_ledger_that_is_no_database_any_more_is_set_aside_and_reported(
        self, path: Path, warnings: Warnings
    ) -> None:
        with opened(path):
            pass
        path.write_bytes(b"not a database" * 1000)
        with opened(path, warn=warnings) as ledger:
            ledger.append([row(id="a")])
        [aside] = path.parent.glob("ledger.db.corrupt-*")
        assert aside.read_bytes() == b"not a database" * 1000
        assert [(event, fields["moved_to"]) for event, fields in warnings.told] == [("ledger.damaged", str(aside))]
        assert ids(path) == ["a"]

    @pytest.mark.parametrize("text", [b"n\n", b"# Notes\n", b"not a database" * 1000])
    def test_a_file_that_never_was_a_ledger_stays_where_and_as_it_is(
        self, path: Path, warnings: Warnings, text: bytes
    ) -> None:
        path.write_bytes(text)
        said = rf"^ledger {path}: this file is no ledger, and is left as it is$"
        with pytest.raises(LedgerError, match=said), opened(path, warn=warnings):
            pass
        assert path.read_bytes() == text
        assert (list(path.parent.iterdir()), warnings.told) == ([path], [])

    def test_the_damaged_database_of_another_program_stays_where_it_is(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as other:
            other.execute("CREATE TABLE note (text TEXT)")
        with path.open("r+b") as file:
            file.seek(100)
            file.write(b"\xff" * 100)
        with pytest.raises(LedgerError, match="this file is no ledger"), opened(path):
            pass
        assert list(path.parent.iterdir()) == [path]

    def test_a_damaged_ledger_is_known_by_its_header_alone(self, path: Path, warnings: Warnings) -> None:
        """As a copy of it, beside which there is no queue."""
        with opened(path) as ledger:
            ledger.append([row(id=f"{number:04}") for number in range(1000)])
        path.with_name("ledger.db-queue").unlink()
        overwrite_pages(path)
        with path.open("r+b") as file:
            file.seek(100)
            file.write(b"\xff" * 3996)
        with opened(path, warn=warnings):
            pass
        assert warnings.events == ["ledger.damaged"]

    def test_damage_that_shows_while_appending_begins_a_new_file_with_that_row(
        self, path: Path, warnings: Warnings
    ) -> None:
        with opened(path) as ledger:
            ledger.append([row(line(), line("b"), id=f"{number:04}") for number in range(1000)])
        overwrite_pages(path)
        with opened(path, warn=warnings) as ledger:
            ledger.append([row(id="after")])
            assert [found.entry.id for found in ledger.rows(Query())] == ["after"]
        assert warnings.events == ["ledger.damaged"]

    def test_another_process_that_has_the_file_open_goes_on_in_the_new_one(self, path: Path) -> None:
        with opened(path) as first, opened(path) as second:
            first.append([row(id=f"{number:04}") for number in range(1000)])
            path.rename(path.with_name("ledger.db.corrupt-1"))
            for suffix in ("-wal", "-shm"):
                Path(f"{path}{suffix}").rename(f"{path}.corrupt-1{suffix}")
            first.append([row(id="a")])
            second.append([row(id="b")])
        assert sorted(ids(path)) == ["a", "b"]

    def test_who_has_a_file_open_that_is_moved_away_alone_goes_on_in_a_new_one(
        self, path: Path, warnings: Warnings
    ) -> None:
        moved = path.with_name("moved.db")
        with opened(path, warn=warnings) as first, opened(path, warn=warnings) as second:
            first.append([row(id="before")])
            path.rename(moved)
            second.append([row(id="a")])
            first.append([row(id="b")])
        assert sorted(ids(path)) == ["a", "b"]
        assert ids_with_log(moved, warnings) == ["before"]

    @pytest.mark.parametrize("moment", [(os, "open"), (sqlite3, "connect")], ids=["locking", "connecting"])
    def test_rows_in_the_log_of_a_file_that_is_moved_away_while_another_opens_it_are_kept(
        self, path: Path, warnings: Warnings, monkeypatch: pytest.MonkeyPatch, moment: tuple[ModuleType, str]
    ) -> None:
        moved = path.with_name("moved.db")
        go_on = getattr(*moment)

        def move(*arguments: Any, **options: Any) -> Any:
            monkeypatch.undo()
            path.rename(moved)
            return go_on(*arguments, **options)

        with opened(path) as first:
            first.append([row(id="before")])
            monkeypatch.setattr(*moment, move)
            with pytest.raises(LedgerUnavailableError, match=f"ledger {path}"):
                SqliteLedger(path)
            with opened(path, warn=warnings) as again:
                again.append([row(id="after")])
        assert ids(path) == ["after"]
        assert ids_with_log(moved, warnings) == ["before"]

    @pytest.mark.parametrize("name", ["a?mode=memory", "a#b", "a%20b", "é", os.fsdecode(b"\xff")])
    def test_the_name_of_a_file_may_hold_what_means_something_in_a_uri(self, path: Path, name: str) -> None:
        with opened(path.with_name(name)) as ledger:
            ledger.append([row(id="a")])
        assert path.with_name(name).stat().st_size
        assert ids(path.with_name(name)) == ["a"]

    def test_rows_in_the_log_of_a_file_that_is_moved_away_alone_after_a_kill_are_kept(
        self, path: Path, warnings: Warnings
    ) -> None:
        killed = path.with_name("killed.db")
        with opened(path) as ledger:
            ledger.append([row(id="before")])
            shutil.copy(path, path.with_name("moved.db"))
            shutil.copy(f"{path}-wal", f"{killed}-wal")
        with opened(killed, warn=warnings) as ledger:
            ledger.append([row(id="a")])
        assert ids(killed) == ["a"]
        assert ids_with_log(path.with_name("moved.db"), warnings) == ["before"]

    def test_a_file_that_another_process_has_replaced_is_not_set_aside(self, path: Path) -> None:
        path.write_bytes(b"damaged")
        damaged = identity(path)
        path.with_name("sound").write_bytes(b"sound")
        assert set_aside(path, damaged, 1)
        path.with_name("sound").rename(path)
        assert set_aside(path, damaged, 1) is None
        assert path.read_bytes() == b"sound"

    def test_what_is_sound_again_is_not_set_aside_by_who_comes_second(self, path: Path) -> None:
        with opened(path):
            pass
        path.write_bytes(b"not a database" * 1000)
        processes = [Process("first_open", f"sqlite:///{path}") for _ in range(4)]
        for process in processes:
            process.until_ready()
        for process in processes:
            process.go_on()
        assert [process.wait() for process in processes] == [0] * 4
        assert len(list(path.parent.glob("ledger.db.corrupt-*"))) == 1


def test_a_hold_that_somebody_has_damaged_bars_nobody_from_the_ledger(path: Path) -> None:
    held = account(budget("1 USD", on_unpriced="estimate"))
    with opened(path) as ledger:
        assert hold(ledger, "a", (held, "0.5"), owner=GONE).admitted
    with closing(sqlite3.connect(path)) as damaging:
        damaging.execute("UPDATE hold SET estimate = '{'")
        damaging.execute("UPDATE open_turn SET accounts = '['")
        damaging.commit()
    with closing(open_ledger(f"sqlite:///{path}", journals=())) as ledger:
        assert [found.entry.costs[0].text for found in ledger.rows(Query())] == ["0.5"]


def overwrite_pages(path: Path) -> None:
    """Everything but the header and the first page, which is all that opening looks at."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))


class TestBadPlaces:
    @pytest.mark.parametrize(
        "kind",
        [
            *("nfs4", "cifs", "virtiofs", "fuse.grpcfuse", "fakeowner", "vboxsf", "fuse.vmhgfs-fuse", "prl_fs"),
            *("fuse.shfs", "fuse.juicefs", "9p", "one-of-next-year"),
        ],
    )
    def test_a_file_system_that_is_not_known_as_local_is_refused_also_behind_a_link(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
    ) -> None:
        far, link = tmp_path / "far", tmp_path / "state"
        link.symlink_to(far)
        monkeypatch.setattr(places, "_mounts", lambda: f"disk / ext4 rw 0 0\nserver:/ {far.resolve()} {kind} rw 0 0\n")
        with pytest.raises(LedgerError) as refused:
            open_ledger(f"sqlite:///{link}/ledger.db", journals=())
        assert str(refused.value) == (
            f"ledger {far.resolve()}/ledger.db: on {kind}, not known as a local file system: SQLite's locks may not "
            "hold there: expected a path on a local disk, or a ledger on PostgreSQL"
        )
        assert not far.exists()

    @pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "apfs", "fuse.fuse-overlayfs"])
    def test_a_local_file_system_is_taken(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
        monkeypatch.setattr(
            places, "_mounts", lambda: f"server:/ / nfs4 rw 0 0\nit {tmp_path.resolve()} {kind} rw 0 0\n"
        )
        with closing(open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())) as ledger:
            assert ledger.append([row()]) == 1

    def test_a_full_disk_is_unavailability_until_there_is_room(self, path: Path) -> None:
        with opened(path) as ledger:
            ledger.append([row(id="before")])
            with file_size_limit(path.stat().st_size + 64 * 1024):
                with pytest.raises(LedgerUnavailableError, match=f"^ledger {path}: "):
                    ledger.append([row(id=f"{number:05}") for number in range(2000)])
                assert [found.entry.id for found in ledger.rows(Query())] == ["before"]
            ledger.append([row(id="later")])
        assert set(ids(path)) == {"before", "later"}

    def test_a_directory_that_cannot_be_written_is_unavailability(self, read_only_directory: Path) -> None:
        with pytest.raises(LedgerUnavailableError, match=f"^ledger {read_only_directory}/ledger.db: "):
            SqliteLedger(read_only_directory / "ledger.db")

    def test_a_read_only_file_system_is_named(self, small_disk: Path) -> None:
        SqliteLedger(small_disk / "ledger.db").close()
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
        for kind in (SqliteReader, SqliteLedger):
            with pytest.raises(LedgerUnavailableError, match=r"ledger\.db: on a read-only file system"):
                kind(small_disk / "ledger.db")

    @pytest.mark.skipif(os.getuid() != 0, reason="only root may become somebody else")
    def test_a_file_of_somebody_else_is_named(self) -> None:
        with TemporaryDirectory() as directory:
            path = Path(directory) / "ledger.db"
            SqliteLedger(path).close()
            Path(directory).chmod(0o755)
            path.chmod(0o644)
            nobody = pwd.getpwnam("nobody").pw_uid
            os.setresuid(nobody, nobody, 0)
            try:
                with pytest.raises(LedgerUnavailableError, match=r"ledger\.db: no permission to write it"):
                    SqliteLedger(path)
            finally:
                os.setresuid(0, 0, 0)

    def test_a_library_that_is_too_old_is_one_line(self) -> None:
        with pytest.raises(
            LedgerError, match=r"^ledger: this Python has SQLite 3\.26\.0, and 3\.37 or newer is needed$"
        ):
            refuse_old_library((3, 26, 0))
        refuse_old_library((3, 37, 0))

    def test_a_directory_in_the_place_of_the_file_is_unavailability(self, path: Path) -> None:
        path.mkdir()
        with pytest.raises(LedgerUnavailableError, match=f"^ledger {path}: Is a directory$"):
            SqliteLedger(path)


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """No file may grow beyond `size`, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class TestUrls:
    @pytest.mark.parametrize(
        ("url", "said"),
        [
            ("sqlite://x", r"expected sqlite:///PATH"),
            ("sqlite:///", r"expected sqlite:///PATH"),
            ("sqlite:///a/", r"expected sqlite:///PATH"),
            ("/var/lib/ledger.db", r"expected sqlite:///PATH, postgresql://"),
            ("mysql://root:secret@db/x", r"unknown scheme 'mysql', expected sqlite:///PATH"),
            ("postgresql://root:secret@db/", r"without a database, expected postgresql://HOST/DATABASE"),
            ("postgresql://root:secret@[db/x", r"cannot be read, expected postgresql://HOST/DATABASE"),
            ("postgresql://root:secret@127.0.0.1:1/x", r"^ledger postgresql://127.0.0.1:1/x: Connection refused$"),
            ("postgresql:///x?host=/no/such", r"^ledger postgresql:///no/such/x: No such file or directory$"),
        ],
    )
    def test_a_url_that_is_no_ledger_is_one_line_that_keeps_secrets(self, url: str, said: str) -> None:
        with pytest.raises(LedgerError, match=said) as caught:
            open_ledger(url, journals=())
        assert "\n" not in str(caught.value)
        assert "secret" not in str(caught.value)

    def test_what_follows_the_third_slash_is_the_path(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        monkeypatch.chdir(tmp_path)
        for url, expected in (
            (f"sqlite:///{tmp_path}/absolute.db", "absolute.db"),
            ("sqlite:///relative.db", "relative.db"),
            ("sqlite:///~/x/home.db", "home/x/home.db"),
        ):
            with closing(open_ledger(url, journals=())) as ledger:
                assert ledger.url == f"sqlite:///{tmp_path}/{expected}"
            assert (tmp_path / expected).exists()

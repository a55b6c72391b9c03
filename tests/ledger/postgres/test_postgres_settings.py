"""What servers, databases and roles of teams are set to: it works as ever, or is refused in one line that says why."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from acp_proxy.ledger import LedgerError, LedgerUnavailableError, Query, open_ledger
from acp_proxy.ledger.budgets import EXPIRY
from acp_proxy.ledger.journal.writer import open_journal
from acp_proxy.ledger.postgres import schema
from acp_proxy.ledger.postgres.errors import first_line
from acp_proxy.ledger.postgres.ledger import PostgresLedger
from acp_proxy.ledger.sqlite.version import SCHEMA_VERSION
from acp_proxy.ledger.statements import Run
from acp_proxy.serve.dead_proxies import DeadProxies
from harness.daemons import until
from harness.postgres import Server, asked, name_of, running
from harness.rows import ALICE, NOON, row
from tests.cases import each_of
from tests.core.accounts import usd
from tests.ledger.holds import CAP, GONE, held, hold
from tests.ledger.postgres.roles import role
from tests.ledger.steps import gone_since
from tests.ledger.warned import Warnings
from tests.notify.house import channel, desk, notice
from tests.notify.receiver import receiving

SETTINGS = (
    "TimeZone = 'Asia/Kathmandu'",
    "DateStyle = 'German, DMY'",
    "IntervalStyle = 'iso_8601'",
    "bytea_output = 'escape'",
    "standard_conforming_strings = off",
    "transform_null_equals = on",
    "quote_all_identifiers = on",
    "row_security = off",
    "client_encoding = 'LATIN1'",
    "default_transaction_deferrable = on",
    "session_replication_role = 'replica'",
    "plan_cache_mode = 'force_generic_plan'",
    "enable_indexscan = off",
    "work_mem = '64kB'",
    "search_path = other, public",
)
TITLE = "Fix the 🎉 in Größe"


@pytest.fixture
def empty(postgres: Server, tmp_path: Path) -> str:
    """The URL of a database without a ledger."""
    return postgres.create(tmp_path.name)


def use(url: str) -> None:
    """Write and read some of everything, with what takes more than one byte."""
    with closing(open_ledger(url, journals=())) as ledger:
        assert hold(ledger, "held", (CAP, "0.5")).admitted
        for number in range(40):  # some of them are added up
            ledger.append([row(id=f"{number}", detail="déjà 🎉")])
        ledger.append([row(id="held")])
        ledger.note_session(ALICE, "s1", TITLE, NOON + 10**12)
        ledger.rebuild()
        (session,) = ledger.sessions(Query(where=(("title", "GRÖSSE"),)))
        assert session.title == TITLE
        assert {found.entry.detail for found in ledger.rows(Query())} == {"déjà 🎉", ""}
        assert [sums.rows for sums in ledger.summed(Query(), ("day",))] == [41]
        assert held(ledger, CAP) == (usd("0.41"), 0)


def test_what_a_database_is_set_to_changes_nothing(postgres: Server, empty: str) -> None:
    postgres.execute(name_of(empty), "CREATE SCHEMA other")
    for setting in SETTINGS:
        postgres.execute(name_of(empty), f'ALTER DATABASE "{name_of(empty)}" SET {setting}')
    use(empty)


def test_a_schema_that_the_url_names_has_a_ledger_of_its_own(postgres: Server, empty: str) -> None:
    postgres.execute(name_of(empty), "CREATE SCHEMA other")
    for url in (empty, f"{empty}?options=-c%20search_path%3Dother"):
        use(url)


def test_what_the_dead_left_goes_to_the_ledger_of_their_schema(postgres: Server, empty: str, tmp_path: Path) -> None:
    postgres.execute(name_of(empty), "CREATE SCHEMA other")
    other = f"{empty}?options=-c%20search_path%3Dother"
    with closing(open_journal([tmp_path], other, Warnings())) as journal:
        journal.write(row(id="left"))
    for url, rows in ((empty, []), (other, ["left"])):
        with closing(open_ledger(url, journals=[tmp_path])) as ledger:
            assert [found.entry.id for found in ledger.rows(Query())] == rows


class TestEncodings:
    def test_one_that_keeps_bytes_as_they_are_keeps_every_text(self, postgres: Server, tmp_path: Path) -> None:
        use(created(postgres, tmp_path.name, "SQL_ASCII"))

    def test_one_that_cannot_keep_every_text_is_refused(self, postgres: Server, tmp_path: Path) -> None:
        """A turn must not be free because of the name of its project."""
        expected = "its database keeps text as LATIN1, expected one made with ENCODING 'UTF8' TEMPLATE template0"
        with pytest.raises(LedgerError, match=f"{expected}$") as refused:
            open_ledger(created(postgres, tmp_path.name, "LATIN1"), journals=())
        assert not isinstance(refused.value, LedgerUnavailableError)


def created(server: Server, name: str, encoding: str) -> str:
    server.execute("postgres", f"CREATE DATABASE \"{name}\" ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    return server.url(name)


class TestTimeouts:
    @pytest.mark.parametrize(
        "setting", ["idle_in_transaction_session_timeout", "idle_session_timeout", "transaction_timeout"]
    )
    def test_what_the_server_ends_is_done_anew(self, postgres: Server, empty: str, setting: str) -> None:
        """As when a laptop slept in the middle of it."""
        with closing(PostgresLedger(empty)) as ledger:
            if not ledger._read("SELECT 1 FROM pg_settings WHERE name = ?", (setting,)):
                pytest.skip(f"this server has no {setting}")
        postgres.execute(name_of(empty), f"ALTER DATABASE \"{name_of(empty)}\" SET {setting} = '1s'")
        slept = list[int]()

        def sleeps_once(run: Run) -> int:
            (pid,) = run("SELECT pg_backend_pid()", ())[0]
            if not slept:
                slept.append(pid)
                until_gone(postgres, pid)
            return int(run("SELECT count(*) FROM turn", ())[0][0])

        with closing(PostgresLedger(empty)) as ledger:
            ledger.append([row()])
            if setting == "idle_session_timeout":
                ((pid,),) = ledger._read("SELECT pg_backend_pid()", ())
                until_gone(postgres, pid)
                slept.append(pid)
            assert ledger._write(sleeps_once) == 1
        assert slept

    def test_a_statement_or_a_lock_that_takes_too_long_is_unavailability(self, postgres: Server, empty: str) -> None:
        with closing(PostgresLedger(empty)) as holder:
            for setting in ("statement_timeout", "lock_timeout"):
                with closing(PostgresLedger(f"{empty}?options=-c%20{setting}%3D1000")) as ledger:

                    def locked(run: Run, ledger: PostgresLedger = ledger, setting: str = setting) -> None:
                        run("LOCK TABLE turn", ())
                        with pytest.raises(LedgerUnavailableError, match=f"due to {setting.replace('_', ' ')}$"):
                            ledger.append([row()])

                    holder._write(locked)
                    ledger.append([row()])

    def test_what_took_too_long_goes_on_at_no_server(self, empty: str) -> None:
        active = "SELECT query FROM pg_stat_activity WHERE state = 'active' AND datname = current_database()"
        with closing(PostgresLedger(empty)) as holder, closing(PostgresLedger(empty, patience=1.0)) as ledger:
            with pytest.raises(LedgerUnavailableError, match=r": no answer in time$"):
                ledger._read("SELECT pg_sleep(60)", ())

            def locked(run: Run) -> None:
                run("LOCK TABLE acp_proxy_schema", ())  # no transaction begins meanwhile
                with pytest.raises(LedgerUnavailableError, match=r": no answer in time$"):
                    ledger.append([row()])
                assert run(f"{active} AND pid <> pg_backend_pid()", ()) == []

            holder._write(locked)

    def test_a_step_of_a_migration_may_take_longer_than_patience_or_a_server_allows_but_no_wait_for_a_lock(
        self, monkeypatch: pytest.MonkeyPatch, empty: str
    ) -> None:
        monkeypatch.setitem(schema._OWN, SCHEMA_VERSION, ("SELECT pg_sleep(1.5)",))
        with closing(PostgresLedger(empty)) as holder:
            holder._write(lambda run: run(gone_since(SCHEMA_VERSION - 1), ()))
            holder._write(lambda run: run("UPDATE acp_proxy_schema SET version = version - 1", ()))

            def locked(run: Run) -> None:
                run("LOCK TABLE acp_proxy_schema IN EXCLUSIVE MODE", ())  # as another that migrates
                others = pytest.raises(
                    LedgerUnavailableError, match=rf"due to lock timeout: .* expected {SCHEMA_VERSION}: others use"
                )
                with others:
                    PostgresLedger(empty, patience=1.0)

            holder._write(locked)
        with closing(PostgresLedger(f"{empty}?options=-c%20statement_timeout%3D1000", patience=1.0)) as ledger:
            assert ledger._version == SCHEMA_VERSION


def until_gone(server: Server, pid: int) -> None:
    sql = f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid:d}"
    until(lambda: not asked(server.url("postgres"), sql), "the server ends the connection")


class TestRoles:
    def test_one_with_too_many_connections_is_told_so_without_its_name(self, postgres: Server, empty: str) -> None:
        open_ledger(empty, journals=()).close()
        few = role(postgres, empty, "few", "CONNECTION LIMIT 1")
        refused = pytest.raises(LedgerUnavailableError, match=r": too many connections for role$")
        with closing(open_ledger(few, journals=())), refused:
            open_ledger(few, journals=())

    def test_one_that_may_only_read_reads(self, postgres: Server, empty: str) -> None:
        with closing(open_ledger(empty, journals=())) as ledger:
            ledger.append([row()])
        url = role(postgres, empty, "looks", "")
        postgres.execute(name_of(empty), "ALTER ROLE looks SET default_transaction_read_only = on")
        with closing(open_ledger(url, journals=())) as ledger:
            assert len(list(ledger.rows(Query()))) == 1
            with pytest.raises(
                LedgerUnavailableError, match=r"takes no writes: a standby, or a role that may only read$"
            ):
                ledger.append([row()])

    def test_one_that_was_only_given_to_read_reads_beside_what_the_dead_left(
        self, postgres: Server, empty: str, tmp_path: Path
    ) -> None:
        warnings = Warnings()
        with closing(open_ledger(empty, journals=())) as ledger:
            ledger.append([row(id="booked")])
            hold(ledger, "dead", (CAP, "0.5"), owner=GONE)
            with closing(open_journal([tmp_path], ledger.url, warnings)) as journal:
                journal.write(row(id="left"))
            url = role(postgres, empty, "looking", "")
            refused = "REVOKE INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public FROM looking"
            postgres.execute(name_of(empty), refused)
            with closing(open_ledger(url, journals=[tmp_path], warn=warnings)) as looking:
                assert [found.entry.id for found in looking.rows(Query())] == ["booked"]
                assert held(looking, CAP) == (usd("0.01"), usd("0.5"))
                DeadProxies(looking, iter((NOON, NOON + 2 * EXPIRY)).__next__).take_over()
            assert warnings.events == []
            assert ledger.settle_dead(NOON + 2 * EXPIRY) == 1
            assert held(ledger, CAP) == (usd("0.51"), 0)
        assert len(list(tmp_path.glob("*.journal"))) == 1

    async def test_one_without_the_right_to_note_what_it_sends_sends_nothing_and_says_so_once(
        self, postgres: Server, empty: str
    ) -> None:
        await asyncio.to_thread(lambda: open_ledger(empty, journals=()).close())
        url = await asyncio.to_thread(role, postgres, empty, "reader", "")
        refused = "REVOKE INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public FROM reader"
        await asyncio.to_thread(postgres.execute, name_of(empty), refused)
        async with receiving() as receiver:
            to = channel(receiver.url)
            async with desk(empty, to) as writing, desk(url, to) as looking:
                await asyncio.to_thread(writing.note, notice())
                for _ in range(2):
                    await looking.round()
                assert looking.warnings.told[0][0] == "notify.waits"
                assert "permission denied" in str(looking.warnings.told[0][1]["error"])
                assert (len(looking.warnings.told), receiver.requests) == (1, [])

    def test_one_that_policies_hide_rows_from_is_warned(self, postgres: Server, empty: str) -> None:
        with closing(open_ledger(empty, journals=())) as ledger:
            ledger.append([row()])
        url, warnings = role(postgres, empty, "hidden", ""), Warnings()
        open_ledger(url, journals=(), warn=warnings).close()
        assert warnings.events == []
        postgres.execute(name_of(empty), "ALTER TABLE turn ENABLE ROW LEVEL SECURITY")
        with closing(open_ledger(url, journals=(), warn=warnings)) as ledger:
            assert list(ledger.rows(Query())) == []
        assert warnings.events == ["ledger.rows_hidden"]


@each_of(
    [
        ('role "alice" does not exist', "role does not exist"),
        ('password authentication failed for user "alice"', "password authentication failed for user"),
        (
            "Passwort-Authentifizierung für Benutzer »alice« fehlgeschlagen",
            "Passwort-Authentifizierung für Benutzer fehlgeschlagen",
        ),
        ("le rôle « alice » n'existe pas", "le rôle n'existe pas"),
        ('ロール"alice"は存在しません', "ロールは存在しません"),
        (
            'no pg_hba.conf entry for host "::1", user "alice", database "malice"',
            'no pg_hba.conf entry for host "::1", user, database "malice"',
        ),
    ],
    name=lambda case: case[1],
)
def test_who_was_not_let_in_is_named_in_no_language(case: tuple[str, str]) -> None:
    said, shown = case
    assert first_line(Exception(f"{said}\nDETAIL: alice"), "alice") == shown


class TestPasswords:
    @pytest.fixture
    def url(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
        """Of a ledger that wants a password of all but its owner."""
        with running() as server:
            owners = server.create("ledger")
            open_ledger(owners, journals=()).close()
            (server.data / "pg_hba.conf").write_text("host all owner all trust\nhost all all all md5\n")
            server.stop("fast")
            server.start()
            monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pgpass"))
            yield role(server, owners, "alice", "PASSWORD 'old'")

    def test_one_that_changed_is_read_again_from_its_file(self, url: str, tmp_path: Path) -> None:
        owners = url.replace("alice@", "owner@")
        file = tmp_path / "pgpass"
        file.touch(0o600)
        file.write_text("*:*:*:alice:old\n")
        with closing(open_ledger(url, journals=())) as ledger, closing(PostgresLedger(owners)) as owner:
            owner._write(lambda run: run("ALTER ROLE alice PASSWORD 'new'", ()))
            ledger.append([row()])
            cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'alice'"
            owner._write(lambda run: run(cut, ()))
            with pytest.raises(LedgerError, match=r": password authentication failed for user$"):
                ledger.append([row()])
            file.write_text("*:*:*:alice:new\n")
            ledger.append([row()])
            assert len(list(ledger.rows(Query()))) == 2

    def test_it_may_hold_what_its_file_escapes(self, url: str, tmp_path: Path) -> None:
        with closing(PostgresLedger(url.replace("alice@", "owner@"))) as owner:
            owner._write(lambda run: run(r"ALTER ROLE alice PASSWORD 'a:b\c'", ()))
        file = tmp_path / "pgpass"
        file.touch(0o600)
        file.write_text(r"*:*:*:alice:a\:b\\c")
        open_ledger(url, journals=()).close()

    def test_a_line_says_why_there_was_none(self, url: str, tmp_path: Path) -> None:
        file = tmp_path / "pgpass"
        named = re.escape(str(file))
        for mode in (None, 0o640):
            if mode:
                file.touch(mode)
                file.write_text("*:*:*:alice:old\n")
            expected = rf": no password is given, expected one in {named} \(of mode 600\) or PGPASSWORD$"
            with pytest.raises(LedgerError, match=expected) as refused:
                open_ledger(url, journals=())
            assert not isinstance(refused.value, LedgerUnavailableError)

    def test_one_that_is_no_text_is_sent_as_it_is_and_nothing_of_it_is_told(
        self, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / "pgpass"
        file.touch(0o600)
        file.write_bytes(b"# Stra\xdfe\n*:*:*:alice:k\xe4se\n")
        for _ in range(2):
            with pytest.raises(LedgerError, match=r"/ledger: password authentication failed for user$") as refused:
                open_ledger(url, journals=())
            assert not isinstance(refused.value, LedgerUnavailableError)
            monkeypatch.setenv("PGPASSWORD", os.fsdecode(b"k\xe4se"))
        monkeypatch.delenv("PGPASSWORD")
        file.write_bytes(b"# Stra\xdfe\n*:*:*:alice:old\n")
        open_ledger(url, journals=()).close()


def test_a_server_that_is_too_old_is_refused() -> None:
    with (
        answering({"server_version": "12.22 (Debian)", "server_encoding": "UTF8"}) as port,
        pytest.raises(LedgerError, match=r": PostgreSQL 12 is too old, expected 13 or newer$") as refused,
    ):
        open_ledger(f"postgresql://owner@127.0.0.1:{port}/ledger?sslmode=disable", journals=())
    assert not isinstance(refused.value, LedgerUnavailableError)


@contextmanager
def answering(parameters: dict[str, str]) -> Iterator[int]:
    """The port of a server that lets one client in, says this of itself, and no more."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            client, _ = listener.accept()
            with client:
                client.recv(4096)
                said = message(b"R", struct.pack("!i", 0))
                for name, value in {**parameters, "client_encoding": "UTF8"}.items():
                    said += message(b"S", f"{name}\0{value}\0".encode())
                client.sendall(said + message(b"K", struct.pack("!ii", 1, 1)) + message(b"Z", b"I"))
                client.recv(4096)

        thread = threading.Thread(target=answer)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(30)


def message(kind: bytes, content: bytes) -> bytes:
    return kind + struct.pack("!i", len(content) + 4) + content

"""A newer version brings tables up to date while an older one writes: no row is passed over, and none comes after."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from acp_proxy.ledger import LedgerError, Query, open_ledger
from acp_proxy.ledger.postgres import schema
from acp_proxy.ledger.postgres.ledger import PostgresLedger
from acp_proxy.ledger.sqlite.version import SCHEMA_VERSION
from acp_proxy.ledger.statements import Run
from harness.postgres import Server, asked, name_of
from harness.rows import row
from tests.ledger.conftest import ISOLATIONS
from tests.ledger.postgres.roles import role
from tests.ledger.steps import gone_since


@pytest.fixture(params=ISOLATIONS)
def url(request: pytest.FixtureRequest, postgres: Server, tmp_path: Path) -> str:
    """Of a database without a ledger, for each level of isolation."""
    return postgres.create(tmp_path.name, request.param)


def older(url: str) -> PostgresLedger:
    """The ledger as of the version before, and as that version writes to it."""
    ledger = PostgresLedger(url)
    for sql in (gone_since(SCHEMA_VERSION - 1), "UPDATE acp_proxy_schema SET version = version - 1"):
        ledger._write(lambda run, sql=sql: run(sql, ()))  # type: ignore[misc]
    ledger._transactions.check = schema.CHECK.replace(f"<= {SCHEMA_VERSION}", f"<= {SCHEMA_VERSION - 1}")
    return ledger


def begun(work: Callable[[], object], url: str) -> threading.Thread:
    """A thread that does it, once it waits for a lock or has ended."""
    thread = threading.Thread(target=work)
    thread.start()
    waiting = f"SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = '{name_of(url)}'"
    while thread.is_alive() and not asked(url, waiting):
        pass
    return thread


def test_a_migration_sees_what_was_being_written_when_it_came(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    migrations: list[threading.Thread] = []

    def write(run: Run) -> None:
        run("SELECT 1", ())  # nothing begins before there is something to ask
        migrations.append(begun(lambda: PostgresLedger(url).close(), url))
        run("INSERT INTO account VALUES ('default', 'late', 1)", ())

    with closing(older(url)) as writer:
        monkeypatch.setitem(schema._OWN, SCHEMA_VERSION, ("CREATE TABLE seen AS SELECT key FROM account",))
        writer._write(write)
    for migration in migrations:
        migration.join()
    assert asked(url, "SELECT key FROM seen") == [("late",)]


def test_who_comes_during_a_migration_waits_and_then_writes_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    late: list[threading.Thread] = []
    with closing(older(url)) as writer:

        def append() -> None:
            try:
                writer.append([row()])
            except LedgerError as error:
                said.append(str(error))

        monkeypatch.setitem(schema._OWN, SCHEMA_VERSION, (lambda run: late.append(begun(append, url)),))
        with closing(open_ledger(url, journals=())) as ledger:
            for each in late:
                each.join()
            assert [text.rpartition(": written")[2] for text in said] == [" by a newer acp-proxy: update it"]
            assert list(ledger.rows(Query())) == []


def test_of_those_that_meet_an_empty_database_one_makes_the_tables_and_the_others_wait_for_it(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    others: list[threading.Thread] = []
    held = f"""
        SELECT l.locktype, l.granted FROM pg_locks l JOIN pg_stat_activity a USING (pid)
        WHERE a.wait_event_type = 'Lock' AND a.datname = '{name_of(url)}' AND l.locktype IN ('advisory', 'relation')
    """
    waiting: list[list[tuple[object, ...]]] = []

    def step(_: Run) -> None:
        others.append(begun(lambda: PostgresLedger(url).close(), url))
        waiting.append(asked(url, held))

    monkeypatch.setitem(schema._OWN, SCHEMA_VERSION, (step,))
    PostgresLedger(url).close()
    for each in others:
        each.join()
    assert waiting == [[("advisory", False)]]  # once, and it holds nothing that the migration may want


def test_every_transaction_sees_what_was_written_before_each_statement_whatever_the_databases_default_is(
    url: str,
) -> None:
    with closing(PostgresLedger(url)) as ledger:
        assert ledger._write(lambda run: run("SHOW transaction_isolation", ())) == [("read committed",)]


def test_a_role_that_may_not_change_tables_is_told_who_may(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners = postgres.create(tmp_path.name)
    older(owners).close()
    monkeypatch.setitem(schema._OWN, SCHEMA_VERSION, ("ALTER TABLE turn ADD COLUMN later TEXT",))
    expected = (
        f": its tables are of version {SCHEMA_VERSION - 1}, expected {SCHEMA_VERSION}: let their owner open it first$"
    )
    url = role(postgres, owners, "newcomer", "")
    why = r": (permission denied for schema public|must be owner of table turn)"  # before PostgreSQL 15 the latter
    with pytest.raises(LedgerError, match=why + expected):
        open_ledger(url, journals=())
    open_ledger(owners, journals=()).close()
    open_ledger(url, journals=()).close()

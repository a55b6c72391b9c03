"""The backends that the contract holds for, and a recorder of warnings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from harness import hub
from harness.faults.gate import Gate, gated
from harness.hub import AsAsked
from harness.places import mounted
from harness.pooler import pooler
from harness.postgres import Server, running
from tests.ledger.warned import Warnings

TABLES = ["turn", "line", "session", "series", "total", "open_turn", "hold", "surcharge", "granted", "announced"]
TABLES += ["decision", "overshoot", "account", "settings"]
TABLES += ["notice", "delivery", "delivery_count"]
TABLES += ["plan_window", "plan_change"]
TABLES += ["correction", "peak"]
TABLES += ["exporter", "unexported", "exported", "work", "capture", "capture_detail", "bill_source"]
TABLES += ["tally", "relayed", "label", "label_count"]
TABLES += ["session_key", "kept_sum", "unsummed", "writer", "restored"]

Open = Callable[[], BudgetLedger]

PATIENCE = 60.0  # seconds: on a busy machine a statement that reads thousands of rows takes long


ISOLATIONS = ("read committed", "repeatable read", "serializable")

# For tests of one connection at a time, to which all levels are the same: one of them stands for PostgreSQL.
ONE_AT_A_TIME = pytest.mark.parametrize("url", ["sqlite", "read committed"], indirect=True)

# And for what holds of a ledger by a hub as well, which reads on while its answer is read, and sends notices itself.
POOLED = pytest.param("pgbouncer", marks=pytest.mark.needs("pgbouncer"))
EVERYWHERE = pytest.mark.parametrize("url", ["sqlite", *ISOLATIONS, POOLED, "hub"], indirect=True)
AND_HUB = pytest.mark.parametrize("url", ["sqlite", "read committed", "hub"], indirect=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server with a migrated database for each level of isolation."""
    with running() as server:
        # Else it may count the rows of tables just as these are emptied, and plans for the next thousand rows as for
        # one: with nested loops, for minutes.
        server.execute("postgres", "ALTER SYSTEM SET autovacuum = off")
        server.execute("postgres", "SELECT pg_reload_conf()")
        for isolation in ISOLATIONS:
            open_ledger(server.create(isolation, isolation), journals=()).close()
        yield server


@pytest.fixture(scope="session")
def gates(postgres: Server) -> Iterator[dict[str, Gate]]:
    """Ways to that server on which transactions begin at a level above the one that they ask for.

    As on servers that know no READ COMMITTED.
    """
    with ExitStack() as stack:
        yield {level: stack.enter_context(gated(postgres.port, level)) for level in ISOLATIONS[1:]}


@pytest.fixture(scope="session")
def pooled(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a PgBouncer in front of that server."""
    with pooler(postgres, tmp_path_factory.mktemp("pooler"), 4) as port:
        yield port


@pytest.fixture(scope="session")
def emptied(postgres: Server) -> Iterator[Callable[[str], None]]:
    """Empties a database of that server. Its connection stays: a new one costs the server forty times as much."""
    connections: dict[str, psycopg.Connection] = {}
    # Not TRUNCATE, which makes new files for all of them: three times as slow where there are a few rows.
    sql = "; ".join(f"DELETE FROM {table}" for table in TABLES)

    def empty(database: str) -> None:
        if database not in connections:
            connections[database] = psycopg.connect(postgres.url(quote(database)), autocommit=True)
        connections[database].execute(sql.encode())

    yield empty
    for connection in connections.values():
        connection.close()


@pytest.fixture(params=["sqlite", *ISOLATIONS, POOLED])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an empty ledger, once for each backend."""
    match request.param:
        case "sqlite":
            yield f"sqlite:///{tmp_path}/ledger.db"
        case "hub":
            monkeypatch.setenv("ACP_PROXY_HUB_TOKEN", "any")
            with hub.running(f"sqlite:///{tmp_path}/ledger.db", claims=AsAsked) as address:
                yield address
        case "pgbouncer":
            request.getfixturevalue("emptied")(ISOLATIONS[0])
            server: Server = request.getfixturevalue("postgres")
            yield server.url(quote(ISOLATIONS[0])).replace(f":{server.port}/", f":{request.getfixturevalue('pooled')}/")
        case isolation:
            request.getfixturevalue("emptied")(isolation)
            server = request.getfixturevalue("postgres")
            gates: dict[str, Gate] = request.getfixturevalue("gates")
            port = gates[isolation].port if isolation in gates else server.port
            yield server.url(quote(isolation)).replace(f":{server.port}/", f":{port}/")


@pytest.fixture
def another(url: str) -> Iterator[Open]:
    """Opens the same ledger again, as another process would."""
    opened: list[BudgetLedger] = []

    def open_again() -> BudgetLedger:
        opened.append(open_ledger(url, journals=(), patience=PATIENCE))
        return opened[-1]

    yield open_again
    for ledger in opened:
        ledger.close()


@pytest.fixture
def ledger(another: Open) -> BudgetLedger:
    return another()


@pytest.fixture
def warnings() -> Warnings:
    return Warnings()


@pytest.fixture
def read_only_directory(tmp_path: Path) -> Iterator[Path]:
    """A directory that nothing can be made in, not even by root."""
    directory = tmp_path / "read-only"
    directory.mkdir(0o500)
    if os.geteuid() != 0:
        yield directory
        return
    with mounted(directory, "ro,size=1m"):
        yield directory


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    directory = tmp_path / "small"
    directory.mkdir()
    with mounted(directory, "size=1m"):
        yield directory

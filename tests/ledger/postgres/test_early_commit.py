"""A hold counts only when it is kept, and nobody waits for it to be kept who wants to hold something, too."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from threading import Thread

import psycopg
import pytest

from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.postgres import transactions
from acp_proxy.ledger.postgres.early_commit import PLAIN
from acp_proxy.ledger.postgres.ledger import PostgresLedger
from harness.daemons import until
from harness.faults.gate import gated
from harness.postgres import Server, asked, running
from tests.core.accounts import usd
from tests.ledger.holds import CAP, held, hold
from tests.ledger.postgres.roles import role

pytestmark = pytest.mark.xdist_group("early")

WAITING = "SELECT wait_event FROM pg_stat_activity WHERE application_name = 'acp-proxy' AND state = 'active'"

WRITER = "SELECT pid, backend_start FROM pg_stat_activity WHERE backend_type = 'walwriter'"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One that keeps what it writes as a real one does."""
    with running(settings=()) as server:
        yield server


@pytest.fixture
def url(server: Server, request: pytest.FixtureRequest) -> str:
    url = server.create(f"early_{abs(hash(request.node.name))}")
    open_ledger(url, journals=()).close()
    return url


@pytest.fixture
def set_to(server: Server, url: str) -> Iterator[Callable[[str, str], None]]:
    """Changes a setting of the server until the test is over."""
    changed = set[str]()

    def change(name: str, value: str) -> None:
        server.execute("postgres", f"ALTER SYSTEM SET {name} = {value}")
        server.execute("postgres", "SELECT pg_reload_conf()")
        changed.add(name)
        until(lambda: asked(url, f"SHOW {name}") == [(value.strip("'"),)], f"{name} is set")

    yield change
    for name in changed:
        server.execute("postgres", f"ALTER SYSTEM RESET {name}")
    server.execute("postgres", "SELECT pg_reload_conf()")


def is_anew(url: str, began: object) -> bool:
    with suppress(psycopg.Error):
        return asked(url, WRITER)[0][1] != began
    return False


@pytest.mark.parametrize("confirmed", [True, False])
def test_a_hold_that_was_told_survives_a_crash_at_that_moment(
    url: str, monkeypatch: pytest.MonkeyPatch, *, confirmed: bool
) -> None:
    """And would not if nothing confirmed it, nor if that were a transaction that writes nothing."""
    if not confirmed:
        monkeypatch.setattr(transactions, "CONFIRMING", ("SELECT pg_current_xact_id()", ()))
    with closing(PostgresLedger(url)) as ledger:
        hold(ledger, "first", (CAP, "0.01"))
        ledger.release("default", "first")
        ((writer, began),) = asked(url, WRITER)
        os.kill(int(str(writer)), signal.SIGSTOP)  # nobody else keeps it by chance
        assert hold(ledger, "second", (CAP, "0.25")).admitted
        os.kill(int(str(writer)), signal.SIGKILL)  # the server throws away what it has in memory, and starts anew
    until(lambda: is_anew(url, began), "the server is there again")
    with closing(PostgresLedger(url)) as ledger:
        assert held(ledger, CAP) == (0, usd("0.25") if confirmed else 0)


def test_holds_wait_for_a_standby_that_is_away_and_not_for_each_other(
    url: str, set_to: Callable[[str, str], None]
) -> None:
    admitted = list[bool]()

    def take(turn: str) -> None:
        with closing(PostgresLedger(url, patience=60)) as ledger:
            admitted.append(hold(ledger, turn, (CAP, "0.25")).admitted)

    with closing(PostgresLedger(url)) as ledger:
        hold(ledger, "warm", (CAP, "0.25"))
    set_to("synchronous_standby_names", "'away'")
    threads = [Thread(target=take, args=(f"{number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    until(lambda: asked(url, WAITING) == [("SyncRep",)] * 3, "all of them wait for the standby")
    assert admitted == []
    assert asked(url, "SELECT count(*) FROM account WHERE holds > 0 AND key <> 'sums'") == [(1,)]
    set_to("synchronous_standby_names", "''")
    for thread in threads:
        thread.join(60)
    assert admitted == [True] * 3


def test_where_it_is_not_possible_a_hold_is_committed_as_everything_else(server: Server, url: str) -> None:
    owner = "FUNCTION pg_logical_emit_message(boolean, text, text{more})"
    more = ", boolean" if asked(url, "SELECT current_setting('server_version_num')::int >= 170000") == [(True,)] else ""
    function = owner.format(more=more)
    database = url.rpartition("/")[2]
    with gated(server.port) as gate:
        plain = role(server, url, "plain", "").replace(f":{server.port}/", f":{gate.port}/")

        def is_early() -> bool:
            return any("pg_logical_emit_message(true" in text for text in gate.texts)

        with closing(PostgresLedger(plain)) as ledger:
            server.execute(database, f"REVOKE EXECUTE ON {function} FROM PUBLIC")
            assert hold(ledger, "right was taken", (CAP, "0.25")).admitted
            assert is_early()
            gate.texts.clear()
            assert hold(ledger, "right is not there", (CAP, "0.25")).admitted
        with closing(PostgresLedger(plain)) as ledger:
            assert hold(ledger, "right was never there", (CAP, "0.25")).admitted
            assert not is_early()
            server.execute(database, f"GRANT EXECUTE ON {function} TO PUBLIC")
            assert held(ledger, CAP) == (0, usd("0.75"))


VERSIONS = {
    "PostgreSQL 15.20 (Debian 15.20-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc": True,
    "PostgreSQL 16.4 on aarch64-unknown-linux-musl, compiled by gcc": True,
    "PostgreSQL 18beta1 on x86_64-pc-linux-gnu": True,
    "PostgreSQL 15.12-YB-2025.1.0.0-b0 on x86_64-pc-linux-gnu": False,
    "PostgreSQL 12.12 (Greenplum Database 7.0.0 build commit:0) on x86_64-pc-linux-gnu": False,
    "CockroachDB CCL v25.1.0 (x86_64-pc-linux-gnu)": False,
}


def test_only_of_postgresql_itself_it_is_known_to_be_possible(url: str) -> None:
    assert {each: asked(url, f"SELECT '{each}' ~ '{PLAIN}'") == [(True,)] for each in VERSIONS} == VERSIONS

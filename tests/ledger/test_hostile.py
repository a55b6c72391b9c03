"""A SQLite file into which another program has written: shown as far as it can be read, or refused in one line."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from starlette.types import Message

from acp_proxy.catalog import Catalog
from acp_proxy.cli import main
from acp_proxy.config import load
from acp_proxy.core.entry import SessionState
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Counters
from acp_proxy.ledger import LedgerError, Query, open_ledger, open_reader
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.session_keys import session_key
from acp_proxy.ledger.sqlite.soundness import fault_in
from acp_proxy.ledger.sqlite.version import TABLES
from acp_proxy.ledger.sums.tallies import EXPECTED, Tally
from acp_proxy.metrics import Exporter
from acp_proxy.serve.site import Site
from harness.rows import ALICE, NOON, line, row
from tests.core.accounts import budget, usd
from tests.ledger.holds import account, held, hold

STATE = SessionState(1000, 200_000, counters=Counters(1, 2, 3), title="Fix the flaky test")
CAP = account(budget("5 USD"))


def opened(path: Path) -> BudgetLedger:
    return open_ledger(f"sqlite:///{path}", journals=())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a ledger with three rows, and with a sum that is kept."""
    path = tmp_path / "ledger.db"
    with closing(opened(path)) as ledger:
        hold(ledger, "t0", (CAP, "0.4"))
        ledger.append(
            [row(line(cost="0.5"), id=f"t{number}", session=f"s{number}", state=STATE) for number in range(3)]
        )
        ledger.tallied.expect("default", "claude-agent-acp", "core", "opus")
    return path


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA legacy_alter_table = 1")  # what names a table that is renamed stays
        for statement in statements:
            connection.execute(statement)


def put(path: Path, table: str, column: str, value: str | int) -> None:
    """In all rows."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"UPDATE {table} SET {column} = ?", (value,))


def loose(path: Path, table: str) -> list[str]:
    """Statements that make a table anew as another program would have."""
    with closing(sqlite3.connect(path)) as connection:
        ((sql,),) = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchall()
    made = re.sub("STRICT, |NOT NULL", "", sql)
    return [f"ALTER TABLE {table} RENAME TO t", made, f"INSERT INTO {table} SELECT * FROM t", "DROP TABLE t"]


def view(_: Path, table: str) -> list[str]:
    return [f"ALTER TABLE {table} RENAME TO t", f"CREATE VIEW {table} AS SELECT * FROM t"]


def gone(_: Path, table: str) -> list[str]:
    return [f"DROP TABLE {table}"]


@pytest.mark.parametrize("table", sorted(TABLES))
@pytest.mark.parametrize("how", [loose, view, gone])
def test_a_table_that_another_program_has_made_is_refused_by_name(
    path: Path, table: str, how: Callable[[Path, str], list[str]]
) -> None:
    change(path, *how(path, table))
    told = f"^ledger {path}: another program has changed this file: its table {table} is not as acp-proxy made it$"
    for open_it in (open_ledger, open_reader):
        with pytest.raises(LedgerError, match=told):
            open_it(f"sqlite:///{path}", journals=())


def test_tables_and_views_of_other_programs_beside_ours_do_no_harm(path: Path) -> None:
    change(path, "CREATE TABLE notes (x)", "CREATE VIEW by_agent AS SELECT agent, count(*) FROM turn GROUP BY agent")
    with closing(opened(path)) as ledger:
        ledger.append([row()])


def test_a_kind_and_sources_that_nobody_knows_are_shown_as_they_are(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(path, "UPDATE turn SET kind = 'dream', usage_source = 'oracle', cost_source = 'oracle' WHERE id = 't1'")
    assert main(["report", "--by", "turn", "--csv", "--ledger", f"sqlite:///{path}"]) == 0
    assert ["dream" in each for each in capsys.readouterr().out.splitlines()].count(True) == 1


def test_a_cost_in_no_currency_and_a_currency_of_no_cost_are_not_known(path: Path) -> None:
    change(
        path, "UPDATE line SET currency = NULL WHERE turn = 't1'", "UPDATE line SET cost_nano = NULL WHERE turn = 't2'"
    )
    change(path, "UPDATE session SET agent_cost_nano = 5")
    with closing(opened(path)) as ledger:
        assert [found.entry.costs for found in ledger.rows(Query())] == [(Money.of("0.5", "USD"),), (), ()]
        assert sorted(len(sums.costs) for _, sums in ledger.session_sums(Query())) == [0, 0, 1]
        states = [ledger.state_of(ALICE, session) for session in ("s0", "s1", "s2")]
    assert [(len(state.costs), state.agent_cost) for state in states if state] == [(1, None), (0, None), (0, None)]


@pytest.mark.parametrize("command", [["--by", "session"], ["--by", "turn"], ["--by", "session", "--json"], ["--json"]])
@pytest.mark.parametrize("number", [-(2**62) - 1, 2**63 - 60, 2**62])
def test_figures_whose_sum_is_beyond_64_bits_are_shown_or_refused_in_one_line(
    path: Path, command: list[str], number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    for column in ("input", "cached_read", "output"):
        put(path, "line", column, number)
    put(path, "total", "input", number)
    status = main(["report", *command, "--ledger", f"sqlite:///{path}"])
    said = capsys.readouterr()
    assert (status, said.err.count("\n")) in ((0, 0), (2, 1))


@pytest.mark.parametrize("counters", ["", "null", "[1]", '{"input": "many"}', "{"])
def test_counters_that_cannot_be_read_are_not_known(path: Path, counters: str) -> None:
    put(path, "session", "counters", counters)
    with closing(opened(path)) as ledger:
        state = ledger.state_of(ALICE, "s0")
    assert state is not None
    assert (state.counters, state.title) == (None, STATE.title)


@pytest.mark.parametrize("column", ["spent", "what"])
@pytest.mark.parametrize("text", ["", "null", "[]", '{"nano": 1}'])
def test_a_sum_that_cannot_be_read_is_made_anew_and_no_row_is_refused(path: Path, column: str, text: str) -> None:
    put(path, "kept_sum", column, text)
    with closing(opened(path)) as ledger:
        assert held(ledger, CAP) == (usd("1.5"), 0)
        ledger.append([row(line(cost="0.5"))])
        assert held(ledger, CAP) == (usd("2"), 0)
        hold(ledger, "t9", (CAP, "0.4"), now=NOON + 1)
        ledger.append([row(line(cost="0.5"))])
        assert held(ledger, CAP) == (usd("2.5"), usd("0.4"))


@pytest.mark.parametrize("labels", ["", "null", "{}", "[1]", "[]", '["a","b","c","d"]'])
def test_tallies_that_cannot_be_read_are_left_out_of_the_metrics(path: Path, labels: str, tmp_path: Path) -> None:
    with closing(opened(path)) as ledger:
        counts = [Tally(family, ("x",), 0, 1, 1) for family in (EXPECTED, "relay_seconds", "agent_exits", "turn_cost")]
        ledger.tallied.count_relayed("default", "p1", 1, counts, NOON)
    put(path, "tally", "labels", labels)
    assert 'acp_proxy_turns_total{agent="claude-agent-acp"' in scraped(path, tmp_path)


def test_sums_of_a_series_that_is_not_there_are_left_out_of_the_metrics(path: Path, tmp_path: Path) -> None:
    with closing(opened(path)) as ledger:
        ledger.append([row(line("haiku"))])
    change(path, "DELETE FROM series WHERE model = 'haiku'")
    text = scraped(path, tmp_path)
    assert (
        'acp_proxy_tokens_total{agent="claude-agent-acp",model="opus",team="core",source="agent",type="input"} 300'
        in text
    )
    assert 'model="haiku",team="core",source="agent",type="input"} 1' not in text


def scraped(path: Path, home: Path) -> str:
    config = load({}, {"HOME": str(home), "USER": "alice"})
    with closing(opened(path)) as ledger:
        return Exporter(config, Catalog(), journals=(), process=False).scrape(ledger).decode()


@pytest.fixture
def smuggled(path: Path) -> Path:
    """With a text as the time of a turn and an unknown number of tokens, which none of our tables takes."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        tables = connection.execute("SELECT name, sql FROM sqlite_master WHERE name IN ('turn', 'line')").fetchall()
        rewrite(connection, [(name, re.sub("STRICT, |NOT NULL", "", sql)) for name, sql in tables])
    change(path, "UPDATE turn SET ended_at = 'noon' WHERE id = 't1'", "UPDATE line SET input = NULL WHERE turn = 't1'")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        rewrite(connection, tables)
    return path


def rewrite(connection: sqlite3.Connection, tables: list[tuple[str, str]]) -> None:
    """What the file says of its tables, and not what is in them."""
    connection.execute("PRAGMA writable_schema = 1")
    for name, sql in tables:
        connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (sql, name))
    ((version,),) = connection.execute("PRAGMA schema_version").fetchall()
    connection.execute(f"PRAGMA schema_version = {version + 1}")


@pytest.mark.parametrize("by", ["turn", "session"])
def test_a_value_that_no_column_takes_is_named_in_one_line(
    smuggled: Path, by: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--by", by, "--ledger", f"sqlite:///{smuggled}"]) == 2
    said = capsys.readouterr().err
    assert re.fullmatch(
        rf"acp-proxy: ledger {smuggled}: another program .*: \S+ value in (line.input|turn.ended_at)\n", said
    )


def test_a_fault_of_our_own_is_not_put_on_the_ledger(path: Path, tmp_path: Path) -> None:
    assert fault_in(f"sqlite:///{path}") is None
    assert fault_in(f"sqlite:///{tmp_path}/none.db") is None
    assert fault_in("postgresql://nobody@127.0.0.1:1/none") is None


async def test_the_page_says_so_and_metrics_go_on(smuggled: Path, tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "USER": "alice"}
    site = Site(load({"ledger": f"sqlite:///{smuggled}"}, environ), environ)
    try:
        assert await asked(site, "/api/session", f"key={session_key(ALICE, 's1')}") == 503
        assert await asked(site, "/metrics") == 200
    finally:
        site.close(1)


async def asked(site: Site, path: str, query: str = "") -> int:
    said: list[Message] = []

    async def send(message: Message) -> None:
        said.append(message)

    async def receive() -> Message:
        return {"type": "http.request"}

    scope = {"type": "http", "method": "GET", "path": path, "query_string": query.encode(), "headers": []}
    await site.application(scope, receive, send)
    return int(said[0]["status"])

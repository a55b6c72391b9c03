"""The same questions to ledgers on PostgreSQL: on a server of its own, as installed, with copies of those on SQLite."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import psycopg

from acp_proxy.ledger import open_ledger
from bench import growth_holds, growth_ledgers
from bench.growth_ledgers import Costs
from bench.ledgers import LEDGER, ledger_of
from harness.postgres import running

_LEFT_OUT = ("kept_sum",)  # made anew: on PostgreSQL others count on them
_AT_ONCE = 100_000  # rows


def ledgers(sizes: Sequence[int]) -> Iterator[tuple[int, dict[str, Costs]]]:
    """By turns, and by what was asked."""
    with running(settings=()) as server:
        for turns in sizes:
            url = server.create(f"turns{turns}")
            open_ledger(url, journals=()).close()
            _copy(ledger_of(turns) / LEDGER, url)
            with tempfile.TemporaryDirectory() as home:
                config = Path(home) / ".config/acp-proxy/config.toml"
                config.parent.mkdir(parents=True)
                config.write_text(f'[ledger]\nurl = "{url}"\n', encoding="utf-8")
                yield turns, growth_ledgers.measured(Path(home), url)


def holds() -> Iterator[tuple[int, Costs]]:
    """Microseconds until the answer."""
    with running(settings=()) as server:
        for count in growth_holds.COMBINATIONS:
            yield count, growth_holds.measured(server.create(f"holds{count}"), count, "us", time.perf_counter_ns)


def _copy(file: Path, url: str) -> None:
    """All rows of a ledger's file into empty tables of the same names."""
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        with closing(sqlite3.connect(file)) as database:
            for (table,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
                if table not in _LEFT_OUT:
                    found = database.execute(f"SELECT * FROM {table}")
                    columns = ", ".join(name for name, *_ in found.description)
                    with connection.cursor().copy(f"COPY {table} ({columns}) FROM STDIN".encode()) as copy:
                        while some := found.fetchmany(_AT_ONCE):
                            for row in some:
                                copy.write_row(row)
        connection.execute("VACUUM ANALYZE")  # as the server does by itself, in time

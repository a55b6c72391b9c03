"""The ledger in one SQLite file that every proxy of a user writes to.

Every write is one `BEGIN IMMEDIATE` transaction; reads are short, so that they never hold a writer or the WAL up.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from acp_proxy.core.entry import Entry, Origin, SessionState, UsageLine
from acp_proxy.core.events import Counters
from acp_proxy.core.money import Money, summed
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import Query, Row, SessionInfo, Sums, Warn, log_warning
from acp_proxy.ledger.migrations import MIGRATIONS
from acp_proxy.ledger.places import sqlite_url
from acp_proxy.ledger.sqlite_file import (
    Identity,
    LedgerDamagedError,
    connect,
    identity,
    patiently,
    set_aside,
    translated,
)
from acp_proxy.ledger.sqlite_read import read_rows, read_sessions, read_sums

_INSERT_TURN = f"INSERT INTO turn VALUES ({', '.join('?' * 21)}) ON CONFLICT DO NOTHING"
_INSERT_LINE = f"INSERT INTO line VALUES ({', '.join('?' * 12)})"

# A row may come late, from a journal: then only the session's beginning is news. What a row does not know of its
# session does not replace what an earlier one knew.
_UPSERT_SESSION = f"""
INSERT INTO session VALUES ({", ".join("?" * 20)})
ON CONFLICT (org_id, user_id, host, agent, session) DO UPDATE SET
    team = excluded.team,
    project = excluded.project,
    agent_version = excluded.agent_version,
    client = excluded.client,
    title = iif(excluded.title IS NULL OR excluded.titled_at < titled_at, title, excluded.title),
    titled_at = iif(excluded.title IS NULL, titled_at, max(titled_at, excluded.titled_at)),
    model = coalesce(excluded.model, model),
    context_estimated = iif(excluded.context_used IS NULL, context_estimated, excluded.context_estimated),
    context_used = coalesce(excluded.context_used, context_used),
    context_size = coalesce(excluded.context_size, context_size),
    agent_cost_nano = coalesce(excluded.agent_cost_nano, agent_cost_nano),
    agent_cost_currency = coalesce(excluded.agent_cost_currency, agent_cost_currency),
    counters = coalesce(excluded.counters, counters),
    ended_at = excluded.ended_at
WHERE excluded.ended_at >= ended_at
"""
_BEGIN_SESSION = """
UPDATE session SET started_at = ?6
WHERE org_id = ?1 AND user_id = ?2 AND host = ?3 AND agent = ?4 AND session = ?5 AND started_at > ?6
"""
_NOTE_TITLE = """
UPDATE session SET title = ?6, titled_at = ?7
WHERE org_id = ?1 AND user_id = ?2 AND host = ?3 AND agent = ?4 AND session = ?5 AND titled_at <= ?7
"""
_STATE = """
SELECT context_used, context_size, context_estimated, agent_cost_nano, agent_cost_currency, counters, model, title
FROM session WHERE org_id = ? AND user_id = ? AND host = ? AND agent = ? AND session = ?
"""
_COSTS = """
SELECT l.cost_nano, l.currency
FROM turn t JOIN line l ON l.org_id = t.org_id AND l.turn = t.id
WHERE t.org_id = ? AND t.user_id = ? AND t.host = ? AND t.agent = ? AND t.session = ? AND l.cost_nano IS NOT NULL
ORDER BY t.id, l.position
"""
_NO_FILE: Identity = (-1, -1)


class SqliteLedger:
    """A `Ledger`; `patience` bounds in seconds how long a call waits for other writers."""

    def __init__(self, path: Path, *, patience: float = 5.0, warn: Warn = log_warning) -> None:
        self.path = path
        self.url = sqlite_url(path)
        self._patience = patience
        self._warn = warn
        self._connection = self._connect()

    def append(self, rows: Sequence[Row]) -> None:
        try:
            self._append(rows)
        except LedgerDamagedError as error:
            self._begin_anew(error)
            self._append(rows)
        if identity(self.path) != self._file:  # set aside since the transaction began, and the rows with it
            self._append(rows)

    def _append(self, rows: Sequence[Row]) -> None:
        with self._transaction() as connection:
            for row in rows:
                if connection.execute(_INSERT_TURN, _turn_values(row)).rowcount == 0:
                    continue
                connection.executemany(_INSERT_LINE, _line_values(row))
                connection.execute(_UPSERT_SESSION, _session_values(row))
                connection.execute(_BEGIN_SESSION, (*_key(row.origin, row.entry.session), row.entry.started_at))

    def note_session(self, origin: Origin, session: str, title: str | None, at: int) -> None:
        with self._transaction() as connection:
            connection.execute(_NOTE_TITLE, (*_key(origin, session), title, at))

    def state_of(self, origin: Origin, session: str) -> SessionState | None:
        key = _key(origin, session)
        found = self._read(_STATE, key)
        return _state(found[0], self._read(_COSTS, key)) if found else None

    def rows(self, query: Query) -> Iterator[Row]:
        return read_rows(self._read, query)

    def summed(self, query: Query, by: Sequence[str]) -> list[Sums]:
        return read_sums(self._read, query, by)

    def sessions(self, query: Query) -> Iterator[SessionInfo]:
        return read_sessions(self._read, query)

    def check(self) -> str:
        with self._transaction():
            pass
        rows = self._read("SELECT count(*) FROM turn", ())[0][0]
        with translated(self.path):
            size = self.path.stat().st_size
        library = f"SQLite {sqlite3.sqlite_version}"
        return f"{self.path}: {rows} rows, {size / 1e6:.1f} MB, schema {len(MIGRATIONS)}, {library}"

    def close(self) -> None:
        self._connection.close()

    def _read(self, sql: str, parameters: Sequence[Any]) -> list[Any]:
        """All rows of one statement, read in one short transaction of its own."""
        with translated(self.path):
            self._follow_file()
            return patiently(lambda: self._connection.execute(sql, parameters).fetchall(), self._patience)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with translated(self.path):
            self._follow_file()
            connection = self._connection
            patiently(lambda: connection.execute("BEGIN IMMEDIATE"), self._patience)
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # a full disk has rolled back by itself
                    connection.execute("ROLLBACK")
                raise

    def _connect(self) -> sqlite3.Connection:
        try:
            connection, self._file = connect(self.path, self._patience)
        except LedgerDamagedError as error:
            self._set_aside(error, error.file)
            connection, self._file = connect(self.path, self._patience)
        return connection

    def _follow_file(self) -> None:
        """Reopen when another process has set the file aside, or someone has removed it: rows would go nowhere."""
        if identity(self.path) != self._file:
            self._reconnect()

    def _begin_anew(self, error: LedgerDamagedError) -> None:
        self._connection.close()
        self._set_aside(error, self._file)
        self._reconnect()

    def _reconnect(self) -> None:
        self._file = _NO_FILE  # until it succeeds, each call tries again
        self._connection.close()
        self._connection = self._connect()

    def _set_aside(self, error: LedgerDamagedError, damaged: Identity | None) -> None:
        moved = set_aside(self.path, damaged, self._patience)
        if moved:
            self._warn("ledger.damaged", error=str(error), moved_to=str(moved))


def _key(origin: Origin, session: str) -> tuple[str, str, str, str, str]:
    return origin.organisation, origin.user, origin.host, origin.agent, session


def _turn_values(row: Row) -> tuple[object, ...]:
    origin, entry = row.origin, row.entry
    return (
        origin.organisation,
        entry.id,
        origin.user,
        origin.host,
        origin.agent,
        entry.session,
        entry.kind,
        entry.started_at,
        entry.ended_at,
        entry.stop_reason,
        origin.team,
        origin.project,
        origin.agent_version,
        origin.client,
        entry.usage_source,
        entry.cost_source,
        entry.unpriced,
        entry.detail,
        entry.message_id,
        entry.context_used,
        entry.context_size,
    )


def _line_values(row: Row) -> Iterator[tuple[object, ...]]:
    for position, line in enumerate(row.entry.lines or (UsageLine(None, Usage()),)):
        usage, cost = line.usage, line.cost
        yield (
            row.origin.organisation,
            row.entry.id,
            position,
            line.model,
            usage.input,
            usage.cached_read,
            usage.cached_write,
            usage.output,
            usage.thought,
            cost.nano if cost else None,
            cost.currency if cost else None,
            line.price_row,
        )


def _session_values(row: Row) -> tuple[object, ...]:
    origin, entry = row.origin, row.entry
    state = row.state or _state_after(entry)
    return (
        *_key(origin, entry.session),
        origin.team,
        origin.project,
        origin.agent_version,
        origin.client,
        state.title,
        entry.ended_at if state.title is not None else 0,
        state.model,
        state.context_used,
        state.context_size,
        state.context_estimated,
        state.agent_cost.nano if state.agent_cost else None,
        state.agent_cost.currency if state.agent_cost else None,
        msgspec.json.encode(state.counters).decode() if state.counters else None,
        entry.started_at,
        entry.ended_at,
    )


def _state_after(entry: Entry) -> SessionState:
    return SessionState(context_used=entry.context_used, context_size=entry.context_size, model=entry.model)


def _state(found: tuple[Any, ...], costs: list[tuple[int, str]]) -> SessionState:
    used, size, estimated, nano, currency, counters, model, title = found
    return SessionState(
        context_used=used,
        context_size=size,
        context_estimated=bool(estimated),
        costs=summed(Money(cost_nano, cost_currency) for cost_nano, cost_currency in costs),
        agent_cost=None if nano is None else Money(nano, currency),
        counters=None if counters is None else msgspec.json.decode(counters, type=Counters),
        model=model,
        title=title,
    )

"""goose's book: table `usage_ledger` of `sessions.db`, one row per model call. Seen in 1.50.0 and 1.52.0 (schema 16).

Its cost is mostly goose's own estimate, from a price table of its own. Thinking stands inside the output and is not
told apart. Calls for titles, and those that were cut short, are in no row; a deleted session takes its rows along.
Versions before (seen: 1.37.0, schema 13) have only counters of a whole session, of which no call can be told.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from acp_proxy.books import Call, CallKind, NotUnderstood
from acp_proxy.books.databases import missing
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage

_WANTED = {
    "usage_ledger": (
        "id",
        "session_id",
        "created_timestamp",
        "model",
        "input_tokens",
        "output_tokens",
        "total_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "cost",
        "cost_source",
        "is_compaction",
    ),
    "sessions": ("id", "session_type", "working_dir", "accumulated_total_tokens", "parent_session_id"),
}
_ROWS = """
SELECT call.id, call.session_id, call.created_timestamp, call.model, call.input_tokens, call.output_tokens,
       call.total_tokens, call.cache_read_tokens, call.cache_write_tokens, call.cost, call.cost_source,
       call.is_compaction, sessions.session_type, sessions.parent_session_id, sessions.working_dir
FROM usage_ledger AS call LEFT JOIN sessions ON sessions.id = call.session_id
{where}
ORDER BY call.id
"""
_SESSIONS = "SELECT id FROM sessions WHERE id = ? OR parent_session_id = ?"
_WITHOUT_ROWS = """
SELECT count(*) FROM sessions
WHERE accumulated_total_tokens > 0 AND id NOT IN (SELECT session_id FROM usage_ledger)
"""
_COST_SOURCES = (None, "estimated", "provider_reported")


class _Row(Struct, frozen=True):
    """Of SQLite: a column may hold a value of any type."""

    id: Any
    session: Any
    created: Any  # seconds
    model: Any
    input: Any  # caches inside
    output: Any  # thinking inside
    total: Any
    cache_read: Any
    cache_write: Any
    cost: Any
    cost_source: Any
    is_compaction: Any
    session_type: Any
    parent: Any
    directory: Any


def files(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Its database, one for all sessions."""
    if root := environ.get("GOOSE_PATH_ROOT"):
        data = Path(root) / "data"
    else:
        data = Path(environ.get("XDG_DATA_HOME") or home / ".local/share") / "goose"
    path = data / "sessions" / "sessions.db"
    if path.exists():
        yield path


def read(connection: sqlite3.Connection, of: str | None = None) -> Iterator[Call | NotUnderstood]:
    """Each call, and a record that is not understood for each session that has counters alone.

    Only calls `of` one session and of its subagents, if it is named.
    """
    version = _schema(connection)
    if absent := missing(connection, _WANTED):
        yield NotUnderstood(f"expected {absent}", version)
        return
    where, values = ("", ()) if of is None else (f"WHERE call.session_id IN ({_SESSIONS})", (of, of))
    for row in connection.execute(_ROWS.format(where=where), values):
        try:
            yield _call(_Row(*row))
        except ValueError as error:
            yield NotUnderstood(str(error), version)
    if of is not None:
        return
    [(sessions,)] = connection.execute(_WITHOUT_ROWS)
    for _ in range(sessions):
        yield NotUnderstood("expected a row for each call of a session", version)


def _call(row: _Row) -> Call:
    """Raises ValueError."""
    if row.cost_source == "carried_forward":
        raise ValueError("expected a call, not what a session had used before goose kept calls")
    if row.cost_source not in _COST_SOURCES:
        raise ValueError("expected a cost that is estimated or was told by the provider")
    if not isinstance(row.session, str):
        raise ValueError("expected a session")
    number, created = _count(row.id, "id"), _count(row.created, "created_timestamp")
    return Call(
        id=f"{row.session} {number} {created}",  # both begin anew where the database is removed
        session=row.session,
        at=created * 1_000_000_000,
        model=_text(row.model),
        usage=_usage(row),
        kind=_kind(row),
        cost=_cost(row.cost),
        parent=_text(row.parent),
        cwd=_text(row.directory),
    )


def _usage(row: _Row) -> Usage:
    prompt, output = _count(row.input, "input_tokens"), _count(row.output, "output_tokens")
    read = _count(row.cache_read, "cache_read_tokens", unknown=0)
    write = _count(row.cache_write, "cache_write_tokens", unknown=0)
    if read + write > prompt or _count(row.total, "total_tokens", unknown=prompt + output) != prompt + output:
        raise ValueError("expected caches inside the input, and a total of input and output")
    return Usage(prompt - read - write, read, write, output)


def _kind(row: _Row) -> CallKind:
    if row.is_compaction:
        return "compaction"
    return "subagent" if row.session_type == "sub_agent" else "main"


def _cost(told: Any) -> Money | None:
    """None where it knows no price."""
    if told is None:
        return None
    try:
        cost = Money.of(repr(told), "USD")
    except ValueError:
        cost = None
    if cost is None or cost.nano < 0:
        raise ValueError("expected a cost in US dollars")
    return cost


def _count(value: Any, column: str, unknown: int | None = None) -> int:
    if value is None and unknown is not None:
        return unknown
    if not isinstance(value, int) or not 0 <= value < 2**53:
        raise ValueError(f"expected a count in column {column} of table usage_ledger")
    return value


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _schema(connection: sqlite3.Connection) -> str | None:
    """What stands for goose's version, which its database does not have."""
    if missing(connection, {"schema_version": ("version",)}):
        return None
    [(version,)] = connection.execute("SELECT max(version) FROM schema_version")
    return None if version is None else f"schema {version}"

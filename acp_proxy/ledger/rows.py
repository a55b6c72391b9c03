"""Reading rows of a ledger in SQL, in chunks, or the last turn of a session. Writes nothing and opens nothing."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import groupby
from typing import Any

from acp_proxy.core.entry import Entry, Origin, UsageLine
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import Query, Row, SessionInfo
from acp_proxy.ledger.dialects import Dialect, same
from acp_proxy.ledger.reading import LINES, Read, organisations, where_of

CHUNK = 2000  # rows a transaction: 15 ms, so that a long report does not keep the WAL from being reset

_ROW = """
t.id, t.org_id, t.user_id, t.team, t.project, t.host, t.agent, t.agent_version, t.client,
    t.session, t.kind, t.started_at, t.ended_at, t.stop_reason, t.usage_source, t.cost_source, t.detail,
    t.message_id, t.context_used, t.context_size,
    l.model, l.input, l.cached_read, l.cached_write, l.output, l.thought, l.cost_nano, l.currency, l.price_row
"""
_STARTED_AT = 11

_Chunk = list[tuple[Any, ...]]  # all lines of its turns
_Condition = tuple[str, list[Any]]  # SQL that begins with AND, or nothing, and its values


def read_rows(read: Read, query: Query, dialect: Dialect) -> Iterator[Row]:
    turns, turn_values = where_of(query, dialect, model=False)
    lines, line_values = _model_condition(query)
    if lines:
        turns += f" AND EXISTS (SELECT 1 FROM line l WHERE l.org_id = t.org_id AND l.turn = t.id {lines})"
    one = any(dimension == "session" for dimension, _ in query.where)
    chunks = _chunks_of_session if one else _chunks
    found = (
        _rows_of(chunks(read, organisation, (turns, [*turn_values, *line_values]), (lines, line_values)))
        for organisation in organisations(read, query)
    )
    return merge(*found, key=lambda row: (row.entry.started_at, row.entry.id))


def _chunks(read: Read, organisation: str, turns: _Condition, lines: _Condition) -> Iterator[_Chunk]:
    """Each from where the last one ended."""
    sql = f"""
        SELECT {_ROW} FROM (
            SELECT * FROM turn t WHERE t.org_id = ? AND (t.started_at, t.id) > (?, ?) {turns[0]}
            ORDER BY t.started_at, t.id LIMIT {CHUNK}
        ) t {LINES} {lines[0]}
        ORDER BY t.started_at, t.id, l.position
    """
    last: tuple[int, str] = (-(2**63), "")
    while chunk := read(sql, (organisation, *last, *turns[1], *lines[1])):
        yield chunk
        if len(set(map(_first, chunk))) < CHUNK:
            return
        last = (chunk[-1][_STARTED_AT], chunk[-1][0])


def _chunks_of_session(read: Read, organisation: str, turns: _Condition, lines: _Condition) -> Iterator[_Chunk]:
    """Its turns are found by an index that is not in the order of time: sorted once, and not for every chunk."""
    # An expression has no index: SQLite would prefer one that is in order to that of the session.
    ordered = f"SELECT t.id FROM turn t WHERE t.org_id = ? {turns[0]} ORDER BY t.started_at + 0, t.id"
    ids = [found[0] for found in read(ordered, (organisation, *turns[1]))]
    for start in range(0, len(ids), CHUNK):
        some = ids[start : start + CHUNK]
        sql = f"""
            SELECT {_ROW}
            FROM (SELECT * FROM turn WHERE org_id = ? AND id IN ({", ".join("?" * len(some))})) t {LINES} {lines[0]}
            ORDER BY t.started_at, t.id, l.position
        """
        yield read(sql, (organisation, *some, *lines[1]))


def _rows_of(chunks: Iterator[_Chunk]) -> Iterator[Row]:
    origins: dict[tuple[Any, ...], Origin] = {}
    for chunk in chunks:
        for _, group in groupby(chunk, _first):
            yield _row(list(group), origins)


def read_last_turn(read: Read, session: SessionInfo) -> Row | None:
    """Of one session, by ids, which ascend with the time of their start; None where it has none of that kind."""
    sql = f"""
        SELECT {_ROW} FROM (
            SELECT * FROM turn
            WHERE org_id = ? AND user_id = ? AND host = ? AND agent = ? AND session = ? AND kind = 'turn'
            ORDER BY id DESC LIMIT 1
        ) t {LINES} ORDER BY l.position
    """
    origin = session.origin
    found = read(sql, (origin.organisation, origin.user, origin.host, origin.agent, session.session))
    return _row(found, {}) if found else None


def _first(values: tuple[Any, ...]) -> Any:
    return values[0]


def _row(found: list[tuple[Any, ...]], origins: dict[tuple[Any, ...], Origin]) -> Row:
    """The row of a turn joined with each of its lines. Origins repeat, and are shared."""
    first = found[0]
    key = first[1:9]
    if key not in origins:
        organisation, user, team, project, host, agent, agent_version, client = key
        origins[key] = Origin(organisation, user, team, project, host, agent, agent_version, client)
    session, kind, started_at, ended_at, stop_reason, usage_source, cost_source, *rest = first[9:20]
    lines = tuple(map(_line, found))
    entry = Entry(first[0], session, kind, started_at, ended_at, stop_reason, lines, usage_source, cost_source, *rest)
    return Row(origins[key], entry)


def _line(found: tuple[Any, ...]) -> UsageLine:
    model, a, b, c, d, e, nano, currency, price_row = found[20:]
    return UsageLine(model, Usage(a, b, c, d, e), None if nano is None else Money(nano, currency), price_row)


def _model_condition(query: Query) -> tuple[str, list[Any]]:
    models = [value for dimension, value in query.where if dimension == "model"]
    return "".join(f" AND {same('l.model', model)}" for model in models), [
        model for model in models if model is not None
    ]

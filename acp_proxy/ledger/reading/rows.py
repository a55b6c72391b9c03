"""Reading rows of a ledger in SQL, in chunks, or the last turn of a session. Writes nothing and opens nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

from msgspec.structs import replace

from acp_proxy.core.entry import IMPORT, Entry, Origin, UsageLine
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import Context, Query, Row, SessionInfo
from acp_proxy.ledger.columns import LINES, OF_SESSION, OF_SESSIONS, key_values, organisations, title_of, where_of
from acp_proxy.ledger.dialects import Dialect, same
from acp_proxy.ledger.statements import Read

CHUNK = 2000  # rows a transaction: 15 ms, so that a long report does not keep the WAL from being reset

_FEW = 500  # sessions

_ROW = """
t.id, t.org_id, t.user_id, t.team, t.project, t.host, t.agent, t.agent_version, t.client,
    t.billing, t.session, t.kind, t.started_at, t.ended_at, t.stop_reason, t.usage_source, t.cost_source, t.detail,
    t.message_id, t.context_used, t.context_size,
    l.model, l.input, l.cached_read, l.cached_write, l.output, l.thought, l.cost_nano, l.currency, l.price_row,
    l.position
"""
_ID, _STARTED_AT, _MODEL, _POSITION = 0, 12, 21, 30
_id_of = itemgetter(_ID)
_order_of = itemgetter(_STARTED_AT, _ID, _POSITION)

_Chunk = list[tuple[Any, ...]]  # all lines of its turns
_Condition = tuple[str, list[Any]]  # SQL that begins with AND, or nothing, and its values


def read_rows(read: Read, query: Query, dialect: Dialect) -> Iterator[Row]:
    """As `LedgerReader.rows` says."""
    turns, turn_values = where_of(query, dialect, model=False, of_some=True)
    lines, line_values = _model_condition(query)
    if lines:
        turns += f" AND EXISTS (SELECT 1 FROM line l WHERE l.org_id = t.org_id AND l.turn = t.id {lines})"
    chunks: Callable[..., Iterator[_Chunk]] = partial(_chunks, since=query.since)
    if any(dimension == "session" for dimension, _ in query.where):
        chunks = partial(_chunks_of_session, index=dialect.by_session)
    elif any(dimension == "title" for dimension, _ in query.where):
        chunks = partial(_chunks_of_title, query=query, dialect=dialect)
    found = [
        _rows_of(chunks(read, organisation, (turns, [*turn_values, *line_values]), (lines, line_values)))
        for organisation in organisations(read, query)
    ]
    if len(found) == 1:
        return found[0]
    from heapq import merge  # most ledgers have one organisation

    return merge(*found, key=lambda row: (row.entry.started_at, row.entry.id))


def _chunks(
    read: Read, organisation: str, turns: _Condition, lines: _Condition, *, since: int | None
) -> Iterator[_Chunk]:
    """Each from where the last one ended."""
    # Lines are sorted here: SQLite would sort them without noticing that they nearly are.
    sql = f"""
        SELECT {_ROW} FROM (
            SELECT * FROM turn t WHERE t.org_id = ? AND (t.started_at, t.id) > (?, ?) {turns[0]}
            ORDER BY t.started_at, t.id LIMIT {CHUNK}
        ) t {LINES} {lines[0]}
    """
    # The first begins where the query does: this bound is the one that SQLite looks for in the index.
    last: tuple[int, str] = (-(2**63) if since is None else since, "")
    while chunk := sorted(read(sql, (organisation, *last, *turns[1], *lines[1])), key=_order_of):
        yield chunk
        if len(set(map(_id_of, chunk))) < CHUNK:
            return
        last = (chunk[-1][_STARTED_AT], chunk[-1][_ID])


def _chunks_of_session(
    read: Read, organisation: str, turns: _Condition, lines: _Condition, *, index: str
) -> Iterator[_Chunk]:
    """Its turns are found by an index that is not in the order of time: sorted once, and not for every chunk."""
    ordered = f"SELECT t.id FROM turn t {index} WHERE t.org_id = ? {turns[0]} ORDER BY t.started_at, t.id"
    ids = [found[0] for found in read(ordered, (organisation, *turns[1]))]
    return _chunks_of(read, organisation, ids, lines)


def _chunks_of_title(
    read: Read, organisation: str, turns: _Condition, lines: _Condition, *, query: Query, dialect: Dialect
) -> Iterator[_Chunk]:
    """The same, where few sessions have it: all turns need not be asked what theirs are called."""
    title, values = title_of(query, dialect)
    sessions = f"SELECT user_id, host, agent, session FROM session s WHERE org_id = ? {title}"
    if len(read(f"{sessions} LIMIT {_FEW + 1}", (organisation, *values))) > _FEW:
        yield from _chunks(read, organisation, turns, lines, since=query.since)
        return
    ordered = f"""
        SELECT t.id FROM ({sessions}) s CROSS JOIN turn t {dialect.by_session}
        WHERE t.org_id = ? {OF_SESSIONS} {turns[0]} ORDER BY t.started_at, t.id
    """
    ids = [found[0] for found in read(ordered, (organisation, *values, organisation, *turns[1]))]
    yield from _chunks_of(read, organisation, ids, lines)


def _chunks_of(read: Read, organisation: str, ids: Sequence[str], lines: _Condition) -> Iterator[_Chunk]:
    for start in range(0, len(ids), CHUNK):
        some = ids[start : start + CHUNK]
        sql = f"""
            SELECT {_ROW}
            FROM (SELECT * FROM turn WHERE org_id = ? AND id IN ({", ".join("?" * len(some))})) t {LINES} {lines[0]}
        """
        yield sorted(read(sql, (organisation, *some, *lines[1])), key=_order_of)


def read_by_ids(read: Read, organisation: str, ids: Sequence[str], query: Query) -> Iterator[Row]:
    """In no order; only the lines of models that the query is about."""
    return _rows_of(_chunks_of(read, organisation, ids, _model_condition(query)))


def _rows_of(chunks: Iterator[_Chunk]) -> Iterator[Row]:
    origins: dict[tuple[Any, ...], Origin] = {}
    for chunk in chunks:
        for _, group in groupby(chunk, _id_of):
            yield _row(list(group), origins)


def read_last_turn(read: Read, session: SessionInfo, dialect: Dialect) -> Row | None:
    """Of one session; None where it has none of that kind."""
    return next(iter(read_last_rows(read, session, 1, dialect, "AND kind = 'turn'")), None)


def read_last_rows(read: Read, session: SessionInfo, most: int, dialect: Dialect, also: str = "") -> list[Row]:
    """Of one session in the order of time, found by ids: those that a relay made ascend with time."""
    latest = "started_at DESC, id DESC" if session.origin.client == IMPORT else "id DESC"
    sql = f"""
        SELECT {_ROW} FROM (
            SELECT * FROM turn {dialect.by_session}
            WHERE {OF_SESSION} {also}
            ORDER BY {latest} LIMIT {most}
        ) t {LINES}
    """
    return list(_rows_of(iter([sorted(read(sql, key_values(session.origin, session.session)), key=_order_of)])))


def read_some(read: Read, organisation: str, ids: Sequence[str]) -> list[Row]:
    """Those with these ids, by time, and with `process`."""
    turns = f"SELECT * FROM turn WHERE org_id = ? AND id IN ({', '.join('?' * len(ids))})"
    found = read(f"SELECT {_ROW}, t.process FROM ({turns}) t {LINES}", (organisation, *ids))
    processes = {each[_ID]: each[-1] for each in found}
    chunk = sorted((each[:-1] for each in found), key=_order_of)
    return [replace(row, process=processes[row.entry.id]) for row in _rows_of(iter([chunk]))]


def read_contexts(read: Read, session: SessionInfo, dialect: Dialect) -> Iterator[Context]:
    """After each row of a session, in the order of their ids, which for a relay's is that of time."""
    if session.origin.client == IMPORT:
        yield from _contexts_by_time(read, session, dialect)
        return
    sql = f"""
        SELECT id, started_at, kind, context_used, context_size FROM turn {dialect.by_session}
        WHERE {OF_SESSION} AND id > ?
        ORDER BY id LIMIT {CHUNK}
    """
    last = ""
    while found := read(sql, (*key_values(session.origin, session.session), last)):
        yield from (Context(*each[1:]) for each in found)
        last = found[-1][0]


def _contexts_by_time(read: Read, session: SessionInfo, dialect: Dialect) -> Iterator[Context]:
    sql = f"""
        SELECT id, started_at, kind, context_used, context_size FROM turn {dialect.by_session}
        WHERE {OF_SESSION} AND (started_at, id) > (?, ?)
        ORDER BY started_at, id LIMIT {CHUNK}
    """
    last = (0, "")
    while found := read(sql, (*key_values(session.origin, session.session), *last)):
        yield from (Context(*each[1:]) for each in found)
        last = (found[-1][1], found[-1][0])


def _row(found: list[tuple[Any, ...]], origins: dict[tuple[Any, ...], Origin]) -> Row:
    """The row of a turn joined with each of its lines. Origins repeat, and are shared."""
    first = found[0]
    key = first[1:10]
    if key not in origins:
        origins[key] = Origin(*key)
    session, kind, started_at, ended_at, stop_reason, usage_source, cost_source, *rest = first[10:_MODEL]
    lines = tuple(map(_line, found))
    entry = Entry(first[0], session, kind, started_at, ended_at, stop_reason, lines, usage_source, cost_source, *rest)
    return Row(origins[key], entry)


def _line(found: tuple[Any, ...]) -> UsageLine:
    model, *counts, nano, currency, price_row, _ = found[_MODEL:]
    return UsageLine(model, Usage(*counts), money(nano, currency), price_row)


def money(nano: int | None, currency: str | None) -> Money | None:
    """Of two columns; an amount without a currency is unknown."""
    return None if nano is None or currency is None else Money(nano, currency)


def _model_condition(query: Query) -> tuple[str, list[Any]]:
    models = [value for dimension, value in query.where if dimension == "model"]
    return "".join(f" AND {same('l.model', model)}" for model in models), [
        model for model in models if model is not None
    ]

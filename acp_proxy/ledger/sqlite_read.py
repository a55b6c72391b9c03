"""Reading the SQLite ledger: rows in chunks, sums by group, sessions. Writes nothing and opens nothing.

Each organisation is read by itself, because it leads every index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from itertools import groupby
from typing import Any

from acp_proxy.core.entry import Entry, Origin, UsageLine
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import Query, Row, SessionInfo, Sums

Read = Callable[[str, Sequence[Any]], list[Any]]  # SQL and parameters -> all rows, in one short transaction

CHUNK = 2000  # rows a transaction: 15 ms, so that a long report does not keep the WAL from being reset
QUARTER_HOUR = 900 * 10**9

_COLUMNS = {
    "organisation": "t.org_id",
    "user": "t.user_id",
    "team": "t.team",
    "project": "t.project",
    "host": "t.host",
    "agent": "t.agent",
    "agent_version": "t.agent_version",
    "client": "t.client",
    "session": "t.session",
    "kind": "t.kind",
    "model": "l.model",
}
_GROUPS = _COLUMNS | {"quarter_hour": f"t.started_at / {QUARTER_HOUR}"}
_SESSION_KEY = "org_id, user_id, host, agent, session"
_LINES = "JOIN line l ON l.org_id = t.org_id AND l.turn = t.id"


def read_rows(read: Read, query: Query) -> Iterator[Row]:
    turns, turn_values = _conditions(query, model=False)
    lines, line_values = _model_condition(query)
    if lines:
        turns += f" AND EXISTS (SELECT 1 FROM line l WHERE l.org_id = t.org_id AND l.turn = t.id {lines})"
    sql = f"""
        SELECT t.id, t.org_id, t.user_id, t.team, t.project, t.host, t.agent, t.agent_version, t.client,
            t.session, t.kind, t.started_at, t.ended_at, t.stop_reason, t.usage_source, t.cost_source, t.detail,
            t.message_id, t.context_used, t.context_size,
            l.model, l.input, l.cached_read, l.cached_write, l.output, l.thought, l.cost_nano, l.currency, l.price_row
        FROM (
            SELECT * FROM turn t WHERE t.org_id = ? AND (t.started_at, t.id) > (?, ?) {turns}
            ORDER BY t.started_at, t.id LIMIT {CHUNK}
        ) t {_LINES} {lines}
        ORDER BY t.started_at, t.id, l.position
    """
    found = (
        _rows_of(read, sql, organisation, [*turn_values, *line_values, *line_values])
        for organisation in _organisations(read, query)
    )
    return merge(*found, key=lambda row: (row.entry.started_at, row.entry.id))


def _rows_of(read: Read, sql: str, organisation: str, values: list[Any]) -> Iterator[Row]:
    """Chunk after chunk, each from where the last one ended."""
    origins: dict[tuple[Any, ...], Origin] = {}
    last: tuple[int, str] = (-(2**63), "")
    while True:
        count = 0
        for _, group in groupby(read(sql, (organisation, *last, *values)), _first):
            row = _row(list(group), origins)
            last = (row.entry.started_at, row.entry.id)
            count += 1
            yield row
        if count < CHUNK:
            return


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


def read_sums(read: Read, query: Query, by: Sequence[str]) -> list[Sums]:
    groups = [_GROUPS[dimension] for dimension in by]
    conditions, values = _conditions(query)
    # Everything of a turn is counted at its first line; at each when lines are told apart, for models do not repeat.
    lines = "model" in by or any(dimension == "model" for dimension, _ in query.where)
    counted = "1" if lines else "l.position = 0"
    tokens = "l.input + l.cached_read + l.cached_write + l.output + l.thought"
    unpriced = f"l.cost_nano IS NULL AND {tokens} > 0 AND t.cost_source <> 'parent'" if lines else "t.unpriced"
    uncounted = "t.usage_source IN ('partial', 'none') AND t.cost_source NOT IN ('agent', 'parent')"
    sql = f"""
        SELECT {", ".join([*groups, "l.currency"])},
            sum({counted}), sum({counted} AND t.kind = 'turn'),
            sum(l.input), sum(l.cached_read), sum(l.cached_write), sum(l.output), sum(l.thought), sum(l.cost_nano),
            sum({counted} AND {unpriced}), sum({counted} AND t.usage_source = 'partial'),
            sum({counted} AND (t.usage_source = 'estimated' OR t.cost_source = 'estimated')),
            sum({counted} AND t.usage_source = 'none'), sum({counted} AND (({uncounted}) OR {unpriced})),
            min(t.started_at), max(t.ended_at)
        FROM turn t {_LINES}
        WHERE t.org_id = ? {conditions}
        GROUP BY {", ".join(str(number) for number in range(1, len(by) + 2))}
    """
    sums: dict[tuple[Any, ...], Sums] = {}
    for organisation in _organisations(read, query):
        for found in read(sql, (organisation, *values)):
            part = _sums(found, len(by))
            sums[part.key] = _added(sums[part.key], part) if part.key in sums else part
    return list(sums.values())


def _sums(found: tuple[Any, ...], size: int) -> Sums:
    key, currency, (rows, turns, a, b, c, d, e, nano, *rest) = found[:size], found[size], found[size + 1 :]
    costs = () if currency is None else (Money(nano, currency),)
    return Sums(key, rows, turns, Usage(a, b, c, d, e), costs, *rest)


def _added(one: Sums, other: Sums) -> Sums:
    """Two parts of a group: of another currency (or none), or of another organisation."""
    costs = {cost.currency: cost for cost in one.costs}
    for cost in other.costs:
        costs[cost.currency] = costs[cost.currency].plus(cost) if cost.currency in costs else cost
    return Sums(
        key=one.key,
        rows=one.rows + other.rows,
        turns=one.turns + other.turns,
        usage=one.usage + other.usage,
        costs=tuple(costs.values()),
        unpriced=one.unpriced + other.unpriced,
        partial=one.partial + other.partial,
        estimated=one.estimated + other.estimated,
        without_usage=one.without_usage + other.without_usage,
        cost_at_least=one.cost_at_least + other.cost_at_least,
        started_at=min(one.started_at, other.started_at),
        ended_at=max(one.ended_at, other.ended_at),
    )


def read_sessions(read: Read, query: Query) -> Iterator[SessionInfo]:
    conditions, values = _conditions(query)
    keys = ", ".join(f"t.{column}" for column in _SESSION_KEY.split(", "))
    sql = f"""
        SELECT org_id, user_id, team, project, host, agent, agent_version, client,
            session, title, started_at, ended_at, context_used, context_size
        FROM session WHERE ({_SESSION_KEY}) IN (
            SELECT {keys} FROM turn t {_LINES if "l." in conditions else ""} WHERE t.org_id = ? {conditions}
        )
    """
    found = [row for organisation in _organisations(read, query) for row in read(sql, (organisation, *values))]
    for *origin, session, title, started_at, ended_at, used, size in sorted(found, key=lambda row: (row[10], row[8])):
        yield SessionInfo(Origin(*origin), session, title, started_at, ended_at, used, size)


def _organisations(read: Read, query: Query) -> list[str]:
    """Those to look at: the one asked for, else all; each is one step in an index."""
    wanted = [value for dimension, value in query.where if dimension == "organisation" and value is not None]
    if wanted:
        return wanted[:1] if len(set(wanted)) == 1 else []
    found: list[str] = []
    next_after = "SELECT org_id FROM turn WHERE org_id > ? ORDER BY org_id LIMIT 1"
    first = read("SELECT org_id FROM turn ORDER BY org_id LIMIT 1", ())
    while first:
        found.append(first[0][0])
        first = read(next_after, (found[-1],))
    return found


def _conditions(query: Query, *, model: bool = True) -> tuple[str, list[Any]]:
    """SQL that follows a WHERE, and its values. Raises ValueError for a dimension that there is not."""
    sql, values = "", list[Any]()
    for bound, operator in ((query.since, ">="), (query.until, "<")):
        if bound is not None:
            sql += f" AND t.started_at {operator} ?"
            values.append(bound)
    for dimension, value in query.where:
        if dimension == "title":
            title = "s.title IS ?" if value is None else "instr(casefold(s.title), ?)"
            sessions = f"SELECT {_SESSION_KEY} FROM session s WHERE {title}"
            sql += f" AND (t.org_id, t.user_id, t.host, t.agent, t.session) IN ({sessions})"
            values.append(None if value is None else value.casefold())
        elif dimension not in _COLUMNS:
            raise ValueError(f"no dimension of the ledger: {dimension!r}")
        elif model or dimension != "model":
            sql += f" AND {_COLUMNS[dimension]} IS ?"
            values.append(value)
    return sql, values


def _model_condition(query: Query) -> tuple[str, list[Any]]:
    values = [value for dimension, value in query.where if dimension == "model"]
    return " AND l.model IS ?" * len(values), values

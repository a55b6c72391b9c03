"""Reading a ledger in SQL: rows in chunks, sums by group, sessions. Writes nothing and opens nothing.

Each organisation is read by itself, because it leads every index. The SQL is what SQLite and PostgreSQL have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from itertools import groupby
from typing import Any

from acp_proxy.core.entry import Entry, Origin, UsageLine
from acp_proxy.core.money import NANO, Money
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import Query, Row, SessionInfo, Sums
from acp_proxy.ledger.dialects import Dialect, same
from acp_proxy.ledger.totals import QUARTER_HOUR, cover

Read = Callable[[str, Sequence[Any]], list[Any]]  # SQL and parameters -> all rows, in one short transaction

CHUNK = 2000  # rows a transaction: 15 ms, so that a long report does not keep the WAL from being reset

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
    "usage_source": "t.usage_source",
    "cost_source": "t.cost_source",
    "model": "l.model",
}
_QUARTER = f"t.started_at / {QUARTER_HOUR} - CASE WHEN t.started_at % {QUARTER_HOUR} < 0 THEN 1 ELSE 0 END"
_GROUPS = _COLUMNS | {"quarter_hour": _QUARTER}
_SERIES = {
    "organisation": "s.org_id",
    "user": "s.user_id",
    "team": "s.team",
    "project": "s.project",
    "agent": "s.agent",
    "kind": "s.kind",
    "usage_source": "s.usage_source",
    "cost_source": "s.cost_source",
    "model": "s.model",
}
_UNCOUNTED = "{0}.usage_source IN ('partial', 'none') AND {0}.cost_source NOT IN ('agent', 'parent')"
_TOKENS = "l.input + l.cached_read + l.cached_write + l.output + l.thought"
_SESSION_KEY = "org_id, user_id, host, agent, session"
_LINES = "JOIN line l ON l.org_id = t.org_id AND l.turn = t.id"


def read_rows(read: Read, query: Query, dialect: Dialect) -> Iterator[Row]:
    turns, turn_values = _conditions(query, dialect, model=False)
    lines, line_values = _model_condition(query)
    if lines:
        turns += f" AND EXISTS (SELECT 1 FROM line l WHERE l.org_id = t.org_id AND l.turn = t.id {lines})"
    # An expression has no index: that of the session finds its few rows, and SQLite would prefer one that is in order.
    start = "t.started_at + 0" if any(dimension == "session" for dimension, _ in query.where) else "t.started_at"
    sql = f"""
        SELECT t.id, t.org_id, t.user_id, t.team, t.project, t.host, t.agent, t.agent_version, t.client,
            t.session, t.kind, t.started_at, t.ended_at, t.stop_reason, t.usage_source, t.cost_source, t.detail,
            t.message_id, t.context_used, t.context_size,
            l.model, l.input, l.cached_read, l.cached_write, l.output, l.thought, l.cost_nano, l.currency, l.price_row
        FROM (
            SELECT * FROM turn t WHERE t.org_id = ? AND ({start}, t.id) > (?, ?) {turns}
            ORDER BY {start}, t.id LIMIT {CHUNK}
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


def read_sums(read: Read, query: Query, by: Sequence[str], dialect: Dialect) -> list[Sums]:
    """From running totals where they have what is asked for, and from rows only what they have not."""
    for dimension in by:
        if dimension not in _GROUPS:
            raise ValueError(f"no dimension of the ledger: {dimension!r}")
    in_totals = {*by, *(dimension for dimension, _ in query.where)} <= {*_SERIES, "quarter_hour"}
    sums: dict[tuple[Any, ...], Sums] = {}
    for part in _totals(read, query, by, dialect) if in_totals else _counted(read, query, by, dialect):
        sums[part.key] = _added(sums[part.key], part) if part.key in sums else part
    return list(sums.values())


def _totals(read: Read, query: Query, by: Sequence[str], dialect: Dialect) -> Iterator[Sums]:
    groups = ["t.bucket" if dimension == "quarter_hour" else _SERIES[dimension] for dimension in by]
    lines = _by_line(query, by)
    rows, unpriced = ("line_count", "unpriced_lines") if lines else ("row_count", "unpriced_rows")
    where = [(dimension, value) for dimension, value in query.where if dimension != "organisation"]
    conditions = "".join(f" AND {same(_SERIES[dimension], value)}" for dimension, value in where)
    values = [value for _, value in where if value is not None]
    sql = f"""
        SELECT {", ".join([*groups, "s.currency"])},
            sum({rows}), sum(CASE WHEN s.kind = 'turn' THEN {rows} ELSE 0 END),
            sum(input), sum(cached_read), sum(cached_write), sum(output), sum(thought), sum(units), sum(nano),
            sum({unpriced}), sum(CASE WHEN s.usage_source = 'partial' THEN {rows} ELSE 0 END),
            sum(CASE WHEN s.usage_source = 'estimated' OR s.cost_source = 'estimated' THEN {rows} ELSE 0 END),
            sum(CASE WHEN s.usage_source = 'none' THEN {rows} ELSE 0 END),
            sum(CASE WHEN {_UNCOUNTED.format("s")} THEN {rows} ELSE {unpriced} END),
            min(first_at), max(last_at)
        FROM series s CROSS JOIN total t
        WHERE s.org_id = ? {conditions} AND t.org_id = s.org_id AND t.level = ? AND t.series = s.id
            AND t.bucket >= ? AND t.bucket < ?
        GROUP BY {", ".join(str(number) for number in range(1, len(by) + 2))}
    """
    interval = cover(query.since, query.until, finest="quarter_hour" in by)
    for organisation in _organisations(read, query):
        for bounds in interval.ranges:
            yield from (_sums(found, len(by)) for found in read(sql, (organisation, *values, *bounds)))
    for since, until in interval.edges:
        yield from _counted(read, Query(since, until, query.where), by, dialect)


def _counted(read: Read, query: Query, by: Sequence[str], dialect: Dialect) -> Iterator[Sums]:
    groups = [_GROUPS[dimension] for dimension in by]
    if (query.since, query.until) != (None, None):
        # An expression, lest SQLite walk through all rows by an index that has them in groups: few are wanted.
        groups = [group if group == _QUARTER else f"{group} || ''" for group in groups]
    conditions, values = _conditions(query, dialect)
    # Everything of a turn is counted at its first line; at each when lines are told apart, for models do not repeat.
    lines = _by_line(query, by)
    counted = "1 = 1" if lines else "l.position = 0"
    by_line = f"l.cost_nano IS NULL AND {_TOKENS} > 0 AND t.cost_source <> 'parent'"
    unpriced = by_line if lines else "t.unpriced = 1"
    sql = f"""
        SELECT {", ".join([*groups, "l.currency"])},
            {_count(counted)}, {_count(counted, "t.kind = 'turn'")},
            sum(l.input), sum(l.cached_read), sum(l.cached_write), sum(l.output), sum(l.thought),
            sum(l.cost_nano / {NANO}), sum(l.cost_nano % {NANO}),
            {_count(counted, unpriced)}, {_count(counted, "t.usage_source = 'partial'")},
            {_count(counted, "(t.usage_source = 'estimated' OR t.cost_source = 'estimated')")},
            {_count(counted, "t.usage_source = 'none'")},
            {_count(counted, f"(({_UNCOUNTED.format('t')}) OR {unpriced})")},
            min(t.started_at), max(t.ended_at)
        FROM turn t CROSS JOIN line l
        WHERE t.org_id = ? {conditions} AND l.org_id = t.org_id AND l.turn = t.id
        GROUP BY {", ".join(str(number) for number in range(1, len(by) + 2))}
    """
    for organisation in _organisations(read, query):
        yield from (_sums(found, len(by)) for found in read(sql, (organisation, *values)))


def _count(*conditions: str) -> str:
    return f"sum(CASE WHEN {' AND '.join(conditions)} THEN 1 ELSE 0 END)"


def _by_line(query: Query, by: Sequence[str]) -> bool:
    return "model" in by or any(dimension == "model" for dimension, _ in query.where)


def _sums(found: tuple[Any, ...], size: int) -> Sums:
    key, currency, (rows, turns, *numbers) = found[:size], found[size], found[size + 1 :]
    a, b, c, d, e, units, nano, *rest = numbers
    costs = () if currency is None else (Money(units * NANO + nano, currency),)
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
        costs=tuple(costs[currency] for currency in sorted(costs)),  # groups come from a database in any order
        unpriced=one.unpriced + other.unpriced,
        partial=one.partial + other.partial,
        estimated=one.estimated + other.estimated,
        without_usage=one.without_usage + other.without_usage,
        cost_at_least=one.cost_at_least + other.cost_at_least,
        started_at=min(one.started_at, other.started_at),
        ended_at=max(one.ended_at, other.ended_at),
    )


def read_sessions(read: Read, query: Query, dialect: Dialect) -> Iterator[SessionInfo]:
    conditions, values = _conditions(query, dialect)
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
    wanted = {value for dimension, value in query.where if dimension == "organisation"}
    if wanted:
        return [value for value in wanted if value is not None and len(wanted) == 1]
    found: list[str] = []
    next_after = "SELECT org_id FROM turn WHERE org_id > ? ORDER BY org_id LIMIT 1"
    first = read("SELECT org_id FROM turn ORDER BY org_id LIMIT 1", ())
    while first:
        found.append(first[0][0])
        first = read(next_after, (found[-1],))
    return found


def _conditions(query: Query, dialect: Dialect, *, model: bool = True) -> tuple[str, list[Any]]:
    """SQL that follows a WHERE, and its values. Raises ValueError for a dimension that there is not."""
    sql, values = "", list[Any]()
    for bound, operator in ((query.since, ">="), (query.until, "<")):
        if bound is not None:
            sql += f" AND t.started_at {operator} ?"
            values.append(bound)
    for dimension, value in query.where:
        if dimension == "title":
            title = "s.title IS NULL" if value is None else dialect.in_title
            sessions = f"SELECT {_SESSION_KEY} FROM session s WHERE {title}"
            sql += f" AND (t.org_id, t.user_id, t.host, t.agent, t.session) IN ({sessions})"
            values += [] if value is None else [value.casefold()]
        elif dimension not in _COLUMNS:
            raise ValueError(f"no dimension of the ledger: {dimension!r}")
        elif model or dimension != "model":
            sql += f" AND {same(_COLUMNS[dimension], value)}"
            values += [] if value is None else [value]
    return sql, values


def _model_condition(query: Query) -> tuple[str, list[Any]]:
    models = [value for dimension, value in query.where if dimension == "model"]
    return "".join(f" AND {same('l.model', model)}" for model in models), [
        model for model in models if model is not None
    ]

"""Sums by group: from running totals where they have what is asked for, and from rows only what they have not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from acp_proxy.core.money import NANO, Money, summed
from acp_proxy.core.scope import PLAN
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import Query, Sums
from acp_proxy.ledger.columns import (
    COLUMNS,
    COST_UNTOLD,
    REPEATED,
    SEEN,
    UNPRICED_LINE,
    of_seen,
    organisations,
    where_of,
)
from acp_proxy.ledger.dialects import Dialect, same
from acp_proxy.ledger.statements import Read
from acp_proxy.ledger.sums.buckets import A_DAY, DAY_LEVEL, EVER, QUARTER_HOUR, QUARTER_OF_TURN, Cover, cover

_Turns = tuple[str, str]  # SQL for turns called t, and for a further condition

_DAY = r"day(?:[+-]\d{1,2})?"  # and by how many quarter hours it begins before those of UTC
_SERIES = {
    "organisation": "s.org_id",
    "user": "s.user_id",
    "team": "s.team",
    "project": "s.project",
    "agent": "s.agent",
    "billing": "s.billing",
    "kind": "s.kind",
    "usage_source": "s.usage_source",
    "cost_source": "s.cost_source",
    "model": "s.model",
    "currency": "s.currency",
}


def read_sums(read: Read, query: Query, by: Sequence[str], dialect: Dialect) -> list[Sums]:
    """As `LedgerReader.summed` says."""
    for dimension in by:
        if dimension not in COLUMNS and not _is_time(dimension):
            raise ValueError(f"no dimension of the ledger: {dimension!r}")
    named = {dimension for dimension in by if not _is_time(dimension)}
    in_totals = {*named, *(dimension for dimension, _ in query.where)} <= {*_SERIES, SEEN}
    return _merged(_totals(read, query, by, dialect) if in_totals else _counted(read, query, by, dialect))


def read_sums_of_turns(
    read: Read, query: Query, by: Sequence[str], dialect: Dialect, of: _Turns, among: Sequence[Any]
) -> list[Sums]:
    """The same from rows of some turns; `among` are the values of `of`."""
    return _merged(_counted(read, query, by, dialect, of, among))


def _merged(parts: Iterable[Sums]) -> list[Sums]:
    sums: dict[tuple[Any, ...], Sums] = {}
    for part in filter(_is_there, parts):
        sums[part.key] = _added(sums[part.key], part) if part.key in sums else part
    return list(sums.values())


def _is_there(part: Sums) -> bool:
    """Not so where corrections have taken all rows out of its series."""
    return bool(part.rows or part.usage.total or any(cost.nano for cost in part.costs))


def _totals(read: Read, query: Query, by: Sequence[str], dialect: Dialect) -> Iterator[Sums]:
    times = [dimension for dimension in by if _is_time(dimension)]
    by_day = len(times) == 1 and times != ["quarter_hour"]
    ahead = int(times[0][3:] or 0) if by_day else 0
    interval = _days(query, ahead) if by_day else cover(query.since, query.until, finest=bool(times))
    values = _conditions(query)[1]
    sql = _sql_of_totals(query, by, _bucket(times[0]) if times else "")
    for organisation in organisations(read, query):
        of_organisation = (organisation, *values)
        for level, first, end in interval.ranges:
            if level == DAY_LEVEL and ahead:
                found = _local_days(read, query, by, of_organisation, first, end, ahead)
            else:
                found = read(sql, (*of_organisation, level, first, end))
            yield from (_sums(each, len(by)) for each in found)
    for since, until in interval.edges:
        yield from _counted(read, Query(since, until, query.where), by, dialect)


def _sql_of_totals(query: Query, by: Sequence[str], bucket: str, condition: str = "", more: str = "") -> str:
    """`bucket` is SQL for the dimension that is a time."""
    # An expression, so that SQLite does not walk through series by an index that has them in groups.
    groups = [bucket if _is_time(dimension) else f"{_SERIES[dimension]} || ''" for dimension in by]
    lines = _by_line(query, by)
    rows, unpriced = ("line_count", "unpriced_lines") if lines else ("row_count", "unpriced_rows")
    conditions, _ = _conditions(query)
    return f"""
        SELECT {", ".join([*groups, "s.currency"])},
            sum({rows}), sum(CASE WHEN s.kind = 'turn' THEN {rows} ELSE 0 END),
            sum(input), sum(cached_read), sum(cached_write), sum(output), sum(thought), sum(units), sum(nano),
            sum(CASE WHEN s.billing = '{PLAN}' THEN units ELSE 0 END),
            sum(CASE WHEN s.billing = '{PLAN}' THEN nano ELSE 0 END),
            sum({unpriced}), sum(CASE WHEN s.usage_source = 'partial' THEN {rows} ELSE 0 END),
            sum(CASE WHEN s.usage_source = 'estimated' OR s.cost_source = 'estimated' THEN {rows} ELSE 0 END),
            sum(CASE WHEN s.usage_source = 'none' THEN {rows} ELSE 0 END),
            sum(CASE WHEN {COST_UNTOLD.format("s")} THEN {rows} ELSE {unpriced} END),
            min(first_at), max(last_at) {more}
        FROM series s CROSS JOIN total t
        WHERE s.org_id = ? {conditions} AND t.org_id = s.org_id AND t.level = ? AND t.series = s.id
            AND t.bucket >= ? AND t.bucket < ? {condition}
        GROUP BY {", ".join(str(number) for number in range(1, len(by) + 2))}
    """


def _conditions(query: Query) -> tuple[str, list[str]]:
    """On series, and their values."""
    sql, values = "", list[str]()
    for dimension, value in query.where:
        if dimension == SEEN:
            condition, seen = of_seen(value, _SERIES)
            sql += f" AND {condition}"
            values += seen
        elif dimension != "organisation":
            sql += f" AND {same(_SERIES[dimension], value)}"
            values += [] if value is None else [value]
    return sql, values


def _local_days(
    read: Read, query: Query, by: Sequence[str], values: Sequence[str], first: int, end: int, ahead: int
) -> list[Any]:
    from acp_proxy.ledger.sums.local_days import sums_of_days  # not for a status

    day = next(number for number, dimension in enumerate(by) if _is_time(dimension))
    sql = sums_of_days(partial(_sql_of_totals, query, by), len(by), day, ahead)
    quarters = max(-EVER, (first - 1) * A_DAY), min(EVER, (end + 1) * A_DAY)
    return read(sql, (*values, DAY_LEVEL, first, end, *values, 0, *quarters, first, end))


def _is_time(dimension: str) -> bool:
    if dimension.startswith("day"):
        return re.fullmatch(_DAY, dimension) is not None  # to make a pattern takes 1 ms, and most questions need none
    return dimension == "quarter_hour"


def _bucket(dimension: str) -> str:
    """SQL for the key of a row of totals, in quarter hours or at the level of days."""
    if dimension == "quarter_hour":
        return "t.bucket"
    by_quarter = _day_of("t.bucket", dimension)
    return f"CASE WHEN t.level = {DAY_LEVEL} THEN t.bucket ELSE {by_quarter} END" if dimension == "day" else by_quarter


def _day_of(quarter: str, dimension: str) -> str:
    """SQL for a day, rounded down also before 1970."""
    moved = f"({quarter} + {int(dimension[3:] or 0)})"
    return f"({moved} - ({moved} % {A_DAY} + {A_DAY}) % {A_DAY}) / {A_DAY}"


def _days(query: Query, ahead: int) -> Cover:
    """Whole days that begin so many quarter hours before those of UTC; what is left at both ends in quarter hours."""
    day, moved = A_DAY * QUARTER_HOUR, ahead * QUARTER_HOUR
    first = -EVER if query.since is None else -(-(query.since + moved) // day)
    end = EVER if query.until is None else (query.until + moved) // day
    if first >= end:
        return cover(query.since, query.until, finest=True)
    ends, start, stop = [], first * day - moved, end * day - moved
    if query.since is not None and query.since < start:
        ends.append(cover(query.since, start, finest=True))
    if query.until is not None and stop < query.until:
        ends.append(cover(stop, query.until, finest=True))
    ranges = [bounds for each in ends for bounds in each.ranges]
    return Cover(((DAY_LEVEL, first, end), *ranges), tuple(edge for each in ends for edge in each.edges))


def _counted(
    read: Read,
    query: Query,
    by: Sequence[str],
    dialect: Dialect,
    of: _Turns = ("turn t", ""),
    among: Sequence[Any] = (),
) -> Iterator[Sums]:
    # An expression, so that SQLite does not walk through all rows by an index that has them in groups.
    few = " || ''" if (query.since, query.until) != (None, None) else ""
    groups = [_time(dimension) if _is_time(dimension) else f"{COLUMNS[dimension]}{few}" for dimension in by]
    conditions, values = where_of(query, dialect)
    # Everything of a turn is counted at its first line; where models are told apart, at the first of each.
    lines = _by_line(query, by)
    counted = f"NOT {REPEATED}" if lines else "l.position = 0"
    unpriced = UNPRICED_LINE if lines else "t.unpriced = 1"
    sql = f"""
        SELECT {", ".join([*groups, "l.currency"])},
            {_count(counted)}, {_count(counted, "t.kind = 'turn'")},
            sum(l.input), sum(l.cached_read), sum(l.cached_write), sum(l.output), sum(l.thought),
            sum(l.cost_nano / {NANO}), sum(l.cost_nano % {NANO}),
            sum(CASE WHEN t.billing = '{PLAN}' THEN l.cost_nano / {NANO} ELSE 0 END),
            sum(CASE WHEN t.billing = '{PLAN}' THEN l.cost_nano % {NANO} ELSE 0 END),
            {_count(counted, unpriced)}, {_count(counted, "t.usage_source = 'partial'")},
            {_count(counted, "(t.usage_source = 'estimated' OR t.cost_source = 'estimated')")},
            {_count(counted, "t.usage_source = 'none'")},
            {_count(counted, f"(({COST_UNTOLD.format('t')}) OR {unpriced})")},
            min(t.started_at), max(t.ended_at)
        FROM {of[0]} CROSS JOIN line l
        WHERE t.org_id = ? {of[1]} {conditions} AND l.org_id = t.org_id AND l.turn = t.id
        GROUP BY {", ".join(str(number) for number in range(1, len(by) + 2))}
    """
    for organisation in organisations(read, query):
        yield from (_sums(found, len(by)) for found in read(sql, (*among, organisation, *values)))


def _time(dimension: str) -> str:
    """SQL for the key of a row's start."""
    return f"({QUARTER_OF_TURN})" if dimension == "quarter_hour" else _day_of(f"({QUARTER_OF_TURN})", dimension)


def _count(*conditions: str) -> str:
    return f"sum(CASE WHEN {' AND '.join(conditions)} THEN 1 ELSE 0 END)"


def _by_line(query: Query, by: Sequence[str]) -> bool:
    return "model" in by or any(dimension == "model" for dimension, _ in query.where)


def _sums(found: tuple[Any, ...], size: int) -> Sums:
    key, currency, (rows, turns, *numbers) = found[:size], found[size], found[size + 1 :]
    usage, (units, nano, plan_units, plan_nano, *counts) = Usage(*numbers[:5]), numbers[5:]
    if currency is None or nano is None:
        return Sums(key, rows, turns, usage, (), *counts)
    listed = (plan_units or 0) * NANO + (plan_nano or 0)
    not_billed = (Money(listed, currency),) if listed else ()  # few are on a plan
    costs = (Money(units * NANO + nano, currency),)
    sums = Sums(key, rows, turns, usage, costs, *counts)
    return replace(sums, not_billed=not_billed) if not_billed else sums


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
        not_billed=summed((*one.not_billed, *other.not_billed)),
    )

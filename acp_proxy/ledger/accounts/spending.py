"""The spend of an account in SQL: the sum of the rows that it counts. Writes nothing.

Uses running totals if they have the account's dimensions, else rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from acp_proxy.core.budget import Account
from acp_proxy.core.money import NANO
from acp_proxy.core.scope import DIMENSIONS, PLAN
from acp_proxy.core.windows import Bounds
from acp_proxy.ledger.accounts.parts import columns, summed
from acp_proxy.ledger.columns import COST_UNTOLD, LINE_TOKENS, REPEATED, UNPRICED_LINE, USAGE_UNTOLD
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.statements import Statement
from acp_proxy.ledger.sums.buckets import LEVELS, Cover, cover

# What a name that came from somewhere becomes in SQL; there is no other.
_COLUMNS = {
    "user": "user_id",
    "turn": "id",
    **{name: name for name in ("team", "project", "host", "agent", "session", "process", "model")},
}
_IN_TOTALS = frozenset({"organisation", "user", "team", "project", "agent"})
_MOST_RANGES = 2 * len(LEVELS) - 1  # of an interval; always as many, so that the statement's text stays the same
_TOKENS = "t.input + t.cached_read + t.cached_write + t.output + t.thought"


def organisation_of(account: Account) -> str:
    return dict(account.filter.where)["organisation"]


def spent(index: int, account: Account, bounds: Bounds, dialect: Dialect) -> Iterable[Statement]:
    """Questions that together find it, for rows that began within `bounds`, whatever the account's are.

    Each finds `Part`s of the kind 'spent', with the index as their place.
    """
    if bounds.start is not None and bounds.start == bounds.end:
        return
    told_apart = {dimension for dimension, _ in account.filter.where} <= _IN_TOTALS
    # A turn of two models in scope is one turn: totals by model would count it twice.
    if not told_apart or (account.unit == "turns" and _may_be_several(account.filter.scope.model)):
        yield spent_in_rows(index, account, bounds, dialect)
        return
    interval = cover(bounds.start, bounds.end)
    if interval.ranges:
        yield _from_totals(index, account, interval, dialect)
    for start, end in interval.edges:
        yield spent_in_rows(index, account, Bounds(start, end), dialect)


def _may_be_several(models: Sequence[str]) -> bool:
    return len(models) > 1 or any("*" in model for model in models)


def _from_totals(index: int, account: Account, interval: Cover, dialect: Dialect) -> Statement:
    conditions, values = _conditions(account, dialect, "s", "s")
    of = "line" if account.filter.scope.model else "row"
    of_each = {"units": "t.units", "nano": "t.nano", "tokens": _TOKENS, "unpriced": f"t.unpriced_{of}s"}
    sums = summed("s", f"t.{of}_count", _untold(account.unit, "s"), of_each)
    ranges = [*interval.ranges, *[(0, 0, 0)] * (_MOST_RANGES - len(interval.ranges))]
    if dialect.ranges_joined:
        bounds = ", ".join(["(CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT))"] * _MOST_RANGES)
        totals = f"(VALUES {bounds}) r CROSS JOIN total t"
        within = "r.column2 < r.column3 AND t.level = r.column1 AND t.bucket >= r.column2 AND t.bucket < r.column3"
    else:
        totals = "total t"
        within = " OR ".join(["(t.level = ? AND t.bucket >= ? AND t.bucket < ?)"] * _MOST_RANGES)
    sql = f"""
        SELECT {columns("spent", place=f"'{index}'", currency="s.currency", **sums)}
        FROM series s CROSS JOIN {totals}
        WHERE ({within}) AND s.org_id = ? {conditions} AND t.org_id = s.org_id AND t.series = s.id
        GROUP BY s.currency
    """
    return sql, [*chain.from_iterable(ranges), organisation_of(account), *values]


def spent_in_rows(index: int, account: Account, bounds: Bounds, dialect: Dialect, turns: str = "") -> Statement:
    """The same from rows alone, or from some of them: `turns` is SQL for these, called t, and how others join them."""
    conditions, values = _conditions(account, dialect, "t", "l")
    for bound, operator in ((bounds.start, ">="), (bounds.end, "<")):
        if bound is not None:
            conditions += f" AND t.started_at {operator} ?"
            values.append(bound)
    unpriced, number = "l.position = 0 AND t.unpriced = 1", "CASE WHEN l.position = 0 THEN 1 ELSE 0 END"
    if account.filter.scope.model:
        unpriced, number = UNPRICED_LINE, f"CASE WHEN {REPEATED} THEN 0 ELSE 1 END"
    of_each = {
        "units": f"l.cost_nano / {NANO}",
        "nano": f"l.cost_nano % {NANO}",
        "tokens": LINE_TOKENS,
        "unpriced": f"CASE WHEN {unpriced} THEN 1 ELSE 0 END",
    }
    sums = summed("t", number, _untold(account.unit, "t"), of_each)
    by_currency = account.unit != "turns"
    if not by_currency:  # one with lines of two models in scope is one
        sums["turns"] = "count(DISTINCT CASE WHEN t.kind = 'turn' THEN t.id END)"
    sql = f"""
        SELECT {columns("spent", place=f"'{index}'", currency="l.currency" if by_currency else "''", **sums)}
        FROM {turns or _turns(account, dialect)} line l
        WHERE t.org_id = ? {conditions} AND l.org_id = t.org_id AND l.turn = t.id
        {"GROUP BY l.currency" if by_currency else ""}
    """
    return sql, [organisation_of(account), *values]


def _turns(account: Account, dialect: Dialect) -> str:
    """Those of one session or run of the proxy are found by their index: SQLite would begin with all lines."""
    dimensions = {dimension for dimension, _ in account.filter.where}
    for dimension, index in (("session", dialect.by_session), ("process", dialect.by_process)):
        if dimension in dimensions:
            return f"turn t {index} CROSS JOIN"
    return "turn t,"


def _untold(unit: str, alias: str) -> str:
    match unit:
        case "turns":
            return "1 = 0"
        case "tokens":
            return USAGE_UNTOLD.format(alias)
    return COST_UNTOLD.format(alias)


def _conditions(account: Account, dialect: Dialect, alias: str, model_alias: str) -> tuple[str, list[Any]]:
    sql, values = "", list[Any]()
    if account.filter.scope.without_plans:
        sql += f" AND ({alias}.billing IS NULL OR {alias}.billing <> '{PLAN}')"
    for dimension, value in account.filter.where:
        if dimension != "organisation":
            sql += f" AND {alias}.{_COLUMNS[dimension]} = ?"
            values.append(value)
    for dimension in DIMENSIONS:
        patterns = account.filter.scope.of(dimension)
        if patterns:
            column = f"{model_alias if dimension == 'model' else alias}.{_COLUMNS[dimension]}"
            globs = [pattern for pattern in patterns if "*" in pattern]
            exact = [pattern for pattern in patterns if "*" not in pattern]
            alternatives = [f"{column} = ?"] * len(exact) + [f"{column} {dialect.glob} ?"] * len(globs)
            sql += f" AND ({' OR '.join(alternatives)})"
            values += [*exact, *map(dialect.pattern, globs)]
    return sql, values

"""The spend of an account in SQL: the sum of the rows that it counts. Writes nothing.

Uses running totals if they have the account's dimensions, else rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct, field

from acp_proxy.core.budget import Account
from acp_proxy.core.money import NANO, currency_code
from acp_proxy.core.scope import DIMENSIONS
from acp_proxy.core.windows import Bounds
from acp_proxy.ledger.columns import COST_UNTOLD, REPEATED, USAGE_UNTOLD
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.statements import Statement
from acp_proxy.ledger.sums.buckets import LEVELS, Cover, cover

_COLUMNS = {"user": "user_id", "session": "session", "turn": "id", "process": "process"}  # others are called the same
_IN_TOTALS = frozenset({"organisation", "user", "team", "project", "agent"})
_MOST_RANGES = 2 * len(LEVELS) - 1  # of an interval; always as many, so that the statement's text stays the same
_TOKENS = "{0}.input + {0}.cached_read + {0}.cached_write + {0}.output + {0}.thought"


class Spent(Struct, omit_defaults=True):
    """A sum over rows; fields that the account's unit does not need are not set."""

    nano: dict[str, int] = field(default_factory=dict)  # by currency
    tokens: int = 0
    turns: int = 0
    unpriced: int = 0  # rows with tokens whose price is unknown, or lines where only those of some models count
    untold: int = 0  # rows that are lower bounds, or models of them

    def add(self, found: tuple[Any, ...]) -> None:
        """A row that a question of `spent` found."""
        _, _, currency, units, nano, tokens, turns, unpriced, untold, _, _ = found
        if currency:
            self._add(currency, int(units or 0) * NANO + int(nano or 0))
        self.tokens += int(tokens or 0)
        self.turns += int(turns or 0)
        self.unpriced += int(unpriced or 0)
        self.untold += int(untold or 0)

    def add_all(self, other: Spent, times: int = 1) -> None:
        for currency, nano in other.nano.items():
            self._add(currency, nano * times)
        self.tokens += other.tokens * times
        self.turns += other.turns * times
        self.unpriced += other.unpriced * times
        self.untold += other.untold * times

    def _add(self, currency: str, nano: int) -> None:
        """Rows of earlier versions have the currency as the agent spelled it."""
        code = currency_code(currency)
        self.nano[code] = self.nano.get(code, 0) + nano


def organisation_of(account: Account) -> str:
    return dict(account.filter.where)["organisation"]


def spent(index: int, account: Account, bounds: Bounds, dialect: Dialect) -> Iterable[Statement]:
    """Questions that together find it, for rows that began within `bounds`, whatever the account's are.

    Each finds rows of eleven columns; the first says 'spent', the second has the index.
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


def together(parts: Iterable[Statement]) -> Statement:
    """Several queries as one statement, so that they see one snapshot."""
    some = list(parts)
    return " UNION ALL ".join(sql for sql, _ in some), [value for _, values in some for value in values]


def _from_totals(index: int, account: Account, interval: Cover, dialect: Dialect) -> Statement:
    conditions, values = _conditions(account, dialect, "s", "s")
    unpriced, those = ("unpriced_lines", "line_count") if account.filter.scope.model else ("unpriced_rows", "row_count")
    ranges = [*interval.ranges, *[(0, 0, 0)] * (_MOST_RANGES - len(interval.ranges))]
    if dialect.ranges_joined:
        bounds = ", ".join(["(CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT))"] * _MOST_RANGES)
        totals = f"(VALUES {bounds}) r CROSS JOIN total t"
        within = "r.column2 < r.column3 AND t.level = r.column1 AND t.bucket >= r.column2 AND t.bucket < r.column3"
    else:
        totals = "total t"
        within = " OR ".join(["(t.level = ? AND t.bucket >= ? AND t.bucket < ?)"] * _MOST_RANGES)
    sql = f"""
        SELECT 'spent', '{index}', s.currency, sum(t.units), sum(t.nano), sum({_TOKENS.format("t")}),
            sum(CASE WHEN s.kind = 'turn' THEN t.{those} ELSE 0 END), sum(t.{unpriced}),
            sum(CASE WHEN {_untold(account.unit, "s")} THEN t.{those} ELSE 0 END), '', ''
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
    of_turns = account.unit == "turns"
    unpriced, those = "l.position = 0 AND t.unpriced = 1", "l.position = 0"
    if account.filter.scope.model:
        those = f"NOT {REPEATED}"
        unpriced = f"l.cost_nano IS NULL AND t.cost_source <> 'parent' AND {_TOKENS.format('l')} > 0"
    sql = f"""
        SELECT 'spent', '{index}', {"''" if of_turns else "l.currency"}, sum(l.cost_nano / {NANO}),
            sum(l.cost_nano % {NANO}), sum({_TOKENS.format("l")}),
            count(DISTINCT CASE WHEN t.kind = 'turn' THEN t.id END), sum(CASE WHEN {unpriced} THEN 1 ELSE 0 END),
            sum(CASE WHEN {_untold(account.unit, "t")} AND {those} THEN 1 ELSE 0 END), '', ''
        FROM {turns or _turns(account, dialect)} line l
        WHERE t.org_id = ? {conditions} AND l.org_id = t.org_id AND l.turn = t.id
        {"" if of_turns else "GROUP BY l.currency"}
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
    for dimension, value in account.filter.where:
        if dimension != "organisation":
            sql += f" AND {alias}.{_COLUMNS.get(dimension, dimension)} = ?"
            values.append(value)
    for dimension in DIMENSIONS:
        patterns = account.filter.scope.of(dimension)
        if patterns:
            column = f"{model_alias if dimension == 'model' else alias}.{_COLUMNS.get(dimension, dimension)}"
            globs = [pattern for pattern in patterns if "*" in pattern]
            exact = [pattern for pattern in patterns if "*" not in pattern]
            alternatives = [f"{column} = ?"] * len(exact) + [f"{column} {dialect.glob} ?"] * len(globs)
            sql += f" AND ({' OR '.join(alternatives)})"
            values += [*exact, *map(dialect.pattern, globs)]
    return sql, values

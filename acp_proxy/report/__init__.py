"""Spend summed by a key: rows of the ledger become lines of a report. Renders nothing.

Cost and tokens are of all kinds of rows, `turns` are rows of kind "turn".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core.money import Money, summed
from acp_proxy.core.scope import PLAN
from acp_proxy.core.usage import NOTHING, Usage
from acp_proxy.ledger import LedgerReader, Query, Row, SessionInfo, Sums
from acp_proxy.ledger.session_keys import session_key as session_key
from acp_proxy.text.times import PERIODS, Zone

DIMENSIONS = ("model", "agent", "project", "user", "team", "kind", "billing")
BY = (*PERIODS, "session", "turn", *DIMENSIONS)
FILTERS = ("agent", "model", "user", "team", "project", "title")
_FEW = 5000  # turns or sessions that may be in memory at once
UNNAMED = {"model": "unknown", "team": "none", "project": "none"}
"""The names of missing values, as keys and as filters."""


class Line(Struct, frozen=True):
    """The sums of one key. The counts are rows of every kind, except `turns`."""

    key: str
    turns: int = 0
    usage: Usage = NOTHING
    costs: tuple[Money, ...] = ()  # empty when unknown
    unpriced: int = 0
    partial: int = 0
    estimated: int = 0
    without_usage: int = 0
    cost_at_least: int = 0  # rows whose cost is missing or a lower bound
    about: Row | SessionInfo | None = None  # by turn, by session
    not_billed: tuple[Money, ...] = ()  # of `costs` what was used under a plan: list prices

    def plus(self, other: Line) -> Line:
        return Line(
            self.key,
            self.turns + other.turns,
            self.usage + other.usage,
            summed((*self.costs, *other.costs)),
            self.unpriced + other.unpriced,
            self.partial + other.partial,
            self.estimated + other.estimated,
            self.without_usage + other.without_usage,
            self.cost_at_least + other.cost_at_least,
            not_billed=summed((*self.not_billed, *other.not_billed)),
        )


class Report(Struct, frozen=True):
    """A query, and its result."""

    by: str  # one of `BY`
    query: Query
    zone: Zone
    lines: Collection[Line]  # there may be millions of turns or sessions: they are not all in memory
    total: Line
    currencies: tuple[str, ...]  # the commonest first
    omitted: int | None = None  # how many more lines there are; None where no limit was asked for


def report(ledger: LedgerReader, by: str, query: Query, zone: Zone, limit: int | None = None) -> Report:
    """`by` is one of `BY`. With a `limit` it has the last periods, or what cost most. Raises LedgerError."""
    sums = sums_of_all(ledger, query)
    total = line_of("total", sums)
    currencies = currencies_of(total.costs, lambda: ledger.summed(query, ("currency",)))
    if by in ("turn", "session"):
        rows = sums.rows if sums else 0
        lines, count = _ranked_lines(ledger, by, query, currencies, rows, limit)
    else:
        every = ordered(by, _lines(ledger, by, query, zone, sums), currencies)
        count = len(every)
        lines = every if limit is None else every[-limit:] if by in PERIODS else every[:limit]
    return Report(by, query, zone, lines, total, currencies, None if limit is None else max(0, count - len(lines)))


def _ranked_lines(
    ledger: LedgerReader, by: str, query: Query, currencies: tuple[str, ...], rows: int, limit: int | None
) -> tuple[Collection[Line], int]:
    """The requested lines, and how many there are in all."""
    from acp_proxy.report.ranked import Ranked, ranked_sessions, ranked_turns  # who asks for anything else need not

    if limit is not None and limit <= _FEW:
        if by == "turn":
            return [turn_line(row) for row in ledger.costliest(query, currencies, limit)], rows
        costliest, count = ledger.costliest_sessions(query, currencies, limit)
        return [session_line(*each) for each in costliest], count
    ranked: Ranked[Line]
    if by == "turn":
        ranked = ranked_turns(ledger.rows(query), currencies, turn_line, most=limit)
    else:
        ranked = ranked_sessions(ledger.session_sums(query), currencies, session_line, most=limit)
    return ranked, ranked.count


def currencies_of(costs: Sequence[Money], by_currency: Callable[[], Iterable[Sums]]) -> tuple[str, ...]:
    """The currencies of a sum's costs, the one with the most rows first; reads `by_currency` if there are several."""
    if len(costs) < 2:
        return tuple(cost.currency for cost in costs)
    rows = {sums.key[0]: sums.rows for sums in by_currency()}
    return tuple(sorted((cost.currency for cost in costs), key=lambda currency: (-rows.get(currency, 0), currency)))


def query(since: int | None, until: int | None, filters: Iterable[tuple[str, str]]) -> Query:
    """`filters` are of `FILTERS`; what `UNNAMED` says selects rows without a value."""
    return Query(since, until, tuple((name, None if UNNAMED.get(name) == value else value) for name, value in filters))


def _lines(ledger: LedgerReader, by: str, query: Query, zone: Zone, total: Sums | None) -> Iterable[Line]:
    if total is None:
        return ()
    if by in PERIODS:
        from acp_proxy.report.periods import sums_by_period  # who asks for anything else need not import it

        return (line_of_all(key, sums) for key, sums in sums_by_period(ledger, by, query, zone, total))
    return folded(line_of(name_of(by, sums.key[0]), sums) for sums in ledger.summed(query, (by,)))


def turn_line(row: Row) -> Line:
    """A row of the ledger as a line of `report --by turn`."""
    entry = row.entry
    return Line(
        entry.id,
        turns=int(entry.kind == "turn"),
        usage=entry.usage,
        costs=entry.costs,
        unpriced=int(entry.unpriced),
        partial=int(entry.usage_source == "partial"),
        estimated=int("estimated" in (entry.usage_source, entry.cost_source)),
        without_usage=int(entry.usage_source == "none"),
        cost_at_least=int(entry.cost_at_least),
        about=row,
        not_billed=entry.costs if row.origin.billing == PLAN else (),
    )


def session_line(session: SessionInfo, sums: Sums) -> Line:
    """A session of the ledger as a line of `report --by session`."""
    return replace(line_of(session_key(session.origin, session.session), sums), about=session)


def sums_of_all(ledger: LedgerReader, query: Query) -> Sums | None:
    """The sums of all rows of a query; None without rows. Raises LedgerError."""
    return next(iter(ledger.summed(query, ())), None)


def line_of(key: str, sums: Sums | None) -> Line:
    """Sums of the ledger as a line of a report; of no rows an empty one."""
    if sums is None:
        return Line(key)
    return Line(
        key,
        sums.turns,
        sums.usage,
        sums.costs,
        sums.unpriced,
        sums.partial,
        sums.estimated,
        sums.without_usage,
        sums.cost_at_least,
        not_billed=sums.not_billed,
    )


def line_of_all(key: str, parts: Sequence[Sums]) -> Line:
    """One line of many sums, a hundred for a day, without a line for each."""
    if len(parts) == 1:  # as of most days
        return line_of(key, parts[0])
    return Line(
        key,
        sum(part.turns for part in parts),
        Usage(
            sum(part.usage.input for part in parts),
            sum(part.usage.cached_read for part in parts),
            sum(part.usage.cached_write for part in parts),
            sum(part.usage.output for part in parts),
            sum(part.usage.thought for part in parts),
        ),
        summed(cost for part in parts for cost in part.costs),
        sum(part.unpriced for part in parts),
        sum(part.partial for part in parts),
        sum(part.estimated for part in parts),
        sum(part.without_usage for part in parts),
        sum(part.cost_at_least for part in parts),
        not_billed=summed(cost for part in parts for cost in part.not_billed),
    )


def name_of(dimension: str, value: object) -> str:
    """The key of a line by this dimension."""
    return UNNAMED.get(dimension, "unknown") if value is None else str(value)


def folded(lines: Iterable[Line]) -> Iterable[Line]:
    """One line a key."""
    by_key: dict[str, Line] = {}
    for line in lines:
        by_key[line.key] = by_key[line.key].plus(line) if line.key in by_key else line
    return by_key.values()


def ordered(by: str, lines: Iterable[Line], currencies: Sequence[str]) -> list[Line]:
    """Periods by time, all else by cost, the highest first.

    Currencies are not compared: lines with the first one come first. What has no known cost comes last.
    """
    if by in PERIODS:
        return sorted(lines, key=lambda line: line.key)

    def rank(line: Line) -> tuple[object, ...]:
        amounts = {cost.currency: cost.nano for cost in line.costs}
        costs = [(currency not in amounts, -amounts.get(currency, 0)) for currency in currencies]
        return (*costs, -line.usage.total, line.key)

    return sorted(lines, key=rank)

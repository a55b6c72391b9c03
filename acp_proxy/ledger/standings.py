"""How accounts stand, asked in one statement: one moment shows a turn as held or as spent, never as both or neither.

Spend comes from running totals where they tell a row's dimensions apart, else from rows. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct, field

from acp_proxy.core.budget import Account, Standing
from acp_proxy.core.money import NANO, Money
from acp_proxy.core.scope import DIMENSIONS, fits
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.owners import Owner
from acp_proxy.ledger.totals import LEVELS, Cover, Run, cover

_COLUMNS = {"user": "user_id", "session": "session", "turn": "id", "process": "process"}  # others are called the same
_IN_TOTALS = frozenset({"organisation", "user", "team", "project", "agent"})
_MOST_RANGES = 2 * len(LEVELS) - 1  # of an interval; always as many, so that the statement's text stays the same
_TOKENS = "{0}.input + {0}.cached_read + {0}.cached_write + {0}.output + {0}.thought"

Asked = tuple[str, list[Any]]  # SQL and its values


class Found(Struct):
    """What the ledger knows of some accounts at one moment."""

    standings: list[Standing]
    own: dict[str, int] = field(default_factory=dict)  # what the turn that asks holds already, by account
    expired: set[Owner] = field(default_factory=set)  # of others' holds that no longer count
    other_limits: bool = False  # others hold under them, of the same budgets
    booked: bool = False  # the turn that asks has its row


NEVER = -(2**63)


def question(
    accounts: Sequence[Account], now: int, dialect: Dialect, turn: str = "", *, expired_at: int | None = None
) -> Asked:
    """For accounts of one organisation; each row that it finds has ten columns, the first says what it is.

    `now` is when grants must be in force, and holds that expired by then, or by `expired_at`, do not count.
    """
    organisation = organisation_of(accounts[0])
    parts = list(chain.from_iterable(_spent(index, account, dialect) for index, account in enumerate(accounts)))
    parts.append(_holds(organisation, accounts, turn))
    parts.append(_expired(organisation, accounts, now if expired_at is None else expired_at, turn))
    parts.append(_granted(organisation, now))
    parts.append(_surcharges(organisation, accounts))
    if turn:
        booked = "SELECT 'booked', '', '', 1, 0, 0, 0, 0, '', '' FROM turn WHERE org_id = ? AND id = ?"
        parts.append((booked, [organisation, turn]))
    return " UNION ALL ".join(sql for sql, _ in parts), [value for _, values in parts for value in values]


def answer(found: Iterable[tuple[Any, ...]], accounts: Sequence[Account]) -> Found:
    sums = [_Sums() for _ in accounts]
    by_key = {account.key: index for index, account in enumerate(accounts)}
    result = Found([])
    for what, first, second, a, b, c, d, e, third, fourth in found:
        match what:
            case "spent":
                sums[int(first)].spend(second or None, int(a or 0), int(b or 0), int(c or 0), int(d or 0), int(e or 0))
            case "hold":
                index = by_key[first]
                sums[index].held += int(a)
                if b:
                    result.own[first] = int(b)
                limit = accounts[index].budget.limit.amount
                result.other_limits |= c is not None and not limit == int(c) == int(d)
            case "expired":
                sums[by_key[first]].held -= int(a)
                result.expired.add(Owner(third, int(b), fourth))
            case "grant":
                for account, each in zip(accounts, sums, strict=True):
                    name, whose = (account.budget.layer, account.budget.name), (third or None)
                    if (first, second) == name and fourth == account.unit and whose in (None, account.value):
                        each.granted += int(a)
            case "extra":
                index = by_key[first]
                if accounts[index].bounds.cover(int(b)):
                    sums[index].extra += int(a)
            case "booked":
                result.booked = True
    result.standings = [each.standing(account) for account, each in zip(accounts, sums, strict=True)]
    return result


def organisation_of(account: Account) -> str:
    return dict(account.filter.where)["organisation"]


class _Sums(Struct):
    nano: dict[str, int] = field(default_factory=dict)  # by currency
    tokens: int = 0
    turns: int = 0
    unpriced: int = 0
    held: int = 0
    granted: int = 0
    extra: int = 0

    def spend(self, currency: str | None, units: int, nano: int, tokens: int, turns: int, unpriced: int) -> None:
        if currency is not None:
            self.nano[currency] = self.nano.get(currency, 0) + units * NANO + nano
        self.tokens += tokens
        self.turns += turns
        self.unpriced += unpriced

    def standing(self, account: Account) -> Standing:
        match account.unit:
            case "tokens":
                return Standing(account, self.tokens + self.extra, self.held, self.granted)
            case "turns":
                return Standing(account, self.turns, self.held, self.granted)
        others = sorted((currency, nano) for currency, nano in self.nano.items() if currency != account.unit and nano)
        return Standing(
            account,
            self.nano.get(account.unit, 0) + self.extra,
            self.held,
            self.granted,
            tuple(Money(nano, currency) for currency, nano in others),
            self.unpriced,
        )


def _spent(index: int, account: Account, dialect: Dialect) -> Iterable[Asked]:
    by_model = bool(account.filter.scope.model)
    told_apart = {dimension for dimension, _ in account.filter.where} <= _IN_TOTALS
    # A turn of two models in scope is one turn: totals by model would count it twice.
    if not told_apart or (by_model and account.unit == "turns"):
        yield _from_rows(index, account, account.bounds.start, account.bounds.end, dialect)
        return
    interval = cover(account.bounds.start, account.bounds.end)
    yield _from_totals(index, account, interval, dialect)
    for start, end in interval.edges:
        yield _from_rows(index, account, start, end, dialect)


def _from_totals(index: int, account: Account, interval: Cover, dialect: Dialect) -> Asked:
    conditions, values = _conditions(account, dialect, "s", "s")
    rows, unpriced = "t.row_count", "t.unpriced_lines" if account.filter.scope.model else "t.unpriced_rows"
    ranges = [*interval.ranges, *[(0, 0, 0)] * (_MOST_RANGES - len(interval.ranges))]
    bounds = ", ".join(["(CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT))"] * _MOST_RANGES)
    sql = f"""
        SELECT 'spent', '{index}', s.currency, sum(t.units), sum(t.nano), sum({_TOKENS.format("t")}),
            sum(CASE WHEN s.kind = 'turn' THEN {rows} ELSE 0 END), sum({unpriced}), '', ''
        FROM series s CROSS JOIN (VALUES {bounds}) r CROSS JOIN total t
        WHERE s.org_id = ? {conditions} AND t.org_id = s.org_id AND t.level = r.column1 AND t.series = s.id
            AND t.bucket >= r.column2 AND t.bucket < r.column3
        GROUP BY s.currency
    """
    return sql, [*chain.from_iterable(ranges), organisation_of(account), *values]


def _from_rows(index: int, account: Account, start: int | None, end: int | None, dialect: Dialect) -> Asked:
    conditions, values = _conditions(account, dialect, "t", "l")
    for bound, operator in ((start, ">="), (end, "<")):
        if bound is not None:
            conditions += f" AND t.started_at {operator} ?"
            values.append(bound)
    turns = account.unit == "turns"
    unpriced = "l.position = 0 AND t.unpriced = 1"
    if account.filter.scope.model:
        unpriced = f"l.cost_nano IS NULL AND t.cost_source <> 'parent' AND {_TOKENS.format('l')} > 0"
    sql = f"""
        SELECT 'spent', '{index}', {"''" if turns else "l.currency"}, sum(l.cost_nano / {NANO}),
            sum(l.cost_nano % {NANO}), sum({_TOKENS.format("l")}),
            count(DISTINCT CASE WHEN t.kind = 'turn' THEN t.id END), sum(CASE WHEN {unpriced} THEN 1 ELSE 0 END), '', ''
        FROM turn t JOIN line l ON l.org_id = t.org_id AND l.turn = t.id
        WHERE t.org_id = ? {conditions}
        {"" if turns else "GROUP BY l.currency"}
    """
    return sql, [organisation_of(account), *values]


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


def _holds(organisation: str, accounts: Sequence[Account], turn: str) -> Asked:
    """What others hold, expired or not, and what the turn does; one row for each account, however many hold."""
    sql = f"""
        SELECT 'hold', account, '', sum(CASE WHEN turn = ? THEN 0 ELSE amount END),
            sum(CASE WHEN turn = ? THEN amount ELSE 0 END), min(under), max(under), 0, '', ''
        FROM hold WHERE org_id = ? AND account IN ({", ".join("?" * len(accounts))}) GROUP BY account
    """
    return sql, [turn, turn, organisation, *(account.key for account in accounts)]


def _expired(organisation: str, accounts: Sequence[Account], now: int, turn: str) -> Asked:
    """Those that count no longer: most of the time there are none."""
    sql = f"""
        SELECT 'expired', h.account, '', h.amount, o.owner_pid, 0, 0, 0, o.owner_host, o.owner_started
        FROM open_turn o CROSS JOIN hold h
        WHERE o.org_id = ? AND o.expires_at <= ? AND o.turn <> ?
            AND h.org_id = o.org_id AND h.turn = o.turn AND h.account IN ({", ".join("?" * len(accounts))})
    """
    return sql, [organisation, now, turn, *(account.key for account in accounts)]


def owners_of(run: Run, accounts: Sequence[Account]) -> set[Owner]:
    """Who holds anything against accounts of one organisation."""
    sql = f"""
        SELECT DISTINCT o.owner_host, o.owner_pid, o.owner_started
        FROM hold h JOIN open_turn o ON o.org_id = h.org_id AND o.turn = h.turn
        WHERE h.org_id = ? AND h.account IN ({", ".join("?" * len(accounts))})
    """
    found = run(sql, (organisation_of(accounts[0]), *(account.key for account in accounts)))
    return {Owner(host, int(pid), started) for host, pid, started in found}


def _granted(organisation: str, now: int) -> Asked:
    sql = """
        SELECT 'grant', layer, budget, amount, 0, 0, 0, 0, coalesce(value, ''), unit
        FROM granted WHERE org_id = ? AND ends_at > ? AND starts_at <= ?
    """
    return sql, [organisation, now, now]


def _surcharges(organisation: str, accounts: Sequence[Account]) -> Asked:
    sql = f"""
        SELECT 'extra', account, '', amount, started_at, 0, 0, 0, '', ''
        FROM surcharge WHERE org_id = ? AND account IN ({", ".join("?" * len(accounts))})
    """
    return sql, [organisation, *(account.key for account in accounts)]


def charged(models: Sequence[str] | None, model: str | None) -> bool:
    """Whether a line of this model counts for an account with these patterns."""
    return not models or (model is not None and any(fits(pattern, model) for pattern in models))

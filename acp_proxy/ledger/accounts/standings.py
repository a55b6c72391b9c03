"""Standings of accounts, read in one statement: its snapshot has a turn as held or as spent, never as both or neither.

Spend comes from kept sums (balances), or for accounts without one from totals and rows.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct, field

from acp_proxy.core.budget import Account, Standing
from acp_proxy.core.money import NANO, Money
from acp_proxy.core.scope import fits
from acp_proxy.core.windows import DAY
from acp_proxy.ledger.accounts import balances
from acp_proxy.ledger.accounts.balances import kept_of
from acp_proxy.ledger.accounts.spending import Spent, organisation_of, spent, together
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.owners import Owner
from acp_proxy.ledger.statements import Run, Statement


class Found(Struct):
    """The state of some accounts at one moment."""

    standings: list[Standing]
    own: dict[str, int] = field(default_factory=dict)  # what the turn that asks holds already, by account
    expired: set[Owner] = field(default_factory=set)  # of others' holds that no longer count
    other_limits: bool = False  # others hold under them, of the same budgets
    booked: bool = False  # the turn that asks has its row
    ahead: int = 0  # ns by which the clock of leases is ahead of this machine's
    kept: set[int] = field(default_factory=set)  # accounts whose sum is kept, by their place


NEVER = -(2**63)
_EVER = 2**63 - 1
# An account by its place, for the same one may be asked for in two intervals.
_WITHIN = "(CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS BIGINT))"


class Question:
    """A query for accounts of one organisation, built before its transaction, because other writers wait for that.

    `now` is when grants must be in force, and holds that expired by then, or by `expired_at`, do not count.
    """

    def __init__(
        self, accounts: Sequence[Account], now: int, dialect: Dialect, turn: str = "", *, expired_at: int | None = None
    ) -> None:
        self._accounts = accounts
        self._now = now
        self._dialect = dialect
        self._others = list(_others(accounts, now, dialect, turn, now if expired_at is None else expired_at))
        self._kept = list(map(kept_of, accounts))
        self._by_key: dict[str, list[int]] = {}  # several turns may ask for one account
        for index, account in enumerate(accounts):
            self._by_key.setdefault(account.key, []).append(index)
        self._quick = self._asked(range(len(accounts)))

    def ask(self, run: Run, make: Callable[[Run, list[Account]], None] | None = None) -> Found:
        """`make` stores missing sums, if the transaction may write."""
        found, missing = self._ask_for_kept(run)
        if missing and make:
            make(run, missing)
            found, missing = self._ask_for_kept(run)
        if not missing:
            return found
        again = self._answer(run(*self._asked(found.kept)))
        if again.kept == found.kept:
            return again
        return self._answer(run(*self._asked(())))  # some were forgotten in between

    def _ask_for_kept(self, run: Run) -> tuple[Found, list[Account]]:
        """With the accounts of which the sum is missing."""
        found = self._answer(run(*self._quick))
        missing = [index for index, kept in enumerate(self._kept) if kept is not None and index not in found.kept]
        return found, [self._accounts[index] for index in missing]

    def _asked(self, kept: Container[int]) -> Statement:
        """With sums that are kept for the accounts at these places alone."""
        spend = (self._spent(index, kept) for index in range(len(self._accounts)))
        return together([*chain.from_iterable(spend), *self._others])

    def _spent(self, index: int, where_kept: Container[int]) -> Iterable[Statement]:
        account, kept = self._accounts[index], self._kept[index]
        if kept is None or index not in where_kept:
            return spent(index, account, account.bounds, self._dialect)
        return balances.read(index, account, kept, self._now, self._dialect)

    def _answer(self, found: Iterable[tuple[Any, ...]]) -> Found:
        accounts, by_key = self._accounts, self._by_key
        sums = [_Sums() for _ in accounts]
        result = Found([])
        for each in found:
            match each:
                case ("spent", index, *_):
                    sums[int(index)].spent.add(each)
                case ("kept", index, *_, text, _):
                    if kept := balances.spent_of(text):
                        sums[int(index)].spent.add_all(kept)
                        result.kept.add(int(index))
                case ("hold", key, _, others, own, lowest, highest, *_):
                    for place in by_key[key]:
                        sums[place].held += int(others)
                    if own:
                        result.own[key] = int(own)
                    limit = accounts[by_key[key][0]].limit
                    result.other_limits |= lowest is not None and not limit == int(lowest) == int(highest)
                case ("expired", key, _, amount, pid, *_, host, started):
                    for place in by_key[key]:
                        sums[place].held -= int(amount)
                    result.expired.add(Owner(host, int(pid), started))
                case ("grant", layer, budget, amount, *_, value, unit):
                    for account, sum_ in zip(accounts, sums, strict=True):
                        named = (account.budget.layer, account.budget.name, account.unit) == (layer, budget, unit)
                        if named and value in ("", account.value or account.budget.owner):
                            sum_.granted += int(amount)
                case ("extra", index, _, units, nano, *_):
                    sums[int(index)].extra += int(units) * NANO + int(nano)
                case ("booked", *_):
                    result.booked = True
                case ("ahead", _, _, ahead, *_):
                    result.ahead = int(ahead)
        result.standings = [each.standing(account) for account, each in zip(accounts, sums, strict=True)]
        return result


def _others(accounts: Sequence[Account], now: int, dialect: Dialect, turn: str, expired_at: int) -> Iterator[Statement]:
    """All but what is spent; each row that is found has eleven columns, the first says what it is."""
    organisation = organisation_of(accounts[0])
    yield _holds(organisation, accounts, turn)
    yield _expired(organisation, accounts, expired_at, turn, dialect)
    yield _granted(organisation, now)
    yield _surcharges(organisation, accounts)
    if turn:
        booked = "SELECT 'booked', '', '', 1, 0, 0, 0, 0, 0, '', '' FROM turn WHERE org_id = ? AND id = ?"
        yield booked, [organisation, turn]
        if dialect.clock is not None:
            ahead, values = dialect.ahead()
            yield f"SELECT 'ahead', '', '', {ahead}, 0, 0, 0, 0, 0, '', ''", values


class _Sums(Struct):
    spent: Spent = field(default_factory=Spent)
    held: int = 0
    granted: int = 0
    extra: int = 0

    def standing(self, account: Account) -> Standing:
        units = account.budget.units
        match account.unit:
            case "tokens":
                tokens = self.spent.tokens + self.extra
                return Standing(account, tokens, self.held, self.granted, untold=self.spent.untold)
            case "turns":
                return Standing(account, self.spent.turns, self.held, self.granted)
        others = sorted(
            (currency, nano) for currency, nano in self.spent.nano.items() if currency not in units and nano
        )
        return Standing(
            account,
            account.budget.counted(self.spent.nano) + self.extra,
            self.held,
            self.granted,
            tuple(Money(nano, currency) for currency, nano in others),
            self.spent.unpriced,
            self.spent.untold,
        )


def _holds(organisation: str, accounts: Sequence[Account], turn: str) -> Statement:
    """What others hold, expired or not, and what the turn does; one row for each account, however many hold."""
    sql = f"""
        SELECT 'hold', account, '', sum(CASE WHEN turn = ? THEN 0 ELSE amount END),
            sum(CASE WHEN turn = ? THEN amount ELSE 0 END), min(under), max(under), 0, 0, '', ''
        FROM hold WHERE org_id = ? AND account IN ({", ".join("?" * len(accounts))}) GROUP BY account
    """
    return sql, [turn, turn, organisation, *(account.key for account in accounts)]


def _expired(organisation: str, accounts: Sequence[Account], now: int, turn: str, dialect: Dialect) -> Statement:
    """The expired holds: most of the time there are none."""
    ahead, clock = dialect.ahead()
    sql = f"""
        SELECT 'expired', h.account, '', h.amount, o.owner_pid, 0, 0, 0, 0, o.owner_host, o.owner_started
        FROM open_turn o CROSS JOIN hold h
        WHERE o.org_id = ? AND o.expires_at - {ahead} <= ? AND o.turn <> ?
            AND h.org_id = o.org_id AND h.turn = o.turn AND h.account IN ({", ".join("?" * len(accounts))})
    """
    return sql, [organisation, *clock, now, turn, *(account.key for account in accounts)]


def owners_of(run: Run, accounts: Sequence[Account]) -> set[Owner]:
    """The owners of holds against accounts of one organisation."""
    sql = f"""
        SELECT DISTINCT o.owner_host, o.owner_pid, o.owner_started
        FROM hold h JOIN open_turn o ON o.org_id = h.org_id AND o.turn = h.turn
        WHERE h.org_id = ? AND h.account IN ({", ".join("?" * len(accounts))})
    """
    found = run(sql, (organisation_of(accounts[0]), *(account.key for account in accounts)))
    return {Owner(host, int(pid), started) for host, pid, started in found}


def _granted(organisation: str, now: int) -> Statement:
    sql = """
        SELECT 'grant', layer, budget, amount, 0, 0, 0, 0, 0, coalesce(value, ''), unit
        FROM granted WHERE org_id = ? AND ends_at > ? AND starts_at <= ?
    """
    return sql, [organisation, now, now]


def _surcharges(organisation: str, accounts: Sequence[Account]) -> Statement:
    """One row for each account that has any, for a model without a price may leave one with every turn.

    Those of a window that moves stand under one key for ever: what is older than it is passed over by the turns' ids,
    with a day between, for a clock may be set back from a turn's id to its start.
    """
    sql = f"""
        SELECT 'extra', a.column1, '', sum(s.amount / {NANO}), sum(s.amount % {NANO}), 0, 0, 0, 0, '', ''
        FROM (VALUES {", ".join([_WITHIN] * len(accounts))}) a CROSS JOIN surcharge s
        WHERE s.org_id = ? AND s.account = a.column2 AND s.turn >= a.column3
            AND s.started_at >= a.column4 AND s.started_at < a.column5
        GROUP BY a.column1
    """
    values: list[Any] = []
    for index, account in enumerate(accounts):
        start, end = account.bounds.start, account.bounds.end
        within = NEVER if start is None else start, _EVER if end is None else end
        values += [str(index), account.key, _least_id(within[0] - DAY) if account.moves else "", *within]
    return sql, [*values, organisation]


def _least_id(at: int) -> str:
    """What no UUIDv7 of this time (Unix ns) or later comes before; a turn has its id shortly before it starts."""
    milliseconds = f"{max(0, at) // 1_000_000:012x}"
    return f"{milliseconds[:8]}-{milliseconds[8:]}"


def charged(models: Sequence[str] | None, model: str | None) -> bool:
    """Whether a line of this model counts for an account with these patterns."""
    return not models or (model is not None and any(fits(pattern, model) for pattern in models))

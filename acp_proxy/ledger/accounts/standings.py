"""Standings of accounts, read in one statement: its snapshot has a turn as held or as spent, never as both or neither.

Spend comes from kept sums (balances), or for accounts without one from totals and rows.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from msgspec import Struct, field

from acp_proxy.core.budget import Account, Standing
from acp_proxy.core.budget.contribution import NOTHING, Contribution
from acp_proxy.core.money import NANO
from acp_proxy.core.scope import fits
from acp_proxy.core.windows import DAY
from acp_proxy.ledger.accounts import balances
from acp_proxy.ledger.accounts.balances import balance_key_of
from acp_proxy.ledger.accounts.parts import Part, columns, union_all
from acp_proxy.ledger.accounts.spending import organisation_of, spent
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.owners import Owner
from acp_proxy.ledger.statements import Read, Statement


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

_BOOKED = f"SELECT {columns('booked')} FROM turn WHERE org_id = ? AND id = ?"
# What was released while a server might still be asked to hold for it; a name among those of reports.
RELEASED = "released {}"
_FORBIDDEN = f"SELECT {columns('booked')} FROM relayed WHERE org_id = ? AND process = ?"
_GRANT = {"place": "layer", "currency": "budget", "text": "coalesce(value, '')", "more": "unit"}
_GRANTED = f"""
SELECT {columns("grant", units="amount", **_GRANT)} FROM granted WHERE org_id = ? AND ends_at > ? AND starts_at <= ?
"""


class Question:
    """A query for accounts of one organisation, built before its transaction, because other writers wait for that.

    `now` is when grants must be in force, and holds that expired by then, or by `expired_at`, do not count. Of turns
    that are `new` it asks whether they are.
    """

    def __init__(
        self,
        accounts: Sequence[Account],
        now: int,
        dialect: Dialect,
        turn: str = "",
        *,
        expired_at: int | None = None,
        new: Sequence[str] = (),
    ) -> None:
        self.accounts = accounts
        self._now = now
        self.dialect = dialect
        self._others = list(_others(accounts, now, dialect, turn, now if expired_at is None else expired_at))
        self._others += _known(organisation_of(accounts[0]), new) if new else ()
        self._balance_keys = list(map(balance_key_of, accounts))
        self._by_key: dict[str, list[int]] = {}  # several turns may ask for one account
        for index, account in enumerate(accounts):
            self._by_key.setdefault(account.key, []).append(index)
        self.asked = self._asked(range(len(accounts)))
        self.number_kept = sum(key is not None for key in self._balance_keys)

    def ask(self, read: Read, make: Callable[[list[Account]], None] | None = None) -> Found:
        """`make` stores missing sums, if the transaction may write."""
        found, missing = self.answered(read(*self.asked))
        if missing and make:
            make(missing)
            found, missing = self.answered(read(*self.asked))
        if not missing:
            return found
        again = self._answer(read(*self._asked(found.kept)))
        if again.kept == found.kept:
            return again
        return self._answer(read(*self._asked(())))  # some were forgotten in between

    def answered(self, rows: Iterable[tuple[Any, ...]]) -> tuple[Found, list[Account]]:
        """What `asked` found, and the accounts of which the sum is missing: without these it is all."""
        found = self._answer(rows)
        missing = [index for index, key in enumerate(self._balance_keys) if key is not None and index not in found.kept]
        return found, [self.accounts[index] for index in missing]

    def with_kept(self, found: Found) -> Question:
        """The same question, by the sums that were found alone; other accounts are added up."""
        from copy import copy  # on PostgreSQL alone

        other = copy(self)
        other.asked, other.number_kept = self._asked(found.kept), len(found.kept)
        return other

    def _asked(self, kept: Container[int]) -> Statement:
        """With sums that are kept for the accounts at these places alone."""
        spend = (self._spent(index, kept) for index in range(len(self.accounts)))
        return union_all([*chain.from_iterable(spend), *self._others])

    def _spent(self, index: int, where_kept: Container[int]) -> Iterable[Statement]:
        account, key = self.accounts[index], self._balance_keys[index]
        if key is None or index not in where_kept:
            return spent(index, account, account.bounds, self.dialect)
        return balances.read(index, account, key, self._now, self.dialect)

    def _answer(self, found: Iterable[tuple[Any, ...]]) -> Found:
        accounts, by_key = self.accounts, self._by_key
        sums = [_Sums() for _ in accounts]
        result = Found([])
        for part in map(Part._make, found):
            match part.what:
                case "spent":
                    sums[int(part.place)].spent += part.contribution
                case "kept":
                    if kept := balances.spent_of(part.text):
                        sums[int(part.place)].spent += kept
                        result.kept.add(int(part.place))
                case "hold":
                    self._add_holds(part, sums, result)
                case "expired":
                    for place in by_key[part.place]:
                        sums[place].held -= int(part.units or 0)
                    result.expired.add(Owner(part.text, int(part.nano or 0), part.more))
                case "grant":
                    for account, sum_ in zip(accounts, sums, strict=True):
                        sum_.granted += _granted_to(account, part)
                case "extra":
                    sums[int(part.place)].extra += part.amount
                case "booked":
                    result.booked = True
                case "ahead":
                    result.ahead = part.amount
        result.standings = [each.standing(account) for account, each in zip(accounts, sums, strict=True)]
        return result

    def _add_holds(self, part: Part, sums: Sequence[_Sums], result: Found) -> None:
        for place in self._by_key[part.place]:
            sums[place].held += int(part.units or 0)
        if part.nano:
            result.own[part.place] = int(part.nano)
        limit = self.accounts[self._by_key[part.place][0]].limit
        if part.tokens is not None and part.turns is not None:
            result.other_limits |= not limit == int(part.tokens) == int(part.turns)


def _granted_to(account: Account, part: Part) -> int:
    """What a grant, by layer, name, value and unit, allows an account."""
    budget = account.budget
    named = (budget.layer, budget.name, account.unit) == (part.place, part.currency, part.more)
    return int(part.units or 0) if named and part.text in ("", account.value or budget.owner) else 0


def _others(accounts: Sequence[Account], now: int, dialect: Dialect, turn: str, expired_at: int) -> Iterator[Statement]:
    """All but what is spent."""
    organisation = organisation_of(accounts[0])
    yield _holds(organisation, accounts, turn)
    yield _expired(organisation, accounts, expired_at, turn, dialect)
    yield _GRANTED, [organisation, now, now]
    yield _surcharges(organisation, accounts)
    if turn:
        yield _BOOKED, [organisation, turn]
        if dialect.clock is not None:
            ahead, values = dialect.ahead()
            yield f"SELECT {columns('ahead', nano=ahead)}", values
            yield _FORBIDDEN, [organisation, RELEASED.format(turn)]


def _known(organisation: str, turns: Sequence[str]) -> Iterator[Statement]:
    """Whether some of these turns are there already, or run, or are not to begin any more."""
    some = f"IN ({', '.join('?' * len(turns))})"
    yield f"SELECT {columns('booked')} FROM turn WHERE org_id = ? AND id {some}", [organisation, *turns]
    yield f"SELECT {columns('booked')} FROM open_turn WHERE org_id = ? AND turn {some}", [organisation, *turns]
    released = map(RELEASED.format, turns)
    yield f"SELECT {columns('booked')} FROM relayed WHERE org_id = ? AND process {some}", [organisation, *released]


class _Sums(Struct):
    spent: Contribution = NOTHING
    held: int = 0
    granted: int = 0
    extra: int = 0

    def standing(self, account: Account) -> Standing:
        return self.spent.within(account.unit).standing(account, self.extra, self.held, self.granted)


def _holds(organisation: str, accounts: Sequence[Account], turn: str) -> Statement:
    """What others hold, expired or not, and what the turn does; one row for each account, however many hold."""
    return _held(len(accounts)), [turn, turn, organisation, *(account.key for account in accounts)]


@lru_cache(maxsize=32)  # as what follows: each prompt asks, and mostly of as many accounts
def _held(accounts: int) -> str:
    amounts = {
        "units": "sum(CASE WHEN turn = ? THEN 0 ELSE amount END)",
        "nano": "sum(CASE WHEN turn = ? THEN amount ELSE 0 END)",
    }
    return f"""
        SELECT {columns("hold", place="account", tokens="min(under)", turns="max(under)", **amounts)}
        FROM hold WHERE org_id = ? AND account IN ({", ".join("?" * accounts)}) GROUP BY account
    """


def _expired(organisation: str, accounts: Sequence[Account], now: int, turn: str, dialect: Dialect) -> Statement:
    """The expired holds: most of the time there are none."""
    ahead, clock = dialect.ahead()
    values = [organisation, *clock, now, turn, *(account.key for account in accounts)]
    return _run_out(ahead, len(accounts)), values


@lru_cache(maxsize=32)
def _run_out(ahead: str, accounts: int) -> str:
    owner = {"nano": "o.owner_pid", "text": "o.owner_host", "more": "o.owner_started"}
    return f"""
        SELECT {columns("expired", place="h.account", units="h.amount", **owner)}
        FROM open_turn o CROSS JOIN hold h
        WHERE o.org_id = ? AND o.expires_at - {ahead} <= ? AND o.turn <> ?
            AND h.org_id = o.org_id AND h.turn = o.turn AND h.account IN ({", ".join("?" * accounts)})
    """


def owners_of(read: Read, accounts: Sequence[Account]) -> set[Owner]:
    """The owners of holds against accounts of one organisation."""
    sql = f"""
        SELECT DISTINCT o.owner_host, o.owner_pid, o.owner_started
        FROM hold h JOIN open_turn o ON o.org_id = h.org_id AND o.turn = h.turn
        WHERE h.org_id = ? AND h.account IN ({", ".join("?" * len(accounts))})
    """
    found = read(sql, (organisation_of(accounts[0]), *(account.key for account in accounts)))
    return {Owner(host, int(pid), started) for host, pid, started in found}


def _surcharges(organisation: str, accounts: Sequence[Account]) -> Statement:
    """One row for each account that has any, for a model without a price may leave one with every turn.

    Those of a window that moves stand under one key for ever: what is older than it is passed over by the turns' ids,
    with a day between, for a clock may be set back from a turn's id to its start.
    """
    values: list[Any] = []
    for index, account in enumerate(accounts):
        start, end = account.bounds.start, account.bounds.end
        within = NEVER if start is None else start, _EVER if end is None else end
        values += [str(index), account.key, _least_id(within[0] - DAY) if account.moves else "", *within]
    return _beyond_rows(len(accounts)), [*values, organisation]


@lru_cache(maxsize=32)
def _beyond_rows(accounts: int) -> str:
    amounts = {"units": f"sum(s.amount / {NANO})", "nano": f"sum(s.amount % {NANO})"}
    return f"""
        SELECT {columns("extra", place="a.column1", **amounts)}
        FROM (VALUES {", ".join([_WITHIN] * accounts)}) a CROSS JOIN surcharge s
        WHERE s.org_id = ? AND s.account = a.column2 AND s.turn >= a.column3
            AND s.started_at >= a.column4 AND s.started_at < a.column5
        GROUP BY a.column1
    """


def _least_id(at: int) -> str:
    """What no UUIDv7 of this time (Unix ns) or later comes before; a turn has its id shortly before it starts."""
    milliseconds = f"{max(0, at) // 1_000_000:012x}"
    return f"{milliseconds[:8]}-{milliseconds[8:]}"


def charged(models: Sequence[str] | None, model: str | None) -> bool:
    """Whether a line of this model counts for an account with these patterns."""
    return not models or (model is not None and any(fits(pattern, model) for pattern in models))

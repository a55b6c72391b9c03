"""Budgets as values, the accounts of a subject under them at a moment, and the standing of an account.

Only arithmetic: a ledger keeps rows and holds, and `core/budget/verdict.py` decides whether a prompt may be sent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import tzinfo
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core.compact import compact
from acp_proxy.core.money import NANO, Money, is_money, rounded
from acp_proxy.core.scope import DIMENSIONS, EVERYTHING, Dimension, Scope, Subject
from acp_proxy.core.session_ids import booked
from acp_proxy.core.windows import HOUR, Bounds, Window

Layer = Literal["admin", "user", "flag", "hub"]  # hub: of the policy that a hub keeps for everybody
Per = Literal["user", "team", "project", "agent"]
Mode = Literal["shadow", "warn", "enforce"]
OnExceed = Literal["finish_turn", "deny_next_tool", "cancel"]
OnUnpriced = Literal["warn", "deny", "estimate"]
OnUnavailable = Literal["open", "closed", "local", "lease"]


class Limit(Struct, frozen=True):
    """`amount` is nano-units of the currency that `unit` names, or a count of "tokens" or "turns"."""

    amount: int
    unit: str

    @property
    def is_money(self) -> bool:
        return is_money(self.unit)


class Budget(Struct, frozen=True):
    """A configured budget. Layer, name and `owner` identify it."""

    name: str
    layer: Layer
    window: Window
    limit: Limit
    scope: Scope = EVERYTHING
    per: Per | None = None  # one such budget for each value
    zone: str = "UTC"  # IANA
    mode: Mode = "enforce"
    thresholds: tuple[int, ...] = (50, 80, 90, 100)  # percent, ascending
    on_exceed: OnExceed = "finish_turn"
    on_unpriced: OnUnpriced = "warn"
    hold: int | Literal["auto"] = "auto"  # in the limit's unit
    on_unavailable: OnUnavailable | None = None  # None: as the ledger's
    rates: tuple[tuple[str, int], ...] = ()  # currencies, and nano-units of the limit's that one of each counts as
    count_plans: bool = False  # of money: counts the list prices of what plans cover, and says so

    @property
    def units(self) -> tuple[str, ...]:
        """The units that it counts: the limit's own, then the currencies that it has a rate for."""
        return (self.limit.unit, *[currency for currency, _ in self.rates])

    def counted(self, amounts: Mapping[str, int]) -> int:
        """Amounts by unit, money in nano-units, as one in the limit's; others than `units` add nothing."""
        return counted(amounts, self.limit.unit, self.rates)

    @property
    def owner(self) -> str | None:
        """The user whose file has the budget: users who share a ledger may use the same names for their budgets."""
        match self.scope.user:
            case (user,) if self.layer == "user" and "*" not in user:
                return user
        return None

    @property
    def stops_turns(self) -> bool:
        """Whether the budget ever ends a running turn."""
        return self.mode == "enforce" and self.on_exceed != "finish_turn"

    def matches(self, subject: Subject) -> bool:
        """Whether the subject is in scope. Without a team (or project) it has no budget `per` team (or project)."""
        if self.scope.leaves_out(subject.billing) or (self.per is not None and subject.of(self.per) is None):
            return False
        return self.scope == EVERYTHING or all(
            self.scope.accepts(dimension, subject.of(dimension)) for dimension in DIMENSIONS
        )

    def may_match(self, subject: Subject, unknown: Collection[Dimension]) -> bool:
        """The same by all that is known of the subject: what is `unknown` may still be anything."""
        if self.per is not None and self.per not in unknown and subject.of(self.per) is None:
            return False
        return all(name in unknown or self.scope.accepts(name, subject.of(name)) for name in DIMENSIONS)


def counted(amounts: Mapping[str, int], unit: str, rates: Iterable[tuple[str, int]]) -> int:
    """`Budget.counted` for a budget with this unit and these rates."""
    own = amounts.get(unit, 0)
    return own + sum([rounded(amounts[other] * rate, NANO) for other, rate in rates if other in amounts])


COMPARED = frozenset({"organisation", "user", "team", "project", "host", "agent", "session", "turn", "process"})


class Filter(Struct, frozen=True):
    """The rows that an account counts, apart from its bounds. Only a row's lines of models in scope are charged.

    `where` are values compared exactly, of "organisation", "user", "team", "project", "host", "agent", "session",
    "turn" (a row's id) or "process"; `scope` are patterns.
    """

    where: tuple[tuple[str, str], ...]
    scope: Scope

    def __post_init__(self) -> None:
        """Raises ValueError for a dimension that there is not, as an account may come from anywhere."""
        for dimension, _ in self.where:
            if dimension not in COMPARED:
                raise ValueError(f"no dimension of an account: {dimension!r}")


class Account(Struct, frozen=True):
    """One budget for one subject in one window: what rows are summed over and holds are held against."""

    budget: Budget
    key: str  # the same in every process and on every machine
    filter: Filter
    bounds: Bounds
    value: str | None = None  # of the dimension that the budget is `per`

    @property
    def limit(self) -> int:
        return self.budget.limit.amount

    @property
    def unit(self) -> str:
        return self.budget.limit.unit

    @property
    def enforced(self) -> bool:
        return self.budget.mode == "enforce"

    @property
    def moves(self) -> bool:
        """Whether its window is another one at each moment."""
        return self.budget.window.name == "rolling"

    @property
    def resets_at(self) -> int | None:
        """When its window ends and the next one begins; None for one that moves, or has no end."""
        return None if self.moves else self.bounds.end

    @property
    def notice_key(self) -> str:
        """What a threshold is announced under, once: `key`, and for a rolling window once in each of its lengths.

        Holds of a rolling window stand under one `key` for ever, but its warnings may come again.
        """
        if not self.moves or self.bounds.start is None:
            return self.key
        return f"{self.key}#{self.bounds.start // (self.budget.window.hours * HOUR)}"

    def told_to(self, user: str) -> Account:
        """The same, but with the key under which something is announced to each user by themselves."""
        where = (*self.filter.where, ("user", user))
        return replace(self, key=account_key(self.budget, where, self.bounds))


def accounts_for(
    budgets: Iterable[Budget], subject: Subject, at: int, zones: Callable[[str], tzinfo], turn: str
) -> tuple[Account, ...]:
    """The accounts of all budgets that match, in the order of the budgets: each must pass, each is charged in full.

    `at` (Unix ns) is the start of the turn with the id `turn`. What `zones` raises for an unknown name goes through.
    """
    return tuple(account_of(each, subject, at, zones(each.zone), turn) for each in budgets if each.matches(subject))


def account_of(budget: Budget, subject: Subject, at: int, zone: tzinfo, turn: str) -> Account:
    """The account of one budget, also for a subject that is not in its scope; `zone` is the budget's."""
    bounds = budget.window.bounds(at, zone)
    value = None if budget.per is None else subject.of(budget.per)
    where = tuple(_where(budget, subject, turn))
    return Account(budget, account_key(budget, where, bounds), Filter(where, budget.scope), bounds, value)


class Standing(Struct, frozen=True):
    """An account with what a ledger knows of it; amounts in the account's unit.

    `spent` is committed, `held` what running turns may still cost, `granted` on top of the limit. `not_counted` is
    spend in currencies that the budget has no rate for. `unpriced` is how many rows have no known price, `untold`
    of how many the agent told less than they used: with any of either `spent` is a lower bound.
    """

    account: Account
    spent: int = 0
    held: int = 0
    granted: int = 0
    not_counted: tuple[Money, ...] = ()
    unpriced: int = 0
    untold: int = 0

    @property
    def at_least(self) -> bool:
        return self.unpriced > 0 or self.untold > 0

    @property
    def allowed(self) -> int:
        return self.account.limit + self.granted

    @property
    def left(self) -> int:
        """What a new hold may take; negative after an overshoot, or if the limit was lowered below the spend."""
        return self.allowed - self.spent - self.held

    @property
    def percent(self) -> int:
        """Spent / allowed in percent, rounded down, so 100 means used up; 100 if nothing is allowed."""
        return 100 if self.allowed <= 0 else self.spent * 100 // self.allowed

    def crossed(self, before: int, after: int) -> tuple[int, ...]:
        """Thresholds that spend reached on its way from `before` to `after`, ascending; none in shadow mode.

        Where nothing is allowed the first spend reaches all of them. Whether one was announced already is the ledger's
        to say, under `Account.notice_key`.
        """
        if self.account.budget.mode == "shadow":
            return ()
        allowed, before, after = self.allowed, before * 100, after * 100
        return tuple([each for each in self.account.budget.thresholds if before < (each * allowed or 1) <= after])


def _where(budget: Budget, subject: Subject, turn: str) -> Iterator[tuple[str, str]]:
    """Each dimension once, the broadest first."""
    yield "organisation", subject.organisation
    if budget.window.name == "turn":
        yield "turn", turn
    elif budget.window.name == "session":  # agents reuse session ids: a session is all five
        yield from (("user", subject.user), ("host", subject.host), ("agent", subject.agent))
        yield "session", booked(subject.session or "")
    elif budget.per is not None:
        yield budget.per, subject.of(budget.per) or ""
    if budget.layer == "flag":
        yield "process", subject.process or ""


def account_key(budget: Budget, where: tuple[tuple[str, str], ...], bounds: Bounds) -> str:
    """JSON, because names may hold any separator. A rolling window moves, so its start is no part of it.

    The unit is: what is held in one currency is no amount of another, nor of tokens.
    """
    start = None if budget.window.name == "rolling" else bounds.start
    whose = dict(where)
    if budget.owner is not None:
        whose.setdefault("user", budget.owner)
    return compact([budget.layer, budget.name, budget.window.text, budget.limit.unit, start, whose])

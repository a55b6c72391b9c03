"""Simulates budgets on past turns: replays rows in the order in which the turns began and ended.

Arithmetic over given rows; reads and changes no ledger. Prices stay as they were booked.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import count

from msgspec import Struct, field
from msgspec.structs import replace

from acp_proxy.core.budget import Account, Budget, Standing, account_of
from acp_proxy.core.budget.charge import charge
from acp_proxy.core.budget.hold_size import RECENT, HoldSize, in_unit
from acp_proxy.core.budget.verdict import decide
from acp_proxy.core.entry import Entry
from acp_proxy.core.windows import Bounds
from acp_proxy.ledger import Row
from acp_proxy.text.times import zone_info


class Outcome(Struct):
    """The decisions of one budget, over all its accounts; times are Unix ns."""

    budget: Budget
    turns: int = 0  # that it was asked about
    warned: int = 0  # whose rows reached a threshold
    refused: int = 0  # that it had too little left for; only with mode "enforce" they do not go on
    first_warned: int | None = None
    first_refused: int | None = None


class Replay(Struct, frozen=True):
    """The decisions of all budgets together."""

    turns: int
    refused: int  # turns, by at least one budget that is enforced
    first: int | None  # start of the first of the turns
    outcomes: tuple[Outcome, ...]  # one a budget


def replay(
    rows: Iterable[Row],
    budgets: Sequence[Budget],
    since: int | None = None,
    spent_before: Callable[[Account], int] = lambda _: 0,
) -> Replay:
    """`rows` by their start. Those before `since` (Unix ns) count as spent and are not replayed.

    A refused turn adds nothing. What others spend meanwhile is held as a running proxy would hold it. `spent_before`
    tells what an account had spent when the first of the rows began, in its unit.
    """
    past = _Past(budgets, spent_before)
    for row in rows:
        past.settle_until(row.entry.started_at)
        past.begin(row, asked=since is None or row.entry.started_at >= since)
    past.settle_until(None)
    return Replay(past.turns, past.refused, past.first, tuple(past.outcomes.values()))


def reaches_back(budgets: Iterable[Budget], since: int | None) -> int | None:
    """The start of the earliest window that `since` is in: rows from then on are needed; None for all.

    Of a window without a start no earlier ones are, for a ledger knows their sum.
    """
    if since is None:
        return None
    starts = (budget.window.bounds(since, zone_info(budget.zone)).start for budget in budgets)
    return min((start for start in starts if start is not None), default=since)


class _Spent(Struct):
    """The spend of one account, whose window may move."""

    total: int = 0
    amounts: list[tuple[int, int]] = field(default_factory=list)  # a heap of (start, amount), where the window moves

    def add(self, start: int, amount: int, *, moves: bool) -> None:
        self.total += amount
        if moves:
            heappush(self.amounts, (start, amount))

    def within(self, bounds: Bounds) -> int:
        while self.amounts and bounds.start is not None and self.amounts[0][0] < bounds.start:
            self.total -= heappop(self.amounts)[1]
        return self.total


class _Past:
    """The state of a replay: rows begin in the order of their starts, and are settled in the order of their ends."""

    def __init__(self, budgets: Sequence[Budget], spent_before: Callable[[Account], int]) -> None:
        self.outcomes = {(budget.layer, budget.name): Outcome(budget) for budget in budgets}
        self.turns = self.refused = 0
        self.first: int | None = None
        self._budgets = budgets
        # A budget of sessions counts all of a session, also what it did before it had a team or a project.
        self._charging = [replace(each, per=None) if each.window.name == "session" else each for each in budgets]
        self._units = {unit for budget in budgets for unit in budget.units}
        self._spent_before = spent_before
        self._spent: dict[str, _Spent] = {}  # by the keys of accounts, as the next
        self._held: Counter[str] = Counter()
        self._lasting: dict[tuple[str | None, ...], Account] = {}
        self._recent: defaultdict[tuple[str | None, ...], deque[int]] = defaultdict(lambda: deque(maxlen=RECENT))
        self._models: dict[tuple[str, ...], str | None] = {}  # the last of each session
        # A heap: a row's end, a number for rows that end together, the row, what it holds, whether budgets were asked.
        self._running: list[tuple[int, int, Row, Mapping[str, int], bool]] = []
        self._number = count()
        self._told: set[tuple[str, int]] = set()

    def begin(self, row: Row, *, asked: bool) -> None:
        holds: Mapping[str, int] | None = {}
        if asked and row.entry.kind == "turn":
            holds = self._admit(row)
        if holds is None:
            return
        self._held.update(holds)
        heappush(self._running, (row.entry.ended_at, next(self._number), row, holds, asked))

    def settle_until(self, at: int | None) -> None:
        """The rows that ended by then; None: all that still run."""
        while self._running and (at is None or self._running[0][0] <= at):
            _, _, row, holds, asked = heappop(self._running)
            self._held.subtract(holds)
            self._settle(row, holds, asked=asked)
            self._remember(row)

    def _admit(self, row: Row) -> Mapping[str, int] | None:
        """The holds by the keys of accounts; None if the turn is refused."""
        at = row.entry.started_at
        self.turns += 1
        self.first = at if self.first is None else self.first
        model = self._models.get(_session(row), row.entry.model)
        accounts = list(self._accounts(self._budgets, row, model))
        standings = [self._standing(account) for account in accounts]
        sizes = [self._size(account.budget, row, model) for account in accounts]
        verdict = decide(standings, sizes, unpriced=row.entry.unpriced)
        for account, decision in verdict.decisions:
            outcome = self.outcomes[account.budget.layer, account.budget.name]
            outcome.turns += 1
            if decision != "allow":
                outcome.refused += 1
                outcome.first_refused = outcome.first_refused or at
        if not verdict.admitted:
            self.refused += 1
            return None
        return {account.key: amount for account, amount in verdict.holds}

    def _settle(self, row: Row, holds: Mapping[str, int], *, asked: bool) -> None:
        warned = set()
        for account in self._charged(row):
            before = self._standing(account)
            amount = charge(account, row.origin, row.entry, hold=holds.get(account.key, 0))
            moves = account.budget.window.name == "rolling"
            self._spent_of(account).add(row.entry.started_at, amount, moves=moves)
            reached = {(account.notice_key, each) for each in before.crossed(before.spent, before.spent + amount)}
            if asked and reached - self._told:
                warned.add((account.budget.layer, account.budget.name))
            self._told |= reached
        for key in warned:
            self.outcomes[key].warned += 1
            self.outcomes[key].first_warned = self.outcomes[key].first_warned or row.entry.ended_at

    def _charged(self, row: Row) -> Iterable[Account]:
        """Whatever was expected when it began: by the models that it used."""
        models = dict.fromkeys(line.model for line in row.entry.lines)
        accounts = (account for model in models for account in self._accounts(self._charging, row, model))
        return {account.key: account for account in accounts}.values()

    def _accounts(self, budgets: Iterable[Budget], row: Row, model: str | None) -> Iterator[Account]:
        """As `accounts_for`; those that last are kept, which halves a long replay."""
        subject, at = row.origin.subject(model, row.entry.session), row.entry.started_at
        for budget in budgets:
            if not budget.matches(subject):
                continue
            kept = (budget.layer, budget.name, subject.organisation, subject.of(budget.per) if budget.per else None)
            account = self._lasting.get(kept)
            if account is None or not account.bounds.cover(at):
                account = account_of(budget, subject, at, zone_info(budget.zone), row.entry.id)
                if budget.window.name not in ("turn", "session", "rolling"):
                    self._lasting[kept] = account
            yield account

    def _standing(self, account: Account) -> Standing:
        return Standing(account, self._spent_of(account).within(account.bounds), self._held[account.key])

    def _spent_of(self, account: Account) -> _Spent:
        if account.key not in self._spent:
            self._spent[account.key] = _Spent(self._spent_before(account))
        return self._spent[account.key]

    def _size(self, budget: Budget, row: Row, model: str | None) -> HoldSize:
        agent = (row.origin.organisation, row.origin.agent)
        own = in_unit(budget, lambda unit: self._recent[(*agent, unit, model, row.origin.user)]) if model else ()
        return HoldSize.of(budget, own, in_unit(budget, lambda unit: self._recent[(*agent, unit)]))

    def _remember(self, row: Row) -> None:
        if row.entry.kind != "turn":
            return
        self._models[_session(row)] = row.entry.model or self._models.get(_session(row))
        for unit, amount in _amounts(row.entry, self._units):
            agent = (row.origin.organisation, row.origin.agent, unit)
            self._recent[agent].append(amount)
            for model in {line.model for line in row.entry.lines}:
                self._recent[(*agent, model, row.origin.user)].append(amount)


def _session(row: Row) -> tuple[str, ...]:
    origin = row.origin
    return origin.organisation, origin.user, origin.host, origin.agent, row.entry.session


def _amounts(entry: Entry, units: Iterable[str]) -> Iterator[tuple[str, int]]:
    """The known usage of a turn in each unit, as `BudgetReader.recent_costs` has it."""
    known = {} if entry.unpriced else {cost.currency: cost.nano for cost in entry.costs}
    if entry.usage.total and entry.usage_source != "none":  # no prompt takes 0: it failed, or only cost is told
        known["tokens"] = entry.usage.total
    known["turns"] = 1
    return ((unit, known[unit]) for unit in units if unit in known)

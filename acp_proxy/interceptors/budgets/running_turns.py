"""Admitted prompts until the ledger has their rows: what they hold, and what they have cost so far.

Knows no ledger. The lease is what ended turns held and did not use: the ledger still holds it for this process, so
prompts may use it while the ledger is unavailable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from acp_proxy.core.budget import Account, Standing
from acp_proxy.core.budget.charge import SoFar, charge
from acp_proxy.core.budget.verdict import MidTurn, mid_turn
from acp_proxy.core.entry import Entry, Origin
from acp_proxy.core.running_costs import RunningCosts
from acp_proxy.core.scope import Scope


class Exceeded(Struct, frozen=True):
    """What `on_exceed` demands of a running turn, with the account that demands it and what the turn adds to it."""

    verdict: MidTurn
    standing: Standing
    estimated: bool


class Running(Struct):
    """One admitted prompt. Amounts are by the keys of accounts, each in its account's unit."""

    id: str
    session: str
    origin: Origin
    model: str | None
    accounts: tuple[Account, ...]
    until: int  # Unix ns: what it holds in the ledger counts until then
    standings: tuple[Standing, ...] = ()  # () while the ledger has not told; `held` in them is what others hold
    held: dict[str, int] = field(default_factory=dict)  # in the ledger
    leased: dict[str, int] = field(default_factory=dict)  # of what other turns of this process left
    charged: Counter[str] = field(default_factory=Counter)  # by rows, of which the ledger may not have told yet
    beside: Counter[str] = field(default_factory=Counter)  # by other turns of this process, since the ledger told
    lease: str | None = None  # of this machine, which pays for it
    started: bool = False
    ended: bool = False  # its row is on its way
    stopped: MidTurn = "nothing"

    def charge(self, entry: Entry, process: str | None) -> Mapping[str, int]:
        """Add a row that the turn caused; returns its charge. Only the turn's own row may be charged what it held."""
        held = self.held if entry.id == self.id else {}
        amounts = {
            account.key: charge(account, self.origin, entry, hold=held.get(account.key, 0), process=process)
            for account in self.accounts
        }
        self.charged.update(amounts)
        return amounts

    def stand(self, standings: Sequence[Standing]) -> None:
        """As the ledger says now, this turn's own holds among the rest."""
        self.standings = tuple(
            replace(standing, held=max(0, standing.held - self.held.get(standing.account.key, 0)))
            for standing in standings
        )
        self.beside.clear()
        if not self.ended:  # else a lease is what its rows did not use
            self.charged.clear()

    def with_spend(self, told: Callable[[Scope], Mapping[str, int]] = lambda _: {}) -> Iterator[tuple[Standing, int]]:
        """How each account stands, and what the turn adds: by its rows, and by a scope's costs so far, by currency."""
        for standing in self.standings:
            account = standing.account
            meanwhile = self.beside[account.key]
            now = replace(standing, spent=standing.spent + meanwhile) if meanwhile else standing
            yield now, self.charged[account.key] + account.budget.counted(told(account.filter.scope))

    @property
    def may_be_stopped(self) -> bool:
        """Whether any account would end the turn if it were used up."""
        return any(standing.account.budget.stops_turns for standing in self.standings)

    def exceeded(self, so_far: Callable[[Account], SoFar]) -> Exceeded | None:
        """The strictest that `on_exceed` wants of the turn at what it adds to each account so far."""
        wanted: dict[MidTurn, Exceeded] = {}
        for standing in self.standings:
            account = standing.account
            if not account.budget.stops_turns:
                continue
            own, now = self.held.get(account.key, 0), _with_rows(so_far(account), self.charged[account.key])
            verdict = mid_turn(replace(standing, held=standing.held + own), own, now.amount)
            after = replace(standing, spent=standing.spent + now.amount)
            wanted.setdefault(verdict, Exceeded(verdict, after, now.estimated))
        return wanted.get("cancel") or wanted.get("deny_next_tool")


def _with_rows(told: SoFar, rows: int) -> SoFar:
    """Costs that the agent reported are added to those of rows; a lower bound by contexts may overlap with rows."""
    if told.estimated and told.amount >= rows:
        return told
    return SoFar(rows if told.estimated else told.amount + rows)


class Turns:
    """The admitted turns of one process, oldest first."""

    def __init__(self) -> None:
        self._turns: dict[str, Running] = {}
        self.costs = RunningCosts()

    def add(self, turn: Running) -> None:
        self._turns[turn.id] = turn

    def get(self, id: str) -> Running | None:
        return self._turns.get(id)

    def forget(self, id: str) -> Running | None:
        return self._turns.pop(id, None)

    def __iter__(self) -> Iterator[Running]:
        return iter(list(self._turns.values()))

    def __bool__(self) -> bool:
        return bool(self._turns)

    def current(self, session: str) -> Running | None:
        """The turn that the session's costs are those of."""
        turns = (turn for turn in self._turns.values() if turn.session == session and turn.started and not turn.ended)
        return next(turns, None)

    def start(self, id: str) -> None:
        turn = self._turns.get(id)
        if turn is None:
            return
        if self.current(turn.session) is None:
            self.costs.begin(turn.session)
        turn.started = True

    def end(self, turn: Running) -> None:
        """Its row is on its way; what costs the session from now on is the next turn's, unless an older one runs."""
        current = self.current(turn.session)
        turn.ended = True
        if current is turn or current is None:
            self.costs.begin(turn.session)

    def charge(self, turn: Running, entry: Entry, process: str | None) -> None:
        """Add a row that the turn caused, of which the others hear before the ledger tells them."""
        amounts = turn.charge(entry, process)
        if entry.id != turn.id or self.current(turn.session) is not turn:
            self.costs.set_aside(turn.session, entry.costs)
        for other in self._turns.values():
            if other is not turn:
                other.beside.update(amounts)

    def lease(self, account: str, now: int) -> int:
        """What this process holds in the ledger for the account, and no running turn may still use."""
        left = 0
        for turn in self._turns.values():
            if turn.ended:
                left += (turn.held.get(account, 0) if turn.until > now else 0) - turn.charged[account]
            else:
                left -= turn.leased.get(account, 0)
        return left

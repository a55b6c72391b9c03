"""Budgets on plans: how far a window of a plan may be used, and whether what follows may be paid beside it.

Only arithmetic on what agents told. What is not known of a window, or no longer, refuses nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from acp_proxy.core.budget import Layer, Mode
from acp_proxy.core.budget.verdict import WHEN_EXHAUSTED, Decision
from acp_proxy.core.plans import FULL, OVERAGE, PlanState, length_of
from acp_proxy.core.scope import DIMENSIONS, EVERYTHING, Scope, Subject
from acp_proxy.core.windows import HOUR

OnOverage = Literal["allow", "deny"]
Reason = Literal["used", "overage"]

REJECTED = "rejected"  # in agents' words: of a window that it takes no prompt, of overage that there is none
_OF_ALL_MODELS = ("five_hour", "seven_day")  # when one of these is full, whatever is used next is beyond the plan
_UNTOLD = 5 * HOUR  # how long a window holds whose name and agent tell nothing of it: as the shortest that is known


class PlanBudget(Struct, frozen=True):
    """A configured budget on the plan of each user's agent in scope. Layer and name identify it."""

    name: str
    layer: Layer
    window: str  # as the agent calls it: five_hour, seven_day, seven_day_opus, …
    percent: int  # of it, at which the budget is used up
    scope: Scope = EVERYTHING
    mode: Mode = "enforce"
    on_overage: OnOverage = "allow"

    def matches(self, subject: Subject) -> bool:
        return all(self.scope.accepts(dimension, subject.of(dimension)) for dimension in DIMENSIONS)


class PlanStanding(Struct, frozen=True):
    """A budget with what is known of one user's plan with one agent. `until` is when `reason` is over."""

    budget: PlanBudget
    user: str
    agent: str
    state: PlanState | None  # of its window; None where that is not known, or was reset since
    reason: Reason | None = None  # for which it is used up
    until: int | None = None

    @property
    def used(self) -> int | None:
        """In millionths of the window."""
        return None if self.state is None else self.state.told.used

    @property
    def left(self) -> int | None:
        """In millionths of the window, until the budget is used up; negative beyond it."""
        return None if self.used is None else self.budget.percent * FULL // 100 - self.used

    @property
    def decision(self) -> Decision:
        return "allow" if self.reason is None else WHEN_EXHAUSTED[self.budget.mode]


def standing_of(budget: PlanBudget, user: str, agent: str, states: Sequence[PlanState], now: int) -> PlanStanding:
    """`states` are the windows of this user's plan with this agent, as they were told last."""
    known = [state for state in states if ends_at(state) > now]
    state = next((each for each in known if each.told.window == budget.window), None)
    if state is not None and _is_used(state, budget.percent):
        return PlanStanding(budget, user, agent, state, "used", ends_at(state))
    until = _paid_until(budget, states, known) if budget.on_overage == "deny" else None
    if until is not None and until > now:
        return PlanStanding(budget, user, agent, state, "overage", until)
    return PlanStanding(budget, user, agent, state)


def binding(standings: Iterable[PlanStanding]) -> PlanStanding | None:
    """Of those that refuse, the one that will refuse for the longest time; None where none does."""
    denied = [each for each in standings if each.decision == "deny"]
    return max(denied, key=lambda each: each.until or 0, default=None)


def ends_at(state: PlanState) -> int:
    """Until when what was told of it holds: its reset, or where that is unknown its whole length."""
    if state.told.resets_at is not None:
        return state.told.resets_at
    return state.told.seen_at + (length_of(state.told.window) or _UNTOLD)


def _is_used(state: PlanState, percent: int) -> bool:
    used = state.told.used
    return state.told.status == REJECTED or (used is not None and used * 100 >= percent * FULL)


def _paid_until(budget: PlanBudget, states: Sequence[PlanState], known: Iterable[PlanState]) -> int | None:
    """Until when a prompt would be paid beside the plan; None where nothing says so.

    What was told last counts. It says of no window that it is the one that is full: with the reset of the first of
    them it may be over.
    """
    latest = max(states, key=lambda state: state.told.seen_at, default=None)
    if latest is not None and latest.told.overage == OVERAGE:
        seen_at = latest.told.seen_at
        return min(end for state in states if (end := ends_at(state)) > seen_at or state is latest)
    full = [
        ends_at(state)
        for state in known
        if state.told.window in (*_OF_ALL_MODELS, budget.window) and _is_used(state, 100)
        if state.told.overage != REJECTED  # then the plan itself takes no prompt, and nothing is paid
    ]
    return max(full, default=None)

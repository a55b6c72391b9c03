"""What a process knows of plans' windows: what its own agent told, and what the ledger has of others'."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from math import inf

from acp_proxy.core.budget.plan_limits import PlanStanding
from acp_proxy.core.entry import Origin
from acp_proxy.core.plans import PlanState, PlanWindow, followed
from acp_proxy.interceptors.budgets.circuit_breaker import CircuitBreaker, in_loop
from acp_proxy.ledger import LedgerError
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.worker import LedgerWorker

_FRESH = 60.0  # seconds for which no prompt waits for the ledger to be read again


class KnownPlans:
    """Used in the event loop; of one user. The ledger is read in its worker's thread."""

    def __init__(self, worker: LedgerWorker, breaker: CircuitBreaker) -> None:
        self._worker = worker
        self._breaker = breaker
        self._states: dict[tuple[str, str], PlanState] = {}  # by agent and window
        self._read_at = -inf  # by the loop's clock

    def of(self, agent: str) -> list[PlanState]:
        return [state for (whose, _), state in self._states.items() if whose == agent]

    def hear(self, origin: Origin, windows: Iterable[PlanWindow]) -> None:
        """What the agent of this connection told."""
        for told in windows:
            key = (origin.agent, told.window)
            self._states[key] = followed(self._states.get(key), origin.user, origin.agent, told)

    async def read(self, origin: Origin) -> None:
        """For a prompt that waits. Without a ledger, what is known has to do."""
        if asyncio.get_running_loop().time() - self._read_at >= _FRESH:
            found = await self._breaker.ask(_reading(origin), self._learn)
            if found is not None:
                self._learn(found)

    def read_again(self, origin: Origin) -> None:
        """After a turn, so that the next prompt need not wait for it."""
        loop, reading = asyncio.get_running_loop(), _reading(origin)

        def read(ledger: BudgetLedger) -> None:
            states = reading(ledger)
            in_loop(loop, lambda: self._learn(states))

        self._worker.ask(read, _later)

    async def is_first(self, organisation: str, standing: PlanStanding) -> bool:
        """Whether this process is the one to say that a budget is used up. Without a ledger it is."""
        state, budget = standing.state, standing.budget
        if state is None:
            return True
        ours = await self._breaker.ask(
            lambda ledger: ledger.announce_plan(organisation, state, budget.percent, budget=budget.name), lambda _: None
        )
        return ours is not False

    def _learn(self, states: Iterable[PlanState]) -> None:
        self._read_at = asyncio.get_running_loop().time()
        for state in states:
            key = (state.agent, state.told.window)
            known = self._states.get(key)
            if known is None or state.told.seen_at > known.told.seen_at:
                self._states[key] = state


def _reading(origin: Origin) -> Callable[[BudgetLedger], list[PlanState]]:
    return lambda ledger: ledger.plans(origin.organisation, origin.user)


def _later(_: LedgerError) -> None:
    """The next prompt asks for itself."""

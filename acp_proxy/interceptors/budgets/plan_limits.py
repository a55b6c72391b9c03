"""Enforces budgets on plans: a prompt is refused while too much of a window is used, or what follows would be paid.

Decides on what agents told: those of this connection as it comes, those of other processes as the ledger has it. What
is not known refuses nobody. Nothing is held, and no turn that runs is ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import Protocol

from acp_proxy.core import acp
from acp_proxy.core.budget.plan_limits import PlanBudget, PlanStanding, binding, standing_of
from acp_proxy.core.effects import Effect
from acp_proxy.core.entry import Entry, Origin
from acp_proxy.core.events import (
    ContextChanged,
    Event,
    Initialized,
    ModelSelected,
    PlanReported,
    PromptDropped,
    SessionClosed,
    SessionOpened,
    Side,
    TurnEnded,
    TurnMetered,
    TurnStarted,
)
from acp_proxy.core.jsonrpc import Request
from acp_proxy.core.notice import refused_by_plan
from acp_proxy.interceptor import Admitted, Interceptor, Refusal
from acp_proxy.interceptors.budgets.circuit_breaker import CircuitBreaker
from acp_proxy.interceptors.budgets.client_messages import ClientMessages
from acp_proxy.interceptors.budgets.known_plans import KnownPlans
from acp_proxy.interceptors.budgets.models import Models
from acp_proxy.interceptors.budgets.rules import Rules
from acp_proxy.ledger.worker import LedgerWorker

Say = Callable[[PlanStanding, int], str]  # a standing, now -> for the user
Tell = Callable[..., None]  # a level, an event and its fields


class Origins(Protocol):
    """The origin of a session's rows. The recorder implements it."""

    def origin_of(self, session: str) -> Origin: ...

    async def origin_when_known(self, session: str, within: float) -> Origin: ...


class PlanLimits(Interceptor):
    """`refusal` and `exceeded` say what becomes of a prompt; `log` is told of what is not known; `clock` is Unix ns."""

    request_methods = frozenset({acp.PROMPT, acp.STEERING, *acp.GOALS})
    admit_timeout = inf
    event_types = frozenset(
        {
            Initialized,
            SessionOpened,
            ModelSelected,
            SessionClosed,
            ContextChanged,
            PlanReported,
            PromptDropped,
            TurnStarted,
            TurnEnded,
            TurnMetered,
        }
    )

    def __init__(
        self,
        rules: Rules,
        worker: LedgerWorker,
        origins: Origins,
        refusal: Say,
        exceeded: Say,
        log: Tell,
        *,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._rules = rules
        self._worker = worker
        self._origins = origins
        self._refusal = refusal
        self._exceeded = exceeded
        self._log = log
        self._clock = clock
        self._messages = ClientMessages(rules.style)
        self._models = Models()
        self._plans = KnownPlans(worker, CircuitBreaker(worker, rules.timeout, rules.opening))
        self._running: dict[str, set[str]] = {}  # turns by session
        self._told: set[tuple[str, str, int | None]] = set()  # of which the user, or the log, has it
        self._untold: dict[str, list[tuple[str, str]]] = {}  # budgets and texts by session
        self._closed = False

    async def admit(self, sender: Side, request: Request) -> Refusal | Admitted | None:  # noqa: ARG002  only clients' wait
        session = acp.session_of(request)
        if session is None or not self._begins_a_turn(request, session):
            return None
        origin = await self._origin(session)
        model = self._rules.concrete(self._models.of(session))
        subject = origin.subject(model, session, self._rules.process)
        budgets = [budget for budget in self._rules.known_of_plans if budget.matches(subject)]
        if not budgets:
            return None
        await self._plans.read(origin)
        standings = self._standings(budgets, origin)
        self._worker.do(lambda ledger: ledger.count_plan_decisions(origin.organisation, standings))
        denied = binding(standings)
        if denied is not None:
            refused = self._refused(session, denied, origin, model)
            return refused if request.method == acp.PROMPT else self._messages.refuse_odd(request)
        await self._note(session, origin, standings)
        return None

    def _begins_a_turn(self, request: Request, session: str) -> bool:
        """A message into a turn that runs is part of it."""
        if request.method == acp.PROMPT:
            return True
        return acp.sets_to_work(request.method, request.params) and not self._running.get(session)

    async def _origin(self, session: str) -> Origin:
        """The project may not be known yet."""
        if any(budget.scope.project for budget in self._rules.known_of_plans):
            return await self._origins.origin_when_known(session, self._rules.timeout / 2)
        return self._origins.origin_of(session)

    def _standings(self, budgets: Sequence[PlanBudget], origin: Origin) -> list[PlanStanding]:
        now = self._clock()
        states = self._plans.of(origin.agent)
        return [standing_of(budget, origin.user, origin.agent, states, now) for budget in budgets]

    def _refused(self, session: str, denied: PlanStanding, origin: Origin, model: str | None) -> Refusal:
        now = self._clock()
        notice = refused_by_plan(denied, origin, model, now)
        self._worker.do(lambda ledger: ledger.outbox.note([notice]))
        name, text = denied.budget.name, self._refusal(denied, now)
        self._log("info", "budget.plan_refused", budget=name, agent=denied.agent, why=denied.reason)
        return self._messages.refuse(session, name, text)

    async def _note(self, session: str, origin: Origin, standings: Sequence[PlanStanding]) -> None:
        """What is to be said of a prompt that goes: once in each window of a plan, whichever process says it."""
        for standing in standings:
            key = (standing.budget.name, standing.agent, standing.until)
            if key in self._told or (standing.reason is None and standing.used is not None):
                continue
            self._told.add(key)
            if standing.decision == "warn" and await self._plans.is_first(origin.organisation, standing):
                text = self._exceeded(standing, self._clock())
                self._untold.setdefault(session, []).append((standing.budget.name, text))
            if standing.reason is None:
                self._log(
                    "info",
                    "budget.plan_unknown",
                    budget=standing.budget.name,
                    agent=standing.agent,
                    window=standing.budget.window,
                    effect="it refuses nobody until the agent tells how much is used",
                )

    async def aclose(self) -> None:
        self._closed = True

    def on_event(self, event: Event) -> Iterable[Effect]:
        match event:
            case PlanReported(session=session, windows=windows):
                self._plans.hear(self._origins.origin_of(session), windows)
            case ContextChanged(session=session) | TurnMetered(entry=Entry(session=session)):
                self._models.learn(session, event)
            case SessionOpened() | ModelSelected(again=False):
                self._models.choose(event)
            case TurnStarted(session=session, turn=turn):
                self._running.setdefault(session, set()).add(turn.id)
                return list(self._tell(session))
            case PromptDropped(session=session, turn=turn):
                self._running.get(session, set()).discard(turn.id)
            case TurnEnded(session=session, turn=turn):
                self._running.get(session, set()).discard(turn.id)
                if not self._closed:
                    self._plans.read_again(self._origins.origin_of(session))
            case Initialized():
                self._messages.meet(event)
            case SessionClosed(session=session):
                self._models.forget(event)
                self._running.pop(session, None)
                self._untold.pop(session, None)
            case _:
                pass
        return ()

    def _tell(self, session: str) -> Iterator[Effect]:
        for budget, text in self._untold.pop(session, ()):
            yield self._messages.say(session, budget, text, first=True)

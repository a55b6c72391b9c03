"""Enforces budgets: a prompt is sent once the ledger holds (reserves) its likely cost; `on_exceed` ends a running turn.

Never books: the recorder appends rows, and these settle holds. All queries run in the worker's thread; only a prompt
waits for the answer, for a bounded time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from functools import partial
from math import inf
from typing import Protocol

from acp_proxy.core import acp
from acp_proxy.core.effects import Effect
from acp_proxy.core.entry import Entry, Origin
from acp_proxy.core.events import (
    ChildSessionSeen,
    ConnectionClosed,
    ContextChanged,
    Event,
    Initialized,
    ModelSelected,
    PromptDropped,
    SessionClosed,
    SessionOpened,
    Side,
    TurnEnded,
    TurnEnding,
    TurnMetered,
    TurnStarted,
)
from acp_proxy.core.jsonrpc import Request
from acp_proxy.core.usage import Usage
from acp_proxy.core.windows import SECOND
from acp_proxy.interceptor import Admitted, Interceptor, Refusal
from acp_proxy.interceptors.budgets.circuit_breaker import CircuitBreaker, in_loop
from acp_proxy.interceptors.budgets.client_messages import ClientMessages
from acp_proxy.interceptors.budgets.heartbeat import Heartbeat
from acp_proxy.interceptors.budgets.ledger_writes import LedgerWrites
from acp_proxy.interceptors.budgets.models import Models
from acp_proxy.interceptors.budgets.prompt_admission import PromptAdmission
from acp_proxy.interceptors.budgets.rules import Ask
from acp_proxy.interceptors.budgets.rules import Rules as Rules
from acp_proxy.interceptors.budgets.running_turns import Running, Turns
from acp_proxy.interceptors.budgets.sizes import Sizes
from acp_proxy.interceptors.budgets.stops import Stops
from acp_proxy.interceptors.budgets.warnings import Warnings
from acp_proxy.ledger import LedgerError, OpenTurn, Warn, log_warning
from acp_proxy.ledger.budgets import BEAT, EXPIRY, BudgetLedger
from acp_proxy.ledger.worker import LedgerWorker

_GATHER = 0.05  # seconds; the row itself is let wait a moment, too
_SOME = Usage(input=1, output=1)


class Origins(Protocol):
    """The origin of a session's rows. The recorder implements it, so that rows and holds have the same one."""

    def origin_of(self, session: str) -> Origin: ...

    async def origin_when_known(self, session: str, within: float) -> Origin: ...


class Budgets(Interceptor):
    """`new_id` makes UUIDv7s, `clock` is Unix time in nanoseconds, `beat` in seconds; `warn` is told in the ledger's
    thread of budgets that cannot be applied; `ask` puts a question to the client.
    """

    request_methods = frozenset({acp.PROMPT, acp.STEERING, *acp.GOALS})
    admit_timeout = inf
    event_types = frozenset(
        {
            Initialized,
            SessionOpened,
            ModelSelected,
            SessionClosed,
            ChildSessionSeen,
            TurnStarted,
            PromptDropped,
            ContextChanged,
            TurnEnding,
            TurnEnded,
            TurnMetered,
            ConnectionClosed,
        }
    )

    def __init__(
        self,
        rules: Rules,
        worker: LedgerWorker,
        origins: Origins,
        new_id: Callable[[int], str],
        *,
        clock: Callable[[], int] = time.time_ns,
        beat: float = BEAT / SECOND,
        warn: Warn = log_warning,
        ask: Ask | None = None,
    ) -> None:
        self._rules = rules
        self._worker = worker
        self._origins = origins
        self._new_id = new_id
        self._clock = clock
        self._owner = worker.owner
        self._models = Models()
        self._sizes = Sizes()
        self._turns = Turns()
        self._lease = None if rules.central is None else rules.central.lease_store
        self._borrowing = False
        self._messages = messages = ClientMessages(rules.style)
        self._writes = writes = LedgerWrites(worker, self._turns, self._lease)
        self._warnings = Warnings(worker, messages, clock, warn, estimate=rules.estimate)
        self._stops = Stops(self._turns, messages, writes.count, writes.note, rules.price, clock, asks=rules.asks)
        self._heartbeat = Heartbeat(worker, self._turns, clock, beat)
        breaker = CircuitBreaker(worker, rules.timeout, rules.opening)
        self._admission = PromptAdmission(
            rules, breaker, self._turns, self._sizes, writes, messages, self._warnings, clock, worker, ask
        )
        self._roots: dict[str, str] = {}  # of subagents' sessions
        self._closed = False

    @property
    def idle(self) -> bool:
        """Nothing is held, and no timer runs."""
        return not self._turns and not self._heartbeat.beats

    # -- admission

    async def admit(self, sender: Side, request: Request) -> Refusal | Admitted | None:  # noqa: ARG002  only clients' wait
        named = acp.session_of(request)
        if self._closed:
            return None
        session = self._roots.get(named or "", named or "")  # a turn is booked to the session that the user sees
        at = self._clock()
        began = asyncio.get_running_loop().time()
        origin = await self._origin(session)
        model = self._rules.concrete(self._models.of(session))
        turn = OpenTurn(self._new_id(at), origin, session, at, self._owner, model, self._rules.process)
        subject = origin.subject(model, session, self._rules.process)
        accounts = self._rules.accounts_of(subject, at, turn.id)
        if not accounts and self._rules.central is None:
            return None
        if request.method != acp.PROMPT or named is None:
            enforced = any(account.enforced for account in accounts)
            return self._messages.refuse_odd(request) if enforced and self._may_begin_a_turn(request, session) else None
        running = Running(turn.id, session, origin, model, accounts, at + EXPIRY)
        self._turns.add(running)
        self._heartbeat.start()
        waited = asyncio.get_running_loop().time() - began
        try:
            verdict = await self._admission.on(request, turn, running, waited, unpriced=self._unpriced(turn))
        except BaseException:
            self._writes.release(running.id)
            raise
        if isinstance(verdict, Refusal) or self._closed:
            self._writes.release(running.id)
        self._follow()
        if isinstance(verdict, Admitted):
            self._borrow(turn, running)
        return verdict

    def _borrow(self, turn: OpenTurn, running: Running) -> None:
        """Once the hub has let a prompt go: something for those that come when it does not answer."""
        central, loop = self._rules.central, asyncio.get_running_loop()
        accounts = [
            account
            for account in running.accounts
            if account.enforced and (account.budget.on_unavailable or self._rules.on_unavailable) == "lease"
        ]
        keys = [account.key for account in accounts if account.budget.window.name != "turn"]
        if central is None or self._borrowing or not running.standings or not keys:
            return
        if not central.lease_store.is_due(keys):
            return
        self._borrowing = True
        wants = [(account, self._sizes.of(account, turn.origin, turn.model)) for account in accounts]

        def borrow(ledger: BudgetLedger) -> None:
            central.borrow(ledger, turn, wants, self._clock())
            in_loop(loop, done)

        def done() -> None:
            self._borrowing = False

        self._worker.ask(borrow, lambda _: in_loop(loop, done))

    def _follow(self) -> None:
        """The hub's policy was another one than is known here, or none is: the next prompts know it."""
        central = self._rules.central
        if central is not None and self._admission.policy not in (None, central.tag):
            self._worker.ask(central.refresh, _follow_later)

    def _may_begin_a_turn(self, request: Request, session: str) -> bool:
        """A message into a running turn is part of that turn. Without such a turn it would begin one without a hold."""
        if request.method == acp.PROMPT:
            return acp.may_name_session(request.params)
        return acp.sets_to_work(request.method, request.params) and not self._stops.runs(session)

    async def _origin(self, session: str) -> Origin:
        """The project may not be known yet; the wait for it must leave time for the ledger."""
        if any(budget.per == "project" or budget.scope.project for budget in self._rules.known):
            return await self._origins.origin_when_known(session, self._rules.timeout / 2)
        return self._origins.origin_of(session)

    def _unpriced(self, turn: OpenTurn) -> str | None:
        """The name of the model of a turn whose cost will never be known."""
        if self._models.costs_are_told(turn.session):
            return None
        if turn.model is None:
            name = self._models.of(turn.session) or "this session's model"
            return name if self._models.was_unpriced(turn.session) else None
        return turn.model if self._rules.price(turn.model, _SOME, turn.started_at).cost is None else None

    async def aclose(self) -> None:
        self._heartbeat.stop()

    # -- what happens then

    def on_event(self, event: Event) -> Iterable[Effect]:
        match event:
            case ContextChanged():
                return self._costs_changed(event)
            case TurnMetered():
                return self._metered(event)
            case TurnStarted(turn=turn):
                self._turns.start(turn.id)
                return self._stops.on_event(event)
            case PromptDropped(turn=turn):
                effects = self._stops.on_event(event)  # first: it is forgotten with what it held
                self._writes.release(turn.id)
                return effects
            case _:
                self._note(event)
                return self._stops.on_event(event)

    def _note(self, event: Event) -> None:
        match event:
            case Initialized():
                self._messages.meet(event)
                self._worker.ask(_open if self._rules.central is None else self._rules.central.refresh, _open_later)
            case SessionOpened() | ModelSelected(again=False):
                self._models.choose(event)
            case SessionClosed(session=session, deleted=deleted):
                self._models.forget(event)
                self._roots = {child: root for child, root in self._roots.items() if root != session}
                if deleted:  # one that is only closed goes on from what it cost
                    self._turns.costs.forget([session])
            case ChildSessionSeen(session=session, child=child):
                self._roots[child] = session
            case ConnectionClosed():
                self._closed = True
                for running in self._turns:
                    if not running.started:
                        self._writes.release(running.id)

    def _costs_changed(self, event: ContextChanged) -> Iterable[Effect]:
        self._learn(event.session, event)
        running = None if event.restored else self._turns.current(event.session)
        if running is None:
            return ()
        self._foresee(running, event)
        return self._stops.judge(running, event)

    def _foresee(self, running: Running, event: ContextChanged) -> None:
        """The agent's own cost will be booked, unless the user has configured the model's price."""
        told = partial(self._turns.costs.of, event.session)
        if told() and not self._rules.price(event.state.model, _SOME, event.at).configured:
            self._warnings.foresee(running.with_spend(told))

    def _metered(self, event: TurnMetered) -> Iterable[Effect]:
        entry = event.entry
        running = self._turns.get(entry.id) or self._turns.current(entry.session)
        self._learn(entry.session, event)
        if running is None:
            return ()
        self._turns.charge(running, entry, self._rules.process)
        if running.id != entry.id:
            return ()
        self._turns.end(running)
        self._settle(running, entry)
        crossed = self._warnings.at_turn_end(running.session, running.with_spend())  # an older turn may go on
        return [*crossed, *self._warnings.uncounted(running, entry, self._rules.process)]

    def _settle(self, running: Running, entry: Entry) -> None:
        """The row was handed to the ledger before; once it is appended, nothing is held any more."""
        loop, lease = asyncio.get_running_loop(), self._lease if running.lease else None
        if lease is not None:
            lease.charge(running.id, running.charged)

        def settled(ledger: BudgetLedger) -> None:
            if lease is not None:
                lease.settled(running.id)
            self._sizes.learn(ledger, running.accounts, running.origin, running.model or entry.model, anew=True)
            in_loop(loop, lambda: self._turns.forget(running.id))

        loop.call_later(_GATHER, self._worker.do, settled)

    def _learn(self, session: str, event: ContextChanged | TurnMetered) -> None:
        self._turns.costs.hear(event)
        self._models.learn(session, event)


def _open(_: BudgetLedger) -> None:
    """The first prompt is to find the ledger open: that may take longer than a prompt waits, on a busy machine."""


def _follow_later(_: LedgerError) -> None:
    """The hub's next answer says again that there is another one."""


def _open_later(_: LedgerError) -> None:
    """The first prompt tries again."""

"""Enforces budgets: a prompt goes when the ledger holds what it may cost, and a running turn ends as `on_exceed` says.

It never books anything: rows are the recorder's, and settle what was held. All it asks the ledger it asks in the
worker's thread; only a prompt waits for the answer, for a bounded time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import tzinfo
from typing import Literal, Protocol

from msgspec import Struct

from acp_proxy.core import acp
from acp_proxy.core.budget import Account, Budget, OnUnavailable, accounts_for
from acp_proxy.core.effects import Effect
from acp_proxy.core.entry import Entry, Origin
from acp_proxy.core.events import (
    ConnectionClosed,
    ContextChanged,
    Event,
    Initialized,
    ModelSelected,
    PromptDropped,
    SessionClosed,
    SessionOpened,
    Side,
    TurnMetered,
    TurnStarted,
)
from acp_proxy.core.jsonrpc import Request
from acp_proxy.core.notice import Notice
from acp_proxy.core.pricing import Priced
from acp_proxy.core.refusal import refusal_text, unreachable_text
from acp_proxy.core.scope import Subject
from acp_proxy.core.usage import Usage
from acp_proxy.core.verdict import denies_unpriced
from acp_proxy.interceptor import Admitted, Interceptor, Refusal
from acp_proxy.interceptors.budgets.asking import Asking
from acp_proxy.interceptors.budgets.pulse import Pulse
from acp_proxy.interceptors.budgets.running import Running, Turns
from acp_proxy.interceptors.budgets.sizes import Sizes
from acp_proxy.interceptors.budgets.stops import Stops
from acp_proxy.interceptors.budgets.voice import Voice
from acp_proxy.interceptors.budgets.warnings import Warnings
from acp_proxy.ledger import LedgerError
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger, Decision, Held, OpenTurn
from acp_proxy.ledger.owners import Owner
from acp_proxy.ledger.worker import LedgerWorker
from acp_proxy.times import zone

_GATHER = 0.05  # seconds; the row itself is let wait a moment, too
_SOME = Usage(input=1, output=1)
_MARGIN = 5.0  # seconds; it bounds itself, and must not be passed over because the loop was busy


class Rules(Struct, frozen=True):
    """What is configured, and what the catalog knows. `concrete` is the model that a name stands for, if it is one."""

    budgets: tuple[Budget, ...]
    process: str | None = None  # names this run, where a budget is given as its flag
    style: Literal["message", "error"] = "message"
    on_unavailable: OnUnavailable = "local"
    timeout: float = 0.25  # seconds
    concrete: Callable[[str | None], str | None] = lambda model: model
    price: Callable[[str | None, Usage, int], Priced] = lambda _model, _usage, _at: Priced(None)


class Origins(Protocol):
    """Who and where a session's rows are booked to: the recorder, so that it is the same in rows and holds."""

    def origin_of(self, session: str) -> Origin: ...

    async def origin_when_known(self, session: str, within: float) -> Origin: ...


class Budgets(Interceptor):
    """`new_id` makes UUIDv7s, `clock` is Unix time in nanoseconds, `beat` in seconds."""

    admits = frozenset({acp.PROMPT})

    def __init__(
        self,
        rules: Rules,
        worker: LedgerWorker,
        origins: Origins,
        new_id: Callable[[int], str],
        *,
        clock: Callable[[], int] = time.time_ns,
        beat: float = 10.0,
    ) -> None:
        self.admits_within = rules.timeout + _MARGIN
        self._rules = rules
        self._worker = worker
        self._origins = origins
        self._new_id = new_id
        self._clock = clock
        self._owner = Owner.this()
        self._asking = Asking(worker, rules.timeout)
        self._sizes = Sizes()
        self._voice = Voice(rules.style)
        self._turns = Turns()
        self._warnings = Warnings(worker, self._voice, clock, _tzinfo)
        self._stops = Stops(self._turns, self._voice, self._count, self._note_elsewhere, rules.price, clock, _tzinfo)
        self._pulse = Pulse(worker, self._turns, clock, beat)
        self._models: dict[str, str | None] = {}  # by session
        self._agents_price: set[str] = set()  # sessions whose agent tells what they cost
        self._closed = False

    @property
    def idle(self) -> bool:
        """Nothing is held, and no timer runs."""
        return not self._turns and not self._pulse.beats

    # -- admission

    async def admit(self, sender: Side, request: Request) -> Refusal | Admitted | None:  # noqa: ARG002  only clients' wait
        session = acp.session_of(request)
        if session is None or self._closed:
            return None
        at = self._clock()
        began = asyncio.get_running_loop().time()
        origin = await self._origin(session)
        model = self._rules.concrete(self._models.get(session))
        turn = OpenTurn(self._new_id(at), origin, session, at, self._owner, model, self._rules.process)
        accounts = accounts_for(self._rules.budgets, _subject(turn), at, _tzinfo, turn.id)
        if not accounts:
            return None
        running = Running(turn.id, session, origin, model, accounts, at + EXPIRY)
        self._turns.add(running)
        self._pulse.start()
        waited = asyncio.get_running_loop().time() - began
        try:
            verdict = await self._decided(turn, running, waited)
        except BaseException:
            self._release(running.id)
            raise
        if isinstance(verdict, Refusal) or self._closed:
            self._release(running.id)
        return verdict

    async def _origin(self, session: str) -> Origin:
        """The project may still be looked for; the ledger is to have some of the time, too."""
        if any(budget.per == "project" or budget.scope.project for budget in self._rules.budgets):
            return await self._origins.origin_when_known(session, self._rules.timeout / 2)
        return self._origins.origin_of(session)

    async def _decided(self, turn: OpenTurn, running: Running, waited: float) -> Refusal | Admitted:
        unpriced = self._unpriced(turn)

        def hold(ledger: BudgetLedger) -> Held:
            self._sizes.learn(ledger, running.accounts, turn.origin, turn.model)
            sizes = [self._sizes.of(account, turn.origin, turn.model) for account in running.accounts]
            wants = list(zip(running.accounts, sizes, strict=True))
            held = ledger.hold(turn, wants, self._clock(), self._clock() + EXPIRY, unpriced=unpriced)
            if held.admitted:
                self._warnings.claim(ledger, held.standings)
            return held

        held = await self._asking.ask(hold, lambda late: self._hold(running, late), waited)
        if held is None:
            return self._without_ledger(running)
        self._hold(running, held)
        binding = held.admission.binding
        if binding is None:
            return Admitted(turn.id, tuple(self._warnings.on_admission(turn.session, held.standings)))
        self._turns.forget(running.id)  # nothing is held
        model = turn.model if unpriced and denies_unpriced(binding.account) else None
        zone = _tzinfo(binding.account.budget.zone)
        text = refusal_text(binding, self._clock(), zone, unpriced_model=model)
        return self._voice.refuse(turn.session, binding.account, text)

    def _without_ledger(self, running: Running) -> Refusal | Admitted:
        """What `on_unavailable` says: go, stay, or go with what this process holds already."""
        now = self._clock()
        opened: list[Account] = []
        for account in running.accounts:
            if not account.enforced:
                continue
            policy = account.budget.on_unavailable or self._rules.on_unavailable
            size = self._sizes.of(account, running.origin, running.model)
            left = size.within(self._turns.lease(account.key, now)) if policy == "local" else None
            if policy == "open":
                opened.append(account)
            elif left is None:
                self._count([account], "fail_closed")
                return self._voice.refuse(running.session, account, unreachable_text(account))
            else:
                running.leased[account.key] = left
        if opened:
            self._count(opened, "fail_open")
        return Admitted(running.id)

    def _count(self, accounts: Sequence[Account], decision: Decision) -> None:
        self._worker.do(lambda ledger: ledger.count_decisions([(account, decision) for account in accounts]))

    def _note_elsewhere(self, notice: Notice) -> None:
        self._worker.do(lambda ledger: ledger.outbox.note([notice]))

    def _hold(self, running: Running, held: Held) -> None:
        """The ledger's answer, which may come when the prompt has gone without it."""
        running.held = {account.key: amount for account, amount in held.admission.holds}
        running.standings = held.standings

    def _release(self, turn: str) -> None:
        """It used nothing, and never will. After what was asked before, so that nothing of it stays held."""
        running = self._turns.forget(turn)
        if running is not None:
            organisation = running.origin.organisation
            self._worker.do(lambda ledger: ledger.release(organisation, turn))

    def _unpriced(self, turn: OpenTurn) -> bool:
        """Whether it is known that nobody will know what the turn costs."""
        if turn.model is None or turn.session in self._agents_price:
            return False
        return self._rules.price(turn.model, _SOME, turn.started_at).cost is None

    async def aclose(self) -> None:
        self._pulse.stop()

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
                self._release(turn.id)
            case _:
                self._note(event)
                return self._stops.on_event(event)
        return ()

    def _note(self, event: Event) -> None:
        match event:
            case Initialized():
                self._voice.meet(event)
                self._worker.ask(_open, _open_later)
            case SessionOpened(session=session, model=str(model)) | ModelSelected(session=session, model=model):
                self._models[session] = model
            case SessionClosed(session=session):
                self._models.pop(session, None)
                self._agents_price.discard(session)
                self._turns.costs.forget([session])
            case ConnectionClosed():
                self._closed = True
                for running in self._turns:
                    if not running.started:
                        self._release(running.id)

    def _costs_changed(self, event: ContextChanged) -> Iterable[Effect]:
        self._learn(event.session, event)
        running = None if event.restored else self._turns.current(event.session)
        if running is None:
            return ()
        self._warnings.foresee(running.with_spend(self._turns.costs.of(event.session)))
        return self._stops.judge(running, event)

    def _metered(self, event: TurnMetered) -> Iterable[Effect]:
        entry = event.entry
        running = self._turns.get(entry.id) or self._turns.current(entry.session)
        self._learn(entry.session, event)
        if running is None:
            return ()
        running.charge(entry, self._rules.process)
        if running.id != entry.id:
            return ()
        self._turns.end(running)
        self._settle(running, entry)
        return self._warnings.at_turn_end(running.session, running.with_spend(self._turns.costs.of(running.session)))

    def _settle(self, running: Running, entry: Entry) -> None:
        """When the row is in the ledger, which it was given first, nothing is held any more."""
        loop = asyncio.get_running_loop()

        def settled(ledger: BudgetLedger) -> None:
            self._sizes.learn(ledger, running.accounts, running.origin, running.model or entry.model, anew=True)
            self._pulse.in_loop(loop, lambda: self._turns.forget(running.id))

        loop.call_later(_GATHER, self._worker.do, settled)

    def _learn(self, session: str, event: ContextChanged | TurnMetered) -> None:
        self._turns.costs.hear(event)
        self._models[session] = event.state.model or self._models.get(session)
        if event.state.agent_cost is not None:
            self._agents_price.add(session)


def _open(_: BudgetLedger) -> None:
    """The first prompt is to find the ledger open: that may take longer than a prompt waits, on a busy machine."""


def _open_later(_: LedgerError) -> None:
    """The first prompt tries again."""


def _subject(turn: OpenTurn) -> Subject:
    who = turn.origin
    return Subject(
        who.organisation, who.user, who.team, who.project, who.host, who.agent, turn.model, turn.session, turn.process
    )


def _tzinfo(name: str) -> tzinfo:
    info = zone(name).info
    if info is None:
        raise ValueError(f"not a time zone: {name}")
    return info

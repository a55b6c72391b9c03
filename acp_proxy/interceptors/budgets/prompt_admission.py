"""Decides on a prompt: the ledger must hold its likely cost; without a ledger `on_unavailable` decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from acp_proxy.core.budget import Account, OnUnavailable, Standing
from acp_proxy.core.budget.refusal import may_be_asked_for, refusal_text, unchecked_text, unreachable_text
from acp_proxy.core.budget.verdict import denies_unpriced
from acp_proxy.core.effects import Send
from acp_proxy.interceptor import Admitted, Refusal
from acp_proxy.interceptors.budgets.answers import Answers
from acp_proxy.interceptors.budgets.circuit_breaker import CircuitBreaker
from acp_proxy.interceptors.budgets.client_messages import ClientMessages
from acp_proxy.interceptors.budgets.ledger_writes import LedgerWrites
from acp_proxy.interceptors.budgets.rules import Ask, Rules
from acp_proxy.interceptors.budgets.running_turns import Running, Turns
from acp_proxy.interceptors.budgets.sizes import Sizes
from acp_proxy.interceptors.budgets.warnings import Warnings
from acp_proxy.ledger import OpenTurn
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger, Held
from acp_proxy.ledger.worker import LedgerWorker
from acp_proxy.text.times import zone_info

if TYPE_CHECKING:
    from acp_proxy.core.jsonrpc import Request
    from acp_proxy.interceptors.budgets.asking import Asking

_WHOSE: Mapping[str, Literal["process", "machine"]] = {"local": "process", "lease": "machine"}


class PromptAdmission:
    """For one connection. Called in the event loop; queries to the ledger run in its own thread."""

    def __init__(
        self,
        rules: Rules,
        breaker: CircuitBreaker,
        turns: Turns,
        sizes: Sizes,
        writes: LedgerWrites,
        messages: ClientMessages,
        warnings: Warnings,
        clock: Callable[[], int],
        worker: LedgerWorker,
        ask: Ask | None,
    ) -> None:
        """Without `ask` nobody is asked in the editor."""
        self._rules = rules
        self._breaker = breaker
        self._turns = turns
        self._sizes = sizes
        self._writes = writes
        self._messages = messages
        self._warnings = warnings
        self._clock = clock
        self.policy: str | None = None  # the ETag of the one that the hub last decided by
        self._answers = Answers(messages, clock, asks=rules.asks)
        self._worker = worker
        self._ask = ask
        self._asking: Asking | None = None  # once somebody may be asked
        self._unchecked: set[str] = set()  # accounts of which it was told: once, though a ledger may come and go

    async def on(
        self, request: Request, turn: OpenTurn, running: Running, waited: float, *, unpriced: str | None
    ) -> Refusal | Admitted:
        """`waited` seconds are gone of the time for it. `unpriced` names its model where that has no price."""

        def hold(ledger: BudgetLedger) -> Held:
            self._sizes.learn(ledger, running.accounts, turn.origin, turn.model)
            sizes = [self._sizes.of(account, turn.origin, turn.model) for account in running.accounts]
            wants = list(zip(running.accounts, sizes, strict=True))
            held = ledger.hold(turn, wants, self._clock(), self._clock() + EXPIRY, unpriced=unpriced is not None)
            if held.admitted:
                self._warnings.claim(ledger, held.standings, turn.origin.user)
            self._answers.look(ledger)
            return held

        held = await self._breaker.ask(hold, lambda late: self._hold(running, late), waited)
        if held is None:
            return self._without_ledger(running, unpriced)
        self._hold(running, held)
        self.policy = held.policy
        binding = held.verdict.binding
        if binding is None:
            said = self._answers.on_admission(turn.session)
            return Admitted(turn.id, (*said, *self._warnings.on_admission(turn.session, held.standings)))
        self._turns.forget(running.id)  # nothing is held
        if denies_unpriced(binding.account) and unpriced is not None:
            return self._refused(turn.session, binding, unpriced)
        return await self._asked(request, turn, binding, self._refused(turn.session, binding, None))

    async def _asked(self, request: Request, turn: OpenTurn, binding: Standing, refusal: Refusal) -> Refusal:
        """What the user is told, once asked whether to ask for more, where that may be."""
        how = self._messages.can_be_asked(self._rules.ask)
        if self._ask is None or how is None or not (self._rules.asks and may_be_asked_for(binding.account)):
            return refusal
        if self._asking is None:
            from acp_proxy.interceptors.budgets.asking import Asking

            self._asking = Asking(
                self._rules, self._breaker, self._worker, self._messages, self._answers, self._clock, self._ask
            )
        return await self._asking.instead_of(refusal, request, turn, binding, how)

    def _refused(self, session: str, binding: Standing, unpriced_model: str | None) -> Refusal:
        zone = zone_info(binding.account.budget.zone)
        text = refusal_text(
            binding,
            self._clock(),
            zone,
            unpriced_model=unpriced_model,
            asks=self._rules.asks,
            further=self._answers.waits(binding.account),
        )
        text += self._answers.on_refusal()
        return self._messages.refuse(session, binding.account.budget.name, text)

    def _without_ledger(self, running: Running, unpriced: str | None) -> Refusal | Admitted:
        """What `on_unavailable` says: send, refuse, or send within what this machine was lent or this process holds.

        A model without a price is known without the ledger.
        """
        now = self._clock()
        opened: list[Account] = []
        lent = self._draw(running)
        for account in running.accounts:
            if not account.enforced:
                continue
            if unpriced is not None and denies_unpriced(account):
                self._writes.count([account], "fail_closed")
                self._writes.give_up_lease(running)
                return self._refused(running.session, Standing(account), unpriced)
            policy = self._policy(account)
            if lent and policy == "lease":
                continue
            size = self._sizes.of(account, running.origin, running.model)
            left = size.within(self._turns.lease(account.key, now)) if policy in ("local", "lease") else None
            if policy == "open":
                opened.append(account)
            elif left is None:
                self._writes.count([account], "fail_closed")
                self._writes.give_up_lease(running)
                text = unreachable_text(account, leased=_WHOSE.get(policy))
                return self._messages.refuse(running.session, account.budget.name, text)
            else:
                running.leased[account.key] = left
        if opened:
            self._writes.count(opened, "fail_open")
        return Admitted(running.id, tuple(self._tell_unchecked(running.session, opened)))

    def _draw(self, running: Running) -> bool:
        """Whether the lease of this machine pays for the prompt."""
        central = self._rules.central
        sizes = {
            account.key: self._sizes.of(account, running.origin, running.model)
            for account in running.accounts
            if account.enforced and self._policy(account) == "lease" and account.budget.window.name != "turn"
        }
        if central is not None and sizes:
            running.lease = central.lease_store.draw(running.id, sizes, running.session)
        return running.lease is not None

    def _policy(self, account: Account) -> OnUnavailable:
        return account.budget.on_unavailable or self._rules.on_unavailable

    def _tell_unchecked(self, session: str, opened: Sequence[Account]) -> Iterator[Send]:
        for account in opened:
            if account.key not in self._unchecked:
                self._unchecked.add(account.key)
                yield self._messages.say(session, account.budget.name, unchecked_text(account), first=True)

    def _hold(self, running: Running, held: Held) -> None:
        """The ledger's answer, which may arrive after the prompt was sent without it."""
        running.held = {account.key: amount for account, amount in held.verdict.holds}
        running.accounts = tuple(standing.account for standing in held.standings)  # a hub knows which of its own
        running.standings = held.standings

"""Asks a refused user in the editor whether to ask for more, and asks the hub for what they fill in.

Loaded once somebody may be asked. Of one account and window a user is asked once, over all processes and machines; not
while a request of theirs waits, and not once one was denied.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

from msgspec.structs import replace

from acp_proxy.core.acp.questions import call_over_line, choice_line, chosen, filled_in, form_line
from acp_proxy.core.budget import Account, Standing
from acp_proxy.core.budget.asking import ASKED, choices, fields, question, title, was_denied, wish
from acp_proxy.core.budget.refusal import refusal_text
from acp_proxy.core.budget.requests import MoreRequest, Wish
from acp_proxy.core.effects import Send
from acp_proxy.core.events import Side
from acp_proxy.core.jsonrpc import Request, Response
from acp_proxy.interceptor import Refusal
from acp_proxy.interceptors.budgets.answers import Answers, asked_text
from acp_proxy.interceptors.budgets.circuit_breaker import CircuitBreaker, in_loop
from acp_proxy.interceptors.budgets.client_messages import ClientMessages
from acp_proxy.interceptors.budgets.rules import Ask, Rules
from acp_proxy.ledger import LedgerError, OpenTurn
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.worker import LedgerWorker
from acp_proxy.text.times import zone_info

_WITHIN = 10.0  # seconds that a prompt waits until the hub has a request, or as long as it waits for the hub at all
_ON_ITS_WAY = "Your request for more is on its way: `acp-proxy budget requests --own` lists it once the hub has it."

How = Literal["form", "choice"]


class Asking:
    """Of one connection. Called in the event loop; queries to the ledger run in its own thread."""

    def __init__(
        self,
        rules: Rules,
        breaker: CircuitBreaker,
        worker: LedgerWorker,
        messages: ClientMessages,
        answers: Answers,
        clock: Callable[[], int],
        ask: Ask,
    ) -> None:
        self._rules = rules
        self._breaker = breaker
        self._worker = worker
        self._messages = messages
        self._answers = answers
        self._clock = clock
        self._ask = ask
        self._within = max(_WITHIN, rules.timeout)
        self._asked: set[str] = set()  # accounts by what is announced under

    async def instead_of(
        self, refusal: Refusal, request: Request, turn: OpenTurn, standing: Standing, how: How
    ) -> Refusal:
        """The refusal of a prompt, once its user was asked: as it was, or with what became of their answer."""
        account = standing.account
        if account.budget.window.name == "turn":
            return refusal
        asked = _Asked(turn.session, standing, how, question(standing, self._clock(), zone_info(account.budget.zone)))
        found = await self._looked(account, turn.origin.user)
        if isinstance(found, MoreRequest):
            self._answers.wait_for(found)
            return self._refused(asked, further=asked_text(found))
        if not found:
            return refusal
        answer = self._ask(request, asked.line)
        await asyncio.wait({answer}, timeout=self._rules.ask_timeout)
        if not answer.done():  # the form may be filled in all the same
            answer.add_done_callback(partial(self._late, asked))
            return asked.over(refusal)
        if answer.cancelled():
            return asked.over(self._messages.cancelled())
        return asked.over(await self._answered(asked, answer.result()) or refusal)

    async def _looked(self, account: Account, user: str) -> bool | MoreRequest:
        """Whether the user is to be asked; or their request, if one waits."""
        told = account.told_to(user)
        key = told.notice_key
        if key in self._asked:
            return False
        self._asked.add(key)

        def look(ledger: BudgetLedger) -> bool | MoreRequest:
            made = [each for each in ledger.requests(own=True) if each.wish.is_of(account)]
            waiting = next((each for each in made if each.state == "pending"), None)
            return waiting or (not was_denied(account, made) and ledger.announce(told, ASKED))

        found = await self._breaker.ask(look, lambda _: None)
        if found is None:  # out of reach: perhaps with the next prompt
            self._asked.discard(key)
        return found or False

    async def _answered(self, asked: _Asked, response: Response | None) -> Refusal | None:
        """What the user is told in place of the refusal."""
        content = None if response is None else asked.filled_in(response)
        if content is None:
            return None
        try:
            wished = asked.wish(content)
        except ValueError as error:
            return self._refused(asked, also=f"Nothing was asked for: {error}.")
        kept = await self._filed(wished)
        match kept:
            case MoreRequest():
                self._answers.wait_for(kept)
                return self._refused(asked, further=asked_text(kept))
            case LedgerError():
                return self._refused(asked, also=f"More could not be asked for: {kept}.")
        return self._refused(asked, further=_ON_ITS_WAY)

    async def _filed(self, wished: Wish) -> MoreRequest | LedgerError | None:
        """As the hub has it; None if it does not say so in time."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[MoreRequest | LedgerError] = loop.create_future()

        def arrived(said: MoreRequest | LedgerError) -> None:
            if not answer.done():
                answer.set_result(said)

        self._file(wished, lambda said: in_loop(loop, lambda: arrived(said)))
        await asyncio.wait({answer}, timeout=self._within)
        return answer.result() if answer.done() else None

    def _file(self, wished: Wish, told: Callable[[MoreRequest | LedgerError], None]) -> None:
        """`told` is called in the ledger's thread."""
        self._answers.expect()
        self._worker.ask(lambda ledger: told(ledger.ask_for_more(wished)), told, within=self._within)

    def _late(self, asked: _Asked, answer: asyncio.Future[Response | None]) -> None:
        """The prompt was refused meanwhile: the next one tells what became of it."""
        response = None if answer.cancelled() else answer.result()
        content = None if response is None else asked.filled_in(response)
        if content is not None:
            try:
                wished = asked.wish(content)
            except ValueError:
                return
            self._file(wished, lambda _: None)

    def _refused(self, asked: _Asked, *, further: str | None = None, also: str = "") -> Refusal:
        budget = asked.standing.account.budget
        text = refusal_text(
            asked.standing, self._clock(), zone_info(budget.zone), asks=self._rules.asks, further=further
        )
        return self._messages.refuse(asked.session, budget.name, f"{text} {also}".rstrip())


class _Asked:
    """One question, and what its answers mean."""

    def __init__(self, session: str, standing: Standing, how: How, text: str) -> None:
        self.session = session
        self.standing = standing
        self._how = how
        self._text = text
        self._id = ""

    def line(self, own: str) -> bytes:
        self._id, named = own, title(self.standing)
        if self._how == "form":
            return form_line(own, self.session, self._text, named, fields(self.standing))
        return choice_line(own, self.session, named, self._text, *choices(self.standing))

    def filled_in(self, response: Response) -> Mapping[str, Any] | None:
        if self._how == "form":
            return filled_in(response)
        return {} if chosen(response) else None

    def wish(self, content: Mapping[str, Any]) -> Wish:
        """Raises ValueError."""
        return wish(self.standing, os.urandom(5).hex(), content)

    def over(self, refusal: Refusal) -> Refusal:
        """A choice is shown as a tool call, which is over, too."""
        if self._how == "form":
            return refusal
        return replace(refusal, effects=(Send(Side.CLIENT, call_over_line(self._id, self.session)), *refusal.effects))

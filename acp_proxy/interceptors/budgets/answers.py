"""Tells users what became of their requests for more, with the next prompt after a refusal: each once in a process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from acp_proxy.core.budget import Account
from acp_proxy.core.budget.requests import MoreRequest
from acp_proxy.core.effects import Send
from acp_proxy.core.money import budget_text, is_money
from acp_proxy.core.windows import SECOND
from acp_proxy.interceptors.budgets.client_messages import ClientMessages
from acp_proxy.ledger import LedgerError
from acp_proxy.ledger.budgets import BudgetLedger

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CLOCKS_DIFFER = 300 * SECOND  # those of this machine and of a hub


class Answers:
    """`look` is called in the ledger's thread, everything else in the event loop.

    Without a refusal nobody is asked: a prompt costs no more journeys than it did.
    """

    def __init__(self, messages: ClientMessages, clock: Callable[[], int], *, asks: bool) -> None:
        self._messages = messages
        self._clock = clock
        self._asks = asks
        self._refused_at: int | None = None
        self._told: set[str] = set()
        self._waiting: list[MoreRequest] = []
        self._news: list[MoreRequest] = []

    def look(self, ledger: BudgetLedger) -> None:
        """Raises nothing: what is not told now is told later."""
        since = self._refused_at
        if since is None:
            return
        with suppress(LedgerError):
            found = ledger.requests(own=True)
            news = [each for each in found if (each.decided_at or 0) >= since and each.wish.id not in self._told]
            self._told.update(each.wish.id for each in news)
            self._news.extend(news)
            self._waiting = [each for each in found if each.state == "pending"]
            if not self._waiting:
                self._refused_at = None

    def on_refusal(self) -> str:
        """What belongs behind the text of a refusal."""
        self.expect()
        return "".join(f" {_text(each)}" for each in self._taken())

    def expect(self) -> None:
        """From now on somebody may be answered."""
        if self._asks and self._refused_at is None:
            self._refused_at = self._clock() - _CLOCKS_DIFFER

    def wait_for(self, request: MoreRequest) -> None:
        """It has just been made."""
        self._waiting.append(request)

    def waits(self, account: Account) -> str | None:
        """What is said in place of how to ask for more, where the user has."""
        return next((asked_text(each) for each in self._waiting if each.wish.is_of(account)), None)

    def on_admission(self, session: str) -> Iterator[Send]:
        for each in self._taken():
            yield self._messages.say(session, each.wish.budget, _text(each), first=True)

    def _taken(self) -> list[MoreRequest]:
        news, self._news = self._news, []
        return news


def asked_text(request: MoreRequest) -> str:
    """For who has asked, and waits."""
    asked = f"You have asked for {_what(request)}: request {request.wish.id} waits for a decision."
    return f"{asked} Send the prompt again when it is granted."


def _what(request: MoreRequest) -> str:
    wish = request.wish
    amount = budget_text(request.amount or wish.amount, wish.unit, request.amount or wish.amount)
    return f'{amount}{"" if is_money(wish.unit) else f" {wish.unit}"} more of budget "{wish.budget}"'


def _text(request: MoreRequest) -> str:
    what = _what(request)
    note = f": {request.note}" if request.note else ""
    if request.state == "denied" or request.until is None:
        return f"{request.decided_by} has denied you {what}{note}."
    until = _EPOCH + timedelta(seconds=request.until // SECOND)
    return f"{request.decided_by} has granted you {what}, until {until:%Y-%m-%d at %H:%M} UTC{note}."

"""Ends a running turn as `on_exceed` says, by the best figure known so far, and only while it certainly runs.

That figure is never booked. A cancellation affects the whole session, so none is sent once the turn's last message has
arrived, or while another prompt waits in the session.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from acp_proxy.core import acp
from acp_proxy.core.budget import Account
from acp_proxy.core.budget.charge import SoFar, charge_so_far
from acp_proxy.core.budget.refusal import stop_text
from acp_proxy.core.budget.verdict import MidTurn
from acp_proxy.core.effects import AllowPermissions, DenyPermissions, Effect, Send
from acp_proxy.core.events import (
    ContextChanged,
    Event,
    PromptDropped,
    Side,
    Turn,
    TurnEnded,
    TurnEnding,
    TurnStarted,
)
from acp_proxy.core.notice import Notice, stopped
from acp_proxy.core.pricing import Priced
from acp_proxy.core.usage import Usage
from acp_proxy.interceptors.budgets.client_messages import ClientMessages
from acp_proxy.interceptors.budgets.running_turns import Exceeded, Running, Turns
from acp_proxy.ledger.budgets import Decision
from acp_proxy.text.times import zone_info


class Stops:
    """Of one connection. `count` keeps a decision, `note` what people elsewhere may want to be told of; `price` is the
    catalog's, `clock` Unix time in nanoseconds.
    """

    def __init__(
        self,
        turns: Turns,
        messages: ClientMessages,
        count: Callable[[Sequence[Account], Decision], None],
        note: Callable[[Notice], None],
        price: Callable[[str | None, Usage, int], Priced],
        clock: Callable[[], int],
        *,
        asks: bool = False,
    ) -> None:
        self._turns = turns
        self._asks = asks
        self._messages = messages
        self._count = count
        self._note = note
        self._price = price
        self._clock = clock
        self._open: dict[str, set[str]] = {}  # turns, by session, also those of which no budget is
        self._ending: set[str] = set()  # sessions whose turn ends with the message that is at hand
        self._over = False  # a side is gone

    def on_event(self, event: Event) -> Sequence[Effect]:
        """Follow which turns run; once one is over, its session may ask for permission again."""
        match event:
            case TurnStarted(session=session, turn=turn):
                self._open.setdefault(session, set()).add(turn.id)
                self._ending.discard(session)
            case PromptDropped(session=session, turn=turn):
                return self._is_over(session, turn)
            case TurnEnding(session=None):
                self._over = True
            case TurnEnding(session=str(session)):
                self._ending.add(session)
            case TurnEnded(session=session, turn=turn):
                self._ending.discard(session)
                return self._is_over(session, turn)
            case _:
                pass
        return ()

    def _is_over(self, session: str, turn: Turn) -> Sequence[Effect]:
        self._open.get(session, set()).discard(turn.id)
        running = self._turns.get(turn.id)
        return () if running is None or running.stopped == "nothing" else [AllowPermissions(running.session)]

    def runs(self, session: str) -> bool:
        """Whether a turn is open in a session."""
        return bool(self._open.get(session))

    def judge(self, running: Running, event: ContextChanged) -> Sequence[Effect]:
        """Apply `on_exceed` after the agent has reported something; each step once per turn."""
        if self._over or event.done or event.session in self._ending or running.stopped == "cancel":
            return ()
        if not running.may_be_stopped:
            return ()
        used = event.lower_bound
        prices = [
            (model, self._price(model, used, event.at) if used.total else None)
            for model in (event.state.model, *event.left)
        ]

        def so_far(account: Account) -> SoFar:
            """With several models it is unknown which one used the tokens: only the lowest price is a lower bound."""
            told = self._turns.costs.of(event.session, account.filter.scope)
            charges = [charge_so_far(account, told, model, used, priced) for model, priced in prices]
            return min(charges, key=lambda charge: charge.amount)

        exceeded = running.exceeded(so_far)
        if exceeded is None:
            return ()
        verdict: MidTurn = "deny_next_tool" if self._is_shared(running) else exceeded.verdict
        if verdict == running.stopped:
            return ()
        running.stopped = verdict
        return self._stop(running, exceeded, cancel=verdict == "cancel")

    def _is_shared(self, running: Running) -> bool:
        """Whether another prompt runs or waits in the session, or is on its way to the agent."""
        others = (turn for turn in self._turns if turn.session == running.session and not turn.ended)
        return len(self._open.get(running.session, ())) > 1 or any(turn is not running for turn in others)

    def _stop(self, running: Running, exceeded: Exceeded, *, cancel: bool) -> Sequence[Effect]:
        session, account, now = running.session, exceeded.standing.account, self._clock()
        zone = zone_info(account.budget.zone)
        text = stop_text(exceeded.standing, now, zone, cancelled=cancel, estimated=exceeded.estimated, asks=self._asks)
        how: Literal["cancel", "deny_next_tool"] = "cancel" if cancel else "deny_next_tool"
        self._note(stopped(exceeded.standing, running.origin, running.model, now, how))
        said = self._messages.say(session, account.budget.name, text)
        if not cancel:
            return [DenyPermissions(session, tell=said.line)]
        self._count([account], "cancel")
        return [Send(Side.AGENT, acp.cancel_line(session)), DenyPermissions(session, pending=True), said]

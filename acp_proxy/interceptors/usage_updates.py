"""Shows context and cost in the editor where the agent does not: synthesizes `usage_update`.

Never says what it does not know (no 0/0), never repeats itself, never overrides what the agent has said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from acp_proxy.core import acp
from acp_proxy.core.effects import Effect, Send
from acp_proxy.core.entry import SessionState
from acp_proxy.core.events import (
    ContextChanged,
    Event,
    SessionClosed,
    SessionOpened,
    SessionRequested,
    Side,
    TurnMetered,
    UsageReported,
)
from acp_proxy.core.money import Money
from acp_proxy.interceptor import Interceptor


class UsageUpdates(Interceptor):
    """One line before the end of a turn, and one when a session is reopened that the ledger knows."""

    event_types = frozenset(
        {TurnMetered, ContextChanged, SessionOpened, UsageReported, SessionRequested, SessionClosed}
    )

    def __init__(self, log: Callable[..., None] | None = None) -> None:
        """`log` is called with a level, an event and its fields."""
        self._log = log
        self._last: dict[str, tuple[int, int, Money | None]] = {}  # by session: what the client was shown last
        self._opened: set[str] = set()
        self._reported: set[str] = set()  # sessions of which the agent has sent an update in this process
        self._restored: dict[str, SessionState] = {}  # known before the session is open
        self._estimated: set[str] = set()  # sessions of which an estimate was shown last
        self._again: dict[str, tuple[int, int, Money | None]] = {}  # to a client that opens what it had open before

    def on_event(self, event: Event) -> Iterable[Effect]:
        match event:
            case TurnMetered() if event.entry.stop_reason is not None:  # of a turn, or of a run without a prompt
                return self._at_turn_end(event)
            case ContextChanged(restored=True):
                self._restored[event.session] = event.state
                return self._on_reopening(event.session)
            case SessionOpened():
                self._opened.add(event.session)
                if event.how == "new":  # agents reuse ids
                    self._again.pop(event.session, None)
                return self._on_reopening(event.session)
            case UsageReported(session=session, used=int(used), size=int(size), child=None) if used or size:
                if event.meta and self._log is not None and acp.ours_in(event.meta):
                    self._log("warning", "agent.behind_another", effect="in one ledger each turn is there twice")
                    self._log = None  # once is enough
                self._reported.add(session)
                self._estimated.discard(session)
                self._last[session] = (used, size, self._cost_shown(event))
            case SessionRequested(how="load", session=session) | SessionClosed(session=session, deleted=False):
                self._show_again(session)
            case SessionRequested(how="resume", session=session):
                self._opened.discard(session)  # until the response says that it is open
            case SessionClosed(deleted=True):
                self._forget(event.session)
            case _:
                pass
        return ()

    def _at_turn_end(self, event: TurnMetered) -> Iterable[Effect]:
        cost = _one(event.state.costs) if event.state.agent_cost is None else event.state.agent_cost
        if event.reported_usage and (event.reported_cost or cost is None):
            return ()
        source = "meter" if event.state.agent_cost is None else "agent"
        estimated = event.state.context_estimated or event.entry.usage_source == "estimated"
        return self._show(event.entry.session, event.state, cost, source, estimated=estimated)

    def _on_reopening(self, session: str) -> Iterable[Effect]:
        if session not in self._opened or session in self._reported:
            return ()
        state = self._restored.pop(session, None)
        if state is None:
            again = self._again.get(session)
            return () if again is None else self._say(session, again, "ledger", estimated=session in self._estimated)
        return self._show(session, state, _one(state.costs), "ledger", estimated=state.context_estimated)

    def _show(
        self, session: str, state: SessionState, cost: Money | None, source: str, *, estimated: bool
    ) -> Iterable[Effect]:
        used, size = state.context_used, state.context_size
        if not used or not size or self._last.get(session) == (used, size, cost):
            return ()
        return self._say(session, (used, size, cost), source, estimated=estimated)

    def _say(
        self, session: str, figures: tuple[int, int, Money | None], source: str, *, estimated: bool
    ) -> Iterable[Effect]:
        self._last[session] = figures
        self._again.pop(session, None)
        if estimated:
            self._estimated.add(session)
        else:
            self._estimated.discard(session)
        meta = {"acp-proxy": {"source": source, "estimated": estimated}}
        return (Send(Side.CLIENT, acp.usage_update_line(session, *figures, meta)),)

    def _cost_shown(self, event: UsageReported) -> Money | None:
        """An update without a cost leaves the last one standing."""
        before = self._last.get(event.session)
        return before[2] if event.cost is None and not event.cost_cleared and before is not None else event.cost

    def _show_again(self, session: str) -> None:
        """A client that loads a session builds it anew, also where this agent has, or had, it open."""
        self._opened.discard(session)
        self._reported.discard(session)
        if (last := self._last.pop(session, None)) is not None:
            self._again[session] = last

    def _forget(self, session: str) -> None:
        self._show_again(session)
        self._again.pop(session, None)
        self._estimated.discard(session)
        self._restored.pop(session, None)


def _one(costs: tuple[Money, ...]) -> Money | None:
    """The session's cost when it has one currency: `usage_update` holds one, and currencies are never mixed."""
    return costs[0] if len(costs) == 1 else None

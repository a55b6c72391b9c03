"""The rows of turns that have not ended: what is to be booked of them should their proxy be killed."""

from __future__ import annotations

from acp_proxy.core.entry import CostSource, Entry, UsageLine
from acp_proxy.core.events import ContextChanged, Event, PromptDropped, SessionClosed, Turn, TurnMetered, TurnStarted
from acp_proxy.core.money import Money
from acp_proxy.core.so_far import Costs
from acp_proxy.core.usage import NOTHING


class Unfinished:
    """The turns of one connection."""

    def __init__(self) -> None:
        self._open: dict[str, list[Turn]] = {}  # by session, oldest first
        self._costs = Costs()

    def on_event(self, event: Event) -> Entry | None:
        """The row of a turn of which something is known by now that was not known before."""
        match event:
            case TurnStarted(at, session, turn):
                turns = self._open.setdefault(session, [])
                if not turns:
                    self._costs.begin(session)
                turns.append(turn)
                return _row(turn, at, (UsageLine(None, NOTHING),), "unknown")
            case ContextChanged(at, session, state):
                before = self._costs.of(session)
                self._costs.hear(event)
                costs, running = self._costs.of(session), self._open.get(session)
                if running and costs and costs != before:
                    amounts = [Money(nano, currency) for currency, nano in costs.items()]
                    lines = tuple([UsageLine(state.model, NOTHING, amount) for amount in amounts])
                    return _row(running[0], at, lines, "agent")
            case TurnMetered(entry=entry):
                self._costs.hear(event)
                if not self._forget(entry.session, entry.id):
                    self._costs.set_aside(entry.session, entry.costs)
            case PromptDropped(at, session, turn):
                turns = self._open.get(session, [])
                if any(each.id == turn.id for each in turns):  # what its session costs is another's
                    self._forget(session, turn.id)
                    return _row(turn, at, (UsageLine(None, NOTHING),), "unknown")
            case SessionClosed(session=session, deleted=True) if session not in self._open:
                self._costs.forget([session])
            case _:
                pass
        return None

    def _forget(self, session: str, turn_id: str) -> bool:
        """What comes now is another turn's. Whether there was one: a row that is no turn's ends none."""
        turns = self._open.get(session, [])
        for place, turn in enumerate(turns):
            if turn.id == turn_id:
                del turns[place]
                self._costs.begin(session)
                if not turns:
                    del self._open[session]
                return True
        return False


def _row(turn: Turn, at: int, lines: tuple[UsageLine, ...], cost_source: CostSource) -> Entry:
    """Its tokens are not known: whoever tells a cost in mid-turn tells no tokens with it."""
    return Entry(
        id=turn.id,
        session=turn.session,
        kind=turn.kind,
        started_at=turn.started_at,
        ended_at=at,
        stop_reason="crashed",
        lines=lines,
        usage_source="none",
        cost_source=cost_source,
        detail="the proxy was killed during the turn",
        message_id=turn.message_id,
    )

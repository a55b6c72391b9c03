"""The rows of turns that have not ended: what is to be booked of them should their proxy be killed."""

from __future__ import annotations

from msgspec.structs import replace

from acp_proxy.core.entry import Entry, SessionState, UsageLine
from acp_proxy.core.events import (
    ContextChanged,
    Event,
    PromptDropped,
    SessionClosed,
    SessionOpened,
    ToldSoFar,
    Turn,
    TurnMetered,
    TurnStarted,
)
from acp_proxy.core.money import Money
from acp_proxy.core.running_costs import RunningCosts
from acp_proxy.core.usage import NOTHING

_FROM_ZERO = SessionState(from_zero=True)
_UNKNOWN = ToldSoFar((UsageLine(None, NOTHING),), "unknown")
_Known = tuple[dict[str, int], ToldSoFar | None]  # costs in nano-units by currency, and tokens


class Unfinished:
    """The turns of one connection."""

    def __init__(self) -> None:
        self._open: dict[str, list[Turn]] = {}  # by session, oldest first
        self._costs = RunningCosts()
        self._known: dict[str, _Known] = {}  # by session: what there is of its oldest turn
        self._new: set[str] = set()  # sessions that began here, before a turn of theirs has ended

    def state_of(self, event: Event) -> SessionState | None:
        """What is known with a row of its session, so that the next process books nothing twice and misses nothing."""
        if isinstance(event, TurnStarted):
            return _FROM_ZERO if event.session in self._new else None
        return event.state if isinstance(event, ContextChanged) else None

    def on_event(self, event: Event) -> Entry | None:
        """The row of a turn of which something is known by now that was not known before."""
        match event:
            case TurnStarted(at, session, turn):
                turns = self._open.setdefault(session, [])
                if not turns:
                    self._costs.begin(session)
                turns.append(turn)
                return _row(turn, at, _UNKNOWN)
            case ContextChanged(session=session):
                self._costs.hear(event)
                if running := self._open.get(session):
                    return self._news(running[0], event)
            case TurnMetered(entry=entry):
                self._new.discard(entry.session)
                self._costs.hear(event)
                if not self._forget(entry.session, entry.id):
                    self._costs.set_aside(entry.session, entry.costs)
            case PromptDropped(at, session, turn):
                turns = self._open.get(session, [])
                if any(each.id == turn.id for each in turns):  # what its session costs is another's
                    self._forget(session, turn.id)
                    return _row(turn, at, _UNKNOWN)
            case SessionOpened(how="new", session=session):
                self._new.add(session)
            case SessionClosed(session=session, deleted=True) if session not in self._open:
                self._costs.forget([session])
                self._new.discard(session)
            case _:
                pass
        return None

    def _news(self, turn: Turn, event: ContextChanged) -> Entry | None:
        """What there is of a turn, unless that is nothing, or nothing new."""
        session, state = event.session, event.state
        costs, told = known = self._costs.of(session), event.told
        if known == self._known.get(session) or not (costs or told):
            return None
        self._known[session] = known
        amounts = [Money(nano, currency) for currency, nano in costs.items()]
        cost_alone = ToldSoFar(tuple([UsageLine(state.model, NOTHING, amount) for amount in amounts]), "agent")
        row = _row(turn, event.at, told or cost_alone)
        return replace(row, context_used=state.context_used, context_size=state.context_size)

    def _forget(self, session: str, turn_id: str) -> bool:
        """Whether it was the oldest turn, so that what comes now is another's. A row that is no turn's ends none."""
        turns = self._open.get(session, [])
        place = next((place for place, turn in enumerate(turns) if turn.id == turn_id), None)
        if place is None:
            return False
        del turns[place]
        if not turns:
            del self._open[session]
        if place == 0:
            self._costs.begin(session)
            self._known.pop(session, None)
        return place == 0


def _row(turn: Turn, at: int, told: ToldSoFar) -> Entry:
    known = any(line.usage.total or line.cost for line in told.lines)
    least = "at least what its agent had told by then" if known else ""
    return Entry(
        id=turn.id,
        session=turn.session,
        kind=turn.kind,
        started_at=turn.started_at,
        ended_at=at,
        stop_reason="crashed",
        lines=told.lines,
        usage_source="partial" if known else "none",
        cost_source=told.cost_source,
        detail="; ".join(filter(None, ("the proxy was killed during the turn", least, told.detail))),
        message_id=turn.message_id,
    )

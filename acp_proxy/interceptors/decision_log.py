"""Logs decisions at level `info` or `debug`: the peers, and how rows got their figures. Never content."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from acp_proxy.core.effects import Effect
from acp_proxy.core.entry import Entry
from acp_proxy.core.events import Event, Initialized, ModelSelected, SessionOpened, TurnMetered, TurnStarted
from acp_proxy.interceptor import Interceptor


class DecisionLog(Interceptor):
    """Rows at level `info`, the rest at `debug`. A log does I/O: `later` calls it when what passes has gone on."""

    event_types = frozenset({Initialized, SessionOpened, ModelSelected, TurnStarted, TurnMetered})

    def __init__(self, log: Callable[..., None], *, later: Callable[[Callable[[], None]], object]) -> None:
        """`log` is called with a level, an event and its fields."""
        self._write = log
        self._later = later

    def on_event(self, event: Event) -> Iterable[Effect]:
        match event:
            case Initialized(agent=agent, client=client):
                version = event.protocol_version
                self._log("debug", "agent.named", agent=agent.name, of=agent.version, client=client.name, acp=version)
            case SessionOpened():
                self._log("debug", "session.opened", session=event.session, how=event.how, model=event.model)
            case ModelSelected():
                self._log("debug", "model.selected", session=event.session, model=event.model)
            case TurnStarted(turn=turn):
                self._log("debug", "turn.started", session=event.session, turn=turn.id)
            case TurnMetered(entry=entry):
                self._row(entry)
        return ()

    def _row(self, entry: Entry) -> None:
        used = entry.usage
        self._log(
            "info",
            "row.booked",
            session=entry.session,
            row=entry.id,
            kind=entry.kind,
            stop=entry.stop_reason,
            model=entry.model,
            input=used.input,
            cached_read=used.cached_read,
            cached_write=used.cached_write,
            output=used.output,
            thought=used.thought,
            tokens_by=entry.usage_source,
            cost=" + ".join(f"{cost.text} {cost.currency}" for cost in entry.costs) or None,
            cost_by=entry.cost_source,
            context=entry.context_used,
            window=entry.context_size,
            why=entry.detail or None,
        )

    def _log(self, level: str, event: str, **fields: object) -> None:
        self._later(partial(self._write, level, event, **fields))

"""The model that a session uses, and whether the agent reports its cost, as far as known."""

from __future__ import annotations

from acp_proxy.core.events import ContextChanged, ModelSelected, SessionClosed, SessionOpened, TurnMetered


class Models:
    """By session. A model is as the agent names it."""

    def __init__(self) -> None:
        self._models: dict[str, str | None] = {}
        self._told: set[str] = set()  # sessions whose agent tells what they cost
        self._unpriced: set[str] = set()  # sessions whose last turn has no price

    def of(self, session: str) -> str | None:
        return self._models.get(session)

    def costs_are_told(self, session: str) -> bool:
        return session in self._told

    def was_unpriced(self, session: str) -> bool:
        """Whether the last turn has no price; another model may have one."""
        return session in self._unpriced

    def choose(self, event: SessionOpened | ModelSelected) -> None:
        if event.model is not None:
            self._models[event.session] = event.model
            self._unpriced.discard(event.session)

    def learn(self, session: str, event: ContextChanged | TurnMetered) -> None:
        self._models[session] = event.state.model or self._models.get(session)
        if event.state.agent_cost is not None:
            self._told.add(session)
        if isinstance(event, TurnMetered) and event.entry.kind == "turn" and event.entry.usage.total:
            if event.entry.unpriced:
                self._unpriced.add(session)
            else:
                self._unpriced.discard(session)

    def forget(self, event: SessionClosed) -> None:
        self._models.pop(event.session, None)
        self._told.discard(event.session)
        self._unpriced.discard(event.session)

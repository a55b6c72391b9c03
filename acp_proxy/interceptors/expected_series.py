"""Registers a turn's series in the ledger when the turn begins, so that metrics show it at 0 before its row.

Without that `increase()` would not see the first turn of an agent, a model or a team. Once for each in a process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from acp_proxy.core.effects import Effect
from acp_proxy.core.entry import Origin
from acp_proxy.core.events import Event, ModelSelected, SessionClosed, SessionOpened, TurnStarted
from acp_proxy.interceptor import Interceptor
from acp_proxy.ledger.worker import LedgerWorker


class ExpectedSeries(Interceptor):
    """`origin_of` says where a session's rows are booked to; `concrete` which model a name stands for, if any."""

    event_types = frozenset({SessionOpened, ModelSelected, SessionClosed, TurnStarted})

    def __init__(
        self,
        worker: LedgerWorker,
        origin_of: Callable[[str], Origin],
        concrete: Callable[[str | None], str | None],
    ) -> None:
        self._worker = worker
        self._origin_of = origin_of
        self._concrete = concrete
        self._models: dict[str, str] = {}  # by session
        self._told: set[tuple[str, str | None, str | None]] = set()  # with the model as it was named

    def on_event(self, event: Event) -> Iterable[Effect]:
        match event:
            case SessionOpened(session=session, model=str(model)) | ModelSelected(session=session, model=model):
                self._models[session] = model
            case SessionClosed(session=session):
                self._models.pop(session, None)
            case TurnStarted(session=session):
                self._expect(session)
        return ()

    def _expect(self, session: str) -> None:
        origin, model = self._origin_of(session), self._models.get(session)
        series = (origin.agent, origin.team, model)
        if series not in self._told:
            self._told.add(series)
            expected = (origin.organisation, origin.agent, origin.team, self._concrete(model))
            self._worker.do(lambda ledger: ledger.tallied.expect(*expected))

"""The cost so far of a session's running turn, from the session's cumulative costs as the meter reports them.

Nothing of what the agent has not reported yet, and nothing that the session cost before: here, or in another process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from acp_proxy.core.events import ContextChanged, TurnMetered
from acp_proxy.core.money import Money, plus, summed
from acp_proxy.core.scope import EVERYTHING, Scope

_Amounts = tuple[Money, ...]  # one per currency


class RunningCosts:
    """By session. Told of every change, which is often, and asked now and then: only then it subtracts."""

    def __init__(self) -> None:
        self._now: dict[str, _Amounts] = {}
        self._before: dict[str, _Amounts] = {}  # when the turn that runs began, or went on with another model
        self._models: dict[str, str | None] = {}
        self._earlier: dict[str, list[tuple[str | None, _Amounts]]] = {}  # by models that the turn had before

    def hear(self, event: ContextChanged | TurnMetered) -> None:
        """The cost of a session so far. Costs that only the ledger knew do not belong to the running turn."""
        session = event.session if isinstance(event, ContextChanged) else event.entry.session
        now = event.state.costs
        if isinstance(event, ContextChanged) and event.restored and session in self._before:
            more = tuple(_increases(now, self._now.get(session, ())))
            self._before[session] = plus(self._before[session], more)
        self._models.setdefault(session, event.state.model)
        if self._models[session] != event.state.model:
            self._go_on_with(session, event.state.model)
        self._now[session] = now

    def begin(self, session: str) -> None:
        """A turn begins, or the one before it has ended: what comes now is the next one's."""
        self._before[session] = self._now.get(session, ())
        self._earlier.pop(session, None)

    def set_aside(self, session: str, booked: _Amounts) -> None:
        """So much of what it has cost by now is in a row that is not the turn's."""
        if session in self._before:
            self._before[session] = plus(self._before[session], booked)

    def of(self, session: str, scope: Scope = EVERYTHING) -> dict[str, int]:
        """Nano-units by currency, only of those in which it has cost something; of the models in a scope."""
        model = self._models.get(session)
        parts = [*self._earlier.get(session, ()), (model, tuple(self._increases(session)))]
        counted = summed(amount for name, amounts in parts if scope.accepts("model", name) for amount in amounts)
        return {amount.currency: amount.nano for amount in counted}

    def forget(self, sessions: Iterable[str]) -> None:
        for session in sessions:
            self._now.pop(session, None)
            self._before.pop(session, None)
            self._models.pop(session, None)
            self._earlier.pop(session, None)

    def _go_on_with(self, session: str, model: str | None) -> None:
        """What it has cost until now was for the model before; unless that was not known, then it was this one."""
        before, self._models[session] = self._models[session], model
        if before is not None and (amounts := tuple(self._increases(session))):
            self._earlier.setdefault(session, []).append((before, amounts))
            self._before[session] = self._now[session]

    def _increases(self, session: str) -> Iterator[Money]:
        return _increases(self._now.get(session, ()), self._before.get(session, ()))


def _increases(now: _Amounts, before: _Amounts) -> Iterator[Money]:
    """A currency that fell has not increased."""
    known = {amount.currency: amount.nano for amount in before}
    for amount in now:
        nano = amount.nano - known.get(amount.currency, 0)
        if nano > 0:
            yield Money(nano, amount.currency)

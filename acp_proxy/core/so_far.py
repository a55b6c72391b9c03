"""What the turn of a session that runs has cost so far, from the session's cumulative costs as the meter tells them.

Nothing of what the agent has not reported yet, and nothing that the session cost before: here, or in another process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from acp_proxy.core.events import ContextChanged, TurnMetered
from acp_proxy.core.money import Money, plus

_Amounts = tuple[Money, ...]  # one per currency


class Costs:
    """By session. Told of every change, which is often, and asked now and then: only then it subtracts."""

    def __init__(self) -> None:
        self._now: dict[str, _Amounts] = {}
        self._before: dict[str, _Amounts] = {}  # when the turn that runs began

    def hear(self, event: ContextChanged | TurnMetered) -> None:
        """What a session has cost by now; that the ledger knew of it is nothing that its turn spent."""
        session = event.session if isinstance(event, ContextChanged) else event.entry.session
        now = event.state.costs
        if isinstance(event, ContextChanged) and event.restored and session in self._before:
            more = tuple(_increases(now, self._now.get(session, ())))
            self._before[session] = plus(self._before[session], more)
        self._now[session] = now

    def begin(self, session: str) -> None:
        """A turn begins, or the one before it has ended: what comes now is the next one's."""
        self._before[session] = self._now.get(session, ())

    def of(self, session: str) -> dict[str, int]:
        """Nano-units by currency, only of those in which it has cost something."""
        increases = _increases(self._now.get(session, ()), self._before.get(session, ()))
        return {increase.currency: increase.nano for increase in increases}

    def forget(self, sessions: Iterable[str]) -> None:
        for session in sessions:
            self._now.pop(session, None)
            self._before.pop(session, None)


def _increases(now: _Amounts, before: _Amounts) -> Iterator[Money]:
    """A currency that fell has not increased."""
    known = {amount.currency: amount.nano for amount in before}
    for amount in now:
        nano = amount.nano - known.get(amount.currency, 0)
        if nano > 0:
            yield Money(nano, amount.currency)

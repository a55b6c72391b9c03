"""What the turn of a session that runs has cost so far, from the session's cumulative costs as the meter tells them.

Nothing of what the agent has not reported yet, and nothing that the session cost before: here, or in another process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from acp_proxy.core.events import ContextChanged, TurnMetered


class Costs:
    """By session, in nano-units by currency."""

    def __init__(self) -> None:
        self._now: dict[str, Counter[str]] = {}
        self._before: dict[str, Counter[str]] = {}  # when the turn that runs began

    def hear(self, event: ContextChanged | TurnMetered) -> None:
        """What a session has cost by now; that the ledger knew of it is nothing that its turn spent."""
        session = event.session if isinstance(event, ContextChanged) else event.entry.session
        now = Counter({cost.currency: cost.nano for cost in event.state.costs})
        if isinstance(event, ContextChanged) and event.restored and session in self._before:
            self._before[session].update(now - self._now.get(session, Counter()))
        self._now[session] = now

    def begin(self, session: str) -> None:
        """A turn begins, or the one before it has ended: what comes now is the next one's."""
        self._before[session] = Counter(self._now.get(session, Counter()))

    def of(self, session: str) -> Counter[str]:
        return self._now.get(session, Counter()) - self._before.get(session, Counter())

    def forget(self, sessions: Iterable[str]) -> None:
        for session in sessions:
            self._now.pop(session, None)
            self._before.pop(session, None)

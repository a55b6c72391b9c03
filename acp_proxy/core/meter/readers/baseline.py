"""From where a session's counters count: what its agent, this process or the ledger knows of where they stood."""

from __future__ import annotations

from acp_proxy.core.agents.profile import Profile
from acp_proxy.core.entry import SessionState
from acp_proxy.core.events import Counters
from acp_proxy.core.meter.counters import Cumulative


class Baseline(Cumulative):
    """Of one session. `may`: of this agent nobody knows whether a fork, or a session loaded anew, goes on."""

    __slots__ = ("_at_zero", "_may")

    def __init__(self, profile: Profile) -> None:
        super().__init__()
        self._may = profile.cost.fork_inherits is None
        self._at_zero = "process" in profile.tokens.restarts

    def take_over(self, before: Cumulative) -> None:
        """Stand where the counters stood by another reader's word."""
        self.last, self.known, self._first, self._perhaps = before.last, before.known, before._first, before._perhaps

    def reopen(self) -> None:
        self.begin(at_zero=self._at_zero)

    def fork_of(self, parent: Cumulative | None, *, known: bool) -> None:
        """`known`: the parent's session is, so that what its agent never told is 0."""
        if self._may:
            last = None if parent is None else parent.last
            self.begin_perhaps_at(last, known=known and (parent is None or parent.known))

    def close(self) -> None:
        if self._may and self.last is not None:
            self.begin_perhaps_at(self.last, known=True)

    def recover(self, state: SessionState, *, forked: bool) -> None:
        """What the ledger knows of the session, or of its parent."""
        if self._may:
            self.restore_perhaps(state.counters, from_zero=state.from_zero)
        elif not forked:
            self.restore(state.counters, from_zero=state.from_zero)

    def make_good(self, state: SessionState, *, booked: bool) -> Counters | None:
        """What the first counters held that nobody could tell, when the ledger was slower than they.

        `booked`: rows were since; turns of theirs may have told nothing.
        """
        held = self.settle(state.counters, from_zero=state.from_zero)
        if booked:
            self.restore(state.counters, from_zero=state.from_zero)
        return held

"""How full a session's context is as its agent tells it, and the contexts that it told in one turn."""

from __future__ import annotations

from msgspec import Struct

from acp_proxy.core.agents.profile import Context
from acp_proxy.core.entry import SessionState


class TurnContexts(Struct):
    """What was told since the oldest open turn began."""

    began_with: int | None = None  # as the agent had told it before
    reported: bool = False  # a `usage_update` came
    told: bool = False  # ... with a context
    compacted: bool = False  # or the agent said how much is left after a compaction
    first: int | None = None  # that of the first call
    largest: int | None = None
    changes: int = 0  # how many differed from the one before
    total: int = 0  # the sum of these

    def hear(self, used: int, *, changed: bool) -> None:
        if changed:
            self.changes += 1
            self.total += used
        self.told = True
        self.first = self.first or used
        self.largest = max(used, self.largest or used)


class SessionContext:
    """In tokens; None until somebody tells."""

    __slots__ = ("_how", "estimated", "grounded", "last", "size", "used")

    def __init__(self, how: Context) -> None:
        self._how = how
        self.used: int | None = None
        self.size: int | None = None
        self.estimated = False  # `used` is
        self.grounded = False  # ... though it goes on from a figure that the agent told
        self.last: int | None = None  # the last one of the agent's own: the same again is no news

    def hear(self, used: int | None, size: int | None, turn: TurnContexts) -> bool:
        """Take in a `usage_update`. 0 is no context but a gap in the agent's knowledge. Whether anything changed."""
        before = (self.used, self.size, self.estimated)
        turn.reported = True
        if self._how.comes == "never":
            return False
        if used:
            turn.hear(used, changed=used != self.last)
            self.last = used
            self.set(used)
        if size:
            self.size = size
        return before != (self.used, self.size, self.estimated)

    def set(self, used: int, *, estimated: bool = False) -> None:
        """By a figure of the agent's."""
        self.used, self.estimated, self.grounded = used, estimated, True

    def grow(self, tokens: int) -> None:
        """By what has passed since it was known."""
        self.used, self.estimated = (self.used or 0) + tokens, True

    def forget(self) -> None:
        """Another session begins; the window is the model's."""
        self.used = self.last = None
        self.estimated = self.grounded = False

    def go_on_from(self, parent: SessionContext) -> None:
        """A fork has its parent's."""
        self.used, self.size, self.estimated = parent.used, parent.size, parent.estimated
        self.grounded, self.last = parent.grounded, parent.last

    def restore(self, state: SessionState, *, from_start: bool) -> None:
        """What the ledger knows, as far as the agent has not spoken yet. A new session has none of its own there."""
        if self.used is not None:
            return
        self.used, self.size, self.estimated = state.context_used, state.context_size, state.context_estimated
        guessed = self.estimated and self._how.comes != "after turn"  # else it is what was told, and a turn more
        self.grounded = self.used is not None and not (guessed or from_start)
        self.last = self.used if self.grounded else None

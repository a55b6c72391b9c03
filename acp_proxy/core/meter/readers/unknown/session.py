"""What is kept of a session of an unknown agent, for later turns to be compared with."""

from __future__ import annotations

from msgspec.structs import replace

from acp_proxy.core.agents.profile import Profile
from acp_proxy.core.events import Turn, TurnEnded
from acp_proxy.core.meter.readers.baseline import Baseline
from acp_proxy.core.meter.readers.reader import Reader
from acp_proxy.core.meter.readers.turn import TurnReader
from acp_proxy.core.meter.readers.unknown.one_call import ComparedTurn, Known
from acp_proxy.core.meter.readers.unknown.scope import ScopeGuess
from acp_proxy.core.meter.readers.unknown.told import UnknownCalls
from acp_proxy.core.meter.turn_outcome import chars_of


class UnknownSession(TurnReader):
    """`scope` is what is known by now of the agent, over all its sessions."""

    __slots__ = ("_closed", "before_close", "calls", "how", "passed", "scope", "sure")

    before: ComparedTurn | None
    told: UnknownCalls
    tokens: Baseline

    def __init__(self, profile: Profile, scope: ScopeGuess) -> None:
        super().__init__(profile)
        self.scope = scope
        self.how = replace(profile.overlap, known=False)
        self.tokens = Baseline(profile)
        self.before_close: ComparedTurn | None = None  # `before`, of a session that was closed since
        self.sure: Known | None = None  # a turn by which others are judged
        self.passed = 0  # characters of all turns
        self.calls = 0  # model calls, at most, since usage was told
        self._closed = False  # since the last turn began

    def begin_anew(self) -> None:
        super().begin_anew()
        self.before_close = self.sure = None
        self.calls = 0

    def fork_of(self, parent: Reader | None) -> None:
        super().fork_of(parent)
        if isinstance(parent, UnknownSession) and self.profile.cost.fork_inherits is None:
            self.before_close = parent.before or parent.before_close

    def close(self) -> None:
        super().close()
        self._closed = True

    def begin(self, turn: Turn, at: int, model: str | None, *, alone: bool) -> None:
        if alone and self._closed:
            self._closed = False
            if not self.profile.known:  # that counters fall where they may begin anew is no sign
                self.before_close, self.before = self.before or self.before_close, None
        super().begin(turn, at, model, alone=alone)

    def pass_by(self, ended: TurnEnded) -> None:
        """One more turn of the session, whether it tells anything or not."""
        self.passed += chars_of(ended)
        self.calls += self.told.calls_of(ended)

"""What is observed of the turn that runs, whichever way its agent counts."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, field

from acp_proxy.core.meter.session_context import TurnContexts
from acp_proxy.core.meter.subagents import Subagents

_MODELS = 8  # of one turn that were chosen in its course


class TurnObservations(Struct):
    """What was seen since the oldest open turn began."""

    model: str | None = None  # chosen when it began, or named since by what it used
    switched: bool = False  # another one was chosen meanwhile
    left: tuple[str, ...] = ()  # in place of these
    context: TurnContexts = field(default_factory=TurnContexts)
    subagents: Subagents | None = None  # as of most turns
    reported_cost: bool = False

    def subagents_seen(self) -> Subagents:
        self.subagents = self.subagents or Subagents()
        return self.subagents

    def leave(self, model: str | None) -> None:
        self.switched = True
        if model is not None and model not in self.left and len(self.left) < _MODELS:
            self.left += (model,)


class Observation(Struct, frozen=True):
    """What a reader may look at beside the counters of a turn that has ended."""

    context: TurnContexts
    context_now: int | None  # of the session
    model: str | None  # as chosen
    paid: bool  # the agent's cost grew
    reported_cost: bool
    cost_resumed: bool  # ... and may have gone on from an earlier one
    tells_cost: Callable[[], bool]  # whether a cost of the agent's is still to come
    from_start: bool  # every turn of the session was seen
    others_open: bool  # another prompt waits

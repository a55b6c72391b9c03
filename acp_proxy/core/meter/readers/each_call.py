"""Usage of each model call, told as it ends: a turn is the sum of its calls."""

from __future__ import annotations

from msgspec import field
from msgspec.structs import replace

from acp_proxy.core.agents.profile import Profile
from acp_proxy.core.events import Counters, UpdateSeen, UsageReported
from acp_proxy.core.meter import dialects
from acp_proxy.core.meter.counters import Reading
from acp_proxy.core.meter.dialects import Call
from acp_proxy.core.meter.readers.reader import EndOfTurn, Share, TurnUsage
from acp_proxy.core.meter.readers.turn import ToldStatus, TurnReader
from acp_proxy.core.meter.subagents import Subagents
from acp_proxy.core.usage import NOTHING, Usage

_MOST = 1000  # calls of one turn that are told apart


class ToldCalls(ToldStatus):
    """`calls` is their sum; None before the first."""

    calling: str | None = None  # the model of the call that runs, as far as the order of what is told shows
    calls: Usage | None = None
    by_model: dict[str | None, Usage] = field(default_factory=dict)
    number: int = 0
    writing: set[str] = field(default_factory=set)  # calls that were seen to write, where that is told
    lacking: str = ""  # what is missing of one of them

    def add(self, reading: Reading) -> None:
        self.calls = reading.usage if self.calls is None else self.calls + reading.usage
        self.by_model[self.calling] = self.by_model.get(self.calling, NOTHING) + reading.usage
        self.number += 1
        self.lacking = self.lacking or ("" if reading.whole and reading.certain else reading.detail)

    def hear(self, event: UpdateSeen, model: str | None) -> None:
        if (call := dialects.call_that_writes(event)) is not None and len(self.writing) < _MOST:
            self.writing.add(call)
        if event.update == "tool_call_update" and self.number:
            self.calling = model  # the next call begins when its tools have ended

    def with_models(self, used: TurnUsage | None) -> TurnUsage | None:
        """The usage with its calls by model, if that is what it consists of."""
        if used is None or len(self.by_model) < 2 or used.usage != self.calls:
            return used
        return replace(used, by_model=tuple(self.by_model.items()))


class EachCallReader(TurnReader):
    """An agent may tell the usage of a call a second time, in other words."""

    __slots__ = ("_last",)

    told: ToldCalls

    def __init__(self, profile: Profile) -> None:
        super().__init__(profile)
        self._last: tuple[int | None, int | None] | None = None  # input and output of the last call that was told

    def begin_anew(self) -> None:
        super().begin_anew()
        self._last = None

    def call_in(self, event: UpdateSeen | UsageReported) -> Call | None:
        if isinstance(event, UpdateSeen):
            return dialects.call_usage(event) or super().call_in(event)
        call = dialects.reported_call(event.meta)
        if call is None:
            return None
        before, self._last = self._last, (call.counters.input, call.counters.output)
        return call if self._last != before else None  # each call sends more than the one before it

    def add_call(self, reading: Reading) -> None:
        self.told.add(reading)

    def hear(self, event: UpdateSeen | UsageReported, model: str | None) -> bool:
        if isinstance(event, UpdateSeen):
            self.told.hear(event, model)
        return super().hear(event, model)

    def so_far(self, subagents: Subagents | None) -> Reading | None:
        beside = () if subagents is None else subagents.calls.values()
        return Reading(sum(beside, self.told.calls or NOTHING), self.told.lacking)

    @property
    def calls_so_far(self) -> tuple[Share, ...]:
        return tuple(self.told.by_model.items())

    def late_usage(self, counters: Counters, booked: Usage) -> Usage:
        return NOTHING  # calls have told theirs as they ended

    def _nothing_told(self, model: str | None) -> ToldCalls:
        return ToldCalls(calling=model)

    def _used(self, end: EndOfTurn) -> TurnUsage | None:
        told = self.told
        if told.calls is None:
            return super()._used(end)
        lack = told.lacking or ("" if told.number >= len(told.writing) else "not every model call is told")
        return told.with_models(TurnUsage(told.calls, "partial" if lack else "agent", lack))

"""The reader of an unknown agent, and that of one that is known for telling no usage, should it do so."""

from __future__ import annotations

from acp_proxy.core.events import Counters, UpdateSeen, UsageReported
from acp_proxy.core.meter import dialects
from acp_proxy.core.meter.counters import Reading, is_empty
from acp_proxy.core.meter.dialects import Call
from acp_proxy.core.meter.readers.reader import EndOfTurn, TurnUsage, as_read
from acp_proxy.core.meter.readers.turn import REPEATED, ReportedTurn, without_thinking
from acp_proxy.core.meter.readers.unknown.counted import CountedTurn
from acp_proxy.core.meter.readers.unknown.one_call import ComparedTurn
from acp_proxy.core.meter.readers.unknown.session import UnknownSession
from acp_proxy.core.meter.readers.unknown.told import UnknownCalls
from acp_proxy.core.meter.turn_outcome import answered
from acp_proxy.core.stop_reasons import CANCELLED
from acp_proxy.core.usage import NOTHING, Usage


class UnknownReader(UnknownSession):
    __slots__ = ()

    @property
    def cumulative(self) -> bool:
        return self.scope.scope == "session"

    @property
    def told_none(self) -> bool:
        return self.before is None

    def call_in(self, event: UpdateSeen | UsageReported) -> Call | None:
        if isinstance(event, UsageReported):
            return None
        return (dialects.call_usage(event) if dialects.is_empty_text(event) else None) or super().call_in(event)

    def add_call(self, reading: Reading) -> None:
        self.told.add(reading)

    def hear(self, event: UpdateSeen | UsageReported, model: str | None) -> bool:
        if isinstance(event, UpdateSeen):
            self.told.hear(event, model)  # by what it says it may be known later
        self.told.tell(dialects.told_so_far(event), None if self.before is None else self.before.counters)
        return super().hear(event, model)

    def late_usage(self, counters: Counters, booked: Usage) -> Usage:
        return NOTHING  # they may be of anything: its row stays the estimate that it is

    def _nothing_told(self, model: str | None) -> UnknownCalls:
        return UnknownCalls(calling=model)

    def _used(self, end: EndOfTurn) -> TurnUsage | None:
        told = self.told
        self.pass_by(end.ended)
        used = super()._used(end)
        if used is None and told.calls is not None and self._counters(end) is None:
            used = as_read(told.read(end.ended))
        return used if told.calls is None else told.with_models(used)

    def _counters(self, end: EndOfTurn) -> Counters | None:
        told = self.told
        found = super()._counters(end)
        if found is None and told.status is None and told.calls is None and not is_empty(told.last):
            return told.last
        return found

    def _counted(self, counters: Counters, end: EndOfTurn) -> TurnUsage | None:
        before = self.before
        if not end.seen.paid and _stands_still(counters, before, end):
            return REPEATED
        turn = CountedTurn(counters, self, end, self.told.calls_of(end.ended))
        return self._judged(turn.read(), counters, before, end)

    def _counts(self, reading: Reading, end: EndOfTurn) -> bool:
        return reading.usage != NOTHING or not (end.seen.paid or answered(end.ended))

    def _repeats(self, now: Counters, before: ReportedTurn | None, end: EndOfTurn) -> bool:
        """Only of a turn that said nothing, or that it calls cancelled, for no call of it has to have ended.

        And of one in whose middle no more was told than that.
        """
        if before is None or now != before.counters:
            return False
        unsaid = not answered(end.ended) and end.seen.context.told and not end.seen.context.changes
        return unsaid or end.ended.stop_reason == CANCELLED or now is self.told.last

    def _whole_or_part(self, reading: Reading, counters: Counters, end: EndOfTurn) -> TurnUsage:
        as_gemini = counters is end.ended.quota and counters.total is None and counters.thought is None
        return without_thinking(reading) if as_gemini else super()._whole_or_part(reading, counters, end)


class SilentReader(UnknownReader):
    """Should it tell usage all the same, that is read as an unknown agent's."""

    __slots__ = ()

    @property
    def cumulative(self) -> bool:
        return False

    @property
    def told_none(self) -> bool:
        return True

    def call_in(self, event: UpdateSeen | UsageReported) -> Call | None:
        return dialects.child_usage(event) if isinstance(event, UpdateSeen) else None


def _stands_still(now: Counters, before: ComparedTurn | None, end: EndOfTurn) -> bool:
    """Whether an agent answered without a model, as a command of its own: nothing moved.

    It told the context of the turn before, as it does of its calls, and tells none.
    """
    return before is not None and now == before.counters and before.context is not None and not end.seen.context.told

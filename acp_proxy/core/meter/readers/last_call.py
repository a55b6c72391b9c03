"""Usage of the last model call of a turn, told when the turn ends: of one call all, of several the least."""

from __future__ import annotations

from acp_proxy.core.events import Counters
from acp_proxy.core.meter.counters import Reading
from acp_proxy.core.meter.readers.reader import EndOfTurn, TurnUsage
from acp_proxy.core.meter.readers.turn import ReportedTurn, TurnReader
from acp_proxy.core.meter.turn_outcome import answered


class LastCallReader(TurnReader):
    __slots__ = ()

    of_one_call = True

    def _counts(self, reading: Reading, end: EndOfTurn) -> bool:
        """Every call writes something: what goose tells after `/compact` is the context that is left."""
        return bool(reading.usage.completion)

    def _repeats(self, now: Counters, before: ReportedTurn | None, end: EndOfTurn) -> bool:
        """Also for a turn that waited, or that said nothing, as OpenCode answers one that was cancelled at once."""
        context = end.seen.context
        if super()._repeats(now, before, end) or (context.told and not context.changes and not answered(end.ended)):
            return True
        return end.waited and before is not None and now == before.counters

    def _whole_or_part(self, reading: Reading, counters: Counters, end: EndOfTurn) -> TurnUsage:
        # What waits may be in it.
        if end.ended.tool_calls or self._calls_shown(end) > 1 or end.seen.others_open:
            return TurnUsage(reading.usage, "partial", "the last of several model calls")
        return super()._whole_or_part(reading, counters, end)

    def _calls_shown(self, end: EndOfTurn) -> int:
        """Beside tools, of which not all show."""
        if self.profile.context.comes == "each call":
            return end.seen.context.changes
        return end.ended.messages if self.profile.tokens.message_a_call else 0

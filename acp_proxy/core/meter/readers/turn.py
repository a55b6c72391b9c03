"""Usage of a turn, told when it ends; or in its course, as the turn so far."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core.agents.profile import Profile
from acp_proxy.core.events import Counters, Turn, TurnEnded, UpdateSeen, UsageReported
from acp_proxy.core.meter.counters import Reading, is_empty, joined, partition
from acp_proxy.core.meter.dialects import status_line, turn_so_far
from acp_proxy.core.meter.readers.reader import EndOfTurn, Reader, Told, TurnUsage, as_read
from acp_proxy.core.meter.subagents import Subagents
from acp_proxy.core.meter.turn_outcome import answered
from acp_proxy.core.usage import NOTHING, Usage

REPEATED = TurnUsage(NOTHING, "none", "the agent repeats the usage of the turn before", repeated=True)
_NO_THINKING = "thinking is not told"


class ReportedTurn(Struct):
    """A turn with the usage that it reported: what the next one's is compared with."""

    at: int
    counters: Counters
    partition: Usage


class ToldStatus(Told):
    status: Counters | None = None  # the turn's counters as of now


class TurnReader(Reader):
    """`before` is the turn that reported last."""

    __slots__ = ("_begun", "before")

    told: ToldStatus

    def __init__(self, profile: Profile) -> None:
        super().__init__(profile)
        self.before: ReportedTurn | None = None
        self._begun: dict[str, ReportedTurn | None] = {}  # `before`, as open turns found it when they began

    def begin_anew(self) -> None:
        super().begin_anew()
        self.before = None

    def take_over(self, before: Reader) -> None:
        super().take_over(before)
        if isinstance(before, TurnReader):
            self.before, self._begun = before.before, before._begun
            for name in self.told.__struct_fields__:
                if hasattr(before.told, name):
                    setattr(self.told, name, getattr(before.told, name))

    @property
    def told_none(self) -> bool:
        return self.before is None and self.profile.tokens.often_silent

    def hear(self, event: UpdateSeen | UsageReported, model: str | None) -> bool:
        if isinstance(event, UsageReported) or (status := turn_so_far(event)) is None or status == self.told.status:
            return False
        self.told.status = status
        return True

    def so_far(self, subagents: Subagents | None) -> Reading | None:
        return None if self.told.status is None else partition(self.told.status, self.profile.overlap)

    def begin(self, turn: Turn, at: int, model: str | None, *, alone: bool) -> None:
        if alone:
            self.told = self._nothing_told(model)
        if at == turn.started_at:  # else it was asked for earlier, which only times tell
            self._begun[turn.id] = self.before

    def _has_waited(self, ended: TurnEnded) -> bool:
        """Whether it was asked for before the turn before it had told what it used.

        By the order of events where it tells: clocks are set back.
        """
        turn = ended.turn
        if turn.id in self._begun:
            return self._begun.pop(turn.id) is not self.before
        return self.before is not None and turn.started_at < self.before.at

    def _nothing_told(self, model: str | None) -> ToldStatus:
        return ToldStatus()

    def _used(self, end: EndOfTurn) -> TurnUsage | None:
        counters = self._counters(end)
        return None if counters is None else self._counted(counters, end)

    def _counters(self, end: EndOfTurn) -> Counters | None:
        for counters in (end.ended.counters, end.ended.quota):
            if not is_empty(counters):
                return counters
        last = status_line(end.ended.meta) or self.told.status
        return None if is_empty(last) else last

    def _counted(self, counters: Counters, end: EndOfTurn) -> TurnUsage | None:
        """What counters say of the turn; None when they are of no call of its own."""
        before, reading = self.before, partition(counters, self.profile.overlap)
        self.before = ReportedTurn(end.ended.at, counters, reading.usage)
        return self._judged(reading, counters, before, end)

    def _judged(
        self, reading: Reading, counters: Counters, before: ReportedTurn | None, end: EndOfTurn
    ) -> TurnUsage | None:
        if not self._counts(reading, end):
            return None
        if not end.seen.paid and self._repeats(counters, before, end):
            return REPEATED
        if self.profile.tokens.after_failure == "late" and before is not None and end.waited:
            reading = replace(reading, usage=_without(reading.usage, before.partition))
        return self._whole_or_part(reading, counters, end)

    def _counts(self, reading: Reading, end: EndOfTurn) -> bool:
        """Whether anything is told; or zeros that are to be believed, for an agent's own commands call no model.

        An agent that reports in the turn, but no context, called a model whose provider tells no usage.
        """
        if reading.usage != NOTHING:
            return True
        if end.seen.paid or self.profile.tokens.after_failure == "late":
            return False
        if not answered(end.ended):
            return True
        context = end.seen.context
        return self.profile.overlap.thinking != "untold" and (context.told or not context.reported)

    def _repeats(self, now: Counters, before: ReportedTurn | None, end: EndOfTurn) -> bool:
        """Whether usage is that of the turn before, sent again for a failed one.

        After a load the turn before is not known here; then its context gives it away, which is sent again, too.
        """
        if self.profile.tokens.after_failure != "repeats":
            return False
        if end.seen.context.told and not end.seen.context.changes:
            return True
        return before is not None and now == before.counters

    def _whole_or_part(self, reading: Reading, counters: Counters, end: EndOfTurn) -> TurnUsage:
        """What an agent of this kind leaves out of what it tells."""
        if self.profile.overlap.thinking == "untold" and counters.thought is None:
            return without_thinking(reading)
        return as_read(reading)


def without_thinking(reading: Reading) -> TurnUsage:
    return TurnUsage(reading.usage, "partial", joined(reading.detail, _NO_THINKING))


def _without(sum_of_both: Usage, first: Usage) -> Usage:
    return sum_of_both.minus(first) if sum_of_both.covers(first) else sum_of_both

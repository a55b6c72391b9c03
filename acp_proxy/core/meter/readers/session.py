"""Usage of the session so far, again and again: a turn is what the counters grew by."""

from __future__ import annotations

from msgspec.structs import replace

from acp_proxy.core.agents.profile import Profile
from acp_proxy.core.events import Counters, Meta, Turn, TurnEnded
from acp_proxy.core.meter import dialects
from acp_proxy.core.meter.counters import Reading, completed, covers, is_empty, joined, partition, since_last
from acp_proxy.core.meter.observations import Observation
from acp_proxy.core.meter.readers.baseline import Baseline
from acp_proxy.core.meter.readers.reader import EndOfTurn, Reader, Told, TurnUsage, as_read
from acp_proxy.core.meter.subagents import Subagents
from acp_proxy.core.meter.turn_outcome import answered
from acp_proxy.core.usage import NOTHING, Usage

_PERHAPS_ANEW = "a command may have set the agent's counters back"
_MAY_GO_ON = "its counters may go on from before the session was loaded or forked"


class ToldCounters(Told):
    cumulative: Counters | None = None  # the session's, as of now


class SessionReader(Reader):
    """`heard` are the last counters, booked or not."""

    __slots__ = ("_closed", "_least_call", "_may_restart", "_restarts", "_with_cost", "heard")

    of_session = True
    told: ToldCounters
    tokens: Baseline

    def __init__(self, profile: Profile) -> None:
        super().__init__(profile)
        self.tokens = Baseline(profile)
        self.heard: Counters | None = None
        self._with_cost: Counters | None = None  # those that came with the last cost
        self._closed = False  # since its last turn began
        self._restarts = False  # with the next turn; one that runs goes on with the counters that it began with
        self._may_restart = False  # since they were told, by a command of the agent's own
        self._least_call: int | None = None  # tokens that each call sent at least, for the same

    @property
    def cumulative(self) -> bool:
        return True

    def begin_anew(self) -> None:
        super().begin_anew()
        self.heard = self._with_cost = self._least_call = None
        self._may_restart = False

    def close(self) -> None:
        super().close()
        self._closed = True

    def choose_model(self) -> None:
        self._restarts = self._restarts or "model" in self.profile.tokens.restarts

    def counters(self, *, running: bool) -> Counters | None:
        """As told last. Ones that fell are so if they are of the turn that runs."""
        last, heard = self.tokens.last, self.heard
        if heard is None or last is None or covers(heard, last):
            return heard or last
        return heard if running and self.told.cumulative is not None and self.tokens.fell(heard) else last

    def session_counters(self, meta: Meta) -> Counters | None:
        return dialects.cumulative(meta)

    def is_news(self, now: Counters | None) -> bool:
        return now is not None and now != self.heard

    def count(self, now: Counters) -> None:
        self.heard = self.told.cumulative = now

    def stand_at(self, now: Counters) -> None:
        self.heard = now
        self.tokens.stand_at(now)

    def come_with_cost(self, now: Counters | None) -> bool:
        moved = now is None or now != (self._with_cost or self.heard or self.tokens.last)
        self._with_cost = now
        return moved

    def advance(self, now: Counters | None) -> tuple[Usage, bool]:
        if now is None:
            return NOTHING, False
        unsure = self.tokens.may_go_on(now)
        return since_last(self.tokens.advance(now), self.profile.overlap).usage, unsure

    def so_far(self, subagents: Subagents | None) -> Reading | None:
        now = self.told.cumulative
        return since_last(None if now is None else self.tokens.since(now), self.profile.overlap)

    def begin(self, turn: Turn, at: int, model: str | None, *, alone: bool) -> None:
        super().begin(turn, at, model, alone=alone)
        if alone:
            if self._restarts or (self._closed and "close" in self.profile.tokens.restarts):
                self.tokens.begin(at_zero=True)
            self._restarts = self._closed = False

    def late_usage(self, counters: Counters, booked: Usage) -> Usage:
        self.count(counters)
        return self.usage_of(self.tokens.advance(counters))

    def _nothing_told(self, model: str | None) -> ToldCounters:
        return ToldCounters()

    def _used(self, end: EndOfTurn) -> TurnUsage | None:
        ended, told = end.ended, self.told
        now = told.cumulative if ended.counters is None else completed(ended.counters, told.cumulative)
        if now is None or is_empty(now):
            self._may_restart = self._may_restart or self._was_a_command(ended, end.seen)
            return None
        last, may_go_on = self.tokens.last, self.tokens.may_go_on(now)
        if (since := self.tokens.advance(now)) is None:
            return TurnUsage(NOTHING, "none", "where the session's counters stood before is not known")
        reading = partition(since, self.profile.overlap)
        if not reading.usage.total:
            return None
        if self._may_restart and last is not None and covers(now, last):
            reading = self._perhaps_anew(reading, now)
        self._may_restart = False
        if may_go_on:
            reading = replace(reading, detail=joined(reading.detail, _MAY_GO_ON), whole=False)
        least = 9 * reading.usage.prompt // (10 * ended.most_calls)
        self._least_call = min(least, self._least_call or least)
        return as_read(reading)

    def _was_a_command(self, ended: TurnEnded, seen: Observation) -> bool:
        """Whether the agent answered by itself, and may have set its counters back: what was asked is in no context."""
        began_with = seen.context.began_with
        if "command" not in self.profile.tokens.restarts or began_with is None or not seen.context.told:
            return False
        return answered(ended) and (seen.context_now or 0) <= began_with

    def _perhaps_anew(self, reading: Reading, now: Counters) -> Reading:
        """Counters that did not fall. If they grew by less than a call they began at 0 again, else they may have."""
        if self._least_call is not None and reading.usage.prompt < self._least_call:
            return partition(now, self.profile.overlap)
        return replace(reading, detail=joined(reading.detail, _PERHAPS_ANEW), whole=False)

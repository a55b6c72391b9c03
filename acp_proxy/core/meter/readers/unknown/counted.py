"""What the counters of a turn mean that an unknown agent tells: of which turns they are, and of how many calls."""

from __future__ import annotations

from msgspec.structs import replace

from acp_proxy.core.events import Counters
from acp_proxy.core.meter.counters import Reading, adds_up, covers, joined, since_last
from acp_proxy.core.meter.readers.reader import EndOfTurn
from acp_proxy.core.meter.readers.unknown.caches import with_caches
from acp_proxy.core.meter.readers.unknown.calls import may_be_one, says_more, what_one_call_sends
from acp_proxy.core.meter.readers.unknown.one_call import SMALL, ComparedTurn, known_turn
from acp_proxy.core.meter.readers.unknown.scope import Judged, tells_its_call
from acp_proxy.core.meter.readers.unknown.session import UnknownSession
from acp_proxy.core.meter.turn_outcome import cut_short
from acp_proxy.core.usage import Usage

_AFTER_LOAD = "its counters may go on from before the session was loaded"
_AFTER_CLOSE = "its counters may go on from before the session was closed or forked"
_NO_OUTPUT = "no output is told"
_ONE_OF_SEVERAL = "no more than one of several model calls"


class CountedTurn:
    """One turn's counters, after those of the turn before. Moves the session's on."""

    def __init__(self, counters: Counters, session: UnknownSession, end: EndOfTurn, calls: int) -> None:
        """`calls`: so many of the model, at most."""
        self._session, self._end, self._seen = session, end, end.seen
        self._before, self._closed = session.before, session.before_close
        last = None if self._before is None else self._before.counters
        self._how = with_caches(counters, last, end.ended, end.seen, session.how, session.scope.caches)
        self._told = self._partition(counters)
        context = end.seen.context_now if end.seen.context.told else None
        now = ComparedTurn(end.ended.at, counters, self._told.usage, context, calls, end.seen.model)
        now.certain = self._told.certain
        self._now = now
        self._calls = session.calls  # a session's counters hold those of turns of which nothing was told, too
        if now.partition.total:  # zeros say nothing of how it counts
            session.before, session.before_close, session.calls = now, None, 0

    def read(self) -> Reading:
        session, seen, now = self._session, self._seen, self._now
        call, judged = what_one_call_sends(session, self._before, now), Judged()
        if now.partition.total and not self._end.ended.model_usage:  # with rows a sudden growth is a retried stream
            judged = session.scope.judge(self._before, now, call, loaded=not seen.from_start, waited=self._end.waited)
        known = seen.from_start or self._before is not None or session.tokens.last is not None or seen.tells_cost()
        settled = judged.cumulative or session.scope.settled
        if self._closed is not None and not settled and _may_have_gone_on(now, self._closed):
            return self._after_close(self._closed)
        reading = self._since_before() if judged.cumulative else self._told
        reading = replace(reading, detail=joined(judged.reason, reading.detail), whole=reading.whole and judged.sure)
        if judged.cumulative and not known:
            return replace(reading, detail=joined(reading.detail, _AFTER_LOAD), guessed=True)
        first = self._before is None and self._closed is None
        if first and not (seen.from_start or settled) and self._may_go_on():
            return self._after_load(reading)
        all_shown = now.calls <= self._end.ended.tool_calls + 1
        one = may_be_one(reading.usage, now, call, judged, session, all_shown=all_shown)
        if judged.sure and not cut_short(self._end.ended) and says_more(self._before, now, seen):
            session.sure = known_turn(reading.usage, self._calls, session.passed, now.context)
        return replace(reading, detail=joined(reading.detail, _ONE_OF_SEVERAL), whole=False) if one else reading

    def _since_before(self) -> Reading:
        """Of the session's counters, what they grew by."""
        now, tokens, earlier = self._now, self._session.tokens, self._before
        if earlier is None and self._closed is not None and covers(now.counters, self._closed.counters):
            earlier = self._closed
        if earlier is not None and not earlier.cumulative:
            tokens.stand_at(earlier.counters)
        may_go_on = tokens.may_go_on(now.counters)
        if may_go_on and tells_its_call(now):  # they are of this one call, so that they began at 0
            tokens.begin(at_zero=True)
            may_go_on = False
        reading, now.cumulative = self._partition(tokens.advance(now.counters)), True
        return replace(reading, detail=_AFTER_CLOSE, whole=False) if may_go_on else reading

    def _after_close(self, closed: ComparedTurn) -> Reading:
        if not closed.cumulative:
            self._session.tokens.stand_at(closed.counters)
        grown, self._now.cumulative = self._partition(self._session.tokens.advance(self._now.counters)), True
        return replace(grown, detail=joined(grown.detail, _AFTER_CLOSE), whole=False)

    def _may_go_on(self) -> bool:
        """Whether the first counters after a load may go on from before it, by their context and by the ledger."""
        now, seen, last = self._now, self._seen, self._session.tokens.last
        if now.context is None:
            return True
        if last is None and seen.tells_cost() and not (seen.reported_cost and seen.cost_resumed):
            return False  # a guess would be priced, and that would be taken off what the agent tells next
        return (last is None or covers(now.counters, last)) and not tells_its_call(now)

    def _after_load(self, reading: Reading) -> Reading:
        """The first turn of a loaded session: where its counters stood before only the ledger may know."""
        now, tokens = self._now, self._session.tokens
        if now.partition.prompt < SMALL:
            return reading
        detail = joined(reading.detail, _AFTER_LOAD)
        if tokens.last is None or not covers(now.counters, tokens.last):
            return replace(reading, detail=detail, guessed=True)
        grown, now.cumulative = since_last(tokens.advance(now.counters), self._how), True
        return replace(grown, detail=detail, whole=False)

    def _partition(self, counters: Counters | None) -> Reading:
        """Counters, or what they grew by. Not whole where more may be missing, or no call looks so."""
        reading = since_last(counters, self._how)
        if counters is not None and self._how is not self._session.how and _leaves_open(counters, reading.usage):
            reading = replace(reading, whole=False)
        if reading.usage.prompt and not reading.usage.completion:  # every call writes something
            reading = replace(reading, detail=joined(reading.detail, _NO_OUTPUT), whole=False)
        return reading


def _may_have_gone_on(now: ComparedTurn, closed: ComparedTurn) -> bool:
    """Whether the first counters after a session was closed may hold what they held before."""
    return now.partition.prompt >= SMALL and covers(now.counters, closed.counters) and not tells_its_call(now)


def _leaves_open(counters: Counters, usage: Usage) -> bool:
    """Whether more may be missing: of the total, which may hold thinking that is not told, or of where that belongs."""
    if counters.total is None:
        return bool(counters.thought)
    return counters.total < usage.total or not adds_up(counters)

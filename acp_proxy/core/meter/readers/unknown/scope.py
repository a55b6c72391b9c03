"""Whether an unknown agent counts per turn or since the session began, by what one call can have sent."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core.agents import InputCounts
from acp_proxy.core.meter.counters import covers
from acp_proxy.core.meter.readers.unknown.one_call import SMALL, ComparedTurn, OneCall, is_context_of

PER_TURN = "unknown agent: counters taken per turn"
_CUMULATIVE = "unknown agent: counters grew by more than the context, taken as cumulative"
_EITHER = "unknown agent: its counters may be the turn's or the session's"
_NEVER = "unknown agent: counters fell, or grew by less than a call, taken per turn"


class Judged(Struct, frozen=True):
    """How one turn's counters are to be taken. Not `sure`: as the session's, at least, for they may be the turn's."""

    cumulative: bool = False
    reason: str = PER_TURN
    sure: bool = True


_AT_LEAST = Judged(cumulative=True, reason=_EITHER, sure=False)
_ANEW = Judged(reason="unknown agent: counters that were cumulative began anew with another model")
_ONCE_MORE = Judged(reason="unknown agent: counters that were cumulative began anew")


class ScopeGuess:
    """One agent, over all its sessions. Begins with `turn`."""

    def __init__(self) -> None:
        self.scope: Literal["turn", "session"] = "turn"
        self.caches: dict[str | None, InputCounts] = {}  # whether input holds them, by model, once that is known
        self.sums = False  # a turn's usage is of all its calls, and not of the last one alone
        self._sure = False  # of `session`
        self._proven = False  # that it was, once: what falls then began anew
        self._per_turn = False  # for good

    @property
    def settled(self) -> bool:
        """Whether it is known by now, and no longer guessed."""
        return self._per_turn or self._sure

    def judge(
        self,
        before: ComparedTurn | None,
        now: ComparedTurn,
        call: OneCall | None,
        *,
        loaded: bool,
        waited: bool = False,
    ) -> Judged:
        """The reading of one more turn of a session, or of the first one of a session that was `loaded`.

        `call` is what one call can have sent, where the session's own figures tell that. A turn that `waited` for the
        one before may tell the sum of both.
        """
        if before is None:
            if loaded and not self._per_turn and _is_of_many(now):
                self._goes_on(sure=True)
            return self._as_found()
        if _is_lower(before, now):
            return self._fell(before, now)
        if waited and call is not None and not call.fits(now.partition.prompt, 1, now.calls):
            return _AT_LEAST
        if self.settled:
            anew = self._sure and call is not None and _begins_anew(before, now, call)
            return _ANEW if anew else self._as_found()
        if call is not None:
            return self._fitting(before, now, call)
        if _outgrew(before, now):
            self._goes_on(sure=True)
        elif before.context is None or not tells_its_call(now):
            return self._by_growth(before, now)
        return self._as_found()

    def _fell(self, before: ComparedTurn, now: ComparedTurn) -> Judged:
        """With another model some begin anew, a session's also after a compaction, with which the context falls, too.

        Of several calls the first ones may have been counted before that.
        """
        if now.model != before.model:
            return _ANEW if self.scope == "session" else self._as_found()
        cumulative = self._proven or self.scope == "session"
        anew = self._proven or _has_shrunk(before, now)
        self.scope, self._sure = "turn", False
        if not anew:
            self._is_per_turn(before, now)
        return replace(_ONCE_MORE, sure=now.calls == 1) if anew and cumulative else self._as_found()

    def _by_growth(self, before: ComparedTurn, now: ComparedTurn) -> Judged:
        """Where nothing proves what a call can have sent, but that none of an agent is very small."""
        grown = now.partition.prompt - before.partition.prompt
        if now.model == before.model and 0 < grown < SMALL < before.partition.prompt and not self._proven:
            self._is_per_turn(before, now)
        if self._per_turn or before.partition.prompt < SMALL:
            return self._as_found()
        return _AT_LEAST

    def _fitting(self, before: ComparedTurn, now: ComparedTurn, call: OneCall) -> Judged:
        """Which of both is what calls of this session can have sent.

        A turn with a call that shows nowhere looks like one of a session's counters, but not twice.
        """
        grown = now.partition.prompt - before.partition.prompt
        per_turn = call.fits(now.partition.prompt, 1, now.calls)
        cumulative = call.fits(grown, min(now.calls, 2), now.calls)
        # A session's counters grow by a call at least, if there was one, and if they do not begin anew.
        if per_turn and 0 < grown < call.floor and now.model == before.model:
            if self._proven:  # calls may be smaller since they began anew
                return _AT_LEAST
            self._is_per_turn(before, now)
            return self._as_found()
        if per_turn and not cumulative:
            self.scope = "turn"
            return Judged() if call.proven else _AT_LEAST
        if cumulative and not per_turn:
            self._goes_on(sure=self.scope == "session")
            return self._as_found()
        return _AT_LEAST

    def _is_per_turn(self, before: ComparedTurn, now: ComparedTurn) -> None:
        """For good, unless it only looks so: what was cached may stand beside the input, and have grown by more."""
        self.scope = "turn"
        self._per_turn = self._per_turn or now.certain or not covers(now.counters, before.counters)

    def _goes_on(self, *, sure: bool) -> None:
        self.scope, self._sure, self._proven = "session", sure, self._proven or sure

    def _as_found(self) -> Judged:
        if self.scope == "session":
            return Judged(cumulative=True, reason=_CUMULATIVE, sure=self._sure)
        return Judged(reason=_NEVER if self._per_turn else PER_TURN)


def tells_its_call(now: ComparedTurn) -> bool:
    """Whether a turn of one call came with the context of that call."""
    return now.calls == 1 and now.context is not None and is_context_of(now.context, now.partition)


def _is_lower(before: ComparedTurn, now: ComparedTurn) -> bool:
    """Whether any counter is. What only one of both tells apart is in another counter of the other."""
    parts = [name for name in ("cached_read", "cached_write", "thought") if _tells(before, name) != _tells(now, name)]
    sent = ("prompt",) if {"cached_read", "cached_write"} & {*parts} else ("input", "cached_read", "cached_write")
    written = ("completion",) if "thought" in parts else ("output", "thought")
    return any(getattr(now.partition, name) < getattr(before.partition, name) for name in sent + written)


def _tells(turn: ComparedTurn, counter: str) -> bool:
    return getattr(turn.counters, counter) is not None


def _begins_anew(before: ComparedTurn, now: ComparedTurn, call: OneCall) -> bool:
    """Whether a session's counters grew by less than a call, with another model: some begin anew then."""
    grown = now.partition.prompt - before.partition.prompt
    return now.model != before.model and 0 < grown < call.floor <= now.partition.prompt


def _has_shrunk(before: ComparedTurn, now: ComparedTurn) -> bool:
    return before.context is not None and now.context is not None and now.context < before.context


def _outgrew(before: ComparedTurn, now: ComparedTurn) -> bool:
    """Whether a turn of its own cannot have sent so much: a sum over several calls is no sign by itself.

    One call sends what the last one sent, and what came to the context since. Where that one is not known, it sends
    the context. Half of one call is left for what agents guess and do not show.
    """
    if now.context is None or before.context is None or not before.partition.prompt:
        return False
    sent = before.partition.prompt + max(0, now.context - before.context)
    margin = min(now.context, before.partition.prompt) // 2
    if before.calls > 1 and now.calls > 1:
        sent = now.context
    return now.partition.prompt > now.calls * sent + margin


def _is_of_many(now: ComparedTurn) -> bool:
    """Whether it is far more than all calls of the turn can have sent."""
    return now.context is not None and 2 * now.partition.prompt > 3 * now.calls * now.context

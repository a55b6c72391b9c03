"""From an agent's token counters, which overlap, to the disjoint partition; and from cumulative ones to differences.

Nothing here knows an agent by name: `core/agents` does.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from acp_proxy.core.agents.profile import Overlap
from acp_proxy.core.events import Counters
from acp_proxy.core.usage import NOTHING, Usage

_NAMES = Counters.__struct_fields__
_OVERLAPS = {  # (caches in input, thinking in output)
    (False, False): "caches beside input, thinking beside output, by totalTokens",
    (False, True): "caches beside input, thinking inside output, by totalTokens",
    (True, True): "caches inside input, thinking inside output, by totalTokens",
    (True, False): "caches inside input, thinking beside output, by totalTokens",
}
_NO_SUM = "totalTokens is no sum of its counters"
_MORE_CACHED = "more was cached than input tells, so that it stands beside it"
_HALF = "input or output is not told"
_UNSURE = "thinking may be in the output or beside it"
_NOTHING_NEW = Counters(0, 0, 0)


class Reading(Struct, frozen=True):
    """A partition, and why it was read so. Not `certain`: the counters contradict each other and nobody decided.

    Not `whole`: they contradict each other, or one is missing, but how the agent counts is known. `guessed`: they may
    be of more than what they are read as.
    """

    usage: Usage
    detail: str = ""
    certain: bool = True
    whole: bool = True
    guessed: bool = False


def partition(counters: Counters, how: Overlap) -> Reading:
    """Which counters overlap follows from the total, by the first identity that holds; else from the profile."""
    caches_inside, decided = how.input == "includes_cache", how.decided
    if how.thinking == "either" and counters.thought:
        return Reading(_split(counters, caches_inside, True), _UNSURE, whole=False)
    for overlap, words in _OVERLAPS.items():
        if decided and overlap[0] != caches_inside:
            continue
        if _sum(counters, *overlap) == counters.total:
            if overlap[0] and not decided and _is_beside(counters, how):
                return Reading(_split(counters, False, overlap[1]), _MORE_CACHED, whole=False)  # nor is it in the total
            return Reading(_split(counters, *overlap), "" if how.known else _reason(counters, words))
    if how.input is not None:
        usage = _split(counters, caches_inside, how.thinking == "inside")
        if counters.total is not None and not decided:
            return Reading(usage, _NO_SUM, whole=False)
        return Reading(usage) if _has_both(counters) else Reading(usage, _HALF, whole=False)
    if counters.total is None and not _has_parts(counters):
        usage = _split(counters, False, False)
        if not _has_both(counters):
            return Reading(usage, _HALF, whole=False)
        return Reading(usage, "" if how.known else _reason(counters, ""))
    if counters.total is None and not counters.thought and _is_beside(counters, how):
        return Reading(_split(counters, False, True), _MORE_CACHED, whole=_has_both(counters))
    return Reading(_split(counters, True, True), _NO_SUM, certain=False)


def since_last(grown: Counters | None, how: Overlap) -> Reading:
    """What cumulative counters grew by; nothing where that is not known."""
    return Reading(NOTHING) if grown is None else partition(grown, how)


def joined(*reasons: str) -> str:
    """Those that say anything, as one."""
    return "; ".join(filter(None, reasons))


def adds_up(counters: Counters) -> bool:
    """Whether the total is the sum of the counters, whichever of them overlap."""
    return any(_sum(counters, *overlap) == counters.total for overlap in _OVERLAPS)


def is_empty(counters: Counters | None) -> bool:
    """Whether there is nothing to count: no counters, or neither input nor output among them."""
    return counters is None or (counters.input is None and counters.output is None)


class Cumulative:
    """One session's counters that only grow, and restart. What was counted before is never counted again."""

    __slots__ = ("_first", "_perhaps", "known", "last")

    def __init__(self) -> None:
        self.last: Counters | None = None
        self.known = True  # where they stood: at `last`, or at 0. False after a load, until somebody says
        self._first: Counters | None = None  # told when nobody had said, for `settle`
        self._perhaps = False  # they may have begun at 0 since

    def begin(self, *, at_zero: bool) -> None:
        self.last, self.known, self._first, self._perhaps = None, at_zero, None, False

    def begin_perhaps_at(self, counters: Counters | None, *, known: bool) -> None:
        """A session is opened that may go on from these counters, or begin at 0. None: 0 if that is `known`."""
        self.begin(at_zero=known)
        if counters is not None:
            self.stand_at(counters)
            self._perhaps = True

    def restore_perhaps(self, counters: Counters | None, *, from_zero: bool) -> None:
        """What the ledger knows of a session that was loaded, or of a fork's parent, if it is not known here."""
        if not self.known:
            self.begin_perhaps_at(counters, known=from_zero)

    def may_go_on(self, now: Counters) -> bool:
        """Whether the first counters since then may hold the earlier ones: what they grew by is a lower bound."""
        return self._perhaps and self.last is not None and covers(now, self.last)

    def stand_at(self, counters: Counters) -> None:
        self.last, self.known, self._perhaps = counters, True, False

    def fell(self, now: Counters) -> bool:
        """Whether they stand lower than before, and not at nothing."""
        return self.last is not None and not _is_nothing(now) and not covers(now, self.last)

    def restore(self, counters: Counters | None, *, from_zero: bool) -> None:
        """What the ledger knows, unless the agent itself has said where it stands. None: at 0, or nobody knows."""
        if not self.known and counters is not None:
            self.stand_at(counters)
        self.known = self.known or from_zero

    def settle(self, counters: Counters | None, *, from_zero: bool) -> Counters | None:
        """What the first ones held that nobody could tell, once it is known where they stood."""
        first, self._first = self._first, None
        if counters is None:
            return first if from_zero else None
        return _difference(counters, first) if first is not None and covers(first, counters) else None

    def since(self, now: Counters) -> Counters | None:
        """What came since the last time, all of it after a restart. None when it is not known where they stood."""
        if not self.known:
            return None
        if self.last is None or not covers(now, self.last):
            return now
        return _difference(self.last, now)

    def advance(self, now: Counters) -> Counters | None:
        """What came `since` the last time; from now on they stand at `now`.

        Nothing but zeros is a gap in what the agent knows, unless its session begins: after a load it is not at 0.
        """
        if _is_nothing(now) and (self.last is not None or not self.known):
            return now
        since, last = self.since(now), self.last
        self._first = self._first if self.known else now
        self.stand_at(now if last is None else _merged(last, now, lambda old, new: old if new is None else new))
        return since


def completed(told: Counters, earlier: Counters | None) -> Counters:
    """With the parts of its input and output that only an earlier report of the same input and output tells."""
    if earlier is None or (earlier.input, earlier.output) != (told.input, told.output):
        return told
    return _merged(earlier, told, lambda old, new: old if new is None else new)


def covers(now: Counters, last: Counters) -> bool:
    """Whether no counter fell; one that is absent on a side says nothing."""
    pairs = ((getattr(now, name), getattr(last, name)) for name in _NAMES)
    return all(new >= old for new, old in pairs if new is not None and old is not None)


def _difference(last: Counters, now: Counters) -> Counters:
    """Where neither input nor output grew, nothing was used: a part of them is only told now."""
    grown = _merged(last, now, lambda old, new: None if new is None else new - (old or 0))
    return grown if grown.input or grown.output else _NOTHING_NEW


def _is_nothing(counters: Counters) -> bool:
    return not any(getattr(counters, name) for name in _NAMES)


def _merged(last: Counters, now: Counters, of: Callable[[int | None, int | None], int | None]) -> Counters:
    return Counters(*(of(getattr(last, name), getattr(now, name)) for name in _NAMES))


def _sum(counters: Counters, caches_inside: bool, thought_inside: bool) -> int:
    total = (counters.input or 0) + (counters.output or 0)
    if not caches_inside:
        total += (counters.cached_read or 0) + (counters.cached_write or 0)
    return total if thought_inside else total + (counters.thought or 0)


def _split(counters: Counters, caches_inside: bool, thought_inside: bool) -> Usage:
    read, write, thought = counters.cached_read or 0, counters.cached_write or 0, counters.thought or 0
    sent, written = counters.input or 0, counters.output or 0
    if caches_inside:
        sent = max(0, sent - read - write)
    if thought_inside:
        thought = min(thought, written)
        written -= thought
    usage = Usage(sent, read, write, written, thought)
    return NOTHING if usage == NOTHING else usage


def _reason(counters: Counters, words: str) -> str:
    """Where no part is told any identity holds, and proves nothing."""
    told = any(part is not None for part in (counters.cached_read, counters.cached_write, counters.thought))
    return words if told else "neither caches nor thinking are told apart"


def _is_beside(counters: Counters, how: Overlap) -> bool:
    """Whether an agent that nobody has described tells more cached input than input."""
    cached = (counters.cached_read or 0) + (counters.cached_write or 0)
    return not how.known and cached > (counters.input or 0)


def _has_both(counters: Counters) -> bool:
    return counters.input is not None and counters.output is not None


def _has_parts(counters: Counters) -> bool:
    return bool(counters.cached_read or counters.cached_write or counters.thought)

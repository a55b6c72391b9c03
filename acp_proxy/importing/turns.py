"""Which calls of a book belong to which relayed turns of its session. Pure; where it is not certain, it says so.

A call belongs to the turn that ran when the agent wrote it. Where an agent's times are too coarse to tell, the figures
of the turns decide: calls follow each other as turns do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from acp_proxy.books import Call
from acp_proxy.core.usage import NOTHING, Usage
from acp_proxy.ledger import Row
from acp_proxy.text.times import SECOND

AFTER = 5 * SECOND  # how late an agent may write of a turn that has ended
MILLISECOND = SECOND // 1000
Calls = tuple[Call, ...]


class _Way(NamedTuple):
    """One way to deal out the calls to turns so far: the last turn has those that `begin` with this one."""

    fitting: int  # turns whose figures these calls explain
    begin: int
    before: _Way | None


def calls_of(turns: Sequence[Row], calls: Sequence[Call], resolution: int) -> list[Calls | None]:
    """Of each turn, in their order; None where it is not certain. `calls` are the session's own, in their order.

    `resolution` is that of the agent's times, in nanoseconds. Calls that no turn can have made are passed over.
    """
    ends = [_end(turn, after) for turn, after in zip(turns, [*turns[1:], None], strict=True)]
    spans = [(turn.entry.started_at - resolution, end) for turn, end in zip(turns, ends, strict=True)]
    owned = [call for call in calls if any(start < call.at <= end for start, end in spans)]
    ways = list(_best(turns, owned, spans))
    if not ways:
        return [None] * len(turns)
    dealt = [_dealt(way, owned) for way in ways]
    return [
        None if _overlaps(turns, index) or any(found[index] != dealt[0][index] for found in dealt) else dealt[0][index]
        for index in range(len(turns))
    ]


def _end(turn: Row, following: Row | None) -> int:
    latest = turn.entry.ended_at + AFTER
    return latest if following is None else min(latest, following.entry.started_at)


def _overlaps(turns: Sequence[Row], index: int) -> bool:
    """Whether another prompt was asked before it ended: some agents take both as one."""
    beside = [*turns[max(0, index - 1) : index], *turns[index + 1 : index + 2]]
    entry = turns[index].entry
    return any(other.entry.started_at < entry.ended_at and entry.started_at < other.entry.ended_at for other in beside)


def _best(turns: Sequence[Row], calls: Sequence[Call], spans: Sequence[tuple[int, int]]) -> Iterator[_Way]:
    """Ways in which most turns are explained: one, or two that differ."""
    ways: dict[int, list[_Way]] = {0: [_Way(0, 0, None)]}  # by how many calls are dealt out
    for turn, (start, end) in zip(turns, spans, strict=True):
        following: dict[int, list[_Way]] = {}
        for begin, so_far in ways.items():
            for stop in range(begin, len(calls) + 1):
                if stop > begin and not start < calls[stop - 1].at <= end:
                    break
                fitting = _explains(calls[begin:stop], turn)
                for way in so_far:
                    _keep(following.setdefault(stop, []), _Way(way.fitting + fitting, begin, way))
        ways = following
    yield from ways.get(len(calls), [])


def _keep(best: list[_Way], way: _Way) -> None:
    if best and way.fitting > best[0].fitting:
        best.clear()
    if not best or (way.fitting == best[0].fitting and len(best) < 2):
        best.append(way)


def _dealt(way: _Way, calls: Sequence[Call]) -> list[Calls]:
    dealt, stop = [], len(calls)
    while way.before is not None:
        dealt.append(tuple(calls[way.begin : stop]))
        way, stop = way.before, way.begin
    return dealt[::-1]


def _explains(calls: Sequence[Call], turn: Row) -> int:
    """Whether the figures of the turn are those of these calls, or of the last of them."""
    told = turn.entry.usage
    every = used(calls)
    if turn.entry.usage_source == "agent":
        return int(_same(every, told))
    return int(bool(calls) and told.total > 0 and (_same(calls[-1].usage, told) or every.prompt == told.prompt))


def _same(one: Usage, other: Usage) -> bool:
    """Agents need not tell caches and thinking apart."""
    return (one.prompt, one.completion) == (other.prompt, other.completion)


def used(calls: Sequence[Call]) -> Usage:
    return sum((call.usage for call in calls), NOTHING)

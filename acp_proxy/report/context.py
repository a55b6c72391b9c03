"""How full a session's context was after each row, as many points as somebody can look at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core.entry import Entry
from acp_proxy.ledger import Context

MOST_POINTS = 5000  # more than a terminal has columns


class Point(Struct, frozen=True):
    """The context after one row: None where it is not known. `compacted` where there is less of it than there was."""

    at: int  # Unix ns
    used: int | None
    size: int | None
    compacted: bool


def context_of(entry: Entry) -> Context:
    """As a ledger tells it of this row."""
    return Context(entry.started_at, entry.kind, entry.context_used, entry.context_size)


def points(contexts: Iterable[Context]) -> Iterator[Point]:
    """A context that halves from one row to the next was compacted, also where the agent did not say so."""
    before: int | None = None
    for context in contexts:
        used = context.used
        halved = used is not None and before is not None and used * 2 < before
        yield Point(context.at, used, context.size, context.kind == "compaction" or halved)
        before = before if used is None else used


def thinned(found: Iterable[Point], most: int = MOST_POINTS) -> tuple[list[Point], int]:
    """At most so many points, and how many rows that follow each other each of them stands for: it is the fullest."""
    kept, each = list[Point](), 1
    waiting = list[Point]()
    for point in found:
        waiting.append(point)
        if len(waiting) == each:
            if len(kept) == most:
                kept, each = [_fullest(kept[at : at + 2]) for at in range(0, most, 2)], each * 2
                continue
            kept.append(_fullest(waiting))
            waiting = []
    return [*kept, *([_fullest(waiting)] if waiting else [])], each


def _fullest(together: list[Point]) -> Point:
    if len(together) == 1:
        return together[0]
    known = [point for point in together if point.used is not None and point.size]
    fullest = max(known, key=lambda point: (point.used or 0) / (point.size or 1), default=together[0])
    return replace(fullest, at=together[0].at, compacted=any(point.compacted for point in together))

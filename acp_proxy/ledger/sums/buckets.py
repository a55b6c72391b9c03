"""The buckets of running totals: which of them make up an interval of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

QUARTER_HOUR = 900 * 10**9  # ns
A_DAY = 96  # quarter hours
FOUR_WEEKS = 28 * A_DAY
LEVELS = (1, A_DAY, FOUR_WEEKS)  # quarter hours in a bucket, which are counted from 1970 (UTC)
DAY_LEVEL = LEVELS.index(A_DAY)
WHOLE = len(LEVELS)  # the level of one bucket, 0: what is read again and again must not grow with the ledger's age
EVER = 2**62  # beyond every bucket

# SQL for the quarter hour in which a turn, called t, began: rounded down also before 1970.
QUARTER_OF_TURN = f"t.started_at / {QUARTER_HOUR} - CASE WHEN t.started_at % {QUARTER_HOUR} < 0 THEN 1 ELSE 0 END"


class Cover(Struct, frozen=True):
    """An interval of starts as `ranges` of buckets (level, first, end) and, where it cuts a quarter hour, `edges`."""

    ranges: tuple[tuple[int, int, int], ...]
    edges: tuple[tuple[int, int], ...]


def cover(since: int | None, until: int | None, *, finest: bool = False) -> Cover:
    """Half-open, None is open. With `finest` quarter hours only."""
    first = -EVER if since is None else -(-since // QUARTER_HOUR)
    end = EVER if until is None else until // QUARTER_HOUR
    if since is not None and until is not None and first > end:
        return Cover((), ((since, until),) if since < until else ())
    edges = []
    if since is not None and since < first * QUARTER_HOUR:
        edges.append((since, first * QUARTER_HOUR))
    if until is not None and end * QUARTER_HOUR < until:
        edges.append((end * QUARTER_HOUR, until))
    if since is None and until is None and not finest:
        return Cover(((WHOLE, 0, 1),), ())
    sizes = LEVELS[:1] if finest else LEVELS
    return Cover(tuple(_ranges(first, end, sizes, 0)), tuple(edges))


def _ranges(first: int, end: int, sizes: Sequence[int], level: int) -> Iterator[tuple[int, int, int]]:
    """`first` and `end` are in buckets of this level; whole buckets of the next one are left to it."""
    if first >= end:
        return
    if level + 1 == len(sizes):
        yield level, first, end
        return
    ratio = sizes[level + 1] // sizes[level]
    coarse_first, coarse_end = -(-first // ratio), end // ratio
    ragged = (first, end) != (coarse_first * ratio, coarse_end * ratio)
    if coarse_first >= coarse_end or (ragged and level == 0 and coarse_end - coarse_first == 1):
        yield level, first, end  # each range is a step in an index for each series: one day is not worth one
        return
    if first > -EVER and first < coarse_first * ratio:
        yield level, first, coarse_first * ratio
    yield from _ranges(-EVER if first <= -EVER else coarse_first, EVER if end >= EVER else coarse_end, sizes, level + 1)
    if end < EVER and coarse_end * ratio < end:
        yield level, coarse_end * ratio, end

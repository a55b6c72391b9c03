"""Running totals: what rows add up to, by who, what and when; only incremented, in the transaction of the row.

A series is one combination of dimensions, a bucket some quarter hours of one of `LEVELS`, or at `WHOLE` all of them.
All can be made anew from rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct, field

from acp_proxy.core.digest import digest
from acp_proxy.core.entry import UsageLine
from acp_proxy.core.money import NANO
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import Row

Run = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]  # SQL with ?, values -> rows, within one transaction
Statement = tuple[str, Sequence[Any]]  # what is made before a transaction, for others wait while it goes on

QUARTER_HOUR = 900 * 10**9
LEVELS = (1, 96, 28 * 96)  # quarter hours in a bucket: one, a day, four weeks (UTC)
WHOLE = len(LEVELS)  # the level of one bucket, 0: what is read again and again must not grow with the ledger's age
_MOST_AT_ONCE = 200  # rows of one statement

# Money is kept as units and nano-units, for the sum of a column must not overflow.
COUNTS = (
    "row_count",  # rows whose first line is in the series
    "line_count",  # rows whose first line of that model is
    "unpriced_rows",
    "unpriced_lines",
    "input",
    "cached_read",
    "cached_write",
    "output",
    "thought",
    "units",
    "nano",
)
_ADD = f"""
ON CONFLICT (org_id, level, series, bucket) DO UPDATE SET
    {", ".join(f"{column} = total.{column} + excluded.{column}" for column in COUNTS)},
    first_at = CASE WHEN excluded.first_at < total.first_at THEN excluded.first_at ELSE total.first_at END,
    last_at = CASE WHEN excluded.last_at > total.last_at THEN excluded.last_at ELSE total.last_at END
"""

SERIES = (
    "user_id",
    "team",
    "project",
    "agent",
    "model",
    "kind",
    "stop_reason",
    "usage_source",
    "cost_source",
    "currency",
)

# A line of a model that another line of its turn has already, for a cost in another currency. Few turns have any.
REPEATED = """
(l.position > 0 AND EXISTS (
    SELECT 1 FROM line e WHERE e.org_id = l.org_id AND e.turn = l.turn AND e.position < l.position
        AND (e.model = l.model OR (e.model IS NULL AND l.model IS NULL))
))
"""
_COUNT_ROWS = f"""
SELECT t.user_id, t.team, t.project, t.agent, l.model, t.kind, t.stop_reason, t.usage_source, t.cost_source, l.currency,
    t.started_at / {QUARTER_HOUR} - CASE WHEN t.started_at % {QUARTER_HOUR} < 0 THEN 1 ELSE 0 END AS quarter,
    sum(CASE WHEN l.position = 0 THEN 1 ELSE 0 END), sum(CASE WHEN {REPEATED} THEN 0 ELSE 1 END),
    sum(CASE WHEN l.position = 0 AND t.unpriced = 1 THEN 1 ELSE 0 END),
    sum(CASE WHEN l.cost_nano IS NULL AND t.cost_source <> 'parent'
        AND l.input + l.cached_read + l.cached_write + l.output + l.thought > 0 THEN 1 ELSE 0 END),
    sum(l.input), sum(l.cached_read), sum(l.cached_write), sum(l.output), sum(l.thought),
    coalesce(sum(l.cost_nano / {NANO}), 0), coalesce(sum(l.cost_nano % {NANO}), 0),
    min(t.started_at), max(t.ended_at)
FROM turn t JOIN line l ON l.org_id = t.org_id AND l.turn = t.id
WHERE t.org_id = ? AND t.started_at >= ? AND t.started_at < ?
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
"""

Series = tuple[str | None, ...]  # values of `SERIES`
_Key = tuple[str, int, str, int]  # organisation, level, series, bucket


class Additions(Struct):
    """What rows add to totals, gathered before it is written."""

    series: dict[tuple[str, str], Series] = field(default_factory=dict)  # by organisation and id
    counts: dict[_Key, list[int]] = field(default_factory=dict)
    prepared: list[Statement] | None = None

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Additions:
        """Ready to be written: nothing is added any more."""
        additions = cls()
        for row in rows:
            additions.add(row)
        additions.prepared = additions.statements()
        return additions

    def add(self, row: Row) -> None:
        origin, entry, models = row.origin, row.entry, set[str | None]()
        sources = (entry.kind, entry.stop_reason, entry.usage_source, entry.cost_source)
        for position, line in enumerate(entry.lines or (UsageLine(None, Usage()),)):
            usage, cost = line.usage, line.cost
            first, of_model = int(position == 0), int(line.model not in models)
            models.add(line.model)
            unpriced = int(cost is None and usage.total > 0 and entry.cost_source != "parent")
            units, nano = split(cost.nano) if cost else (0, 0)
            self._add(
                origin.organisation,
                (
                    origin.user,
                    origin.team,
                    origin.project,
                    origin.agent,
                    line.model,
                    *sources,
                    cost.currency if cost else None,
                ),
                entry.started_at // QUARTER_HOUR,
                (first, of_model, first and int(entry.unpriced), unpriced, *_parts(usage), units, nano),
                (entry.started_at, entry.ended_at),
            )

    def add_counted(self, organisation: str, found: Sequence[Any]) -> None:
        """A row of `_COUNT_ROWS`."""
        dimensions, quarter, numbers = found[: len(SERIES)], int(found[len(SERIES)]), found[len(SERIES) + 1 :]
        *counts, first_at, last_at = map(int, numbers)
        self._add(organisation, tuple(dimensions), quarter, counts, (first_at, last_at))

    def write(self, run: Run, known: set[tuple[str, str]]) -> list[tuple[str, Series]]:
        """The series that nobody wrote before, with their organisations. `known` series are there.

        In the order of keys, so that two transactions never wait for each other.
        """
        unsure = sorted(key for key in self.series if key not in known)
        ending = " ON CONFLICT DO NOTHING RETURNING org_id, id"
        new = insert(run, "series", [(*key, *self.series[key]) for key in unsure], ending)
        execute(run, self.statements() if self.prepared is None else self.prepared)
        return [(key[0], self.series[key]) for key in new if key in self.series]

    def statements(self) -> list[Statement]:
        return insertions("total", [(*key, *self.counts[key]) for key in sorted(self.counts)], _ADD)

    def _add(
        self, organisation: str, series: Series, quarter: int, counts: Sequence[int], times: tuple[int, int]
    ) -> None:
        name = _series_id(series)
        self.series[organisation, name] = series
        for level, bucket in enumerate((*(quarter // size for size in LEVELS), 0)):
            key = (organisation, level, name, bucket)
            so_far = self.counts.get(key)
            if so_far is None:
                self.counts[key] = [*counts, *times]
                continue
            for index, count in enumerate(counts):
                so_far[index] += count
            so_far[-2:] = min(so_far[-2], times[0]), max(so_far[-1], times[1])


def rebuild(run: Run, organisations: Iterable[str]) -> None:
    """Make all totals anew; nobody else may write meanwhile. Four weeks are in memory at a time."""
    run("DELETE FROM total", ())
    for organisation in organisations:
        for since, until in _blocks(run, organisation):
            additions = Additions()
            for found in run(_COUNT_ROWS, (organisation, since, until)):
                additions.add_counted(organisation, found)
            additions.write(run, set())


def _blocks(run: Run, organisation: str) -> Iterator[tuple[int, int]]:
    """The largest buckets that have rows, as intervals of their starts."""
    size = LEVELS[-1] * QUARTER_HOUR
    following = "SELECT min(started_at) FROM turn WHERE org_id = ? AND started_at >= ?"
    at = -(2**63)
    while (found := run(following, (organisation, at))[0][0]) is not None:
        since = found // size * size
        at = min(since + size, 2**63 - 1)
        yield max(since, -(2**63)), at
        if at == 2**63 - 1:
            return


def _parts(usage: Usage) -> tuple[int, ...]:
    return usage.input, usage.cached_read, usage.cached_write, usage.output, usage.thought


def split(nano: int) -> tuple[int, int]:
    """Units and nano-units of the same sign, as SQL divides."""
    units, rest = divmod(abs(nano), NANO)
    return (units, rest) if nano >= 0 else (-units, -rest)


@lru_cache(maxsize=1024)  # the same few with each row
def _series_id(series: Series) -> str:
    import json  # not for who only reads

    return digest(json.dumps(series).encode(), 12)


def insert(run: Run, table: str, rows: Sequence[Sequence[object]], ending: str = "") -> list[tuple[Any, ...]]:
    """Insert rows of all columns, many with one statement; what `ending` returns."""
    return execute(run, insertions(table, rows, ending))


def insertions(table: str, rows: Sequence[Sequence[object]], ending: str = "") -> list[Statement]:
    statements = list[Statement]()
    for start in range(0, len(rows), _MOST_AT_ONCE):
        some = rows[start : start + _MOST_AT_ONCE]
        sql = _insertion(table, len(some[0]), len(some), ending)
        statements.append((sql, [value for row in some for value in row]))
    return statements


def execute(run: Run, statements: Iterable[Statement]) -> list[tuple[Any, ...]]:
    return [found for sql, values in statements for found in run(sql, values)]


@lru_cache(maxsize=256)  # most have few rows; made while others wait for the ledger
def _insertion(table: str, columns: int, rows: int, ending: str) -> str:
    values = ", ".join([f"({', '.join('?' * columns)})"] * rows)
    return f"INSERT INTO {table} VALUES {values}{ending}"


class Cover(Struct, frozen=True):
    """An interval of starts as `ranges` of buckets (level, first, end) and, where it cuts a quarter hour, `edges`."""

    ranges: tuple[tuple[int, int, int], ...]
    edges: tuple[tuple[int, int], ...]


EVER = 2**62  # beyond every bucket


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

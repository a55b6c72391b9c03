"""Running totals: sums of rows by series and time; only incremented, in the transaction of the row.

A series is one combination of dimensions, a bucket some quarter hours of one of `LEVELS`, or at `WHOLE` all of them.
All can be recomputed from rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from operator import add
from typing import Any, TypeVar

from msgspec import Struct, field

from acp_proxy.core.digest import digest
from acp_proxy.core.entry import UsageLine
from acp_proxy.core.money import NANO
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import Row
from acp_proxy.ledger.columns import REPEATED, UNPRICED_LINE
from acp_proxy.ledger.statements import Run, Statement, execute, insertions
from acp_proxy.ledger.sums.buckets import LEVELS, QUARTER_HOUR, QUARTER_OF_TURN

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
    "billing",
)
_NEW_ALONE = "ON CONFLICT DO NOTHING RETURNING org_id, id"
_THEIRS_AGAIN = "UPDATE series SET user_id = ? WHERE org_id = ? AND id = ? AND user_id <> ? RETURNING org_id, id"
SERIES_AT_FIRST = SERIES[:-1]  # of earlier steps of the schema
BILLING = ("ALTER TABLE turn ADD COLUMN billing TEXT", "ALTER TABLE series ADD COLUMN billing TEXT")

_COUNT_ROWS = f"""
SELECT t.user_id, t.team, t.project, t.agent, l.model, t.kind, t.stop_reason, t.usage_source, t.cost_source, l.currency,
    {{billing}}, {QUARTER_OF_TURN} AS quarter,
    sum(CASE WHEN l.position = 0 THEN 1 ELSE 0 END), sum(CASE WHEN {REPEATED} THEN 0 ELSE 1 END),
    sum(CASE WHEN l.position = 0 AND t.unpriced = 1 THEN 1 ELSE 0 END),
    sum(CASE WHEN {UNPRICED_LINE} THEN 1 ELSE 0 END),
    sum(l.input), sum(l.cached_read), sum(l.cached_write), sum(l.output), sum(l.thought),
    coalesce(sum(l.cost_nano / {NANO}), 0), coalesce(sum(l.cost_nano % {NANO}), 0),
    min(t.started_at), max(t.ended_at)
FROM turn t JOIN line l ON l.org_id = t.org_id AND l.turn = t.id
WHERE t.org_id = ? AND t.started_at >= ? AND t.started_at < ?
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
"""

_K = TypeVar("_K")
Series = tuple[str | None, ...]  # values of `SERIES`
_Key = tuple[str, int, str, int]  # organisation, level, series, bucket
_Quarter = tuple[str, str, int]  # organisation, series, quarter hour


class Additions(Struct):
    """The increments of rows to totals, collected before they are written."""

    series: dict[tuple[str, str], Series] = field(default_factory=dict)  # by organisation and id
    quarters: dict[_Quarter, list[int]] = field(default_factory=dict)
    prepared: list[Statement] | None = None

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Additions:
        """Ready to be written: nothing is added any more."""
        additions = cls()
        for row in rows:
            additions.add(row)
        additions.prepared = additions.statements()
        return additions

    def add(self, row: Row, times: int = 1) -> None:
        """With `times` -1 the row is taken away again; the times of its series stay."""
        origin, entry = row.origin, row.entry
        models: set[str | None] = set()
        sources = (entry.kind, entry.stop_reason, entry.usage_source, entry.cost_source)
        for position, line in enumerate(entry.lines or (UsageLine(None, Usage()),)):
            usage, cost = line.usage, line.cost
            first, of_model = int(position == 0), int(line.model not in models)
            models.add(line.model)
            unpriced = int(cost is None and usage.total > 0 and entry.cost_source != "parent")
            units, nano = split(cost.nano) if cost else (0, 0)
            counts = (first, of_model, first and int(entry.unpriced), unpriced, *_parts(usage), units, nano)
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
                    origin.billing,
                ),
                entry.started_at // QUARTER_HOUR,
                [count * times for count in counts],
                (entry.started_at, entry.ended_at),
            )

    def add_counted(self, organisation: str, found: Sequence[Any]) -> None:
        """A row of `_COUNT_ROWS`."""
        dimensions, quarter, numbers = found[: len(SERIES)], int(found[len(SERIES)]), found[len(SERIES) + 1 :]
        *counts, first_at, last_at = map(int, numbers)
        self._add(organisation, tuple(dimensions), quarter, counts, (first_at, last_at))

    def unsure(self, known: set[tuple[str, str]], *, columns: int = len(SERIES)) -> list[Statement]:
        """Insertions of the series that may be new; `known` ones are there. They find those that are, for `named`.

        One whose user was forgotten is theirs again as soon as they come back: what it counted is the alias's.
        """
        unsure = sorted(key for key in self.series if key not in known)
        inserted = insertions("series", [(*key, *self.series[key][:columns]) for key in unsure], f" {_NEW_ALONE}")
        users = [(self.series[key][0], *key, self.series[key][0]) for key in unsure]
        return [*inserted, *((_THEIRS_AGAIN, values) for values in users)]

    def named(self, found: Iterable[tuple[Any, ...]]) -> list[tuple[str, Series]]:
        """With their organisations."""
        return [(key[0], self.series[key]) for key in found if key in self.series]

    def statements(self) -> list[Statement]:
        """The increments, in the order of keys, so that two transactions never wait for each other."""
        if self.prepared is not None:
            return self.prepared
        return insertions("total", [(*key, *numbers) for key, numbers in sorted(self.counts().items())], _ADD)

    def counts(self) -> dict[_Key, list[int]]:
        """Of the buckets of all levels."""
        counts: dict[_Key, list[int]] = {}
        for (organisation, name, quarter), added in self.quarters.items():
            for level, bucket in enumerate((*(quarter // size for size in LEVELS), 0)):
                _count(counts, (organisation, level, name, bucket), added)
        return counts

    def _add(
        self, organisation: str, series: Series, quarter: int, counts: Sequence[int], times: tuple[int, int]
    ) -> None:
        name = _series_id(series)
        self.series[organisation, name] = series
        _count(self.quarters, (organisation, name, quarter), [*counts, *times])


def _count(counts: dict[_K, list[int]], key: _K, added: Sequence[int]) -> None:
    """With the earlier of the times at its end, and the later."""
    so_far = counts.get(key)
    if so_far is None:
        counts[key] = list(added)
        return
    first_at, last_at = min(so_far[-2], added[-2]), max(so_far[-1], added[-1])
    counts[key] = [*map(add, so_far, added)]
    counts[key][-2:] = first_at, last_at


def rebuild(run: Run, organisations: Iterable[str], *, with_billing: bool = True) -> None:
    """Make all totals anew. No other process may write meanwhile. Four weeks are in memory at a time.

    Steps of the schema that are older than `BILLING` have none of it.
    """
    sql = _COUNT_ROWS.format(billing="t.billing" if with_billing else "NULL")
    run("DELETE FROM total", ())
    for organisation in organisations:
        for since, until in _blocks(run, organisation):
            additions = Additions()
            for found in run(sql, (organisation, since, until)):
                additions.add_counted(organisation, found)
            columns = len(SERIES if with_billing else SERIES_AT_FIRST)
            execute(run, [*additions.unsure(set(), columns=columns), *additions.statements()])


def rename_user(run: Run, organisation: str, name: str, alias: str) -> None:
    """All that is counted for one is counted for the other, of whom nothing is there yet.

    The ids are made of the name. Those that were there stay, without any sums, for processes that run go on with them.
    """
    sql = f"SELECT id, {', '.join(SERIES)} FROM series WHERE org_id = ? AND user_id = ?"
    for before, _, *others in run(sql, (organisation, name)):
        series = alias, *others
        after = _series_id(series)
        execute(run, insertions("series", [(organisation, after, *series)], " ON CONFLICT DO NOTHING"))
        for table in ("total", "peak"):
            run(f"UPDATE {table} SET series = ? WHERE org_id = ? AND series = ?", (after, organisation, before))
    run("UPDATE series SET user_id = ? WHERE org_id = ? AND user_id = ?", (alias, organisation, name))


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

    *others, billing = series  # without it as before there was any: what is there stays what it is called
    return digest(json.dumps(others if billing is None else series).encode(), 12)

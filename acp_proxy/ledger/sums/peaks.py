"""What sums of a series were at most, where a correction took rows out of it: counters of metrics never decrease.

A counter that was too high stands still until later rows have made it right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from acp_proxy.core.money import NANO
from acp_proxy.ledger.statements import Run, insert
from acp_proxy.ledger.sums.buckets import WHOLE
from acp_proxy.ledger.sums.totals import COUNTS, Additions, split

_TOKENS = ("input", "cached_read", "cached_write", "output", "thought")
_COLUMNS = (*_TOKENS, "units", "nano", "row_count")
_PLACES = [COUNTS.index(column) for column in _COLUMNS]  # in `Additions.counts`

TABLES = (
    f"""
    CREATE TABLE peak (
        org_id TEXT NOT NULL,
        series TEXT NOT NULL,
        {", ".join(f"{column} INTEGER NOT NULL" for column in _COLUMNS)},
        PRIMARY KEY (org_id, series)
    ) STRICT, WITHOUT ROWID
    """,
)
READ = f"SELECT series, {', '.join(_COLUMNS)} FROM peak WHERE org_id = ?"
_NOW = f"""
SELECT {", ".join(f"sum({column})" for column in _COLUMNS)} FROM total
WHERE org_id = ? AND level = {WHOLE} AND series = ? GROUP BY series
"""
_REPLACE = f"""
ON CONFLICT (org_id, series) DO UPDATE SET {", ".join(f"{column} = excluded.{column}" for column in _COLUMNS)}
"""


def note(run: Run, written: Additions) -> None:
    """Of series that these additions have made less: whoever adds to them waits until the transaction ends."""
    for (organisation, level, series, _), counts in sorted(written.counts().items()):
        added = [counts[index] for index in _PLACES]
        if level != WHOLE or min(added) >= 0:
            continue
        [now] = run(_NOW, (organisation, series))
        most = highest(now, [total - more for total, more in zip(map(int, now), added, strict=True)])
        for kept in run(f"{READ} AND series = ?", (organisation, series)):
            most = highest(most, kept[1:])
        insert(run, "peak", [(organisation, series, *most)], _REPLACE)


def merge(run: Run, rows: Sequence[Sequence[Any]]) -> int:
    """Those of another ledger; how many of them were higher."""
    higher = 0
    for organisation, series, *counts in rows:
        most = tuple(map(int, counts))
        before = [tuple(map(int, kept[1:])) for kept in run(f"{READ} AND series = ?", (organisation, series))]
        for kept in before:
            most = highest(most, kept)
        if most not in before:
            insert(run, "peak", [(organisation, series, *most)], _REPLACE)
            higher += 1
    return higher


def highest(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    """Of each the larger; money is two columns, which need not have the same sign."""
    *tokens, units, nano, rows = map(int, one)
    *other_tokens, other_units, other_nano, other_rows = map(int, other)
    money = max(units * NANO + nano, other_units * NANO + other_nano)
    return (*map(max, tokens, other_tokens), *split(money), max(rows, other_rows))

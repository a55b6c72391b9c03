"""The values of each dimension in the order of their first appearance: metrics permanently show the first ones.

Written only when a series or session is new. A value that is too long is known by a digest, without a rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from acp_proxy.core.digest import digest
from acp_proxy.ledger.statements import Read, Run, insert
from acp_proxy.ledger.sums.totals import SERIES, Series

LONGEST = 200  # characters

TABLES = (
    """
    CREATE TABLE label (
        org_id TEXT NOT NULL,
        dimension TEXT NOT NULL,
        value TEXT NOT NULL,
        position INTEGER NOT NULL,
        PRIMARY KEY (org_id, dimension, value)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX label_by_position ON label (org_id, dimension, position)",
    """
    CREATE TABLE label_count (
        org_id TEXT NOT NULL,
        dimension TEXT NOT NULL,
        count INTEGER NOT NULL,
        PRIMARY KEY (org_id, dimension)
    ) STRICT, WITHOUT ROWID
    """,
)
_DIMENSIONS = {
    "user_id": "user",
    "team": "team",
    "project": "project",
    "agent": "agent",
    "model": "model",
    "stop_reason": "stop_reason",
    "currency": "currency",
}
_TOO_LONG = 0  # as position
# Counting locks a row on PostgreSQL until the end of the transaction: positions ascend in the order of commits.
_NEXT = """INSERT INTO label_count SELECT ?, ?, 1
WHERE NOT EXISTS (SELECT 1 FROM label WHERE org_id = ? AND dimension = ? AND value = ?)
ON CONFLICT (org_id, dimension) DO UPDATE SET count = label_count.count + 1
"""
_NAME = """INSERT INTO label SELECT ?, ?, ?, count FROM label_count WHERE org_id = ? AND dimension = ?
ON CONFLICT DO NOTHING
"""

Value = tuple[str, str, str]  # organisation, dimension, value


class Label(NamedTuple):
    """A value that a dimension has had. Positions ascend from 1 in the order in which values came, and stay.

    One that is too long is a digest, and its position 0.
    """

    dimension: str
    value: str
    position: int


def of_series(new: Iterable[tuple[str, Series]]) -> list[Value]:
    """The values of series with their organisations, each once, in their order."""
    found = (
        (organisation, _DIMENSIONS[name], value)
        for organisation, series in new
        for name, value in zip(SERIES, series, strict=True)
        if value is not None and name in _DIMENSIONS
    )
    return list(dict.fromkeys(found))


def register(run: Run, values: Sequence[Value]) -> None:
    """Give those that are new a position. Asks nothing: others wait for whoever counts."""
    # In one order, so that no two writers deadlock.
    for organisation, dimension, value in sorted(values, key=lambda each: each[:2]):
        name, named = _name(value), (organisation, dimension)
        if name == value:
            run(_NEXT, (*named, *named, name))
            run(_NAME, (*named, name, *named))
        else:
            insert(run, "label", [(*named, name, _TOO_LONG)], " ON CONFLICT DO NOTHING")


def read_labels(read: Read, organisation: str) -> list[Label]:
    """By dimension and position."""
    sql = "SELECT dimension, value, position FROM label WHERE org_id = ? ORDER BY dimension, position"
    return [Label._make(found) for found in read(sql, (organisation,))]


def _name(value: str) -> str:
    if len(value) <= LONGEST:
        return value
    return digest(value.encode("utf-8", "surrogatepass"), 16)

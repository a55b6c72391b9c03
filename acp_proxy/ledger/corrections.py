"""What rows said before they were corrected. Only appended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from acp_proxy.core.entry import Entry
from acp_proxy.ledger import Row
from acp_proxy.ledger.statements import Run, insert
from acp_proxy.ledger.sums import peaks

TABLES = (
    """
    CREATE TABLE correction (
        org_id TEXT NOT NULL,
        turn TEXT NOT NULL,
        number INTEGER NOT NULL,
        started_at INTEGER NOT NULL,
        corrected_at INTEGER NOT NULL,
        usage_source TEXT NOT NULL,
        cost_source TEXT NOT NULL,
        detail TEXT NOT NULL,
        lines TEXT NOT NULL,
        PRIMARY KEY (org_id, turn, number)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX correction_by_start ON correction (org_id, started_at)",
    *peaks.TABLES,
)
_NUMBER = "SELECT count(*) FROM correction WHERE org_id = ? AND turn = ?"


def note(run: Run, before: Row, now: int) -> int:
    """The correction's number among those of its row, from 0."""
    entry, key = before.entry, (before.origin.organisation, before.entry.id)
    [(number,)] = run(_NUMBER, key)
    insert(run, "correction", [(*key, number, entry.started_at, now, *_said(entry))])
    return int(number)


def turn_of(found: Sequence[Any]) -> tuple[str, str]:
    """Organisation and id of a row of this table."""
    return found[0], found[1]


def made_at(found: Sequence[Any]) -> int:
    return int(found[4])


def is_of(found: Sequence[Any], entry: Entry) -> bool:
    """Whether the turn said what this row of the table has."""
    return tuple(found[5:]) == _said(entry)


def _said(entry: Entry) -> tuple[str, ...]:
    return entry.usage_source, entry.cost_source, entry.detail, msgspec.json.encode(entry.lines).decode()

"""Rows that are in no kept sum yet. Only on PostgreSQL, where writers are concurrent.

An append records its rows here without waiting; a read adds them to the balance, in one statement. Occasionally a
writer adds all of them to the sums that count them, under the lock that recomputing a sum takes, too. So at each
moment a row is either here or in every sum that counts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from zlib import crc32

from acp_proxy.ledger import Row
from acp_proxy.ledger.accounts import balance_updates
from acp_proxy.ledger.reading.rows import read_some
from acp_proxy.ledger.statements import Journey, Run, insertions

TABLES = (
    """
    CREATE TABLE unsummed (
        org_id TEXT NOT NULL,
        turn TEXT NOT NULL,
        PRIMARY KEY (org_id, turn)
    ) STRICT, WITHOUT ROWID
    """,
)
_EVERY = 32  # rows, on average: so many are counted by each hold, and adding up is a transaction of its own
_MOST_AT_ONCE = 200


def note(journey: Journey, rows: Iterable[Row]) -> list[str]:
    """Record new rows. Returns the organisations whose pending rows are due as soon as these are committed."""
    noted = sorted((row.origin.organisation, row.entry.id) for row in rows)
    journey.add(insertions("unsummed", noted, " ON CONFLICT DO NOTHING"))
    return sorted({organisation for organisation, turn in noted if is_due(turn)})


def is_due(turn: str) -> bool:
    """Whether pending rows are due after this row. The row's id decides: a counter would make writers conflict."""
    return crc32(turn.encode()) % _EVERY == 0


def add_up(run: Run, organisation: str, turns: Sequence[str]) -> None:
    """Add rows that were pending to all balances that count them. Needs the lock, as recomputing a balance does."""
    if not run("SELECT 1 FROM kept_sum WHERE org_id = ? LIMIT 1", (organisation,)):
        return
    for start in range(0, len(turns), _MOST_AT_ONCE):
        rows = read_some(run, organisation, turns[start : start + _MOST_AT_ONCE])
        balance_updates.add(run, balance_updates.rows_by_balance(rows))

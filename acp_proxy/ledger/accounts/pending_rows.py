"""Rows that no kept sum has yet, where those who write do not come one after the other.

An append notes its rows here without waiting; a read counts them beside the balance, in one statement.
Now and then one adds all of them to the sums that count them, under a lock that who makes a sum takes as well. So at
each moment a row is either here or in every sum that counts it.
"""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

from acp_proxy.ledger import Row
from acp_proxy.ledger.accounts import balance_updates
from acp_proxy.ledger.reading.rows import read_some
from acp_proxy.ledger.statements import Run, insert

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


def note(run: Run, rows: Iterable[Row]) -> list[str]:
    """Leave rows that are new for later; organisations for which later is as soon as these are committed."""
    noted = sorted((row.origin.organisation, row.entry.id) for row in rows)
    insert(run, "unsummed", noted)
    return sorted({organisation for organisation, turn in noted if is_due(turn)})


def is_due(turn: str) -> bool:
    """Whether all are added up after this row. Told by its id: to count them would set writers against each other."""
    return crc32(turn.encode()) % _EVERY == 0


def add_up(run: Run, organisation: str) -> None:
    """Add them to all balances that count them. Needs the lock, as making a balance does."""
    turns = [turn for (turn,) in run("DELETE FROM unsummed WHERE org_id = ? RETURNING turn", (organisation,))]
    if not run("SELECT 1 FROM kept_sum WHERE org_id = ? LIMIT 1", (organisation,)):
        return
    for start in range(0, len(turns), _MOST_AT_ONCE):
        rows = read_some(run, organisation, turns[start : start + _MOST_AT_ONCE])
        balance_updates.add(run, balance_updates.concerned(rows))

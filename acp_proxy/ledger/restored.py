"""What was written again after a ledger had been set back: a line for each process that did so."""

from __future__ import annotations

from acp_proxy.ledger.durability import Restored
from acp_proxy.ledger.statements import Read, Run

# PostgreSQL has it since it could be set back.
TABLES = (
    """
    CREATE TABLE IF NOT EXISTS restored (
        org_id TEXT NOT NULL,
        id TEXT NOT NULL,
        at INTEGER NOT NULL,
        host TEXT NOT NULL,
        user_id TEXT NOT NULL,
        row_count INTEGER NOT NULL,
        lost_until INTEGER,
        PRIMARY KEY (org_id, id)
    ) STRICT, WITHOUT ROWID
    """,
)
_READ = """
SELECT count(*), count(DISTINCT host), CAST(coalesce(sum(row_count), 0) AS BIGINT), count(lost_until), max(at)
FROM restored WHERE org_id = ? AND at >= ?
"""
# What is restored in several calls is one line.
_NOTE = """
INSERT INTO restored VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (org_id, id) DO UPDATE SET at = excluded.at,
    row_count = restored.row_count + excluded.row_count, lost_until = coalesce(excluded.lost_until, restored.lost_until)
"""
NOTHING = Restored(0, 0, 0, 0, None)


def read(ask: Read, organisation: str, since: int, user: str | None = None) -> Restored:
    """From `since` on (Unix ns), of one user or of all."""
    of_user = ("", ()) if user is None else (" AND user_id = ?", (user,))
    return Restored(*ask(_READ + of_user[0], (organisation, since, *of_user[1]))[0])


def note(
    run: Run, organisation: str, id: str, at: int, host: str, user: str, rows: int, lost_until: int | None
) -> None:
    run(_NOTE, (organisation, id, at, host, user, rows, lost_until))

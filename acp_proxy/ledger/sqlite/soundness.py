"""Whether an SQLite file has values that its columns do not permit: an error in reading them is then the file's fault.

Tables are known to be unchanged (`version.py`): only a program that bypasses SQLite, or a disk, causes such values.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from acp_proxy.ledger import LedgerError
from acp_proxy.ledger.places import is_shared, sqlite_path


def fault_in(url: str) -> LedgerError | None:
    """One line that names the column; None for a sound ledger. Asked when something has failed: it reads all of it."""
    if is_shared(url):
        return None
    found = _strange_value(sqlite_path(url))
    return LedgerError(f"ledger {sqlite_path(url)}: another program has changed this file: {found}") if found else None


def _strange_value(path: Path) -> str | None:
    """`non-INTEGER value in turn.started_at`."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            ((found,),) = connection.execute("PRAGMA quick_check(1)").fetchall()
    except (sqlite3.Error, OSError):
        return None
    return None if found == "ok" else str(found)

"""At which step of the schema a SQLite file is. The steps themselves are in `migrations.py`, and seldom needed."""

from __future__ import annotations

import sqlite3

APPLICATION_ID = 0x41435050  # "ACPP", in the header of every ledger file
STEPS = 11  # that there are


def is_up_to_date(connection: sqlite3.Connection) -> bool:
    """Whether it is a ledger at the last step; of any other `migrations.migrate` knows what to do."""
    return pragma(connection, "application_id") == APPLICATION_ID and pragma(connection, "user_version") == STEPS


def pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])

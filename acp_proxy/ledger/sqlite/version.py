"""At which step of the schema a SQLite file is, and whether its tables are ours. The steps themselves are in
`migrations.py`, and seldom needed.
"""

from __future__ import annotations

import sqlite3

APPLICATION_ID = 0x41435050  # "ACPP", in the header of every ledger file
SCHEMA_VERSION = 23  # len(migrations.MIGRATIONS), said again so that a reader need not import them; a test compares
TABLES = frozenset(
    (
        *("turn", "line", "session", "session_key", "series", "total", "tally", "relayed", "label", "label_count"),
        *("open_turn", "hold", "surcharge", "granted", "announced", "decision", "overshoot", "kept_sum", "settings"),
        *("notice", "delivery", "delivery_count", "plan_window", "plan_change", "correction", "peak"),
        *("exporter", "unexported", "exported", "work", "capture", "capture_detail", "bill_source"),
    )
)


def is_up_to_date(connection: sqlite3.Connection) -> bool:
    """Whether it is a ledger at the last step; of any other `schema.py` knows what to do."""
    return (
        pragma(connection, "application_id") == APPLICATION_ID and pragma(connection, "user_version") == SCHEMA_VERSION
    )


def invalid_table(connection: sqlite3.Connection) -> str | None:
    """One of ours that is missing, or is a view or a table whose columns take whatever another program writes.

    Who reads may go by what STRICT columns hold. About 50 µs.
    """
    strict = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND strict"
    return min(TABLES.difference(name for (name,) in connection.execute(strict)), default=None)


def pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])

"""The ledger's schema in a SQLite file: how it is brought up to the last step of `migrations.py`."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from acp_proxy.ledger import LedgerError
from acp_proxy.ledger.migrations import MIGRATIONS, refuse_newer
from acp_proxy.ledger.sqlite.executor import Executor
from acp_proxy.ledger.sqlite.version import APPLICATION_ID, pragma


def migrate(connection: sqlite3.Connection, begin: Callable[[str], object]) -> None:
    """Bring the schema up to the last step, each step in a transaction of its own.

    `begin` starts a transaction, waiting for others: of many processes that open a new ledger at once one does the
    work. Raises LedgerError for a ledger of a newer version and for the database of another program.
    """
    begin("BEGIN")  # one snapshot for the three questions
    application, tables = pragma(connection, "application_id"), _count_tables(connection)
    version = pragma(connection, "user_version")
    connection.execute("COMMIT")
    if application != APPLICATION_ID and (application or tables):
        raise LedgerError("this is the database of another program, not a ledger")
    refuse_newer(version)
    for number, statements in enumerate(MIGRATIONS[version:], version + 1):
        begin("BEGIN IMMEDIATE")
        if pragma(connection, "user_version") < number:
            for statement in statements:
                if isinstance(statement, str):
                    connection.execute(statement)
                else:
                    statement(Executor(connection))
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("COMMIT")


def check_version(connection: sqlite3.Connection) -> None:
    """Raises LedgerError when a newer version has changed the ledger since it was opened. About 2 µs."""
    refuse_newer(pragma(connection, "user_version"))


def _count_tables(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])

"""The ledger in one SQLite file that every proxy of a user writes to.

Every write is one `BEGIN IMMEDIATE` transaction; reads are short, so that they never hold a writer or the WAL up.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from acp_proxy.core.budget import Account
from acp_proxy.ledger import NoLedgerError, Row, Warn, log_warning
from acp_proxy.ledger.dialects import SQLITE
from acp_proxy.ledger.migrations import MIGRATIONS
from acp_proxy.ledger.places import sqlite_url
from acp_proxy.ledger.sql_ledger import SqlLedger, sized
from acp_proxy.ledger.sqlite.connection import SqliteConnection
from acp_proxy.ledger.sqlite.executor import Executor
from acp_proxy.ledger.sqlite.fair_lock import FairLock
from acp_proxy.ledger.sqlite.file import (
    LedgerDamagedError,
    missing,
    now_and_then_checkpoint,
    patiently,
    queue_of,
    translated,
)
from acp_proxy.ledger.sqlite.schema import check_version
from acp_proxy.ledger.statements import Run

T = TypeVar("T")

_MANY = 1000  # rows of an import or a copy, which are all over the indexes
_CACHE_FOR_MANY = 32 * 1024  # KB


class SqliteLedger(SqlLedger):
    """A `BudgetLedger`; `patience` bounds in seconds how long a call waits for other writers.

    With `synchronous` what is written is on the disk, and not only in the system's hands.
    """

    dialect = SQLITE

    def __init__(
        self,
        path: Path,
        *,
        patience: float = 5.0,
        warn: Warn = log_warning,
        journals: Sequence[Path] = (),
        must_exist: bool = False,
        synchronous: bool = False,
    ) -> None:
        super().__init__(warn, journals)
        self.path = path
        self.url = sqlite_url(path)
        self._patience = patience
        if must_exist and (told := missing(path, journals)):
            raise NoLedgerError(told)
        self._synchronous = synchronous
        self._database = SqliteConnection(path, patience, warn, self._known.clear, synchronous=synchronous)
        with translated(path):
            self._fair_lock = FairLock(queue_of(path), patience)

    def check(self) -> str:
        self._write(lambda _: None)
        rows = self._read("SELECT count(*) FROM turn", ())[0][0]
        with translated(self.path):
            size = self.path.stat().st_size
        library = f"SQLite {sqlite3.sqlite_version}"
        how = ", synchronous" if self._synchronous else ""
        return f"{self.path}: {sized(rows, size)}, schema {len(MIGRATIONS)}, {library}{how}"

    def _appended(self, rows: Sequence[Row], *, in_order: bool) -> Sequence[Row]:
        if len(rows) >= _MANY:
            with translated(self.path):
                self._database.current().execute(f"PRAGMA cache_size = -{_CACHE_FOR_MANY}")
        return super()._appended(rows, in_order=in_order)

    def close(self) -> None:
        self._database.close()
        self._fair_lock.close()

    def _read(self, sql: str, values: Sequence[Any]) -> list[Any]:
        return self._database.read(sql, values)

    def _write(self, work: Callable[[Run], T], *, early: bool = False) -> T:  # noqa: ARG002  (all wait for each other)
        try:
            result = self._transaction(work)
        except LedgerDamagedError as error:
            self._database.begin_anew(error)
            result = self._transaction(work)
        if not self._database.is_current:  # set aside since the transaction began, and what it wrote with it
            result = self._transaction(work)
        return result

    def _transaction(self, work: Callable[[Run], T]) -> T:
        with translated(self.path), self._fair_lock.turn() as entered:
            connection = self._database.current()
            patiently(lambda: connection.execute("BEGIN IMMEDIATE"), self._patience if entered else 0)
            try:
                check_version(connection)  # what we write may not be all that a newer one counts on
                result = work(Executor(connection))
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # a full disk has rolled back by itself
                    connection.execute("ROLLBACK")
                raise
        now_and_then_checkpoint(connection)
        return result

    def _lock(self, run: Run, accounts: Sequence[Account]) -> None:
        """BEGIN IMMEDIATE has locked everything."""

    def _lock_sums(self, run: Run, organisation: str) -> None:
        """BEGIN IMMEDIATE has locked everything."""

    def _lock_totals(self, run: Run) -> None:
        """BEGIN IMMEDIATE has locked everything."""

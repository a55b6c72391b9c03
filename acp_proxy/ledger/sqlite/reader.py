"""Reading the ledger in one SQLite file. Reads are short, so that they never hold a writer or the WAL up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from acp_proxy.ledger import Warn, log_warning, open_ledger
from acp_proxy.ledger.dialects import SQLITE
from acp_proxy.ledger.journal.abandoned import any_abandoned
from acp_proxy.ledger.open_turns import dead_turns
from acp_proxy.ledger.places import sqlite_url
from acp_proxy.ledger.sql_reader import SqlReader
from acp_proxy.ledger.sqlite.connection import SqliteConnection
from acp_proxy.ledger.sqlite.file import empty, is_missing


class SqliteReader(SqlReader):
    """A `BudgetReader`; `patience` bounds in seconds how long a call waits for writers.

    It makes no file. Without one there are no rows.
    """

    dialect = SQLITE

    def __init__(
        self,
        path: Path,
        *,
        patience: float = 5.0,
        warn: Warn = log_warning,
        journals: Sequence[Path] = (),
        written_at: str | None = None,
    ) -> None:
        """`written_at` is the URL of who writes for it, where that is not only its path."""
        super().__init__(warn, journals)
        self.url = sqlite_url(path)
        self._written_at = written_at or self.url
        self._patience = patience
        self._database = SqliteConnection(path, patience, warn, makes=False)

    def settle_dead(self, now: int) -> int:
        """There seldom is anything to write; whatever there is, a ledger that writes does as it is opened."""
        dead = dead_turns(self._read, self._journals, now, self.dialect)
        if dead or self._is_owed():
            open_ledger(
                self._written_at, patience=self._patience, warn=self._warn, journals=self._journals, clock=lambda: now
            ).close()
        return len(dead)

    def _is_owed(self) -> bool:
        """Whether a dead process may have left rows; no ledger is made for another user's."""
        if not any_abandoned(self._journals):
            return False
        if not is_missing(self._database.path):
            return True
        from acp_proxy.ledger.journal.recovery import is_owed

        return is_owed(self._journals, self.url)

    def close(self) -> None:
        self._database.close()

    def _read(self, sql: str, values: Sequence[Any]) -> list[Any]:
        return self._database.read(sql, values)


class EmptyReader(SqlReader):
    """A `BudgetReader` of a database in which there is no ledger yet."""

    dialect = SQLITE

    def __init__(self, url: str) -> None:
        super().__init__(log_warning, ())
        self.url = url
        self._connection = empty()

    def settle_dead(self, now: int) -> int:  # noqa: ARG002  there are none
        return 0

    def close(self) -> None:
        self._connection.close()

    def _read(self, sql: str, values: Sequence[Any]) -> list[Any]:
        return self._connection.execute(sql, values).fetchall()

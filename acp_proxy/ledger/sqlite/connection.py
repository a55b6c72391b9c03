"""A connection to a ledger's file that follows it: others may set a damaged file aside, or remove it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from acp_proxy.ledger import LedgerError, Warn
from acp_proxy.ledger.sqlite.file import (
    Identity,
    LedgerDamagedError,
    connect,
    identity,
    patiently,
    set_aside,
    set_log_aside,
    translated,
    was_ledger,
)

_NO_FILE: Identity = (-1, -1)


class SqliteConnection:
    """Open at once. `reopened` is called whenever it is another file from then on. All raise LedgerError.

    Unless it `makes` the file, there are no rows as long as it is not there.
    """

    def __init__(
        self,
        path: Path,
        patience: float,
        warn: Warn,
        reopened: Callable[[], None] = lambda: None,
        *,
        makes: bool = True,
        synchronous: bool = False,
    ) -> None:
        self.path = path
        self._patience = patience
        self._warn = warn
        self._reopened = reopened
        self._makes = makes
        self._synchronous = synchronous
        self._file: Identity | None = _NO_FILE
        self._connection = self._connect()

    def read(self, sql: str, values: Sequence[Any]) -> list[Any]:
        with translated(self.path):
            connection = self.current()
            return patiently(lambda: connection.execute(sql, values).fetchall(), self._patience)

    def current(self) -> sqlite3.Connection:
        """Opened anew where the file is another one by now: rows would go nowhere."""
        if not self.is_current:
            self._reconnect()
        return self._connection

    @property
    def is_current(self) -> bool:
        return identity(self.path) == self._file

    def begin_anew(self, error: LedgerDamagedError) -> None:
        """Set the damaged file aside, and open a new one."""
        self._connection.close()
        self._set_aside(error, self._file)
        self._reconnect()

    def close(self) -> None:
        self._connection.close()

    def _reconnect(self) -> None:
        self._file = _NO_FILE  # until it succeeds, each call tries again
        self._reopened()
        self._connection.close()
        self._connection = self._connect()

    def _connect(self) -> sqlite3.Connection:
        if self._makes and (left := set_log_aside(self.path, self._patience)):
            self._warn("ledger.log_left", error="the ledger was moved away without it", moved_to=str(left))
        try:
            connection, self._file = self._opened()
        except LedgerDamagedError as error:
            self._set_aside(error, error.file)
            connection, self._file = self._opened()
        return connection

    def _opened(self) -> tuple[sqlite3.Connection, Identity | None]:
        return connect(self.path, self._patience, make=self._makes, synchronous=self._synchronous)

    def _set_aside(self, error: LedgerDamagedError, damaged: Identity | None) -> None:
        if not was_ledger(self.path):  # a file of the user's, named by mistake
            raise LedgerError(f"ledger {self.path}: this file is no ledger, and is left as it is") from error
        moved = set_aside(self.path, damaged, self._patience)
        if moved:
            self._warn("ledger.damaged", error=str(error), moved_to=str(moved))

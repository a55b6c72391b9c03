"""Statements of one transaction on SQLite, one after the other: nothing is far away."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from acp_proxy.ledger.statements import Statement


class Executor:
    """A `Run` of `ledger/statements.py`. It never commits: who began the transaction ends it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._execute = connection.execute

    def __call__(self, sql: str, values: Sequence[Any], /) -> list[tuple[Any, ...]]:
        return self._execute(sql, values).fetchall()

    def each(self, statements: Sequence[Statement], *, last: bool = False) -> list[list[tuple[Any, ...]]]:  # noqa: ARG002
        return [self._execute(sql, values).fetchall() for sql, values in statements]

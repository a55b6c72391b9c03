"""SQL with its values, as a ledger's modules hand it to a backend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

Read = Callable[[str, Sequence[Any]], list[Any]]  # SQL and parameters -> all rows, in one short transaction
Run = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]  # SQL with ?, values -> rows, within one transaction
Write = Callable[[Callable[[Run], Any]], Any]  # what is to be done in one transaction -> what that returns
Statement = tuple[str, Sequence[Any]]  # what is made before a transaction, for others wait while it goes on

_MOST_AT_ONCE = 200  # rows of one statement


def insert(run: Run, table: str, rows: Sequence[Sequence[object]], ending: str = "") -> list[tuple[Any, ...]]:
    """Insert rows of all columns, many with one statement; what `ending` returns."""
    return execute(run, insertions(table, rows, ending))


def insertions(table: str, rows: Sequence[Sequence[object]], ending: str = "") -> list[Statement]:
    """The statements that `insert` runs."""
    statements = list[Statement]()
    for start in range(0, len(rows), _MOST_AT_ONCE):
        some = rows[start : start + _MOST_AT_ONCE]
        sql = _insertion(table, len(some[0]), len(some), ending)
        statements.append((sql, [value for row in some for value in row]))
    return statements


def execute(run: Run, statements: Iterable[Statement]) -> list[tuple[Any, ...]]:
    return [found for sql, values in statements for found in run(sql, values)]


@lru_cache(maxsize=256)  # most have few rows; made while others wait for the ledger
def _insertion(table: str, columns: int, rows: int, ending: str) -> str:
    values = ", ".join([f"({', '.join('?' * columns)})"] * rows)
    return f"INSERT INTO {table} VALUES {values}{ending}"

"""SQL with its values, as a ledger's modules hand it to a backend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Protocol

Read = Callable[[str, Sequence[Any]], list[Any]]  # SQL and parameters -> all rows, in one short transaction
Statement = tuple[str, Sequence[Any]]  # what is made before a transaction, for others wait while it goes on


class NotAsAssumedError(Exception):
    """The last statements of a transaction assumed what is not so: nothing of it was done.

    Whoever catches it tries something else at once: what it locked may be locked until then. `is_there` is whether a
    row was there already.
    """

    def __init__(self, *, is_there: bool = False) -> None:
        super().__init__()
        self.is_there = is_there


class Run(Protocol):
    """Runs statements within one transaction."""

    def __call__(self, sql: str, values: Sequence[Any], /) -> list[tuple[Any, ...]]:
        """SQL with ?, values -> rows. A server may be told what only writes together with what is asked next."""

    def each(self, statements: Sequence[Statement], *, last: bool = False) -> list[list[tuple[Any, ...]]]:
        """The rows of each, with one journey to a server. With the `last` ones the transaction ends there, too:
        what they lock others wait for only while the server works. Raises NotAsAssumedError where these find a row that
        is there already, or several where there can be one.
        """


Write = Callable[[Callable[[Run], Any]], Any]  # what is to be done in one transaction -> what that returns

_MOST_AT_ONCE = 200  # rows of one statement


class Journey:
    """Statements that are asked together; what each part of them found is told afterwards."""

    def __init__(self) -> None:
        self._statements: list[Statement] = []
        self._found: list[list[tuple[Any, ...]]] = []

    def add(self, statements: Sequence[Statement]) -> Callable[[], list[list[tuple[Any, ...]]]]:
        """The rows of each, once they are `made`."""
        start = len(self._statements)
        self._statements += statements
        end = len(self._statements)
        return lambda: self._found[start:end]

    def make(self, run: Run, *, last: bool = False) -> None:
        self._found = run.each(self._statements, last=last)


def insert(run: Run, table: str, rows: Sequence[Sequence[object]], ending: str = "") -> list[tuple[Any, ...]]:
    """Insert rows of all columns, many with one statement; what `ending` returns."""
    return execute(run, insertions(table, rows, ending))


def insertions(table: str, rows: Sequence[Sequence[object]], ending: str = "") -> list[Statement]:
    """The statements that `insert` runs."""
    if not rows:
        return []
    if len(rows) <= _MOST_AT_ONCE:
        return [(_insertion(table, len(rows[0]), len(rows), ending), list(chain.from_iterable(rows)))]
    parts = (rows[start : start + _MOST_AT_ONCE] for start in range(0, len(rows), _MOST_AT_ONCE))
    return [each for some in parts for each in insertions(table, some, ending)]


def execute(run: Run, statements: Iterable[Statement]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for sql, values in statements:
        found += run(sql, values)
    return found


@lru_cache(maxsize=256)  # most have few rows; made while others wait for the ledger
def _insertion(table: str, columns: int, rows: int, ending: str) -> str:
    values = ", ".join([f"({', '.join('?' * columns)})"] * rows)
    return f"INSERT INTO {table} VALUES {values}{ending}"

"""A ledger's database as others have it who keep tables of their own beside its tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.statements import Read, Run

T = TypeVar("T")


class Transact(Protocol):
    """Runs work in one transaction, perhaps more than once: what it does beside its SQL must not matter."""

    def __call__(self, work: Callable[[Run], T], /) -> T: ...


class Tables(Struct, frozen=True):
    """All raise LedgerError. SQL is that of SQLite which PostgreSQL has as well, with `?` for values."""

    read: Read
    write: Transact
    dialect: Dialect

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return self.read(sql, values)


def define(run: Run, dialect: Dialect, statements: Sequence[str]) -> None:
    for statement in statements:
        run(dialect.definition(statement), ())

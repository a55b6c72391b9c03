"""The ledger in a PostgreSQL database that all machines of a team write to.

asyncpg on an event loop of its own, run only while a call waits. Right at every level of isolation: a conflict is
repeated. No text can hold a NUL there: it is kept as U+FFFD, for a turn must not be free because of one.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import asyncpg

from acp_proxy.core.budget import Account
from acp_proxy.ledger import LedgerError, LedgerUnavailableError, RowRefusedError, Warn, holding, log_warning
from acp_proxy.ledger.dialects import POSTGRES
from acp_proxy.ledger.postgres_address import Address
from acp_proxy.ledger.postgres_schema import BEGIN, migrate
from acp_proxy.ledger.sql import SqlLedger
from acp_proxy.ledger.summing import organisation_of
from acp_proxy.ledger.totals import Run

if TYPE_CHECKING:
    _Plain = asyncpg.Connection[asyncpg.Record]
else:
    _Plain = asyncpg.Connection  # generic in its stubs alone

T = TypeVar("T")

_RETRY_BETWEEN = (0.0005, 0.01)  # seconds, drawn anew each time
_CONFLICTS = ("40001", "40P01")
_SUMS = "sums"  # beside the keys of accounts, which are JSON
# Two that make a ledger's first table at once: whoever comes second finds it made.
_FIRST_TABLE = ("23505", "42P07")
_NO_STATEMENT = ("26000", "42P05")  # a pooler gave the connection to somebody else
# Connection, resources, operator, system, read-only, transactions that ended, locks: may pass.
_PASSING = re.compile("08|53|57|58|25006|40|55")
# Numbers that are too large, and names that no index takes: a row with one must not keep all others waiting.
_REFUSED = (asyncpg.DataError, asyncpg.ProgramLimitExceededError)
# The last one is what asyncpg raises for a connection that the server cut while nobody looked.
_LOST = (OSError, TimeoutError, asyncpg.InterfaceError, asyncpg.PostgresConnectionError, asyncpg.InternalClientError)


class _LostError(Exception):
    """The connection is gone, or was never there."""


class _ConflictError(Exception):
    """The transaction must be done anew."""


class _PooledError(Exception):
    """A statement is gone: a pooler of which nobody told stands between."""


class _Connection(_Plain):
    """Names statements as nobody else does.

    By asyncpg's own names, which every process counts from one, a pooler could lead to another's statement.
    """

    def _get_unique_id(self, prefix: str) -> str:
        return f"acp_proxy_{prefix}_{uuid4().hex}"


class PostgresLedger(SqlLedger):
    """A `BudgetLedger`; `patience` bounds in seconds each statement, and how long conflicts are repeated."""

    dialect = POSTGRES

    def __init__(
        self, url: str, *, patience: float = 5.0, warn: Warn = log_warning, journals: Sequence[Path] = ()
    ) -> None:
        super().__init__(warn, journals)
        self._address = Address.of(url)
        self.url = self._address.url
        self._pooled = self._address.pooled
        self._patience = patience
        self._loop = asyncio.new_event_loop()
        self._connection: _Connection | None = None
        self._begin = "BEGIN"  # of a ledger whose tables are not there yet
        try:
            self._version = migrate(lambda work: self._transact(work, repeat=(*_CONFLICTS, *_FIRST_TABLE)))
            self._begin = BEGIN
        except BaseException:
            self.close()
            raise

    def check(self) -> str:
        self._write(lambda run: run("LOCK TABLE acp_proxy_schema IN ROW EXCLUSIVE MODE", ()))
        ((rows, size, version),) = self._read(
            "SELECT (SELECT count(*) FROM turn), pg_database_size(current_database()), "
            "current_setting('server_version')",
            (),
        )
        return f"{self.url}: {rows} rows, {size / 1e6:.1f} MB, schema {self._version}, PostgreSQL {version}"

    def close(self) -> None:
        if self._connection is not None:
            with suppress(*_LOST, asyncpg.PostgresError):
                self._wait(self._connection.close(timeout=1), 2)
            self._drop()
        self._loop.close()

    def _read(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return self._transact(lambda run: run(sql, values), begin=False)

    def _write(self, work: Callable[[Run], T]) -> T:
        return self._transact(work)

    def _lock(self, run: Run, accounts: Sequence[Account]) -> None:
        """Rows that every hold changes. The next statement then sees what others did that was waited for.

        Under READ COMMITTED because it has a snapshot of its own; otherwise by 40001, for the row was changed. That is
        why it is not in one statement with what is read, and why FOR UPDATE would not do. In the order of keys, so
        that two holds never wait for each other. A budget of one turn has nobody to wait for.
        """
        keys = sorted({account.key for account in accounts if account.budget.window.name != "turn"})
        if keys:
            _change(run, organisation_of(accounts[0]), keys)

    def _insert(self, run: Run, inserts: Sequence[holding.Insert]) -> None:
        """In one statement: each that is saved is a journey less while a budget is locked."""
        parts = list[str]()
        values = list[object]()
        for table, rows, ending in inserts:
            if rows:
                places = ", ".join([f"({', '.join('?' * len(rows[0]))})"] * len(rows))
                parts.append(f"part{len(parts)} AS (INSERT INTO {table} VALUES {places}{ending})")
                values += [value for row in rows for value in row]
        if parts:
            run(f"WITH {', '.join(parts)} SELECT 1", values)

    def _lock_sums(self, run: Run, organisation: str) -> None:
        """The last lock of each transaction that wants it, so that nobody waits crosswise."""
        _change(run, organisation, [_SUMS])

    def _lock_totals(self, run: Run) -> None:
        run("LOCK TABLE total IN EXCLUSIVE MODE", ())

    def _transact(self, work: Callable[[Run], T], *, begin: bool = True, repeat: Sequence[str] = _CONFLICTS) -> T:
        deadline = time.monotonic() + self._patience
        stale = self._connection is not None  # it may be from before the server was started anew
        while True:
            try:
                return self._once(work, deadline, begin or self._pooled, repeat)
            except _PooledError:  # once: from now on no statement is kept
                self._drop()
            except _ConflictError as error:
                if time.monotonic() >= deadline:
                    raise LedgerUnavailableError(f"ledger {self.url}: {error}") from error
                time.sleep(random.uniform(*_RETRY_BETWEEN))  # noqa: S311  (jitter, not a secret)
            except _LostError as error:
                self._drop()
                if not stale or time.monotonic() >= deadline:
                    raise LedgerUnavailableError(f"ledger {self.url}: {error}") from error
                stale = False

    def _once(self, work: Callable[[Run], T], deadline: float, begin: bool, repeat: Sequence[str]) -> T:
        def run(sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
            found = self._wait(connection.fetch(_numbered(sql), *map(_storable, values)), self._patience)
            return [tuple(map(_plain, record)) for record in found]

        try:
            connection = self._connected(deadline)
            if not begin:
                return work(run)
            try:
                self._wait(connection.execute(self._begin), self._patience)
                result = work(run)
                run("COMMIT", ())
            except BaseException:
                if not connection.is_closed() and connection.is_in_transaction():
                    with suppress(*_LOST, asyncpg.PostgresError):
                        self._wait(connection.execute("ROLLBACK"), 1)
                raise
            return result
        except asyncpg.ClientConfigurationError as error:
            raise LedgerError(f"ledger {self.url}: {_line(error)}") from error
        except asyncpg.DivisionByZeroError as error:  # by `BEGIN` alone
            raise LedgerError(f"ledger {self.url}: written by a newer acp-proxy: update it") from error
        except _REFUSED as error:
            raise RowRefusedError(
                f"ledger {self.url}: a value that does not fit its column ({_line(error)})"
            ) from error
        except asyncpg.PostgresError as error:
            raise self._translated(error, repeat) from error
        except _LOST as error:
            raise _LostError(_lost(error)) from error

    def _translated(self, error: asyncpg.PostgresError, repeat: Sequence[str]) -> Exception:
        state = error.sqlstate or ""
        if state in repeat:
            return _ConflictError(_line(error))
        if state in _NO_STATEMENT and not self._pooled:
            self._pooled = True
            return _PooledError(_line(error))
        if state.startswith(("08", "57P")):
            return _LostError(_line(error))
        kind = LedgerUnavailableError if _PASSING.match(state) else LedgerError
        return kind(f"ledger {self.url}: {_line(error)}")

    def _connected(self, deadline: float) -> _Connection:
        if self._connection is None or self._connection.is_closed():
            remaining = max(deadline - time.monotonic(), 0.01)
            self._connection = self._wait(
                asyncpg.connect(
                    self._address.dsn,
                    timeout=remaining,
                    connection_class=_Connection,
                    statement_cache_size=0 if self._pooled else 200,
                    server_settings={"application_name": "acp-proxy"},
                ),
                remaining,
            )
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None
            self._loop.run_until_complete(asyncio.sleep(0))  # transports close in the loop's next round

    def _wait(self, doing: Coroutine[Any, Any, T], seconds: float) -> T:
        return self._loop.run_until_complete(asyncio.wait_for(doing, max(seconds, 0.01)))


def _change(run: Run, organisation: str, keys: Sequence[str]) -> None:
    rows = ", ".join(["(?, ?, 1)"] * len(keys))
    sql = f"INSERT INTO account VALUES {rows} ON CONFLICT (org_id, key) DO UPDATE SET holds = account.holds + 1"
    run(sql, [value for key in keys for value in (organisation, key)])


@lru_cache(maxsize=256)
def _numbered(sql: str) -> str:
    """Values are `?` everywhere else, and no text in our SQL holds one."""
    first, *rest = sql.split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(rest, 1))


def _storable(value: Any) -> Any:
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value


def _plain(value: Any) -> Any:
    """Sums of BIGINT are NUMERIC there."""
    return int(value) if isinstance(value, Decimal) else value


def _lost(error: BaseException) -> str:
    """The system's word, which asyncio tells with its number, and with addresses in place of the reason."""
    said = _line(error) or "no answer in time"
    if number := re.search(r"\[Errno (\d+)\]", said):
        return os.strerror(int(number[1]))
    return re.sub(r"^\[Errno -\d+\] ", "", said)


def _line(error: BaseException) -> str:
    """Without the user, whom a server names where it lets nobody in."""
    return re.sub(r'\b(user|role) "[^"]*"', r"\1", str(error).partition("\n")[0])

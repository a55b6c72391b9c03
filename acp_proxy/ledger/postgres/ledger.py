"""The ledger in a PostgreSQL database that all machines of a team write to.

asyncpg on an event loop of its own, run only while a call waits. Right at every level of isolation: a conflict is
repeated. No text can hold a NUL there: it is kept as U+FFFD, for a turn must not be free because of one.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import asyncpg

from acp_proxy.core.budget import Account
from acp_proxy.ledger import (
    LedgerError,
    LedgerReadOnlyError,
    LedgerUnavailableError,
    RowRefusedError,
    Warn,
    log_warning,
)
from acp_proxy.ledger.accounts import holding
from acp_proxy.ledger.accounts.summing import organisation_of
from acp_proxy.ledger.dialects import POSTGRES
from acp_proxy.ledger.postgres.connection import Connection, connect
from acp_proxy.ledger.postgres.errors import (
    CONFLICTS,
    ENDED,
    FIRST_TABLE,
    LOST,
    NO_STATEMENT,
    NO_SUCH_LEVEL,
    PASSING,
    READ_ONLY,
    REFUSED,
    first_line,
    why_lost,
)
from acp_proxy.ledger.postgres.schema import CHECK, hides_rows, migrate
from acp_proxy.ledger.postgres_address import Address
from acp_proxy.ledger.sql import SqlLedger
from acp_proxy.ledger.statements import Run

T = TypeVar("T")

_RETRY_BETWEEN = (0.0005, 0.01)  # seconds, drawn anew each time
_SUMS = "sums"  # beside the keys of accounts, which are JSON
_BEGIN = "BEGIN"
_BEGIN_REPEATABLE = "BEGIN ISOLATION LEVEL REPEATABLE READ"


class _LostError(Exception):
    """The connection is gone, or was never there."""


class _ConflictError(Exception):
    """The transaction must be done anew."""


class _OtherwiseError(Exception):
    """It can be done, on a new connection and in another way: behind a pooler, or on a standby."""


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
        self._connection: Connection | None = None
        self._begin = _BEGIN
        self._check = ""  # of a ledger whose tables are not there yet
        try:
            self._version = migrate(lambda work: self._transact(work, repeat=(*CONFLICTS, *FIRST_TABLE)))
            self._check = CHECK
            with suppress(LedgerError):  # what speaks PostgreSQL's protocol alone may not know the question
                if hides_rows(self._read):
                    warn("ledger.rows_hidden", error=f"ledger {self.url}: row-level security applies to this role")
        except BaseException:
            self.close()
            raise

    def check(self) -> str:
        self._write(lambda run: run("LOCK TABLE acp_proxy_schema IN ROW EXCLUSIVE MODE", ()))
        ((rows, size, version, read_only),) = self._read(
            "SELECT (SELECT count(*) FROM turn), pg_database_size(current_database()), "
            "current_setting('server_version'), current_setting('transaction_read_only')",
            (),
        )
        if read_only == "on":  # a standby gives that lock
            raise self._takes_no_writes()
        return f"{self.url}: {rows} rows, {size / 1e6:.1f} MB, schema {self._version}, PostgreSQL {version}"

    def close(self) -> None:
        if self._connection is not None:
            with suppress(*LOST, asyncpg.PostgresError):
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

    def _transact(self, work: Callable[[Run], T], *, begin: bool = True, repeat: Sequence[str] = CONFLICTS) -> T:
        deadline = time.monotonic() + self._patience
        stale = self._connection is not None  # it may be from before the server was started anew
        while True:
            try:
                return self._once(work, deadline, begin or self._pooled or self._begin != _BEGIN, repeat)
            except _OtherwiseError:  # once each
                self._drop()
            except LedgerReadOnlyError:  # another host may take writes by now
                self._drop()
                raise
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
                self._wait(connection.execute(f"{self._begin}; {self._check}"), self._patience)
                result = work(run)
                run("COMMIT", ())
            except BaseException:
                if not connection.is_closed() and connection.is_in_transaction():
                    with suppress(*LOST, asyncpg.PostgresError):
                        self._wait(connection.execute("ROLLBACK"), 1)
                raise
            return result
        except asyncpg.ClientConfigurationError as error:
            raise LedgerError(f"ledger {self.url}: {self._line(error)}") from error
        except asyncpg.DivisionByZeroError as error:  # by `CHECK` alone
            raise LedgerError(f"ledger {self.url}: written by a newer acp-proxy: update it") from error
        except REFUSED as error:
            raise RowRefusedError(
                f"ledger {self.url}: a value that does not fit its column ({self._line(error)})"
            ) from error
        except asyncpg.PostgresError as error:
            raise self._translated(error, repeat) from error
        except LOST as error:
            raise _LostError(why_lost(error, self._address.user)) from error

    def _translated(self, error: asyncpg.PostgresError, repeat: Sequence[str]) -> Exception:
        state = error.sqlstate or ""
        if state in repeat:
            return _ConflictError(self._line(error))
        if state in NO_STATEMENT and not self._pooled:
            self._pooled = True  # from now on no statement is kept
            return _OtherwiseError(self._line(error))
        if state == NO_SUCH_LEVEL and self._begin != _BEGIN_REPEATABLE:
            self._begin = _BEGIN_REPEATABLE
            return _OtherwiseError(self._line(error))
        if state == READ_ONLY:
            return self._takes_no_writes()
        if state.startswith(ENDED):
            return _LostError(self._line(error))
        kind = LedgerUnavailableError if state.startswith(PASSING) else LedgerError
        return kind(f"ledger {self.url}: {self._line(error)}")

    def _takes_no_writes(self) -> LedgerReadOnlyError:
        return LedgerReadOnlyError(f"ledger {self.url}: takes no writes: a standby, or a role that may only read")

    def _line(self, error: BaseException) -> str:
        return first_line(error, self._address.user)

    def _connected(self, deadline: float) -> Connection:
        if self._connection is None or self._connection.is_closed():
            remaining = deadline - time.monotonic()
            self._connection = self._wait(connect(self._address, remaining, pooled=self._pooled), remaining)
            self._known_series.clear()  # the server may have been restored, or be one that lagged behind
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

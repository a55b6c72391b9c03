"""Transactions on PostgreSQL: on a connection that is made anew when it is lost, and repeated where they conflict.

asyncpg on an event loop of its own, run only while a call waits. No text can hold a NUL there: it is kept as U+FFFD,
for a turn must not be free because of one.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeVar

import asyncpg

from acp_proxy.ledger import (
    LedgerError,
    LedgerForbiddenError,
    LedgerReadOnlyError,
    LedgerUnavailableError,
    RowRefusedError,
)
from acp_proxy.ledger.postgres.connection import Connection, connect
from acp_proxy.ledger.postgres.errors import (
    CONFLICTS,
    ENDED,
    LOST,
    NO_RIGHT,
    NO_STATEMENT,
    NO_SUCH_LEVEL,
    PASSING,
    READ_ONLY,
    REFUSED,
    first_line,
    why_lost,
)
from acp_proxy.ledger.postgres_address import Address
from acp_proxy.ledger.statements import Run

T = TypeVar("T")

_RETRY_BETWEEN = (0.0005, 0.01)  # seconds, drawn anew each time
_LATE = 2  # how often what may take minutes is repeated although its patience is over
# Each statement sees what others committed before it, whatever the database's default is.
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_BEGIN_PATIENTLY = f"{_BEGIN}; SET LOCAL lock_timeout = {{:.0f}}"  # in milliseconds


class _LostError(Exception):
    """The connection is gone, or was never there."""


class _ConflictError(Exception):
    """The transaction must be done anew."""


class _OtherwiseError(Exception):
    """It can be done, on a new connection and in another way: behind a pooler, or on a standby."""


class Transactions:
    """`patience` bounds in seconds each statement, and how long conflicts are repeated. All raise LedgerError.

    `reconnected` is called whenever it is another connection from then on. `check` is SQL that goes with each BEGIN.
    """

    def __init__(self, address: Address, patience: float, reconnected: Callable[[], None]) -> None:
        self._address = address
        self._url = address.url
        self._pooled = address.pooled
        self._patience = patience
        self._reconnected = reconnected
        self._loop = asyncio.new_event_loop()
        self._connection: Connection | None = None
        self._bare = True  # one statement needs no BEGIN: else the database's default is a level that is not there
        self.check = ""  # of a ledger whose tables are not there yet

    def run(
        self,
        work: Callable[[Run], T],
        *,
        begin: bool = True,
        repeat: Sequence[str] = CONFLICTS,
        longest: float | None = None,
    ) -> T:
        """What `work` returns, all of it done or nothing; anew after errors of which SQLSTATE is one of `repeat`.

        Without `begin` it is one statement, which needs no transaction around it. A statement may take `longest`
        seconds where that is given, and then it is the wait for each lock that patience bounds, and every statement
        has a snapshot of its own.
        """
        deadline = time.monotonic() + self._patience
        late = 0 if longest is None else _LATE
        stale = self._connection is not None  # it may be from before the server was started anew
        while True:
            try:
                return self._once(work, deadline, begin or self._pooled or not self._bare, repeat, longest)
            except _OtherwiseError:  # once each
                self._drop()
            except LedgerReadOnlyError:  # another host may take writes by now
                self._drop()
                raise
            except _ConflictError as error:
                if time.monotonic() >= deadline:
                    if late == 0:
                        raise LedgerUnavailableError(f"ledger {self._url}: {error}") from error
                    late -= 1
                time.sleep(random.uniform(*_RETRY_BETWEEN))  # noqa: S311  (jitter, not a secret)
            except _LostError as error:
                self._drop()
                if not stale or time.monotonic() >= deadline:
                    raise LedgerUnavailableError(f"ledger {self._url}: {error}") from error
                stale = False

    def close(self) -> None:
        if self._connection is not None:
            with suppress(*LOST, asyncpg.PostgresError):
                self._wait(self._connection.close(timeout=1), 2)
            self._drop()
        self._loop.close()

    def _once(
        self, work: Callable[[Run], T], deadline: float, begin: bool, repeat: Sequence[str], longest: float | None
    ) -> T:
        def run(sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
            found = self._wait(connection.fetch(_numbered(sql), *map(_storable, values)), longest or self._patience)
            return [tuple(map(_plain, record)) for record in found]

        try:
            connection = self._connected(deadline)
            try:
                if not begin:
                    return work(run)
                how = _BEGIN if longest is None else _BEGIN_PATIENTLY.format(self._patience * 1000)
                self._wait(connection.execute(f"{how}; {self.check}"), self._patience)
                result = work(run)
                run("COMMIT", ())
            except BaseException as error:
                # Before that the driver has the server stop what took too long: else it would go on there for nobody.
                goes_on = isinstance(error, TimeoutError) or connection.is_in_transaction()
                if goes_on and not connection.is_closed():
                    with suppress(*LOST, asyncpg.PostgresError):
                        self._wait(connection.execute("ROLLBACK"), 1)
                raise
            return result
        except asyncpg.ClientConfigurationError as error:
            raise LedgerError(f"ledger {self._url}: {self._line(error)}") from error
        except asyncpg.DivisionByZeroError as error:  # by `CHECK` alone
            raise LedgerError(f"ledger {self._url}: written by a newer acp-proxy: update it") from error
        except REFUSED as error:
            raise RowRefusedError(
                f"ledger {self._url}: a value that does not fit its column ({self._line(error)})"
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
        if state == NO_SUCH_LEVEL and self._bare:
            self._bare = False
            return _OtherwiseError(self._line(error))
        if state == READ_ONLY:
            return self.takes_no_writes()
        if state.startswith(ENDED):
            return _LostError(self._line(error))
        kind = LedgerUnavailableError if state.startswith(PASSING) else LedgerError
        if state == NO_RIGHT:
            kind = LedgerForbiddenError
        return kind(f"ledger {self._url}: {self._line(error)}")

    def takes_no_writes(self) -> LedgerReadOnlyError:
        return LedgerReadOnlyError(f"ledger {self._url}: takes no writes: a standby, or a role that may only read")

    def _line(self, error: BaseException) -> str:
        return first_line(error, self._address.user)

    def _connected(self, deadline: float) -> Connection:
        if self._connection is None or self._connection.is_closed():
            remaining = deadline - time.monotonic()
            self._connection = self._wait(connect(self._address, remaining, pooled=self._pooled), remaining)
            self._reconnected()
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None
            self._loop.run_until_complete(asyncio.sleep(0))  # transports close in the loop's next round

    def _wait(self, doing: Coroutine[Any, Any, T], seconds: float) -> T:
        return self._loop.run_until_complete(asyncio.wait_for(doing, max(seconds, 0.01)))


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

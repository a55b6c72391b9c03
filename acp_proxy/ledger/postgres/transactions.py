"""Transactions on PostgreSQL: on a connection that is made anew when it is lost, and repeated where they conflict."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from acp_proxy.ledger import (
    LedgerError,
    LedgerForbiddenError,
    LedgerReadOnlyError,
    LedgerUnavailableError,
    RowRefusedError,
)
from acp_proxy.ledger.postgres.connecting import connect
from acp_proxy.ledger.postgres.connection import Connection
from acp_proxy.ledger.postgres.early_commit import CONFIRMING, EARLY
from acp_proxy.ledger.postgres.errors import (
    CONFLICTS,
    ENDED,
    IS_THERE,
    NO_RIGHT,
    NO_STATEMENT,
    NO_SUCH_LEVEL,
    NOT_AS_ASSUMED,
    PASSING,
    READ_ONLY,
    REFUSED,
    SET_BACK,
    first_line,
)
from acp_proxy.ledger.postgres_address import Address
from acp_proxy.ledger.statements import NotAsAssumedError, Run, Statement

T = TypeVar("T")
Beside = Callable[[bool], Sequence[Statement]]  # whether the server may be another one than before

_RETRY_BETWEEN = (0.0005, 0.01)  # seconds, drawn anew each time
_LATE = 2  # how often what may take minutes is repeated although its patience is over
_IDLE = 60.0  # seconds after which a connection is not believed in: a machine that slept may be forgotten
# Seconds after which it is doubted, for networks go without a word: its first answer has then to come as fast as a new
# one was made, which takes some journeys.
_DOUBTED, _LEAST = 5.0, 0.1
_WRITES = ("INSERT", "UPDATE", "DELETE")
# Each statement sees what others committed before it, whatever the database's default is.
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_COMMIT: Statement = ("COMMIT", ())
_ROLLBACK: Statement = ("ROLLBACK", ())
_OPEN = (TransactionStatus.INTRANS, TransactionStatus.INERROR)
_HERE: Statement = ("SELECT 1", ())
_BEGIN_PATIENTLY = f"{_BEGIN}; SET LOCAL lock_timeout = {{:.0f}}"  # in milliseconds


class SetBackError(LedgerError):
    """The ledger lacks what it has acknowledged: the server is another one, or its data are of an earlier time."""


class _LostError(Exception):
    """The connection is gone."""


class _ConflictError(Exception):
    """The transaction must be done anew."""


class _OtherwiseError(Exception):
    """It can be done, on a new connection and in another way: behind a pooler, on a standby, or without a right."""


class Transactions:
    """`patience` bounds in seconds each statement, and how long conflicts are repeated. All raise LedgerError.

    `reconnected` is called whenever it is another connection from then on. `check` is SQL that goes with each BEGIN, as
    do the statements of `beside`.
    """

    def __init__(self, address: Address, patience: float, reconnected: Callable[[], None]) -> None:
        self._address = address
        self._url = address.url
        self._pooled = address.pooled
        self._patience = patience
        self._reconnected = reconnected
        self._connection: Connection | None = None
        self._used = 0.0  # by the clock on the wall, which goes on while a laptop sleeps
        self._soon: float | None = None  # seconds in which a connection that is doubted is to answer
        self._took = 0.0  # seconds, to connect
        self._bare = True  # one statement needs no BEGIN: else the database's default is a level that is not there
        self.check = ""  # of a ledger whose tables are not there yet
        self.beside: Beside = lambda _: []
        self.commits_early = False  # whether that is possible there
        self.lost = 0  # connections, with what was asked on them: the server may do it later
        self._fresh = True  # nothing was done on this connection; behind a pooler it is another one each time

    def run(
        self,
        work: Callable[[Run], T],
        *,
        begin: bool = True,
        repeat: Sequence[str] = CONFLICTS,
        longest: float | None = None,
        early: bool = False,
    ) -> T:
        """What `work` returns, all of it done or nothing; anew after errors of which SQLSTATE is one of `repeat`.

        Without `begin` it is one statement, which needs no transaction around it. A statement may take `longest`
        seconds where that is given, and then it is the wait for each lock that patience bounds, and every statement
        has a snapshot of its own. `early` has others wait for what it locks no longer than needed, where possible.
        """
        deadline = time.monotonic() + self._patience
        late = 0 if longest is None else _LATE
        unused = abs(time.time() - self._used)
        if unused > _IDLE:
            self.close()
        if unused > _DOUBTED:
            self._soon = min(max(self._took, _LEAST), self._patience / 2)
        again = True  # the server may have been started anew; what is done twice changes nothing the second time
        while True:
            try:
                return self._once(work, deadline, begin or not self._bare, repeat, longest, early=early)
            except _OtherwiseError:  # once each
                self.close()
            except LedgerReadOnlyError:  # another host may take writes by now
                self.close()
                raise
            except _ConflictError as error:
                if time.monotonic() >= deadline:
                    if late == 0:
                        raise LedgerUnavailableError(f"ledger {self._url}: {error}") from error
                    late -= 1
                time.sleep(random.uniform(*_RETRY_BETWEEN))  # noqa: S311  (jitter, not a secret)
            except _LostError as error:
                self.lost += 1
                self.close()
                if not again or time.monotonic() >= deadline:
                    raise LedgerUnavailableError(f"ledger {self._url}: {error}") from error
                again = False
            finally:
                self._used = time.time()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def pooled(self) -> bool:
        """Whether the last connection was one through a pooler."""
        return self._connection is not None and self._connection.pooled

    def takes_no_writes(self) -> LedgerReadOnlyError:
        return LedgerReadOnlyError(f"ledger {self._url}: takes no writes: a standby, or a role that may only read")

    def _once(
        self,
        work: Callable[[Run], T],
        deadline: float,
        begin: bool,
        repeat: Sequence[str],
        longest: float | None,
        *,
        early: bool,
    ) -> T:
        connection = self._connected(deadline)
        soon, self._soon = self._soon, None
        run = _Statements(connection, longest or self._patience, soon)
        if connection.pgconn.transaction_status in _OPEN:  # what was tried before: its end costs no journey
            run.waiting.append(_ROLLBACK)
        try:
            if not begin:
                run.waiting += [_HERE] if soon else []
                return work(run)
            how = _BEGIN if longest is None else _BEGIN_PATIENTLY.format(self._patience * 1000)
            run.waiting += [(sql, ()) for sql in f"{how}; {self.check}".split("; ") if sql]
            run.waiting += self.beside(self._fresh)
            if early and self.commits_early:
                run.waiting.append(EARLY)
                run.ending += [(_BEGIN, ()), CONFIRMING, _COMMIT]
            try:
                result = work(run)
                if not run.ended:
                    run.each((), last=True)
            except BaseException as error:
                if connection.pgconn.transaction_status in _OPEN and not _is_tried_anew(error, repeat, deadline):
                    with suppress(psycopg.Error, TimeoutError):
                        _Statements(connection, 1)(*_ROLLBACK)
                raise
            self._fresh = not connection.prepares
            return result
        except psycopg.errors.lookup(SET_BACK) as error:
            raise SetBackError(f"ledger {self._url}: lacks what it has acknowledged") from error
        except psycopg.errors.DivisionByZero as error:  # by `CHECK` alone
            raise LedgerError(f"ledger {self._url}: written by a newer acp-proxy: update it") from error
        except REFUSED as error:
            raise RowRefusedError(
                f"ledger {self._url}: a value that does not fit its column ({first_line(error, self._address.user)})"
            ) from error
        except psycopg.Error as error:
            raise self._translated(error, repeat) from error
        except TimeoutError as error:
            raise _LostError(str(error)) from error

    def _translated(self, error: psycopg.Error, repeat: Sequence[str]) -> Exception:
        line = first_line(error, self._address.user)
        state = error.diag.sqlstate
        if state is None or state.startswith(ENDED):
            return _LostError(line)
        if state in repeat:
            return _ConflictError(line)
        if state in NO_STATEMENT and not self._pooled:
            self._pooled = True  # from now on no statement is kept
            return _OtherwiseError(line)
        if state == NO_SUCH_LEVEL and self._bare:
            self._bare = False
            return _OtherwiseError(line)
        if state == NO_RIGHT and self.commits_early:
            self.commits_early = False  # it was taken meanwhile, or else it says so again
            return _OtherwiseError(line)
        if state == READ_ONLY:
            return self.takes_no_writes()
        kind = LedgerUnavailableError if state.startswith(PASSING) else LedgerError
        if state == NO_RIGHT:
            kind = LedgerForbiddenError
        return kind(f"ledger {self._url}: {line}")

    def _connected(self, deadline: float) -> Connection:
        if self._connection is None or self._connection.closed:
            began = time.monotonic()
            self._connection = connect(self._address, deadline - began, self._patience, pooled=self._pooled)
            self._took = time.monotonic() - began
            self._soon = None
            self._fresh = True
            self._reconnected()
        return self._connection


def _is_tried_anew(error: BaseException, repeat: Sequence[str], deadline: float) -> bool:
    """At once, on the same connection. What failed at the server has no locks there any more."""
    conflicts = isinstance(error, psycopg.Error) and error.sqlstate in repeat and time.monotonic() < deadline
    return conflicts or isinstance(error, NotAsAssumedError)


class _Statements:
    """A `Run`. What only writes waits for the next statement that asks: together they are one journey."""

    def __init__(self, connection: Connection, seconds: float, soon: float | None = None) -> None:
        self._connection = connection
        self._seconds = seconds  # that each journey may take
        self._soon = soon  # the first answer of the first one
        self.waiting: list[Statement] = []
        self.ending = [_COMMIT]
        self.ended = False

    def __call__(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        if sql.lstrip().startswith(_WRITES) and "RETURNING" not in sql:
            self.waiting.append((sql, values))
            return []
        return self.each([(sql, values)])[0]

    def each(self, statements: Sequence[Statement], *, last: bool = False) -> list[list[tuple[Any, ...]]]:
        before, self.waiting = self.waiting, []
        sent = [*before, *statements, *(self.ending if last else ())]
        soon, self._soon, now = self._soon, None, time.monotonic()
        try:
            found = self._connection.journey(sent, now + self._seconds, soon and now + soon)
        except psycopg.Error as error:
            if last and statements and error.sqlstate in NOT_AS_ASSUMED:
                raise NotAsAssumedError(is_there=error.sqlstate == IS_THERE) from error
            raise
        self.ended = last
        return found[len(before) : len(before) + len(statements)]

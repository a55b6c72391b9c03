"""A connection to PostgreSQL on which several statements are one journey, there and back, within a deadline.

Not by psycopg's pipelines: these end with a message at which servers stop to count how long a transaction is idle.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import generators, pq, waiting
from psycopg.adapt import Loader, Transformer
from psycopg.pq import ExecStatus

from acp_proxy.ledger.postgres.errors import NO_ANSWER
from acp_proxy.ledger.statements import Statement

LOOK = 0.05  # seconds between two looks at the clock, while nothing comes
_STATEMENTS = 200  # that a connection keeps prepared: those that come a second time
_NUMERIC = 1700  # its number among the server's types

Gen = Generator[Any, Any, Any]


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """Made of an open one of libpq's. Behind a pooler it must not prepare."""

    prepares = pooled = False

    def __init__(self, pgconn: pq.abc.PGconn) -> None:
        super().__init__(pgconn)
        self.adapters.register_loader(_NUMERIC, _Whole)
        self._seen: set[int] = set()  # hashes: what is asked for many is long, and of many lengths
        self._names: dict[str, bytes] = {}  # of what is prepared

    def journey(
        self, statements: Sequence[Statement], deadline: float, first_by: float | None = None
    ) -> list[list[tuple[Any, ...]]]:
        """The rows of each. Raises what psycopg does, and TimeoutError.

        At `deadline`, of `time.monotonic`, the server is told to stop; it has a second to say that it did. Where nobody
        may be there any more the first of them, which has nothing to wait for, is to be answered by `first_by`.
        """
        gen = until(self._there_and_back(statements, first_by), deadline, self._stop)
        found: list[list[tuple[Any, ...]]] = waiting.wait(gen, self.pgconn.socket, LOOK)
        return found

    def _stop(self) -> float:
        with suppress(psycopg.Error):
            self.cancel_safe(timeout=1)
        return time.monotonic() + 1

    def _there_and_back(self, statements: Sequence[Statement], first_by: float | None) -> Gen:
        self.pgconn.enter_pipeline_mode()
        sent = list[tuple[str, bytes] | None]()
        for sql, values in statements:
            is_first = not sent
            sent += self._send(sql, list(map(_encoded, values)))
            if is_first and first_by:
                self.pgconn.send_flush_request()
        self.pgconn.pipeline_sync()
        yield from generators.send(self.pgconn)
        error: psycopg.Error | None = None
        answers = list[pq.abc.PGresult]()
        for prepared in (*sent, None):  # the last is the end of the journey
            try:
                answer = generators.fetch_many(self.pgconn)
                found, *_ = yield from (until(answer, first_by) if first_by else answer)
                first_by = None
            except psycopg.Error as lost:
                raise error or lost from None
            if found.status == ExecStatus.FATAL_ERROR:
                error = error or psycopg.errors.error_from_result(found, "utf-8")
            elif found.status == ExecStatus.COMMAND_OK and prepared:
                self._names.update([prepared])
            elif found.status != ExecStatus.PIPELINE_SYNC:
                answers.append(found)
        self.pgconn.exit_pipeline_mode()
        if error:
            raise error
        return list(map(self._rows, answers))

    def _rows(self, answer: pq.abc.PGresult) -> list[tuple[Any, ...]]:
        if not answer.ntuples:
            return []
        transformer = Transformer(self)
        transformer.set_pgresult(answer)
        return transformer.load_rows(0, answer.ntuples, tuple)

    def _send(self, sql: str, values: list[bytes | None]) -> list[tuple[str, bytes] | None]:
        """For each answer that will come whether it is of a statement that is prepared then, and its name."""
        name = self._names.get(sql)
        prepared = list[tuple[str, bytes] | None]()
        text = hash(sql)
        if name is None and text in self._seen and self.prepares and len(self._names) < _STATEMENTS:
            # As nobody else names one: a pooler that is not recognised could lead to another's.
            name = f"acp_proxy_{uuid4().hex}".encode()
            self.pgconn.send_prepare(name, _numbered(sql))
            prepared.append((sql, name))
        if name:
            self.pgconn.send_query_prepared(name, values)
        else:
            self._seen.add(text)
            self.pgconn.send_query_params(_numbered(sql), values)
        return [*prepared, None]


def until(gen: Gen, deadline: float, stop: Callable[[], float] | None = None) -> Gen:
    """A generator of psycopg's, given up at the deadline; where it can be stopped, at that of `stop`."""
    late = False
    try:
        state = next(gen)
        while True:
            ready = yield state
            if not ready and time.monotonic() >= deadline:
                if late or stop is None:
                    raise TimeoutError(NO_ANSWER)
                late, deadline = True, stop()
            state = gen.send(ready)
    except StopIteration as end:
        return end.value
    except psycopg.errors.QueryCanceled as error:
        raise TimeoutError(NO_ANSWER) if late else error from None


class _Whole(Loader):
    """Sums of BIGINT are NUMERIC there."""

    def load(self, data: Any) -> int:
        return int(bytes(data).partition(b".")[0])


@lru_cache(maxsize=256)
def _numbered(sql: str) -> bytes:
    """Values are `?` everywhere else, and no text in our SQL holds one."""
    first, *rest = sql.split("?")
    return (first + "".join(f"${number}{part}" for number, part in enumerate(rest, 1))).encode()


def _encoded(value: str | float | None) -> bytes | None:
    """As text: the server finds out its type, as for a constant.

    No text can hold a NUL there: it is kept as U+FFFD, for a turn must not be free because of one.
    """
    if value is None:
        return None
    return (value.replace("\0", "\ufffd") if isinstance(value, str) else str(+value)).encode()

"""The hub's ledger in threads: on SQLite one writes and two read, on PostgreSQL several do both.

A refusal of a row is an answer: it costs no connection.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar, cast

from acp_proxy.ledger import Warn, open_ledger
from acp_proxy.ledger.in_thread import InThread
from acp_proxy.ledger.places import is_postgres
from acp_proxy.ledger.sql_ledger import SqlLedger

_PATIENCE = 2.0  # seconds that a call of the ledger waits for others
_DEADLINE = 10.0  # seconds that a question may take, its wait included
_READERS = 2  # of a file
_AT_ONCE = 500  # of a long answer

T = TypeVar("T")


class Ledgers:
    """The connections of one hub to its ledger. All raise LedgerError."""

    def __init__(self, url: str, connections: int, warn: Warn, clock: Callable[[], int] = time.time_ns) -> None:
        def opened() -> SqlLedger:
            return cast(SqlLedger, open_ledger(url, patience=_PATIENCE, warn=warn, journals=(), clock=clock))

        def threads(number: int) -> list[InThread[SqlLedger]]:
            return [InThread(opened, deadline=_DEADLINE, name=f"acp-proxy hub {each}") for each in range(number)]

        found = threads(connections if is_postgres(url) else 1)
        # What a prompt waits for has one for itself, which then knows the turns and sessions that go on.
        self._first = found[0]
        self._writers = found[1:] or found
        self._readers = self._writers if is_postgres(url) else threads(_READERS)

    def open(self) -> None:
        """Wait until it is open, before anything is asked. Raises LedgerError."""
        self._first.open()

    def close(self, within: float) -> None:
        everyone = dict.fromkeys([self._first, *self._writers, *self._readers])
        for each in everyone:
            each.close(within / len(everyone))

    async def ask(self, question: Callable[[SqlLedger], T], *, writes: bool) -> T:
        return await self._next(self._writers if writes else self._readers).ask(question)

    async def ask_first(self, question: Callable[[SqlLedger], T]) -> T:
        """On the connection that is kept for prompts and their rows."""
        return await self._first.ask(question)

    async def stream(self, question: Callable[[SqlLedger], Iterable[T]]) -> AsyncIterator[Sequence[T]]:
        """The parts of a long answer, each when the last one was taken."""
        reader = self._next(self._readers)
        found: Iterator[T] = await reader.ask(lambda ledger: iter(question(ledger)))
        while some := await reader.ask(lambda _: list(islice(found, _AT_ONCE))):
            yield some

    def _next(self, threads: Sequence[InThread[SqlLedger]]) -> InThread[SqlLedger]:
        return min(threads, key=lambda each: each.waiting) if len(threads) > 1 else threads[0]

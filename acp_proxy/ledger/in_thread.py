"""Runs a ledger in a thread for an event loop: a ledger blocks, and belongs to one thread.

The first query opens the ledger; the next query after a failure reopens it. A query that takes too long raises an
error, and the thread continues with the next query when it can.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Generic, Protocol, TypeVar

from acp_proxy.ledger import LedgerError, LedgerUnavailableError

_REST = 0.5  # seconds after a failed opening in which it is not tried again


class _Closable(Protocol):
    def close(self) -> None: ...


S = TypeVar("S", bound=_Closable)
T = TypeVar("T")


class InThread(Generic[S]):
    """`open_source` makes what questions are put to; it is called, and its result used and closed, in the thread."""

    def __init__(self, open_source: Callable[[], S], *, deadline: float, name: str, rest: float = _REST) -> None:
        self._open_source = open_source
        self._rest = rest
        self._deadline = deadline  # seconds a question may take, waiting included
        self._source: S | None = None
        self._failed: tuple[float, LedgerError] | None = None
        self._jobs: SimpleQueue[tuple[Callable[[S], Any], Future[Any]] | None] = SimpleQueue()
        self._busy = 0
        # A daemon: a database that does not answer must not keep the process from its end.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def ask(self, question: Callable[[S], T]) -> T:
        """The answer. Raises LedgerUnavailableError also when there is none in time."""
        try:
            async with asyncio.timeout(self._deadline):
                return await asyncio.wrap_future(self._put(question))
        except TimeoutError as error:
            raise LedgerUnavailableError(f"ledger: no answer within {self._deadline:g} s") from error

    @property
    def waiting(self) -> int:
        """Questions without an answer yet."""
        return self._jobs.qsize() + self._busy

    def open(self) -> None:
        """Wait until it is open, before anything else is asked. Raises LedgerError."""
        self._put(lambda _: None).result()

    def tell(self, last: Callable[[S], object]) -> None:
        """As `ask`, but nobody waits for it, or hears of an error: what is said before the end."""
        self._put(last)

    def close(self, within: float) -> None:
        """Close the source, if its thread gets to it within so many seconds."""
        self._jobs.put(None)
        self._thread.join(within)

    def _put(self, question: Callable[[S], T]) -> Future[T]:
        future: Future[T] = Future()
        self._jobs.put((question, future))
        return future

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            question, future = job
            if not future.set_running_or_notify_cancel():  # its caller has given up
                continue
            self._busy = 1
            try:
                future.set_result(question(self._opened()))
            except LedgerError as error:
                self._close()
                future.set_exception(error)
            except Exception as error:  # told to who asked; the thread is everybody's
                future.set_exception(error)
            self._busy = 0
        self._close()

    def _opened(self) -> S:
        if self._source is None:
            if self._failed and time.monotonic() < self._failed[0] + self._rest:
                raise LedgerUnavailableError(str(self._failed[1]))
            try:
                self._source = self._open_source()
            except LedgerError as error:
                self._failed = (time.monotonic(), error)
                raise
            self._failed = None
        return self._source

    def _close(self) -> None:
        if self._source is not None:
            with suppress(LedgerError):
                self._source.close()
            self._source = None

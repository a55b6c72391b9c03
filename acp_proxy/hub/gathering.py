"""Calls of several proxies that come while others are answered: the next are answered together, in one transaction.

Nobody waits for more of them to come: who asks alone is answered at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, Protocol, TypeVar

from acp_proxy.ledger import LedgerError
from acp_proxy.ledger.sql_ledger import SqlLedger

_MOST = 64  # in one transaction

Q = TypeVar("Q")
A = TypeVar("A")
T = TypeVar("T")


class Ask(Protocol):
    """Puts a question to a ledger, in its thread."""

    def __call__(self, question: Callable[[SqlLedger], T], /) -> Awaitable[T]: ...


class Gathering(Generic[Q, A]):
    """Of one kind of calls. `answer` has for each an answer, or the error that is its alone."""

    def __init__(self, ask: Ask, answer: Callable[[SqlLedger, Sequence[Q]], Sequence[A | Exception]]) -> None:
        self._ask = ask
        self._answer = answer
        self._waiting: list[tuple[Q, asyncio.Future[A | Exception]]] = []
        self._running: asyncio.Task[None] | None = None

    async def ask(self, question: Q) -> A | Exception:
        """The answer, or the error that is this question's. Raises LedgerError for what all have met."""
        future: asyncio.Future[A | Exception] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, future))
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return await future

    async def _run(self) -> None:
        try:
            while self._waiting:
                some, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
                # Who gave up meanwhile is not asked for.
                some = [(question, future) for question, future in some if not future.done()]
                await self._answered(some)
        finally:
            self._running = None

    async def _answered(self, some: Sequence[tuple[Q, asyncio.Future[A | Exception]]]) -> None:
        questions = [question for question, _ in some]
        try:
            answers = await self._ask(lambda ledger: self._answer(ledger, questions))
        except Exception as error:  # told to all who asked; the next may have better luck
            for _, future in some:
                if not future.done():
                    future.set_exception(_of_each(error))
            return
        for (_, future), answer in zip(some, answers, strict=True):
            if not future.done():
                future.set_result(answer)


def _of_each(error: Exception) -> Exception:
    """An exception that is raised in several tasks would collect the traces of all of them."""
    if isinstance(error, LedgerError):
        return type(error)(str(error))
    return RuntimeError(f"{type(error).__name__} while several calls were answered")

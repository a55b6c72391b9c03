"""A circuit breaker for queries to the ledger that a prompt waits for: each has a timeout, and failures pause them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from acp_proxy.ledger import LedgerError
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.worker import LedgerWorker

T = TypeVar("T")
_FAILURES = 3  # in a row
_REST = 5.0  # seconds


class CircuitBreaker:
    """Used in the event loop. A ledger that does not answer within `timeout` seconds, tried again, is out of reach.

    While it is opened for the first time it has `opening` seconds, if that is more: a machine that starts many programs
    takes longer to load what opens it, or to connect, than a ledger that is open takes to answer.
    """

    def __init__(self, worker: LedgerWorker, timeout: float, opening: float) -> None:
        self._worker = worker
        self._timeout = timeout
        self._opening = opening
        self._failures = 0
        self._rests_until = 0.0  # by the loop's clock

    async def ask(self, job: Callable[[BudgetLedger], T], late: Callable[[T], None], waited: float = 0) -> T | None:
        """The job's result, or None if the ledger is out of reach; `late` gets a result that arrives afterwards.

        Of the time for it so many seconds have been `waited`.
        """
        loop = asyncio.get_running_loop()
        if loop.time() < self._rests_until:
            return None
        answer: asyncio.Future[T | None] = loop.create_future()

        def work(ledger: BudgetLedger) -> None:
            result = job(ledger)
            in_loop(loop, lambda: arrived(result))

        def failed(_: LedgerError) -> None:
            in_loop(loop, lambda: arrived(None))

        def arrived(result: T | None) -> None:
            if not answer.done():
                answer.set_result(result)
            elif result is not None:
                late(result)

        within = max(self._timeout, self._opening) if self._worker.opening else self._timeout
        # In a failover it is back within seconds; what cannot even be opened has no more than this.
        self._worker.ask(work, failed, within=self._timeout - waited)
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, within - waited)):
                await answer
        result = answer.result() if answer.done() and not answer.cancelled() else None
        self._note(result is not None, loop.time())
        return result

    def _note(self, answered: bool, now: float) -> None:
        self._failures = 0 if answered else self._failures + 1
        if self._failures >= _FAILURES:  # after the rest one more is enough
            self._rests_until = now + _REST


def in_loop(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    """From the ledger's thread, where the loop may have ended in the meantime."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(call)

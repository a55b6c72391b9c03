"""The ledger as the event loop asks it: in a thread of its own, opened when there is first a question."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from acp_proxy.ledger.budgets import BudgetLedger

T = TypeVar("T")


class Books:
    """`open` makes the ledger; it and all that is asked run in one thread."""

    def __init__(self, open: Callable[[], BudgetLedger]) -> None:
        self._open = open
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="acp-proxy notices")
        self._ledger: BudgetLedger | None = None

    async def ask(self, question: Callable[[BudgetLedger], T]) -> T:
        """Raises LedgerError while the ledger is out of reach."""

        def answer() -> T:
            if self._ledger is None:
                self._ledger = self._open()
            return question(self._ledger)

        return await asyncio.get_running_loop().run_in_executor(self._thread, answer)

    def close(self) -> None:
        """Nothing is waited for; what is asked at this moment is answered first."""
        with suppress(RuntimeError):  # it was closed before
            self._thread.submit(self._close)
        self._thread.shutdown(wait=False)

    def _close(self) -> None:
        if self._ledger is not None:
            self._ledger.close()

"""Questions to a ledger that answers, fails, or takes too long: when it is asked, and what becomes of late answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from acp_proxy.interceptors.budgets.circuit_breaker import CircuitBreaker
from acp_proxy.ledger import LedgerError
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.worker import LedgerWorker
from tests.ledger.warned import Warnings

TIMEOUT = 20.0  # seconds


class Questions:
    """To the ledger of a directory; the loop's clock is set by hand."""

    def __init__(self, worker: LedgerWorker, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = 0
        self.late: list[int] = []
        self.passed = 0.0  # seconds
        loop = asyncio.get_running_loop()
        now = loop.time
        monkeypatch.setattr(loop, "time", lambda: now() + self.passed)
        self._breaker = CircuitBreaker(worker, TIMEOUT, TIMEOUT)

    async def ask(self, fails: bool, wait: threading.Event | None = None) -> int | None:
        """Where it has to `wait`, the time for an answer is over before."""

        def job(_: BudgetLedger) -> int:
            self.asked += 1
            if wait is not None:
                wait.wait(30)
            if fails:
                raise LedgerError("out of order")  # not what passes: that would be tried again
            return self.asked

        return await self._breaker.ask(job, self.late.append, 0 if wait is None else TIMEOUT)


@asynccontextmanager
async def questions(root: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Questions]:
    worker = LedgerWorker.at(f"sqlite:///{root}/ledger.db", {"HOME": str(root)}, Warnings())
    try:
        yield Questions(worker, monkeypatch)
    finally:
        await asyncio.to_thread(worker.close, 30)


async def test_after_three_failures_in_a_row_it_rests_and_then_tries_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with questions(tmp_path, monkeypatch) as made:
        for number in (1, 2, 3, 3, 3):
            assert await made.ask(fails=True) is None
            assert made.asked == number
        for number in (4, 5):
            made.passed += 5
            for _ in range(2):
                assert await made.ask(fails=True) is None
                assert made.asked == number


async def test_an_answer_makes_it_forget_the_failures_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with questions(tmp_path, monkeypatch) as made:
        for number in (1, 4, 7):
            for _ in range(2):
                assert await made.ask(fails=True) is None
            assert await made.ask(fails=False) == number + 2


@pytest.mark.parametrize("fails", [True, False])
async def test_what_comes_late_is_told_if_it_is_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    async with questions(tmp_path, monkeypatch) as made:
        may_end = threading.Event()
        assert await made.ask(fails, may_end) is None
        may_end.set()
        assert await made.ask(fails=False) == 2
        assert made.late == ([] if fails else [1])

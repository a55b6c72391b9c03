"""The heartbeat of a process with a running turn: every few seconds it renews its holds in the ledger.

Each heartbeat also reads the current standings of budgets. No timer runs while nothing is held.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from acp_proxy.core.budget import Standing
from acp_proxy.interceptors.budgets.circuit_breaker import in_loop
from acp_proxy.interceptors.budgets.running_turns import Running, Turns
from acp_proxy.ledger import LedgerError
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger
from acp_proxy.ledger.worker import LedgerWorker


class Heartbeat:
    """`beat` is in seconds; `clock` is Unix time in nanoseconds."""

    def __init__(self, worker: LedgerWorker, turns: Turns, clock: Callable[[], int], beat: float) -> None:
        self._worker = worker
        self._turns = turns
        self._clock = clock
        self._beat = beat
        self._timer: asyncio.TimerHandle | None = None

    @property
    def beats(self) -> bool:
        return self._timer is not None

    def start(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._beat, self._due)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due(self) -> None:
        self._timer = None
        turns = list(self._turns)
        if not turns:
            return
        self.start()
        loop = asyncio.get_running_loop()
        now = self._clock()
        organisation = turns[0].origin.organisation  # one process, one organisation

        def beat(ledger: BudgetLedger) -> None:
            ledger.beat(organisation, [turn.id for turn in turns], now + EXPIRY)
            accounts = [account for turn in turns for account in turn.accounts]
            standings = ledger.standing(accounts, now)
            in_loop(loop, lambda: _stand(turns, standings, now + EXPIRY))

        self._worker.ask(beat, _missed, anyway=True)  # a row that has to wait is still held for


def _stand(turns: Sequence[Running], standings: Sequence[Standing], until: int) -> None:
    rest = iter(standings)
    for turn in turns:
        turn.until = until
        turn.stand([next(rest) for _ in turn.accounts])


def _missed(_: LedgerError) -> None:
    """The next beat is due before anything expires."""

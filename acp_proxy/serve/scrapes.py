"""Metrics for Prometheus from one ledger. Lives in that ledger's thread, and knows no HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable

from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.metrics import Exporter
from acp_proxy.serve.dead_proxies import DeadProxies
from acp_proxy.text.times import SECOND

_FRESH = SECOND  # for which an answer is given again: two servers of Prometheus are no reason to read twice


class Scrapes:
    """The exporter outlives the ledger: it keeps what was seen last."""

    def __init__(self, ledger: BudgetLedger, exporter: Exporter, clock: Callable[[], int] = time.time_ns) -> None:
        self._ledger = ledger
        self._exporter = exporter
        self._clock = clock
        self._dead = DeadProxies(ledger, clock)
        self._last: tuple[int, bytes] | None = None

    def text(self) -> bytes:
        """Raises LedgerError."""
        now = self._clock()
        if self._last is None or not 0 <= now - self._last[0] < _FRESH:
            self._dead.take_over()
            self._last = (now, self._exporter.scrape(self._ledger))
        return self._last[1]

    def close(self) -> None:
        self._ledger.close()

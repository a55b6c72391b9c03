"""Proxies that died: each opening of a ledger takes over what they left; a process that keeps it open looks again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from acp_proxy.ledger import LedgerForbiddenError, LedgerUnavailableError
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.text.times import SECOND

BETWEEN = 5 * SECOND


class DeadProxies:
    """`clock` is Unix time in nanoseconds; opening the ledger was the first look."""

    def __init__(self, ledger: BudgetLedger, clock: Callable[[], int]) -> None:
        self._ledger = ledger
        self._clock = clock
        self._looked_at = clock()

    def take_over(self) -> None:
        """At most every few seconds. Where that cannot be done now the ledger may still be read."""
        now = self._clock()
        if abs(now - self._looked_at) >= BETWEEN:
            self._looked_at = now
            with suppress(LedgerUnavailableError, LedgerForbiddenError):
                self._ledger.settle_dead(now)

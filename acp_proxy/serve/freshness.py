"""Whether the figures of a ledger are those of a standby, and how old they are then."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from acp_proxy.core.windows import SECOND
from acp_proxy.ledger import LedgerError
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.durability import in_words

_KEPT = 5 * SECOND  # many may ask


class Freshness:
    """`clock` is Unix time in nanoseconds."""

    def __init__(self, ledger: BudgetLedger, clock: Callable[[], int]) -> None:
        self._ledger = ledger
        self._clock = clock
        self._asked = 0
        self._said: str | None = None

    def in_words(self) -> str | None:
        """`a standby, 12 s behind its primary`; None where figures are as they are."""
        now = self._clock()
        if not 0 <= now - self._asked < _KEPT:
            self._asked, self._said = now, None
            with suppress(LedgerError):  # what speaks PostgreSQL's protocol alone may know no standbys
                found = self._ledger.replication()
                self._said = in_words(found) if found and found.standby else None
        return self._said

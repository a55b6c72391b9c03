"""What readers of a ledger have to know of its servers: that figures are old, or that the ledger was set back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from acp_proxy.core.windows import SECOND
from acp_proxy.ledger import LedgerError
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.durability import RECENT, in_words, restored_in_words

_KEPT = 5 * SECOND  # many may ask


class Freshness:
    """`clock` is Unix time in nanoseconds."""

    def __init__(self, ledger: BudgetLedger, organisation: str, clock: Callable[[], int]) -> None:
        self._ledger = ledger
        self._organisation = organisation
        self._clock = clock
        self._asked = 0
        self._standby: str | None = None
        self._set_back: str | None = None

    def standby(self) -> str | None:
        """`a standby, 12 s behind its primary`; None where figures are as they are."""
        self._look()
        return self._standby

    def set_back(self) -> str | None:
        """What was written again after a failover, and what may be missing; None where none was seen lately."""
        self._look()
        return self._set_back

    def _look(self) -> None:
        now = self._clock()
        if 0 <= now - self._asked < _KEPT:
            return
        self._asked, self._standby, self._set_back = now, None, None
        with suppress(LedgerError):  # what speaks PostgreSQL's protocol alone may know no standbys
            found = self._ledger.replication()
            self._standby = in_words(found) if found and found.standby else None
            self._set_back = restored_in_words(self._ledger.restored(self._organisation, now - RECENT))

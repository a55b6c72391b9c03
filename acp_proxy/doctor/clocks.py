"""What `doctor` says of this machine's clock beside that of the ledger's server."""

from __future__ import annotations

from datetime import timedelta

from acp_proxy.core.windows import SECOND
from acp_proxy.ledger.budgets import BudgetLedger

_APART = 30  # seconds that are no trouble


def clock_trouble(ledger: BudgetLedger) -> str:
    """Empty where there is none. Holds go by the server's clock; rows are dated by the machine's."""
    seconds = round(ledger.clock_ahead() / SECOND)
    if abs(seconds) <= _APART:
        return ""
    apart = f"{timedelta(seconds=abs(seconds))} {'behind' if seconds > 0 else 'ahead of'}"
    return f"this machine's is {apart} that of the ledger's server, and its rows are dated by it: let NTP set it"

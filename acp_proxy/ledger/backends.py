"""Which backend keeps the ledger at a URL. Imports only that one, and only when asked."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from acp_proxy.ledger import LedgerError
from acp_proxy.ledger.hub_address import is_hub
from acp_proxy.ledger.places import is_postgres, is_synchronous, sqlite_path

if TYPE_CHECKING:
    from acp_proxy.ledger.budgets import BudgetLedger


def backend_at(url: str, clock: Callable[[], int] = time.time_ns) -> Callable[..., BudgetLedger]:
    """The function that opens it, with the other arguments of `open_ledger`. Raises LedgerError."""
    if is_hub(url):
        from acp_proxy.ledger.hub.ledger import HubLedger

        return partial(HubLedger, url, clock)
    if not is_postgres(url):
        from acp_proxy.ledger.sqlite.ledger import SqliteLedger

        return partial(SqliteLedger, sqlite_path(url), synchronous=is_synchronous(url))
    try:
        from acp_proxy.ledger.postgres.ledger import PostgresLedger
    except ImportError as error:
        advice = "run pip install '.[postgres]' in a clone of acp-proxy"
        raise LedgerError(f"ledger on PostgreSQL: not installed, {advice}") from error
    return partial(PostgresLedger, url, clock)

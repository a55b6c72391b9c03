"""What `doctor` says of a ledger's servers: standbys, their age, and whether the ledger was set back."""

from __future__ import annotations

from collections.abc import Iterator

from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.durability import RECENT, in_words, restored_in_words

_LATE = 60.0  # seconds that a standby may be behind
_POOLER = (
    "others share the connections of the server, so acp-proxy keeps nothing on them;"
    " with PgBouncer set server_login_retry = 1, or prompts wait 15 s for a switchover"
)


def server_findings(ledger: BudgetLedger, organisation: str, now: int) -> Iterator[tuple[str, bool]]:
    """Lines, and whether each is a trouble. `now` is Unix ns."""
    if (found := ledger.replication()) is not None:
        late = found.behind is not None and found.behind > _LATE
        yield f"servers: {in_words(found)}", late or (found.standby and found.behind is None)
        if found.pooled:
            yield f"pooler: {_POOLER}", False
    restored = ledger.restored(organisation, now - RECENT)
    if said := restored_in_words(restored):
        yield f"ledger: {said}", bool(restored.incomplete)

"""What `doctor` says of a ledger's servers: standbys, their age, and whether the ledger was set back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from acp_proxy.core.windows import DAY, SECOND
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.durability import in_words
from acp_proxy.text.figures import counted

_LATE = 60.0  # seconds that a standby may be behind
_RECENT = 30 * DAY


def server_findings(ledger: BudgetLedger, organisation: str, now: int) -> Iterator[tuple[str, bool]]:
    """Lines, and whether each is a trouble. `now` is Unix ns."""
    if (found := ledger.replication()) is not None:
        late = found.behind is not None and found.behind > _LATE
        yield f"servers: {in_words(found)}", late or (found.standby and found.behind is None)
    restored = ledger.restored(organisation, now - _RECENT)
    if restored.last is not None:
        at = datetime.fromtimestamp(restored.last // SECOND, UTC)
        rows, machines = counted(restored.rows, "row"), counted(restored.machines, "machine")
        text = f"ledger: was set back, last seen {at:%Y-%m-%d %H:%M} UTC; {rows} written again from {machines}"
        if restored.incomplete:
            text += f"; {restored.incomplete} of {restored.processes} processes had not kept all: rows may be missing"
        yield text, bool(restored.incomplete)

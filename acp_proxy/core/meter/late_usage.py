"""What an agent tells of a turn when it has let go of its session, which ended the turn: the rest of what it used."""

from __future__ import annotations

from msgspec.structs import replace

from acp_proxy.core.entry import Entry
from acp_proxy.core.events import AnsweredLate
from acp_proxy.core.meter.agent_cost import Increase
from acp_proxy.core.meter.counters import is_empty
from acp_proxy.core.meter.rows import Rows
from acp_proxy.core.meter.session_account import SessionAccount
from acp_proxy.core.usage import NOTHING


def late_usage(event: AnsweredLate, account: SessionAccount, rows: Rows) -> Entry | None:
    """A row of what the turn used beyond its own. Moves the account's counters on."""
    booked = account.owed.pop(event.turn.id, NOTHING)
    usage = NOTHING if is_empty(event.counters) else account.reader.late_usage(event.counters, booked)
    why = "told when its session was closed or opened again"
    entry = rows.between_turns(account, event.at, usage, Increase(), "autonomous", why, at_least=True)
    if entry is None or not account.agent_tells_cost:
        return entry
    return replace(entry, lines=tuple(replace(line, cost=None) for line in entry.lines), cost_source="parent")

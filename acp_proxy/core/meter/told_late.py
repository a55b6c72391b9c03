"""What an agent tells of a turn when it has let go of its session, which ended the turn: the rest of what it used."""

from __future__ import annotations

from msgspec.structs import replace

from acp_proxy.core.entry import Entry
from acp_proxy.core.events import AnsweredLate
from acp_proxy.core.meter.agent_cost import Increase
from acp_proxy.core.meter.counters import is_empty, partition, since_last
from acp_proxy.core.meter.rows import Rows
from acp_proxy.core.meter.session_account import SessionAccount
from acp_proxy.core.usage import NOTHING, Usage


def told_late(event: AnsweredLate, account: SessionAccount, rows: Rows) -> Entry | None:
    """A row of what the turn used beyond its own. Moves the account's counters on."""
    usage = _usage(event, account, account.owed.pop(event.turn.id, NOTHING))
    why = "told when its session was closed or opened again"
    entry = rows.between_turns(account, event.at, usage, Increase(), "autonomous", why, at_least=True)
    if entry is None or not account.agent_tells_cost:
        return entry
    return replace(entry, lines=tuple(replace(line, cost=None) for line in entry.lines), cost_source="parent")


def _usage(event: AnsweredLate, account: SessionAccount, booked: Usage) -> Usage:
    profile = account.profile
    match profile.tokens.scope:
        # Counters of an agent that nobody described may be of anything: its row stays the estimate that it is.
        case _ if not profile.known or is_empty(event.counters):
            return NOTHING
        case "session":
            account.count(event.counters)
            return since_last(account.tokens.advance(event.counters), profile.overlap).usage
        case "turn" | "last_call":
            return partition(event.counters, profile.overlap).usage.minus(booked)
    return NOTHING  # calls have told theirs as they ended

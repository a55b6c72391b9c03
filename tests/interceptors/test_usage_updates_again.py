"""What was shown of a session last: whether it was an estimate, and what of it is shown again."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from acp_proxy.core.effects import Send
from acp_proxy.core.entry import SessionState
from acp_proxy.core.events import ContextChanged, Event, SessionOpened, SessionRequested, TurnMetered, UsageReported
from acp_proxy.core.money import Money
from acp_proxy.interceptors.usage_updates import UsageUpdates
from harness.rows import row

DOLLAR = Money.of("1", "USD")
STATE = SessionState(context_used=5000, context_size=200_000, costs=(DOLLAR,))
ESTIMATED = replace(STATE, context_estimated=True)
LOADED = SessionRequested(3, "load", "s1"), SessionOpened(4, "load", "s1")


def shown(updates: UsageUpdates, *events: Event) -> list[tuple[Any, Any, Any, Any]]:
    """Used, cost, source, and whether it is an estimate."""
    found = []
    for event in events:
        for effect in updates.on_event(event):
            assert isinstance(effect, Send)
            said = json.loads(effect.line)["params"]["update"]
            meta = said["_meta"]["acp-proxy"]
            found.append((said["used"], said.get("cost", {}).get("amount"), meta["source"], meta["estimated"]))
    return found


def ended(state: SessionState = STATE, **fields: Any) -> TurnMetered:
    return TurnMetered(2, row(**fields).entry, state, reported_usage=False, reported_cost=False)


def reported(used: int | None, size: int | None, cost: Money | None = None) -> UsageReported:
    return UsageReported(2, "s1", None, used, size, cost)


def opened() -> UsageUpdates:
    updates = UsageUpdates()
    assert shown(updates, SessionOpened(1, "new", "s1")) == []
    return updates


def test_what_is_beside_turns_shows_nothing() -> None:
    for kind in ("side", "subagent", "autonomous"):  # the last one: what was reported between turns
        event = ended(kind=kind)
        assert shown(opened(), replace(event, entry=replace(event.entry, stop_reason=None))) == []


def test_the_agents_own_sum_goes_before_ours() -> None:
    state = replace(STATE, agent_cost=Money.of("5", "USD"))
    assert shown(opened(), ended(state)) == [(5000, 5, "agent", False)]


def test_an_estimate_is_one_also_when_it_is_shown_again() -> None:
    for ending in (ended(ESTIMATED), ended(usage_source="estimated")):
        updates = opened()
        assert shown(updates, ending) == [(5000, 1, "meter", True)]
        assert shown(updates, *LOADED) == [(5000, 1, "ledger", True)]


def test_what_the_agent_says_or_is_metered_later_is_no_estimate_any_more() -> None:
    for later, used in ((reported(6000, 200_000), 6000), (ended(replace(STATE, context_used=6000)), 6000)):
        updates = opened()
        shown(updates, ended(ESTIMATED), later)
        assert shown(updates, *LOADED) == [(used, 1, "ledger", False)]


def test_an_update_without_a_cost_leaves_the_last_one() -> None:
    updates = opened()
    assert shown(updates, reported(5000, 200_000, DOLLAR), reported(6000, 200_000)) == []
    assert shown(updates, *LOADED) == [(6000, 1, "ledger", False)]


def test_an_agent_that_knows_half_of_it_has_spoken() -> None:
    for half in (reported(5000, 0), reported(0, 200_000)):
        updates = opened()
        assert shown(updates, half, ContextChanged(3, "s1", STATE, restored=True)) == []
    assert shown(opened(), reported(0, 0), ContextChanged(3, "s1", STATE, restored=True)) != []


def test_a_session_that_is_resumed_is_shown_when_the_agent_says_that_it_is_open() -> None:
    updates = opened()
    restored = ContextChanged(3, "s1", STATE, restored=True)
    assert shown(updates, SessionRequested(3, "resume", "s1"), restored) == []
    assert shown(updates, SessionOpened(4, "resume", "s1")) == [(5000, 1, "ledger", False)]

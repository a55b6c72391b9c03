"""Windows of plans for the page: how they stand, and how each came to be as full since it was reset."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from acp_proxy.core.plans import FULL, PlanChange, PlanState, same_reset
from acp_proxy.core.windows import DAY
from acp_proxy.ledger.budgets import BudgetReader
from acp_proxy.report.plans import described
from acp_proxy.text.plans import window_name
from acp_proxy.text.times import rfc3339

MOST_WINDOWS = 200
_MOST_PLOTTED = 24  # windows with a history
_MOST_POINTS = 100  # of a history, the latest
_NEWS = DAY  # after which a window that was reset, or that nobody tells any more, is left out


def plans(
    ledger: BudgetReader, organisation: str, now: int, user: str | None = None, agent: str | None = None
) -> dict[str, Any]:
    """The fullest first, of which `omitted` says how many are missing. Raises LedgerError."""
    recent = [
        state
        for state in ledger.plans(organisation, user)
        if agent in (None, state.agent) and (state.told.resets_at or state.told.seen_at) > now - _NEWS
    ]
    shown = sorted(recent, key=lambda state: _order(state, now))[:MOST_WINDOWS]
    changes = _changes(ledger, organisation, shown[:_MOST_PLOTTED])
    return {"plans": [_described(state, changes, now) for state in shown], "omitted": len(recent) - len(shown)}


def _order(state: PlanState, now: int) -> tuple[Any, ...]:
    used = state.used(now)
    return (used is None, -(used or 0), state.user, state.agent, state.told.window)


def _changes(ledger: BudgetReader, organisation: str, states: Sequence[PlanState]) -> list[PlanChange]:
    found: list[PlanChange] = []
    for user in dict.fromkeys(state.user for state in states):
        since = min(state.first_at for state in states if state.user == user)
        found += ledger.plan_changes(organisation, since, None, user)
    return found


def _described(state: PlanState, changes: Iterable[PlanChange], now: int) -> dict[str, Any]:
    return {
        "user": state.user,
        **described(state, now),
        "name": window_name(state.told.window),
        "since": rfc3339(state.begun_at),
        "history": [
            {"at": rfc3339(each.told.seen_at), "used": each.told.used / FULL}
            for each in changes
            if _is_of(each, state) and each.told.used is not None
        ][-_MOST_POINTS:],
    }


def _is_of(change: PlanChange, state: PlanState) -> bool:
    """Whether it was told of this window since it was reset."""
    return (
        (change.user, change.agent, change.told.window) == (state.user, state.agent, state.told.window)
        and change.told.seen_at >= state.first_at
        and same_reset(change.told.resets_at, state.told.resets_at)
    )

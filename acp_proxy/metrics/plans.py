"""Metrics of plans' windows. Pure. Of several users the one is shown whose window is fullest: who is stopped first."""

from __future__ import annotations

from collections.abc import Iterator

from acp_proxy.core.money import NANO
from acp_proxy.core.plans import FULL, PlanState
from acp_proxy.ledger.sums.tallies import OTHER
from acp_proxy.metrics.exposition import Family
from acp_proxy.metrics.readings import Readings

_MOST = 20  # names of windows that are shown, and how long they may be
_LONGEST = 60
_LABELS = ("agent", "window")


def plans(readings: Readings) -> Iterator[Family]:
    """A window that was reset has no series until an agent tells of the next one."""
    fullest = _fullest(readings)
    used = [
        (labels, state.told.used * (NANO // FULL)) for labels, state in fullest.items() if state.told.used is not None
    ]
    text = "How much of a plan's window is used, as its agent told it last."
    yield Family("acp_proxy_plan_used_ratio", "gauge", text, _LABELS, used, nano=True)
    ends = [(labels, end) for labels, state in fullest.items() if (end := state.told.resets_at) is not None]
    text = "When this window of a plan resets."
    yield Family("acp_proxy_plan_reset_timestamp_seconds", "gauge", text, _LABELS, ends, nano=True)


def _fullest(readings: Readings) -> dict[tuple[str, str], PlanState]:
    names = sorted({state.told.window for state in readings.plans if len(state.told.window) <= _LONGEST})[:_MOST]
    found: dict[tuple[str, str], PlanState] = {}
    for state in readings.plans:
        window = state.told.window if state.told.window in names else OTHER
        labels = readings.labels.of("agent", state.agent), window
        if labels not in found or _fullness(state) > _fullness(found[labels]):
            found[labels] = state
    return found


def _fullness(state: PlanState) -> int:
    return -1 if state.told.used is None else state.told.used

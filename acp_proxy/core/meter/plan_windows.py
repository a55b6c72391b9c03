"""The windows of a plan in agents' own words. Readers never raise: what is malformed counts as absent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from acp_proxy.core.acp import label, mapping, number
from acp_proxy.core.events import Meta
from acp_proxy.core.plans import FULL, OVERAGE, PlanWindow
from acp_proxy.core.windows import SECOND

CLAUDE = "_claude/rateLimit"  # of claude-agent-acp from 0.49 on, where it is signed in to a plan

_NAMELESS = "plan"
_ALLOWED = "allowed"
_MOST_USED = 10  # times a window: a larger number is no fraction of one
_MOST = 32  # windows of one message
_LAST_SECOND = 2**63 // SECOND - 1  # Unix time that still fits a ledger's column in ns


def plan_windows(meta: Meta, at: int) -> tuple[PlanWindow, ...]:
    """Of a `usage_update` of Claude's, in its order. `at` is when it came."""
    told = mapping(meta.get(CLAUDE))
    return tuple(_claude(told, at)) if told else ()


def _claude(told: Mapping[str, Any], at: int) -> Iterator[PlanWindow]:
    """`unifiedWindows` has all of them. The top level has the one that binds, and is all that older versions tell."""
    overage, binding = _overage(told), label(told.get("rateLimitType"))
    each: dict[str, Mapping[str, Any]] = {
        name: mapping(one) for key, one in mapping(told.get("unifiedWindows")).items() if (name := label(key))
    }
    if binding is not None:
        each[binding] = {**told, **each.get(binding, {})}
    elif not each:
        each[_NAMELESS] = told
    for name, one in list(each.items())[:_MOST]:
        window = PlanWindow(
            name, _used(one.get("utilization")), label(one.get("status")), _reset(one.get("resetsAt")), overage, at
        )
        if _says_something(window):
            yield window


def _says_something(window: PlanWindow) -> bool:
    """Of a window without a name, or figures, that all is well says nothing."""
    return not (window.used is None and window.resets_at is None and window.status in (None, _ALLOWED))


def _overage(told: Mapping[str, Any]) -> str | None:
    return OVERAGE if told.get("isUsingOverage") is True else label(told.get("overageStatus"))


def _used(value: Any) -> int | None:
    """A fraction, in millionths."""
    fraction = _up_to(_MOST_USED, value)
    return None if fraction is None else round(fraction * FULL)


def _reset(value: Any) -> int | None:
    """Seconds, in ns."""
    seconds = _up_to(_LAST_SECOND, value)
    return int(seconds * SECOND) if seconds else None


def _up_to(most: int, value: Any) -> int | Decimal | None:
    found = number(value)
    if found is None or (isinstance(found, Decimal) and not found.is_finite()):
        return None
    return found if 0 <= found <= most else None

"""Windows of a ChatGPT plan, as Codex keeps them: in the `rate_limits` of `token_count` events of a rollout.

With an API key these are there and empty. What is damaged, or has another form, counts as absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from acp_proxy.books.lines import Moment, decoded, nanoseconds
from acp_proxy.core.plans import FULL, PlanWindow
from acp_proxy.core.windows import SECOND

_OWN = "codex"  # the limit of its usual models; others have a name of their own
_NAMES = {300: "five_hour", 7 * 1440: "seven_day"}  # by minutes, as Claude calls them
_MOST_PERCENT = 1000
_LONGEST_NAME = 60
_LAST_SECOND = 2**63 // SECOND - 1


class _Window(Struct):
    used_percent: float | None = None
    window_minutes: int | None = None
    resets_at: int | None = None  # Unix seconds
    resets_in_seconds: int | None = None  # of earlier versions


class _Credits(Struct):
    has_credits: bool | None = None


class _Limits(Struct):
    limit_id: str | None = None
    primary: _Window | None = None
    secondary: _Window | None = None
    credits: _Credits | None = None
    rate_limit_reached_type: str | None = None


class _Event(Struct):
    type: str
    rate_limits: _Limits | None = None


class _Line(Struct):
    timestamp: Moment
    payload: _Event


def windows(lines: Iterable[bytes]) -> Iterator[PlanWindow]:
    """In the order of the file, each as often as it stands there."""
    for line in lines:
        if b'"rate_limits"' not in line:
            continue
        told = decoded(line, _Line)
        if told is None or told.payload.type != "token_count" or told.payload.rate_limits is None:
            continue
        at, limits = nanoseconds(told.timestamp), told.payload.rate_limits
        for place, window in (("primary", limits.primary), ("secondary", limits.secondary)):
            if at is not None and window is not None and window.used_percent is not None:
                yield _window(place, window, limits, at)


def _window(place: str, window: _Window, limits: _Limits, at: int) -> PlanWindow:
    used = _millionths(window.used_percent)
    full = used is not None and used >= FULL
    status = "rejected" if full and limits.rate_limit_reached_type else "allowed"
    return PlanWindow(_name(place, window, limits), used, status, _reset(window, at), _overage(limits), at)


def _name(place: str, window: _Window, limits: _Limits) -> str:
    minutes = window.window_minutes
    name = place if minutes is None else _NAMES.get(minutes, f"{minutes}_minutes")
    other = limits.limit_id not in (None, _OWN)
    return (f"{name}_{limits.limit_id}" if other else name)[:_LONGEST_NAME]


def _millionths(percent: float | None) -> int | None:
    return round(percent * FULL / 100) if percent is not None and 0 <= percent <= _MOST_PERCENT else None


def _reset(window: _Window, at: int) -> int | None:
    seconds = window.resets_at
    if seconds is None and window.resets_in_seconds is not None:
        seconds = at // SECOND + window.resets_in_seconds
    return seconds * SECOND if seconds is not None and 0 < seconds <= _LAST_SECOND else None


def _overage(limits: _Limits) -> str | None:
    """Whether there are credits, which are used when a window is full."""
    if limits.credits is None or limits.credits.has_credits is None:
        return None
    return "allowed" if limits.credits.has_credits else "rejected"

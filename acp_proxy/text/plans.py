"""Windows of a plan as people read them: `5 h: 62 % until 14:00`. What is unknown, or over, is said so."""

from __future__ import annotations

from acp_proxy.core.plans import FULL, OVERAGE, PlanState
from acp_proxy.core.windows import DAY
from acp_proxy.text.figures import clean
from acp_proxy.text.times import Zone

_NAMES = {"five_hour": "5 h", "seven_day": "week"}
_PLAIN = (None, "allowed", "allowed_warning")  # what is used says as much
_LONGEST = 40  # characters of a name


def window_name(window: str) -> str:
    """`5 h`, `week`, `week (opus)`; another word is as the agent has it."""
    for name, called in _NAMES.items():
        if window.startswith(name):
            rest = clean(window[len(name) :].replace("_", " "))[:_LONGEST]
            return f"{called} ({rest})" if rest else called
    return clean(window)[:_LONGEST] or "plan"


def used_text(used: int | None) -> str:
    """In whole percent, rounded down: what is not all used is never 100 %. `?` is not known."""
    return "?" if used is None else f"{used * 100 // FULL} %"


def time_text(at: int, now: int, zone: Zone) -> str:
    """`14:00` within twelve hours, `Mon 14:00` within six days, else `2026-11-30 14:00`."""
    away = abs(at - now)
    form = "%H:%M" if away < DAY // 2 else "%a %H:%M" if away < 6 * DAY else "%Y-%m-%d %H:%M"
    return f"{zone.local(at):{form}}"


def state_text(state: PlanState, now: int, zone: Zone) -> str:
    """`5 h: 62 % until 14:00`, `week: rejected until Mon 09:00`, `5 h: reset at 14:00`."""
    told, name = state.told, window_name(state.told.window)
    if told.resets_at is not None and state.is_over(now):
        return f"{name}: reset at {time_text(told.resets_at, now, zone)}"
    words = [] if told.used is None else [used_text(told.used)]
    words += [] if told.status in _PLAIN else [clean(told.status or "")[:_LONGEST]]
    until = "" if told.resets_at is None else f" until {time_text(told.resets_at, now, zone)}"
    return f"{name}: {', '.join(words) or '?'}{until}"


def warning(state: PlanState, percent: int, now: int, zone: Zone) -> str:
    """That a threshold is reached, for the person whose plan it is."""
    told = state.told
    sentences = [
        f"{percent} % of your plan's window ({window_name(told.window)}) is reached: {used_text(told.used)} is used."
    ]
    full = state.full_at(now)
    if full is not None and told.used is not None and told.used < FULL:
        sentences.append(f"At this pace it is used up at {time_text(full, now, zone)}.")
    if told.overage == OVERAGE:
        sentences.append("What is used now is paid beside the plan.")
    if told.resets_at is not None:
        sentences.append(f"It resets at {time_text(told.resets_at, now, zone)}.")
    return " ".join(sentences)

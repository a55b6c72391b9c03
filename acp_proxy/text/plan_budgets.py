"""Texts of budgets on plans for the user: why a prompt was refused, or goes although a budget is used up."""

from __future__ import annotations

from acp_proxy.core.budget.plan_limits import PlanStanding
from acp_proxy.core.budget.refusal import duration_text, quoted
from acp_proxy.core.plans import FULL
from acp_proxy.text.plans import used_text, window_name
from acp_proxy.text.times import Zone


def refusal(standing: PlanStanding, now: int, zone: Zone) -> str:
    """Names the budget, used, limit, reset and how to get more."""
    return f"Not sent to the agent: {_why(standing)} {_reset(standing, now, zone)} {_how_to_go_on(standing)}"


def exceeded(standing: PlanStanding, now: int, zone: Zone) -> str:
    """Of a budget that only warns."""
    why = _why(standing)
    return f"{why[:1].upper()}{why[1:]} {_reset(standing, now, zone)} It only warns: prompts go on."


def _why(standing: PlanStanding) -> str:
    budget, window = standing.budget, window_name(standing.budget.window)
    name = f'budget "{budget.name}"'
    if standing.reason == "overage":
        return f"{name} allows nothing that is paid beside your plan, and now that would begin."
    if standing.used is None or standing.used * 100 < budget.percent * FULL:
        return f"{name} is used up: your plan's window ({window}) takes no more prompts."
    used = used_text(standing.used)
    return f"{name} is used up: it allows {budget.percent} % of your plan's window ({window}), and {used} is used."


def _reset(standing: PlanStanding, now: int, zone: Zone) -> str:
    if standing.until is None:
        return ""
    at = zone.local(standing.until)
    return f"It resets on {at:%Y-%m-%d} at {at:%H:%M} {zone.name}, in {duration_text(standing.until - now)}."


def _how_to_go_on(standing: PlanStanding) -> str:
    budget = standing.budget
    if budget.layer == "admin":
        return "Before that, only the administrator can allow more."
    name = quoted(budget.name)
    change = f"set {name} --percent N" if standing.used is not None and standing.used < FULL else f"remove {name}"
    if standing.reason == "overage":
        change = f"set {name} --on-overage allow"
    return f"To go on before that, run `acp-proxy budget {change}` and start the agent again."

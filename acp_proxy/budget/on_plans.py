"""How budgets on plans stand for one user, for people and for programs. What is not known is said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from acp_proxy.core.budget.plan_limits import PlanBudget, PlanStanding, binding, standing_of
from acp_proxy.core.plans import FULL, PlanState
from acp_proxy.core.scope import DIMENSIONS, Dimension, Subject
from acp_proxy.text import table
from acp_proxy.text.figures import clean
from acp_proxy.text.plans import time_text, used_text, window_name
from acp_proxy.text.table import Column
from acp_proxy.text.times import Zone, rfc3339_or_none

if TYPE_CHECKING:
    from acp_proxy.ledger.budgets import BudgetReader

UNKNOWN = "not known: it refuses nobody"
_UNCHOSEN: tuple[Dimension, ...] = ("agent", "model")  # of who has not prompted yet
_ANY = ""


def standings(ledger: BudgetReader, budgets: Sequence[PlanBudget], own: Subject, now: int) -> list[PlanStanding]:
    """One for each budget that is about this user, and each agent that told of a plan; without any, one of none."""
    if not budgets:
        return []
    states = ledger.plans(own.organisation, own.user)
    told = sorted({state.agent for state in states})
    found: list[PlanStanding] = []
    for budget in budgets:
        if not _is_about(budget, own):
            continue
        agents = [agent for agent in told if budget.scope.accepts("agent", agent)] or [_ANY]
        found += [
            standing_of(budget, own.user, agent, [state for state in states if state.agent == agent], now)
            for agent in agents
        ]
    return found


def of_everybody(budgets: Iterable[PlanBudget], states: Sequence[PlanState], now: int) -> Iterator[PlanStanding]:
    """Of each user and agent that told of a plan, as far as a scope is about these two."""
    whose = sorted({(state.user, state.agent) for state in states})
    for budget in budgets:
        for user, agent in whose:
            if budget.scope.accepts("user", user) and budget.scope.accepts("agent", agent):
                theirs = [state for state in states if (state.user, state.agent) == (user, agent)]
                yield standing_of(budget, user, agent, theirs, now)


def check(ledger: BudgetReader, budgets: Sequence[PlanBudget], subject: Subject, now: int) -> PlanStanding | None:
    """What would refuse a prompt of this subject; None where nothing does, as far as its agent and model are known."""
    asked = [budget for budget in budgets if budget.matches(subject)]
    states = [each for each in ledger.plans(subject.organisation, subject.user) if each.agent == subject.agent]
    return binding(standing_of(budget, subject.user, subject.agent, states, now) for budget in asked) if asked else None


def _is_about(budget: PlanBudget, own: Subject) -> bool:
    return all(name in _UNCHOSEN or budget.scope.accepts(name, own.of(name)) for name in DIMENSIONS)


def described(standing: PlanStanding) -> dict[str, object]:
    """As in the JSON of `budget list` and of a status. `used` is a fraction, null where it is not known."""
    budget = standing.budget
    return {
        "name": budget.name,
        "scope": budget.scope.texts,
        "plan": budget.window,
        "percent": budget.percent,
        "mode": budget.mode,
        "on_overage": budget.on_overage,
        "agent": standing.agent or None,
        "used": None if standing.used is None else standing.used / FULL,
        "decision": standing.decision,
        "why": standing.reason,
        "until": rfc3339_or_none(standing.until),
    }


def in_words(budget: PlanBudget) -> str:
    """`80 % of a plan's five_hour, nothing paid beside it, enforce`."""
    unpaid = ", nothing paid beside it" if budget.on_overage == "deny" else ""
    return f"{budget.percent} % of a plan's {clean(budget.window)}{unpaid}, {budget.mode}"


def plain(found: Sequence[PlanStanding], now: int, zone: Zone) -> str:
    return table.plain(_columns(found, now, zone), list(_notes(found)))


def coloured(found: Sequence[PlanStanding], now: int, zone: Zone, width: int, environ: Mapping[str, str]) -> str:
    return table.coloured(_columns(found, now, zone), list(_notes(found)), None, width, environ)


def _columns(found: Sequence[PlanStanding], now: int, zone: Zone) -> list[Column]:
    budgets = [standing.budget for standing in found]
    return [
        Column("budget", [clean(budget.name) for budget in budgets], right=False, name=True),
        Column("agent", [clean(each.agent.rpartition("/")[2]) or "-" for each in found], right=False, name=True),
        Column("mode", [budget.mode for budget in budgets], right=False, spare=1),
        Column("window", [window_name(budget.window) for budget in budgets], right=False),
        Column("used", [used_text(standing.used) for standing in found], levels=[_level(each) for each in found]),
        Column("limit", [f"{budget.percent} %" for budget in budgets]),
        Column("prompts", [_prompts(standing) for standing in found], right=False),
        Column("resets", [_resets(standing, now, zone) for standing in found], right=False, spare=2),
    ]


def _prompts(standing: PlanStanding) -> str:
    words = {"allow": "go", "warn": "go, with a warning", "shadow_deny": "go", "deny": "refused"}[standing.decision]
    return "refused: overage" if standing.reason == "overage" and standing.decision == "deny" else words


def _resets(standing: PlanStanding, now: int, zone: Zone) -> str:
    at = standing.until or (standing.state.told.resets_at if standing.state else None)
    return "-" if at is None else time_text(at, now, zone)


def _level(standing: PlanStanding) -> str:
    return {"allow": "", "deny": "red"}.get(standing.decision, "orange")


def _notes(found: Iterable[PlanStanding]) -> Iterator[str]:
    for standing in found:
        if standing.used is None and standing.reason is None:
            whose = f" with {clean(standing.agent)}" if standing.agent else ""
            yield f'How much of budget "{clean(standing.budget.name)}" is used{whose} is {UNKNOWN}.'

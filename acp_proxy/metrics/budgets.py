"""Metrics of budgets and of those who are told, as `acp-proxy budget list` has them. Pure.

Of a budget `per` user, team … the one with the least left is shown: where it is, somebody stops first. One on a plan
counts in percent of the plan's window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from acp_proxy.config.budgets import FLAG
from acp_proxy.core.budget import Budget, Layer, Standing
from acp_proxy.core.budget.plan_limits import PlanBudget, PlanStanding, ends_at
from acp_proxy.core.money import COUNTED, NANO, is_money
from acp_proxy.core.plans import FULL
from acp_proxy.ledger.notices import RESULTS
from acp_proxy.ledger.sums.tallies import OTHER
from acp_proxy.metrics.exposition import Family, Values
from acp_proxy.metrics.readings import Readings

_PERCENT = "percent"  # the unit of a budget on a plan
_DECISIONS = ("allow", "warn", "deny", "cancel", "grant", "shadow_deny", "fail_open", "fail_closed")
_Names = dict[tuple[Layer, str], str]  # labels by layer and name

_GAUGES: tuple[tuple[str, Callable[[Standing], int], str], ...] = (
    ("limit", lambda standing: standing.account.limit, "What a budget allows; grants come on top."),
    ("granted", lambda standing: standing.granted, "What grants that hold now allow on top of the limit."),
    ("spent", lambda standing: standing.spent, "What is spent of a budget in its window."),
    ("held", lambda standing: standing.held, "What running turns may still take from a budget."),
)


def budgets(readings: Readings) -> Iterator[Family]:
    """A budget without a series here has no limit on this machine."""
    names = _names((*readings.budgets, *readings.plan_budgets))
    least = _with_least_left(readings.standings, names)
    plans = _fullest(readings.plan_standings, names)
    for what, amount_of, text in _GAUGES:
        yield Family(
            f"acp_proxy_budget_{what}",
            "gauge",
            text,
            ("budget", "unit"),
            [
                ((name, standing.account.unit), _nano(amount_of(standing), standing.account.unit))
                for name, standing in least.items()
            ]
            + [((name, _PERCENT), amount) for name, standing in plans.items() for amount in _of_plan(what, standing)],
            nano=True,
        )
    modes = [
        ((name, standing.account.budget.mode, standing.account.budget.window.text), 1)
        for name, standing in least.items()
    ]
    modes += [((name, standing.budget.mode, standing.budget.window), 1) for name, standing in plans.items()]
    text = "What a budget does where it is spent, and over which time it counts."
    yield Family("acp_proxy_budget_info", "gauge", text, ("budget", "mode", "window"), modes)
    resets = [((name,), end) for name, standing in least.items() if (end := standing.account.resets_at) is not None]
    resets += [((name,), ends_at(standing.state)) for name, standing in plans.items() if standing.state is not None]
    yield Family(
        "acp_proxy_budget_reset_timestamp_seconds",
        "gauge",
        "When a budget resets; none for one that never does, or only as time passes.",
        ("budget",),
        resets,
        nano=True,
    )
    yield _decisions(readings, names)
    yield _overshoots(readings, names)
    yield _notifications(readings)


def _decisions(readings: Readings, names: _Names) -> Family:
    counts: Counter[Values] = Counter({(name, decision): 0 for name in names.values() for decision in _DECISIONS})
    for each in readings.decisions:
        counts[names.get((each.layer, each.budget), OTHER), each.decision] += each.count
    text = "What budgets decided about prompts. Those of budgets that this machine does not have are other."
    return Family("acp_proxy_budget_decisions_total", "counter", text, ("budget", "decision"), counts.items())


def _overshoots(readings: Readings, names: _Names) -> Family:
    amounts: Counter[Values] = Counter(
        {(names[budget.layer, budget.name], budget.limit.unit): 0 for budget in readings.budgets}
    )
    units = {unit for _, unit in amounts} | {*COUNTED}
    for each in readings.overshoots:
        unit = each.unit if each.unit in units else readings.labels.of("currency", each.unit)
        amounts[names.get((each.layer, each.budget), OTHER), unit] += _nano(each.amount, each.unit)
    text = "How far turns went beyond what budgets allow."
    return Family("acp_proxy_budget_overshoot_total", "counter", text, ("budget", "unit"), amounts.items(), nano=True)


def _notifications(readings: Readings) -> Family:
    counts: Counter[Values] = Counter({(name, result): 0 for name in readings.channels for result in RESULTS})
    for each in readings.deliveries:
        counts[each.channel if each.channel in readings.channels else OTHER, each.result] += each.count
    text = "Attempts to tell people of notices. Those of channels that this machine does not have are other."
    return Family("acp_proxy_notifications_total", "counter", text, ("channel", "result"), counts.items())


def _names(budgets: Iterable[Budget | PlanBudget]) -> _Names:
    """The name, with the layer where another file has a budget of the same name."""
    found: _Names = {("flag", FLAG): FLAG}
    for budget in budgets:
        taken = any(name == budget.name and layer != budget.layer for layer, name in found)
        found[budget.layer, budget.name] = f"{budget.name} ({budget.layer})" if taken else budget.name
    return found


def _fullest(standings: Iterable[PlanStanding], names: _Names) -> dict[str, PlanStanding]:
    """Of several users the one that is stopped first; nothing is known of the others that are left out."""
    fullest: dict[str, PlanStanding] = {}
    for standing in standings:
        name = names[standing.budget.layer, standing.budget.name]
        if standing.used is not None and (name not in fullest or standing.used > (fullest[name].used or 0)):
            fullest[name] = standing
    return fullest


def _of_plan(what: str, standing: PlanStanding) -> Iterator[int]:
    """In nano-percent of the plan's window; nothing is granted or held of one."""
    if what == "limit":
        yield standing.budget.percent * NANO
    elif what == "spent" and standing.used is not None:
        yield standing.used * 100 * (NANO // FULL)


def _with_least_left(standings: Iterable[Standing], names: _Names) -> dict[str, Standing]:
    least: dict[str, Standing] = {}
    for standing in standings:
        name = names[standing.account.budget.layer, standing.account.budget.name]
        if name not in least or standing.left < least[name].left:
            least[name] = standing
    return least


def _nano(amount: int, unit: str) -> int:
    return amount if is_money(unit) else amount * NANO

"""How budgets stand, what they decided, and what spends them."""

from __future__ import annotations

from grafana_foundation_sdk.builders import bargauge, table, timeseries
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models import dashboard as model

from grafana.build.page import Page, Row, labels_variable
from grafana.build.panels import BUDGET_LEVELS, NONE_IS_GOOD, RATIO, Looks, Query, bars, figure, lines, ranking
from grafana.build.promql import gained, gained_ahead, present
from grafana.build.spend import dearest
from grafana.build.tables import Column, listing

_CHOSEN = 'budget=~"$budget"'
LIMIT, GRANTED, SPENT, HELD = (
    f"acp_proxy_budget_{name}{{{_CHOSEN}}}" for name in ("limit", "granted", "spent", "held")
)
ALLOWED = f"({LIMIT} + {GRANTED})"
RESET = f"acp_proxy_budget_reset_timestamp_seconds{{{_CHOSEN}}}"
USED = f"{SPENT} / ({ALLOWED} > 0)"
# What budgets did that the exporter's configuration lacks is `other`, which jumps when one is renamed.
_NAMED = f'{_CHOSEN}, budget!="other"'
_SHADOW = f'acp_proxy_budget_info{{{_CHOSEN}, mode="shadow"}}'

_LEVELS = "Yellow from 75 %, orange from 90 %, red where all is spent."
_MODES = "Only budgets in mode enforce refuse; those in mode shadow tell nobody."
_SPENT = (
    "Spent is what turns that ended cost, held is what running ones may still cost. Of a budget per user, team … the "
    "one with the least left is shown. What is allowed is the limit and the grants that hold now."
)
_PLANS = "max by (agent, window) (acp_proxy_plan_used_ratio)"
_PLAN_OF = "Of several users the one is shown whose window is fullest."
_OTHERS = "Without budgets that the configuration of the exporter lacks."
_FORECAST = (
    "Spent now, and the pace of the time chosen above until the reset. A window younger than that time is taken to be "
    "as old. Budgets without a reset (rolling, total) are not here."
)


def budgets() -> Page:
    return Page(
        "Budgets",
        "How budgets stand, what they decided, and what spends them.",
        since="now-7d",
        rows=(
            _figures(),
            Row(7, ((24, _all()),)),
            Row(8, ((8, _used()), (16, _used_over_time()))),
            Row(8, ((8, _forecast()), (9, _decisions()), (7, _overshoot()))),
            Row(
                9,
                ((8, dearest("team", "Teams")), (8, dearest("agent", "Agents")), (8, dearest("model", "Models"))),
                "Spend in the time range, of all budgets or none, in the chosen currency",
            ),
            Row(8, ((8, _plans()), (16, _plans_over_time())), "Windows of plans, whatever budget is chosen"),
        ),
        variables=(labels_variable("budget", "Budget", "label_values(acp_proxy_budget_limit, budget)"), _pace()),
    )


def forecast() -> str:
    """What will be spent at the reset: now, and the growth within this window during the last `$pace` seconds."""
    same_window = f"and on (job, instance, budget) ({RESET} offset ${{pace}}s == {RESET})"
    growth = f"({SPENT} - ({SPENT} offset ${{pace}}s {same_window} or {SPENT} * 0))"
    return f"{SPENT} + {growth} / $pace * on (job, instance, budget) group_left () ({RESET} - time())"


def _pace() -> builders.CustomVariable:
    options = {"6 hours": "21600", "1 day": "86400", "7 days": "604800"}
    return (
        builders.CustomVariable("pace")
        .label("Pace of")
        .values(", ".join(f"{text} : {seconds}" for text, seconds in options.items()))
        .options(
            [model.VariableOption(selected=text == "1 day", text=text, value=value) for text, value in options.items()]
        )
        .current(model.VariableOption(selected=True, text="1 day", value="86400"))
    )


def _figures() -> Row:
    def decided(decisions: str) -> Query:
        counter = f'acp_proxy_budget_decisions_total{{{_NAMED}, decision=~"{decisions}"}}'
        return Query(gained(counter), "decisions", at_end=True)

    in_force = f"({USED} > 0.9) unless on (job, instance, budget) {_SHADOW}"
    close = Query(f"count({in_force}) or vector(0)", "budgets", at_end=True)
    bad, good = Looks(levels=NONE_IS_GOOD, none="none"), Looks(none="none")
    return Row(
        4,
        (
            (
                4,
                figure(
                    "Budgets",
                    "With a limit, in the configuration of the exporter.",
                    Query(f"count({LIMIT})", "budgets", True),
                    good,
                ),
            ),
            (4, figure("Above 90 %", "Of what a window allows, now. Without budgets in shadow mode.", close, bad)),
            (
                4,
                figure(
                    "Refused",
                    f"Prompts not let through in the time range, also where the ledger could not be asked. {_OTHERS}",
                    decided("deny|fail_closed"),
                    bad,
                ),
            ),
            (4, figure("Stopped", "Turns that were cancelled when they passed a limit.", decided("cancel"), bad)),
            (4, figure("Granted", "Grants given in the time range.", decided("grant"), good)),
            (
                4,
                figure(
                    "Unchecked",
                    "Prompts let through since the ledger could not be asked in time.",
                    decided("fail_open"),
                    bad,
                ),
            ),
        ),
    )


def _all() -> table.Panel:
    one = "by (budget, unit)"
    return listing(
        "All budgets",
        f"Now. {_SPENT} Left is what of it neither spent nor held took. {_LEVELS} {_MODES} At reset: {_FORECAST}",
        (
            f"max {one} ({LIMIT})",
            f"max {one} ({GRANTED})",
            f"max {one} ({SPENT})",
            f"max {one} ({HELD})",
            f"min {one} ({ALLOWED} - {SPENT} - {HELD})",
            f"max {one} ({USED})",
            f"max {one} (({forecast()}) / ({ALLOWED} > 0))",
            f"min by (budget) ({RESET} - time())",
            f"max by (budget, mode, window) (acp_proxy_budget_info{{{_CHOSEN}}})",
        ),
        (
            Column("Budget", "budget"),
            Column("Mode", "mode", width=80),
            Column("Window", "window", width=95),
            Column("Unit", "unit", width=75),
            Column("Limit", "A", "locale"),
            Column("Granted", "B", "locale", width=110),
            Column("Spent", "C", "locale"),
            Column("Held", "D", "locale", width=110),
            Column("Left", "E", "locale"),
            Column("Used", "F", RATIO, 1, width=90, levels=BUDGET_LEVELS),
            Column("At reset", "G", RATIO, 0, width=100, levels=BUDGET_LEVELS),
            Column("Resets in", "H", "s", 1, width=110),
        ),
        by="Used",
    )


def _used() -> bargauge.Panel:
    query = Query(f"sort_desc(max by (budget) ({USED}))", "{{budget}}", at_end=True)
    look = Looks(RATIO, decimals=1, levels=BUDGET_LEVELS, lowest=0, highest=1)  # 99.6 % is not all of it yet
    return ranking("Used", f"Spent of what is allowed, now. {_LEVELS}", query, look)


def _used_over_time() -> timeseries.Panel:
    about = f"Spent of what is allowed. It falls to 0 when a window begins anew. {_LEVELS}"
    return lines(
        "Used over time", about, (Query(f"max by (budget) ({USED})", "{{budget}}"),), Looks(RATIO, levels=BUDGET_LEVELS)
    )


def _plans() -> bargauge.Panel:
    query = Query(f"sort_desc({_PLANS})", "{{agent}} {{window}}", at_end=True)
    look = Looks(RATIO, decimals=0, levels=BUDGET_LEVELS, lowest=0, highest=1)
    return ranking("Plans, used", f"Of each window of a plan, as its agent told it last. {_PLAN_OF}", query, look)


def _plans_over_time() -> timeseries.Panel:
    query = Query(_PLANS, "{{agent}} {{window}}")
    about = f"It falls when a window is reset, and has no value until an agent tells of the next one. {_PLAN_OF}"
    return lines("Plans, used over time", about, (query,), Looks(RATIO, levels=BUDGET_LEVELS))


def _forecast() -> bargauge.Panel:
    query = Query(f"sort_desc(max by (budget) (({forecast()}) / ({ALLOWED} > 0)))", "{{budget}}", at_end=True)
    look = Looks(RATIO, decimals=0, levels=BUDGET_LEVELS, lowest=0, highest=1.5)
    return ranking("Used at the reset, forecast", f"Of what is allowed now, at the reset. {_FORECAST}", query, look)


def _decisions() -> timeseries.Panel:
    words = (
        "allow, warn: let through. deny: refused. shadow_deny: would have been refused. cancel: stopped in mid-turn. "
        f"grant: more was given. fail_open, fail_closed: the ledger could not be asked in time. {_OTHERS}"
    )
    counter = f"acp_proxy_budget_decisions_total{{{_NAMED}}}"
    return bars(
        "Decisions",
        words,
        Query(present(gained_ahead(counter, ["decision"])), "{{decision}}"),
        Looks(step="1h"),
        wide=False,
    )


def _overshoot() -> table.Panel:
    counter = f"acp_proxy_budget_overshoot_total{{{_NAMED}}}"
    return listing(
        "Overshoot",
        "By how much turns of the time range that were let through ended above what was allowed, each in the unit of "
        f"its budget. {_OTHERS}",
        (present(gained(counter, ["budget", "unit"])),),
        (
            Column("Budget", "budget"),
            Column("Above", "A", "locale", width=110),
            Column("Unit", "unit", width=75),
        ),
        by="Above",
    )

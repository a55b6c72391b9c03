"""How sessions go: what a turn costs, how long it takes, how it ends, how full the context gets."""

from __future__ import annotations

from grafana_foundation_sdk.builders import timeseries

from grafana.build.page import Page, Row
from grafana.build.panels import (
    CONTEXT_LEVELS,
    COST,
    ONE_COLOUR,
    RATIO,
    Looks,
    Query,
    bars,
    figure,
    heat,
    lines,
    ranking,
)
from grafana.build.promql import STEP, added, gained, gained_ahead, present, quantile, series, share
from grafana.build.spend import CACHE, COSTS, COUNTED, cache_hits

_TURN_COST = "Of turns that prompts began and whose cost is known."
_BUCKETS = "Read from a histogram: true to the width of its buckets."
_ENDINGS = "Of turns that prompts began. none: how it ended is not known."
_CONTEXT = "Of turns whose context and window are both known, from the agent or estimated."


def sessions() -> Page:
    return Page(
        "Sessions and cost",
        "What turns cost, how long they take, how they end, and how full their context is.",
        since="now-7d",
        rows=(_figures(), _costs(), _context(), _ends(), _durations()),
    )


def _figures() -> Row:
    cost, count = series("acp_proxy_turn_cost_sum"), series("acp_proxy_turn_cost_count")
    each = share(gained(cost, ["currency"]), gained(count, ["currency"]))
    median = quantile(0.5, gained(series("acp_proxy_turn_cost_bucket"), ["le", "currency"]))
    begun = gained(series("acp_proxy_sessions_total"))
    turns = gained(series("acp_proxy_turns_total", 'kind="turn"'))
    crowded = share(f"({gained(_ratio_count())} - {gained(_ratio_bucket('0.9'))})", gained(_ratio_count()))
    money = Looks(COST, decimals=3, none="nothing")
    return Row(
        4,
        (
            (3, figure("Sessions", "First seen in the time range.", _value(begun, "sessions"), Looks(none="none"))),
            (3, figure("Active now", "Sessions with a turn in the last 5 minutes.", _active(), Looks(none="none"))),
            (4, figure("Turns", "That prompts began, in the time range.", _value(turns, "turns"), Looks(none="none"))),
            (5, figure("Mean cost of a turn", _TURN_COST, _value(each, "{{currency}}"), money)),
            (5, figure("Median cost of a turn", f"{_TURN_COST} {_BUCKETS}", _value(median, "{{currency}}"), money)),
            (4, figure("Context above 90 %", f"Share of turns. {_CONTEXT}", _value(crowded, "turns"), _share())),
        ),
    )


def _costs() -> Row:
    buckets = gained(series("acp_proxy_turn_cost_bucket"), ["le"], STEP)
    spread = Query(buckets, "{{le}}")
    over_time = Query(present(gained_ahead(COSTS, ["agent", "currency"])), "{{agent}} {{currency}}")
    return Row(
        9,
        (
            (
                14,
                bars("Spend by agent", f"What the time of each bar cost. {COUNTED}", over_time, Looks(COST, step="1h")),
            ),
            (
                10,
                heat(
                    "Cost of turns, $currency",
                    f"In the chosen currency. {_TURN_COST}",
                    spread,
                    Looks("none", step="1h"),
                ),
            ),
        ),
    )


def _context() -> Row:
    spread = Query(gained(series("acp_proxy_context_used_ratio_bucket"), ["le"], STEP), "{{le}}")
    p90 = quantile(0.9, gained(series("acp_proxy_context_used_ratio_bucket"), ["le", "agent"]))
    over_time = quantile(0.9, gained(series("acp_proxy_context_used_ratio_bucket"), ["le", "agent"], STEP))
    look = Looks(RATIO, decimals=0, levels=CONTEXT_LEVELS, lowest=0, highest=1, none="unknown")
    curve = Looks(RATIO, levels=CONTEXT_LEVELS, lowest=0, highest=1, step="1h")
    nine = "How full the context is at the end of a turn: nine of ten turns stay below."
    levels = "Yellow from 75 %, orange from 90 %, red above 95 %."
    return Row(
        9,
        (
            (
                9,
                heat(
                    "Context used",
                    f"How full the context is at the end of turns. {_CONTEXT}",
                    spread,
                    Looks(RATIO, step="1h"),
                ),
            ),
            (
                6,
                ranking(
                    "Context by agent, p90",
                    f"{nine} {levels} {_CONTEXT} {_BUCKETS}",
                    Query(f"sort_desc({p90})", "{{agent}}", True),
                    look,
                ),
            ),
            (
                9,
                lines(
                    "Context over time, p90",
                    f"{nine} {levels} {_CONTEXT} {_BUCKETS}",
                    (Query(over_time, "{{agent}}"),),
                    curve,
                    sparse=True,
                ),
            ),
        ),
    )


def _ends() -> Row:
    turns = series("acp_proxy_turns_total")
    prompted = series("acp_proxy_turns_total", 'kind="turn"')
    reasons = Query(present(gained_ahead(prompted, ["stop_reason"])), "{{stop_reason}}")
    kinds = Query(f"sort_desc({present(gained(turns, ['kind']))})", "{{kind}}", at_end=True)
    clients = Query(
        f"sort_desc({present(gained(series('acp_proxy_sessions_total'), ['client']))})", "{{client}}", at_end=True
    )
    count = Looks(levels=ONE_COLOUR, lowest=0)
    kind_words = (
        "turn: a prompt began it. autonomous: work without a prompt. subagent: paid by the turn that called it. "
        "compaction: the context was shortened unasked. side: what an agent used beyond the turn's own calls."
    )
    return Row(
        8,
        (
            (12, bars("Turns by stop reason", _ENDINGS, reasons, Looks(step="1h"))),
            (6, ranking("Rows by kind", kind_words, kinds, count)),
            (6, ranking("Sessions by client", "Sessions first seen in the time range.", clients, count)),
        ),
    )


def _durations() -> Row:
    def panel(q: float, name: str) -> timeseries.Panel:
        buckets = gained(series("acp_proxy_turn_duration_seconds_bucket"), ["le", "agent"], STEP)
        curves = (Query(quantile(q, buckets), "{{agent}}"),)
        about = f"From prompt to answer, with the time that people took to permit. {_BUCKETS}"
        return lines(f"Duration of turns, {name}", about, curves, Looks("s", step="1h"), sparse=True)

    hits = Query(cache_hits(STEP, "model"), "{{model}}")
    ratio = Looks(RATIO, lowest=0, highest=1, step="1h")
    return Row(
        8,
        (
            (8, panel(0.5, "median")),
            (8, panel(0.95, "p95")),
            (8, lines("Cache hits by model", CACHE, (hits,), ratio, sparse=True)),
        ),
    )


def _value(expression: str, legend: str) -> Query:
    return Query(expression, legend, at_end=True)


def _active() -> Query:
    return _value(added(series("acp_proxy_sessions_active")), "sessions")


def _share() -> Looks:
    return Looks(RATIO, decimals=1, none="unknown")


def _ratio_count() -> str:
    return series("acp_proxy_context_used_ratio_count")


def _ratio_bucket(le: str) -> str:
    return series("acp_proxy_context_used_ratio_bucket", f'le="{le}"')

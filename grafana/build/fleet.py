"""Where the money goes: all teams, agents and models at a glance."""

from __future__ import annotations

from grafana_foundation_sdk.builders import table

from grafana.build.page import Page, Row
from grafana.build.panels import COST, RATIO, TOKENS, Looks, Query, bars, figure, lines
from grafana.build.promql import STEP, added, gained, gained_ahead, present, series
from grafana.build.spend import (
    CACHE,
    COSTS,
    COUNTED,
    TOKEN_BARS,
    UNPRICED,
    USED,
    cache_hits,
    dearest,
    projected,
    sources,
    spent,
    this_month,
)
from grafana.build.tables import Column, listing


def fleet() -> Page:
    return Page(
        "Fleet",
        "What coding agents cost, by team, agent and model.",
        since="now-7d",
        rows=(_figures(), _spend(), _rankings(), _tokens()),
    )


def _figures() -> Row:
    turns = Query(gained(series("acp_proxy_turns_total", 'kind="turn"')), "turns", at_end=True)
    used = Query(gained(USED), "tokens", at_end=True)
    active = Query(added(series("acp_proxy_sessions_active")), "sessions", at_end=True)
    return Row(
        4,
        (
            (5, spent()),
            (5, this_month()),
            (5, projected()),
            (3, figure("Turns", "Turns that prompts began, in the time range.", turns, Looks(none="none"))),
            (3, figure("Tokens", "Of all types, also estimated, in the time range.", used, Looks(TOKENS, none="none"))),
            (3, figure("Active sessions", "With a turn in the last 5 minutes.", active, Looks(none="none"))),
        ),
    )


def _spend() -> Row:
    over_time = Query(present(gained_ahead(COSTS, ["model", "currency"])), "{{model}} {{currency}}")
    about = f"What the time of each bar cost. {COUNTED}"
    return Row(9, ((15, bars("Spend by model", about, over_time, Looks(COST, step="1h"))), (9, sources())))


def _rankings() -> Row:
    return Row(9, ((10, _models()), (7, dearest("team", "Teams")), (7, dearest("agent", "Agents"))))


def _models() -> table.Panel:
    return listing(
        "Models",
        "What each model cost and used in the time range. A model without a cost has no known price, or "
        f"is paid in another currency. Tokens are those of all currencies. {COUNTED}",
        (present(gained(COSTS, ["model", "currency"])), present(gained(USED, ["model"]))),
        (
            Column("Model", "model", leads="Sessions and cost"),
            Column("Cost", "A", "none", 2, 100),
            Column("Currency", "currency", width=90),
            Column("Tokens", "B", TOKENS, width=100),
        ),
        by="Cost",
    )


def _tokens() -> Row:
    by_type = Query(gained_ahead(USED, ["type"]), "{{type}}")
    hits = Query(cache_hits(STEP, "agent"), "{{agent}}")
    unpriced = Query(present(gained_ahead(series("acp_proxy_unpriced_tokens_total"), ["model"])), "{{model}}")
    types = "Every token is of one type; input is what no cache had. Estimated ones are among them."
    share = Looks(RATIO, lowest=0, highest=1, step="1h")
    return Row(
        8,
        (
            (8, bars("Tokens by type", types, by_type, TOKEN_BARS, points=60, wide=False)),
            (8, lines("Cache hits", CACHE, (hits,), share, sparse=True)),
            (8, bars("Without a price", UNPRICED, unpriced, TOKEN_BARS, points=60, wide=False)),
        ),
    )

"""What several dashboards show of money and tokens, and the sentences that tell what is counted."""

from __future__ import annotations

from grafana_foundation_sdk.builders import bargauge, stat

from grafana.build.panels import COST, ONE_COLOUR, TOKENS, Looks, Query, figure, ranking
from grafana.build.promql import gained, month_end, present, series, share, top

COSTS = series("acp_proxy_cost_total")
USED = series("acp_proxy_tokens_total")

COUNTED = (
    "Counts what agents say they cost, what tokens cost by the price table, and estimates. Tokens without a known "
    "price cost nothing here."
)
UNPRICED = "Tokens of models whose price is not known. Their cost is missing in every sum of money."
CACHE = (
    "How much of the input was read from a cache: cached_read / (input + cached_read + cached_write). Agents that "
    "report no cache show 0."
)

MONEY = Looks(COST, none="nothing")
MONEY_BARS = Looks(COST, levels=ONE_COLOUR, lowest=0, none="nothing")
THIS_MONTH = Looks(COST, none="nothing", time="now/M")
TOKEN_BARS = Looks(TOKENS, step="1h", none="none")


def spent() -> stat.Panel:
    return figure("Spent", f"In the time range. {COUNTED}", _with_currency(gained(COSTS, ["currency"])), MONEY)


def this_month() -> stat.Panel:
    about = f"Since the first of the month. {COUNTED}"
    return figure("This month so far", about, _with_currency(gained(COSTS, ["currency"])), THIS_MONTH)


def projected() -> stat.Panel:
    about = f"This month so far, and the pace of the last 7 days for what is left of it. {COUNTED}"
    return figure("Month end, projected", about, _with_currency(month_end(COSTS, ["currency"])), THIS_MONTH)


def dearest(label: str, title: str) -> bargauge.Panel:
    expression = top(10, present(gained(COSTS, [label, "currency"])))
    about = f"The ten that cost most in the time range. {COUNTED}"
    return ranking(title, about, Query(expression, f"{{{{{label}}}}} {{{{currency}}}}", at_end=True), MONEY_BARS)


def sources() -> bargauge.Panel:
    about = (
        "agent: the agent says its cost. computed: tokens times prices. estimated: the agent reports no tokens, they "
        "are guessed from the length of texts; or a price is not certain; or a turn's proxy was killed, and this is "
        "what it held. Tokens without a known price are not here."
    )
    expression = f"sort_desc({present(gained(COSTS, ['source', 'currency']))})"
    return ranking("How costs are known", about, Query(expression, "{{source}} {{currency}}", at_end=True), MONEY_BARS)


def cache_hits(over: str, *by: str) -> str:
    """The share of input that was read from a cache, in the time `over`."""
    read = series("acp_proxy_tokens_total", 'type="cached_read"')
    all_input = series("acp_proxy_tokens_total", 'type=~"input|cached_read|cached_write"')
    return share(gained(read, by, over), gained(all_input, by, over))


def _with_currency(expression: str) -> Query:
    return Query(expression, "{{currency}}", at_end=True)

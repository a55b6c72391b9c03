"""What each team has to pay: a month by team, agent and model, for invoices and their readers."""

from __future__ import annotations

from grafana_foundation_sdk.builders import bargauge, table

from grafana.build.page import Page, Row
from grafana.build.panels import COST, RATIO, TOKENS, Levels, Looks, Query, bars, figure, ranking
from grafana.build.promql import gained, gained_ahead, month_end, present, series, share
from grafana.build.spend import COSTS, COUNTED, MONEY_BARS, UNPRICED, USED, projected, spent
from grafana.build.tables import Column, listing

_ESTIMATED = series("acp_proxy_cost_total", 'source="estimated"')
_SEEN: Levels = (("red", None), ("orange", 0.75), ("yellow", 0.9), ("green", 0.95))
_EXACT = (
    "Exact: the counters at the end of the time range less those at its beginning. A time range that began before the "
    "first scrape counts from that scrape."
)


def chargeback() -> Page:
    return Page(
        "Team chargeback",
        "What each team used and cost in a month, and what the month will have cost.",
        since="now/M",
        rows=(
            _figures(),
            _days(),
            _teams(),
            Row(8, ((24, _users()),)),
            Row(12, ((24, _detail()),)),
            Row(5, ((12, _bills()), (12, _coverage())), "How much was metered, whatever team is chosen"),
        ),
        refresh="5m",
    )


def _figures() -> Row:
    estimated = Query(share(gained(_ESTIMATED, ["currency"]), gained(COSTS, ["currency"])), "{{currency}}", True)
    unpriced = Query(gained(series("acp_proxy_unpriced_tokens_total")), "tokens", at_end=True)
    guess = (
        "Which part of the money is estimated: of agents that report no tokens, at prices that are not certain, or "
        "what turns held whose proxy was killed. Not for an invoice without a word."
    )
    return Row(
        4,
        (
            (6, spent()),
            (6, projected()),
            (6, figure("Estimated", guess, estimated, Looks(RATIO, decimals=1, none="nothing"))),
            (6, figure("Tokens without a price", UNPRICED, unpriced, Looks(TOKENS, none="none"))),
        ),
    )


def _days() -> Row:
    daily = Query(present(gained_ahead(COSTS, ["team", "currency"])), "{{team}} {{currency}}")
    expected = Query(f"sort_desc({month_end(COSTS, ['team', 'currency'])})", "{{team}} {{currency}}", at_end=True)
    about = f"This month so far, and the pace of the last 7 days for what is left of it. {COUNTED}"
    look = Looks(COST, levels=MONEY_BARS.levels, lowest=0, none="nothing", time="now/M")
    return Row(
        10,
        (
            (
                16,
                bars(
                    "Spend by day",
                    "Days of the dashboard's time zone; of UTC where that is the browser's and the time range is "
                    f"absolute. {COUNTED}",
                    daily,
                    Looks(COST, step="1d"),
                    points=400,
                ),
            ),
            (8, ranking("Month end by team, projected", about, expected, look)),
        ),
    )


def _bills() -> bargauge.Panel:
    ratio = "sort_desc(min by (provider, of) (acp_proxy_capture_ratio))"
    about = (
        "How much of a provider's bill went through the proxies, in tokens and in money, by the last comparison that "
        "was kept (acp-proxy reconcile --keep). Red below 75 %, green from 95 %."
    )
    look = Looks(RATIO, decimals=0, levels=_SEEN, lowest=0, highest=1, none="no bill was kept")
    return ranking("Bills, metered", about, Query(ratio, "{{provider}}, {{of}}", at_end=True), look)


def _coverage() -> bargauge.Panel:
    about = (
        "How much of what each agent used in the last 30 days went through the proxies, in tokens, and how much of it "
        "acp-proxy import found beside them. Red below 75 %, green from 95 %."
    )
    ratio = "sort_desc(min by (agent) (acp_proxy_coverage_ratio))"
    look = Looks(RATIO, decimals=0, levels=_SEEN, lowest=0, highest=1, none="nothing was imported")
    return ranking("Coverage by agent", about, Query(ratio, "{{agent}}", at_end=True), look)


def _teams() -> Row:
    return Row(8, ((12, _costs()), (12, _usage())))


def _costs() -> table.Panel:
    by = ["team", "currency"]
    sources = (
        present(gained(series("acp_proxy_cost_total", f'source="{source}"'), by)) for source in ("agent", "computed")
    )
    return listing(
        "Cost by team",
        f"What each team cost in the time range, and how it is known: said by the agent, computed from tokens, or "
        f"estimated. {COUNTED} {_EXACT}",
        (present(gained(COSTS, by)), *sources, present(gained(_ESTIMATED, by))),
        (
            Column("Team", "team", leads="Fleet"),
            Column("Cost", "A", "none", 2, 95),
            Column("Currency", "currency", width=80),
            Column("By agents", "B", "none", 2, 95),
            Column("Computed", "C", "none", 2, 95),
            Column("Estimated", "D", "none", 2, 95),
        ),
        by="Cost",
    )


def _usage() -> table.Panel:
    def of(types: str) -> str:
        return gained(series("acp_proxy_tokens_total", f'type=~"{types}"'), ["team"])

    return listing(
        "Usage by team",
        "Turns are those that prompts began. Output is with thought, cache is read and written; estimated tokens are "
        f"among them. {_EXACT}",
        (
            gained(series("acp_proxy_turns_total", 'kind="turn"'), ["team"]),
            of("input"),
            of("cached_read|cached_write"),
            of("output|thought"),
            gained(USED, ["team"]),
        ),
        (
            Column("Team", "team"),
            Column("Turns", "A", "locale", width=80),
            Column("Input", "B", TOKENS, width=95),
            Column("Cache", "C", TOKENS, width=95),
            Column("Output", "D", TOKENS, width=95),
            Column("Tokens", "E", TOKENS, width=95),
        ),
        by="Tokens",
    )


def _users() -> table.Panel:
    """Series without the label are left out: they would be one line without a name."""
    by = ["user", "team", "currency"]
    return listing(
        "Cost by user",
        "What each user cost in the time range. Nothing is here without metrics.user_label in the configuration of "
        f"the exporter. {COUNTED} {_EXACT}",
        (
            present(gained(series("acp_proxy_cost_total", 'user!=""'), by)),
            present(gained(series("acp_proxy_tokens_total", 'user!=""'), ["user", "team"])),
        ),
        (
            Column("User", "user"),
            Column("Team", "team"),
            Column("Cost", "A", "none", 2, 120),
            Column("Currency", "currency", width=100),
            Column("Tokens", "B", TOKENS, width=120),
        ),
        by="Cost",
    )


def _detail() -> table.Panel:
    by = ["team", "agent", "model", "source", "currency"]
    return listing(
        "Lines",
        "One line for each team, agent, model and way in which the cost is known; Inspect > Data downloads them. "
        f"{COUNTED} {_EXACT}",
        (present(gained(COSTS, by)),),
        (
            Column("Team", "team"),
            Column("Agent", "agent", width=320),
            Column("Model", "model"),
            Column("Known from", "source", width=120),
            Column("Cost", "A", "none", 4, 120),
            Column("Currency", "currency", width=100),
        ),
        by="Cost",
    )

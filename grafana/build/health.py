"""Whether the proxies, the ledger and the exporter work, and whether what they count is whole."""

from __future__ import annotations

from grafana_foundation_sdk.builders import table

from grafana.build.page import Page, Row
from grafana.build.panels import NONE_IS_GOOD, RATIO, Levels, Looks, Query, bars, figure, lines
from grafana.build.promql import RATES, STEP, gained, gained_ahead, present, quantile, rate, series, share
from grafana.build.spend import TOKEN_BARS, UNPRICED, USED
from grafana.build.tables import Column, listing

_QUANTILES = ((0.5, "median"), (0.95, "p95"), (0.99, "p99"))
_BUCKETS = "Read from a histogram: true to the width of its buckets."
_LATE = "Proxies hand their counters to the ledger every 10 s while there is traffic, and at their end."
_OTHERS = "Without channels that the configuration of the exporter lacks."
_OURS = "and on (job, instance) acp_proxy_ledger_up"


def health() -> Page:
    return Page(
        "Proxy health",
        "Whether proxies, ledger and exporter work, and whether what they count is whole.",
        since="now-6h",
        money=False,
        rows=(_figures(), _relay(), _troubles(), _ledger(), _exporter(), _metering()),
    )


def _figures() -> Row:
    up = Query("min(acp_proxy_ledger_up)", "ledger", at_end=True)
    words = {"0": ("down", "red"), "1": ("up", "green")}
    waiting = Query("sum(acp_proxy_ledger_pending_entries)", "entries", at_end=True)
    age = Query("clamp_min(time() - min(acp_proxy_catalog_timestamp_seconds), 0)", "age", at_end=True)
    errors = Query(gained('acp_proxy_relay_errors_total{reason!="partly_read"}'), "errors", at_end=True)
    overflow = Query(gained("acp_proxy_label_overflow_total"), "values", at_end=True)
    days: Levels = (("green", None), ("yellow", 60 * 86400.0), ("orange", 120 * 86400.0))
    failed = Query(
        gained('acp_proxy_notifications_total{channel!="other", result="failed"}'), "notifications", at_end=True
    )
    bad = Looks(levels=NONE_IS_GOOD, none="none")
    return Row(
        4,
        (
            (
                4,
                figure(
                    "Ledger",
                    "Whether the exporter can read its ledger; of several exporters the worst.",
                    up,
                    Looks(words=words, none="no exporter"),
                ),
            ),
            (
                4,
                figure(
                    "Pending entries",
                    "Rows in journals on the exporter's machine that are not in the ledger yet.",
                    waiting,
                    Looks(levels=(("green", None), ("orange", 100.0))),
                ),
            ),
            (4, figure("Relay errors", "In the time range, without updates that were partly read.", errors, bad)),
            (4, figure("Notifications lost", f"Given up in the time range, after retries. {_OTHERS}", failed, bad)),
            (
                4,
                figure(
                    "Labels that overflowed",
                    'Names beyond the number that metrics keep apart; their figures are under "other".',
                    overflow,
                    bad,
                ),
            ),
            (
                4,
                figure(
                    "Age of the price table",
                    "Since the catalog was made; newer prices may be in a newer acp-proxy.",
                    age,
                    Looks("s", decimals=0, levels=days),
                ),
            ),
        ),
    )


def _relay() -> Row:
    buckets = rate("acp_proxy_relay_seconds_bucket", ["le", "direction"])
    latency = [Query(quantile(q, buckets), f"{{{{direction}}}} {name}") for q, name in _QUANTILES]
    flow = [
        Query(rate(f"acp_proxy_relay_{what}_total", ["direction"]), "{{direction}}") for what in ("bytes", "messages")
    ]
    held = f"From reading a piece of input until it is written on. {_BUCKETS} {_LATE}"
    return Row(
        9,
        (
            (12, lines("Relay latency", held, latency, Looks("s", step=RATES))),
            (6, lines("Bytes relayed", f"Per second. {_LATE}", flow[:1], Looks("Bps", step=RATES))),
            (6, lines("Messages relayed", f"Per second. {_LATE}", flow[1:], Looks("mps", step=RATES))),
        ),
        "Relay",
    )


def _troubles() -> Row:
    errors = Query(gained_ahead("acp_proxy_relay_errors_total", ["reason"]), "{{reason}}")
    exits = Query(gained_ahead("acp_proxy_agent_exits_total", ["reason"]), "{{reason}}")
    sent = Query(
        gained_ahead('acp_proxy_notifications_total{channel!="other"}', ["channel", "result"]), "{{channel}} {{result}}"
    )
    look = Looks(step="5m", none="none")
    return Row(
        8,
        (
            (8, bars("Relay errors over time", f"By reason. {_LATE}", errors, look, wide=False)),
            (
                8,
                bars(
                    "How agents ended",
                    f"By reason; an exit with status 0 is as it should be. {_LATE}",
                    exits,
                    look,
                    wide=False,
                ),
            ),
            (8, bars("Notifications", f"By channel and result. {_OTHERS}", sent, look, wide=False)),
        ),
    )


def _ledger() -> Row:
    buckets = rate("acp_proxy_ledger_op_seconds_bucket", ["le", "op"])
    times = [Query(quantile(0.95, buckets), "{{op}}")]
    waiting = Query("sum by (instance) (acp_proxy_ledger_pending_entries)", "{{instance}}")
    up = Query("acp_proxy_ledger_up", "{{instance}}")
    journals = (
        "Rows in journals on the exporter's machine that are not in the ledger yet; they come in when it answers."
    )
    return Row(
        8,
        (
            (
                10,
                lines(
                    "Ledger reads, p95",
                    f"What the exporter waits for its ledger, by operation. {_BUCKETS}",
                    times,
                    Looks("s", step=RATES),
                ),
            ),
            (7, lines("Pending entries over time", journals, (waiting,), Looks())),
            (
                7,
                lines(
                    "Ledger up",
                    "1 while the exporter can read its ledger.",
                    (up,),
                    Looks(lowest=0, highest=1, decimals=0),
                ),
            ),
        ),
        "Ledger and exporter",
    )


def _exporter() -> Row:
    scrape = Query(f"scrape_duration_seconds {_OURS}", "{{instance}}")
    memory = Query(f"process_resident_memory_bytes {_OURS}", "{{instance}}")
    return Row(
        8,
        (
            (8, lines("Scrape duration", "How long Prometheus waits for the exporter.", (scrape,), Looks("s"))),
            (8, lines("Memory of the exporter", "Resident.", (memory,), Looks("bytes"))),
            (8, _versions()),
        ),
    )


def _versions() -> table.Panel:
    return listing(
        "Versions",
        "Of each exporter that is scraped. Proxies may have others: doctor tells.",
        ("acp_proxy_build_info",),
        (
            Column("Instance", "instance", width=110),
            Column("Job", "job", width=90),
            Column("acp-proxy", "version", width=90),
            Column("Python", "python"),
        ),
        by="Instance",
    )


def _metering() -> Row:
    turns = gained(series("acp_proxy_turns_total"), ["agent"], STEP)
    missing = Query(share(gained(series("acp_proxy_turns_without_usage_total"), ["agent"], STEP), turns), "{{agent}}")
    guessed = gained(series("acp_proxy_tokens_total", 'source="estimated"'), ["agent"], STEP)
    estimated = Query(share(guessed, gained(USED, ["agent"], STEP)), "{{agent}}")
    unpriced = Query(present(gained_ahead(series("acp_proxy_unpriced_tokens_total"), ["model"])), "{{model}}")
    ratio = Looks(RATIO, lowest=0, highest=1, step="1h")
    return Row(
        8,
        (
            (
                8,
                lines(
                    "Turns without usage",
                    "Share of rows that no tokens are known of, not even estimated.",
                    (missing,),
                    ratio,
                    sparse=True,
                ),
            ),
            (
                8,
                lines(
                    "Estimated tokens",
                    "Share of tokens guessed from the length of texts, or held by turns whose proxy was killed. Agents "
                    "without a point have none.",
                    (estimated,),
                    ratio,
                    sparse=True,
                ),
            ),
            (8, bars("Tokens without a price", UNPRICED, unpriced, TOKEN_BARS, points=60, wide=False)),
        ),
        "Metering",
    )

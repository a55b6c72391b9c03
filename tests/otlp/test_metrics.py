"""Every family of a scrape is in an export, with the same names, labels and values in Prometheus."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.sums.tallies import Tally
from acp_proxy.otlp.common import Source
from acp_proxy.otlp.metrics import CUMULATIVE, Interval, metrics
from harness.otlp import each_metric, in_prometheus, resource_of, values_of
from harness.rows import BOB, NOON, line, row
from tests.metrics.scrapes import Scraped, configuration, exporter

SOURCE = Source({"service.name": "acp-proxy", "service.instance.id": "one"}, "acp_proxy", "1")
SINCE = NOON - 10**12
BUDGETS = """
[[budget]]
name = "daily"
window = "day"
limit = { amount = "5", currency = "USD" }
[[budget]]
name = "many"
window = "total"
limit = { tokens = 1000 }
"""


def filled(ledger: BudgetLedger) -> None:
    ledger.append(
        [
            row(line(cost="0.123456789"), context_used=1000, context_size=200_000),
            row(line("sonnet", cost="1234567.000000001"), line("opus", cost=None), session="s2"),
            row(line("mistral", cost="3", currency="EUR", input=10**12), origin=BOB, session="s3"),
        ]
    )
    relayed = [
        Tally("relay_messages", ("client_to_agent",), 0, 7, 0),
        Tally("relay_seconds", ("agent_to_client",), 1000, 3, 2500),
    ]
    ledger.tallied.count_relayed("default", "p1", 1, relayed, NOON)


@pytest.fixture
def sent(tmp_path: Path, ledger: BudgetLedger) -> tuple[Scraped, bytes]:
    """A scrape, and an export of the same moment."""
    filled(ledger)
    config = configuration(tmp_path, BUDGETS)
    ours = exporter(config, NOON / 10**9)
    families = ours.families(ours.readings(ledger))
    made = [*metrics(families, Interval(SINCE, NOON)), *metrics(ours.own_families(up=True), Interval(NOON - 1, NOON))]
    return Scraped(exporter(config, NOON / 10**9).scrape(ledger)), SOURCE.request(made)


def test_prometheus_makes_of_them_what_it_scrapes(sent: tuple[Scraped, bytes]) -> None:
    scraped, request = sent
    exported = in_prometheus(request)
    for name in sorted(scraped.names):
        if name.startswith("acp_proxy_") and "ledger_op_seconds" not in name:  # of this process, and another each time
            ours = {labels: value for (found, labels), value in exported.items() if found == name}
            assert ours == {labels: float(value) for labels, value in scraped.samples(name).items()}, name
    assert {name for name, _ in exported} == {name for name in scraped.names if name.startswith("acp_proxy_")}


def test_costs_are_exact_to_the_nano_unit(sent: tuple[Scraped, bytes]) -> None:
    scraped, request = sent
    exported = in_prometheus(request)
    costs = {labels: value for (name, labels), value in exported.items() if name == "acp_proxy_cost_total"}
    exact = scraped.samples("acp_proxy_cost_total")
    assert {labels: round(Decimal(value), 9) for labels, value in costs.items()} == exact


def test_counters_are_cumulative_since_the_ledger_began_and_those_of_the_process_since_that_did(
    sent: tuple[Scraped, bytes],
) -> None:
    _, request = sent
    for metric in each_metric(request):
        if metric.HasField("gauge"):
            assert {point.start_time_unix_nano for point in metric.gauge.data_points} == {0}
            continue
        data = metric.sum if metric.HasField("sum") else metric.histogram
        assert data.aggregation_temporality == CUMULATIVE
        since = NOON - 1 if metric.name == "acp_proxy.ledger_op" else SINCE
        assert {(point.start_time_unix_nano, point.time_unix_nano) for point in data.data_points} == {(since, NOON)}
        assert not metric.HasField("sum") or metric.sum.is_monotonic


def test_names_and_units_are_those_of_opentelemetry(sent: tuple[Scraped, bytes]) -> None:
    _, request = sent
    units = {metric.name: metric.unit for metric in each_metric(request)}
    assert all(name.startswith("acp_proxy.") and name == name.lower() for name in units)
    assert units["acp_proxy.tokens"] == "{token}"
    assert units["acp_proxy.turn_duration"] == units["acp_proxy.ledger_op"] == "s"
    assert units["acp_proxy.relay_bytes"] == "By"
    assert units["acp_proxy.cost"] == ""


def test_the_resource_is_that_of_the_source(sent: tuple[Scraped, bytes]) -> None:
    assert resource_of(sent[1]) == {"service.name": "acp-proxy", "service.instance.id": "one"}


def test_a_name_that_is_no_text_is_no_reason_for_a_receiver_to_refuse(ledger: BudgetLedger, tmp_path: Path) -> None:
    ledger.append([row(line("a\0b"))])
    ours = exporter(configuration(tmp_path))
    request = SOURCE.request(metrics(ours.families(ours.readings(ledger)), Interval(SINCE, NOON)))
    models = {
        values_of(point.attributes).get("model")
        for metric in each_metric(request)
        if metric.name == "acp_proxy.tokens"
        for point in metric.sum.data_points
    }
    assert models == {"a\0b"}

"""Dashboards and rules find the same series whether these were scraped or came as OTLP."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.otlp.common import Source
from acp_proxy.otlp.metrics import Interval, metrics
from harness.otlp import in_prometheus
from harness.rows import MINUTE, NOON, line, row
from tests.metrics.scrapes import configuration, exporter

ROOT = Path(__file__).parents[2]
SCRAPING_ALONE = {"process_resident_memory_bytes", "scrape_duration_seconds", "up"}
BUDGET = '[[budget]]\nname = "daily"\nwindow = "day"\nlimit = { amount = "5", currency = "USD" }\n[[notify]]\nurl = "http://127.0.0.1:1/"\n'


def asked() -> Iterator[str]:
    """Every expression of dashboards and rules."""
    for dashboard in sorted((ROOT / "grafana/dashboards").glob("*.json")):
        yield from _expressions(json.loads(dashboard.read_text()))
    for rules in sorted((ROOT / "deploy/prometheus").glob("*.rules.yml")):
        yield from _expressions(yaml.safe_load(rules.read_text()))


def _expressions(of: object) -> Iterator[str]:
    if isinstance(of, dict):
        if isinstance(of.get("expr"), str):
            yield of["expr"]
        for value in of.values():
            yield from _expressions(value)
    elif isinstance(of, list):
        for value in of:
            yield from _expressions(value)


def sent(ledger: BudgetLedger, directory: Path) -> set[str]:
    """What Prometheus has of an export, by name."""
    ledger.append([row(line(cost="1"), context_used=1, context_size=2), row(line("new", None), usage_source="none")])
    ours = exporter(configuration(directory, BUDGET), NOON / 10**9)
    made = [
        *metrics(ours.families(ours.readings(ledger)), Interval(NOON - MINUTE, NOON)),
        *metrics(ours.own_families(up=True), Interval(NOON - MINUTE, NOON)),
    ]
    return {name for name, _ in in_prometheus(Source({}, "acp_proxy", "1").request(made))}


def test_every_family_that_is_asked_for_is_sent(ledger: BudgetLedger, tmp_path: Path) -> None:
    expressions = list(asked())
    names = {name for each in expressions for name in re.findall(r"\b(?<!:)acp_proxy_[a-z_]+\b(?!:)", each)}
    assert len(names) > 20
    of_some = ("acp_proxy_plan_", "acp_proxy_capture_", "acp_proxy_coverage_")  # where is a plan, a bill or an import
    missing = names - sent(ledger, tmp_path)
    assert {name for name in missing if not name.startswith(of_some)} == set()


def test_what_only_scraping_has_is_asked_for_where_nothing_else_depends_on_it() -> None:
    others = [
        (name, expression)
        for expression in asked()
        for name in re.findall(r"\b(?:process|python|scrape)_[a-z_]+|\bup(?=\{)", expression)
    ]
    assert {name for name, _ in others} == SCRAPING_ALONE
    for name, expression in others:
        alone = name == "up" and "acp_proxy_ledger_up" in expression  # either tells that the exporter is gone
        assert alone or expression.startswith(name), expression

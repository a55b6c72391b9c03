"""The rules for Prometheus, read by Prometheus' own tools, and their runbook."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from promql_parser import AggModifierType, AggregateExpr, Expr, VectorSelector

from harness.prometheus import promtool
from tests.deploy.tools import run

ROOT = Path(__file__).parents[2]
PROMETHEUS = ROOT / "deploy/prometheus"
RULES = sorted(PROMETHEUS.glob("*.rules.yml"))
RUNBOOK = (ROOT / "docs/alerts.md").read_text(encoding="utf-8")


def rules() -> list[dict[str, Any]]:
    groups = [group for path in RULES for group in yaml.safe_load(path.read_text())["groups"]]
    return [rule for group in groups for rule in group["rules"]]


ALERTS = [rule for rule in rules() if "alert" in rule]
RECORDED = [rule["record"] for rule in rules() if "record" in rule]


@pytest.mark.needs("promtool")
@pytest.mark.parametrize("path", sorted((PROMETHEUS / "tests").glob("*.yml")), ids=lambda path: path.stem)
def test_the_rules_do_what_their_own_tests_say(path: Path) -> None:
    promtool("test", "rules", str(path), within=300)  # it computes for seconds, on a busy machine for minutes


@pytest.mark.needs("promtool")
def test_prometheus_takes_the_rules_and_its_configuration() -> None:
    promtool("check", "rules", "--lint=all", "--lint-fatal", *map(str, RULES))
    promtool("check", "config", "--syntax-only", str(PROMETHEUS / "prometheus.yml"))


@pytest.mark.needs("promtool")
def test_alertmanager_takes_its_configuration() -> None:
    status, says = run("amtool", "check-config", ROOT / "deploy/alertmanager/alertmanager.yml")
    assert status == 0, says


def test_no_alert_is_repeated_after_longer_than_alertmanager_remembers() -> None:
    """120 h by default: with a longer interval it tells again when it has forgotten, and warns at its start."""
    text = (ROOT / "deploy/alertmanager/alertmanager.yml").read_text(encoding="utf-8")
    hours = [int(count) * {"h": 1, "d": 24}[unit] for count, unit in re.findall(r"repeat_interval: (\d+)([hd])", text)]
    assert len(hours) == text.count("repeat_interval:")
    assert max(hours) <= 120


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_an_alert_says_how_bad_it_is_and_where_its_runbook_is(alert: dict[str, Any]) -> None:
    assert alert["labels"]["severity"] in ("critical", "warning", "info")
    assert sorted(alert["annotations"]) == ["description", "runbook_url", "summary"]
    assert alert["annotations"]["runbook_url"] == f"docs/alerts.md#{alert['alert'].lower()}"


def test_the_runbook_has_a_section_for_each_alert_and_a_row_for_each_recorded_series() -> None:
    assert re.findall(r"^## (.+)$", RUNBOOK, re.MULTILINE) == [alert["alert"] for alert in ALERTS]
    table = [line.partition(" | ")[0] for line in RUNBOOK.splitlines() if line.startswith("| `")]
    assert sorted(series(table)) == sorted(RECORDED)


def test_each_alert_is_tested_by_firing() -> None:
    files = (yaml.safe_load(path.read_text()) for path in (PROMETHEUS / "tests").glob("*.yml"))
    tests = [test for file in files for each in file["tests"] for test in each.get("alert_rule_test", [])]
    assert {test["alertname"] for test in tests if test.get("exp_alerts")} == {alert["alert"] for alert in ALERTS}


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.get("alert") or rule["record"])
def test_no_rule_adds_currencies_or_units_up_or_reads_what_only_a_newer_prometheus_knows(rule: dict[str, Any]) -> None:
    assert list(mixing(rule["expr"])) == []
    assert 'le="1"' not in rule["expr"]
    assert "keep_firing_for" not in rule


@pytest.mark.parametrize(
    "expression",
    [
        "sum(acp_proxy_cost_total)",
        "sum by (team) (team:acp_proxy_cost:increase1h)",
        "sum without (team, currency) (rate(acp_proxy_cost_total[1h]))",
        "avg(acp_proxy_budget_spent)",
        "topk(3, sum by (budget) (acp_proxy_budget_spent)) > 5",
    ],
)
def test_a_rule_that_added_currencies_or_units_up_would_be_noticed(expression: str) -> None:
    assert list(mixing(expression))


def mixing(expression: str) -> Iterator[AggregateExpr]:
    """Where an expression adds amounts up over what they are amounts of."""
    for each in within(promql_parser.parse(expression)):
        if isinstance(each, AggregateExpr) and str(each.op) not in ("max", "min", "count", "topk", "bottomk"):
            names = " ".join(found.name or "" for found in within(each.expr) if isinstance(found, VectorSelector))
            amounts = [label for metric, label in (("cost", "currency"), ("budget", "unit")) if metric in names]
            if not all(keeps(each, label) for label in amounts):
                yield each


def keeps(aggregate: AggregateExpr, label: str) -> bool:
    modifier = aggregate.modifier
    return modifier is not None and (label in modifier.labels) == (modifier.type == AggModifierType.By)


def within(expression: Expr) -> list[Expr]:
    found: list[Expr] = []
    promql_parser.walk(expression, found.append)
    return found


def series(cells: list[str]) -> list[str]:
    """`level:metric:one`, `:two` are two series of one level and metric."""
    found: list[str] = []
    for name in re.findall(r"`([^`]+)`", " ".join(cells)):
        found.append(name if not name.startswith(":") else found[-1].rpartition(":")[0] + name)
    return found

"""From recorded sessions of real agents to a counter, a recorded series and an alert: every part between is real."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from harness.daemons import until
from harness.postgres import running
from harness.prometheus import Prometheus, Sample, prometheus
from tests.real.alertmanager import alertmanager, webhook
from tests.real.team import Team

pytestmark = [pytest.mark.needs("prometheus", "promtool"), pytest.mark.xdist_group("prometheus")]

RULES = sorted((Path(__file__).parents[2] / "deploy/prometheus").glob("*.rules.yml"))
SESSIONS = [  # recording, and who pays
    ("claude-agent-acp-0.100.0/basic", "core"),
    ("codex-acp-2.6.0/tools", "core"),
    ("gemini-cli-0.61.0/basic", "web"),
    ("goose-anthropic-1.52.0/errors", "web"),
    ("copilot-1.0.102/basic", "web"),
]
LATER = ("claude-agent-acp-0.100.0/tools", "new")  # a team that had no turn before
CONFIG = """
[[budget]]
name = "everybody"
window = "total"
limit = { amount = "0.02", currency = "USD" }
mode = "warn"

[[budget]]
name = "turns"
window = "month"
per = "team"
limit = { turns = 1000 }
"""
TOKENS = ("input", "cached_read", "cached_write", "output", "thought")


@pytest.fixture(params=["sqlite", "postgresql"])
def team(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Team]:
    if request.param == "sqlite":
        yield Team(tmp_path, f"sqlite:///{tmp_path}/ledger.db", CONFIG)
        return
    with running() as server:
        yield Team(tmp_path, server.create("ledger"), CONFIG)


def test_counters_are_the_report_and_a_budget_rings_the_webhook(team: Team, tmp_path: Path) -> None:
    for recording, payer in SESSIONS:
        team.play(recording, "--team", payer)
    with (
        team.served() as port,
        webhook() as receiver,
        alertmanager(tmp_path, receiver) as alerts,
        prometheus(tmp_path, scrape=[port], rules=RULES, alertmanager=alerts) as server,
    ):
        server.until("team:acp_proxy_cost:increase1h")  # from here on it is watched
        before = {row["key"]: row for row in team.report("team")["rows"]}
        team.play(LATER[0], "--team", LATER[1])
        turns = team.report("day")["total"]["turns"]
        server.until(f'sum(acp_proxy_turns_total{{kind="turn"}}) == {turns}')

        assert_tokens(server, team, "agent")
        assert_tokens(server, team, "model")
        assert_tokens(server, team, "team")
        assert_turns(server, team)
        assert_budgets(server, team)
        assert_recorded(server, team, before)

        alert = until(lambda: named(receiver.next(), "AcpProxyBudgetSpent"), "the webhook is called")
        assert alert["status"] == "firing"
        assert alert["labels"]["budget"] == "everybody"
        assert alert["annotations"]["summary"] == "Budget everybody is spent"


def assert_tokens(server: Prometheus, team: Team, by: str) -> None:
    """To the nano-unit: the sums are made here, of what Prometheus stored, for its own are floats."""
    tokens = added(server.query("acp_proxy_tokens_total"), lambda labels: (labels.get(by, ""), labels["type"]))
    costs = added(server.query("acp_proxy_cost_total"), lambda labels: (labels.get(by, ""), labels["currency"]))
    rows = team.report(by)["rows"]
    assert tokens == {(row["key"], kind): row["tokens"][kind] for row in rows for kind in TOKENS if row["tokens"][kind]}
    assert costs == {(row["key"], unit): Decimal(text) for row in rows for unit, text in row["cost"].items()}


def assert_turns(server: Prometheus, team: Team) -> None:
    kinds: dict[str, int] = defaultdict(int)
    for row in team.report("turn")["rows"]:
        kinds[row["kind"]] += 1
    assert added(server.query("acp_proxy_turns_total"), lambda labels: labels["kind"]) == kinds


def assert_budgets(server: Prometheus, team: Team) -> None:
    """As listed; of a budget that each team has one of, that of which the largest part is spent."""
    listed: dict[str, list[Decimal]] = {}
    for budget in sorted(team.budgets(), key=lambda each: Decimal(each["spent"]) / Decimal(each["limit"])):
        listed[budget["name"]] = [Decimal(budget[field]) for field in ("limit", "spent", "held")]
    for position, metric in enumerate(("limit", "spent", "held")):
        found = server.query(f"acp_proxy_budget_{metric}")
        assert {each.labels["budget"]: each.value for each in found} == {
            name: amounts[position] for name, amounts in listed.items()
        }


def assert_recorded(server: Prometheus, team: Team, before: dict[str, Any]) -> None:
    """What was spent since Prometheus first looked, also by a team that it had never seen."""
    rows = {row["key"]: row for row in team.report("team")["rows"]}
    spent = {
        (key, unit): Decimal(text) - Decimal(before.get(key, {"cost": {}})["cost"].get(unit, 0))
        for key, row in rows.items()
        for unit, text in row["cost"].items()
    }
    assert spent["new", "USD"] > 0
    wanted = {key: float(amount) for key, amount in spent.items()}

    def recorded() -> dict[tuple[str, str], float]:
        found = server.query("team:acp_proxy_cost:increase1h")
        return {(each.labels["team"], each.labels["currency"]): float(each.value) for each in found}

    until(lambda: recorded() == pytest.approx(wanted, abs=1e-9), lambda: f"{wanted} is recorded, and not {recorded()}")


def added(samples: Iterable[Sample], key: Callable[[Any], Any]) -> dict[Any, Decimal]:
    """By `key` of their labels; what adds up to nothing is left out."""
    sums: dict[Any, Decimal] = defaultdict(Decimal)
    for sample in samples:
        sums[key(sample.labels)] += sample.value
    return {each: amount for each, amount in sums.items() if amount}


def named(message: Any, alert: str) -> Any:
    return next((each for each in message["alerts"] if each["labels"]["alertname"] == alert), None)

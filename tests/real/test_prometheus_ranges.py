"""What panels show over hours, on fixed data: the real exporter's figures, spread over a day, against the report."""

from __future__ import annotations

import re
from collections import defaultdict
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from harness.daemons import until
from harness.prometheus import Prometheus, prometheus
from tests.real.team import Team

pytestmark = [pytest.mark.needs("prometheus", "promtool"), pytest.mark.xdist_group("prometheus")]

BEGAN = 1_793_491_200  # a full hour
HOUR, SCRAPE = 3600, 60  # seconds
SESSIONS = ["claude-agent-acp-0.100.0/basic", "codex-acp-2.6.0/basic", "gemini-cli-0.61.0/basic"]


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    home = tmp_path_factory.mktemp("team")
    return Team(home, f"sqlite:///{home}/ledger.db")


@pytest.fixture(scope="module")
def snapshots(team: Team) -> tuple[list[str], list[dict[str, Any]]]:
    """What the exporter said, and the report by agent, after a round of sessions, and after each of another one."""
    with team.served() as port:
        exposed, reported = [], []
        for recording in SESSIONS:
            team.play(recording, "--user", "alice")
        for recordings in ([], *([each] for each in SESSIONS)):
            for recording in recordings:
                team.play(recording, "--user", "bob")
            reported.append(team.report("agent"))  # takes over what is still in a journal
            exposed.append(until(partial(exposition, port, reported[-1]["total"]["turns"]), "its turns are exported"))
    return exposed, reported


def exposition(port: int, turns: int) -> str:
    """What is exported, once it has so many turns; nothing before."""
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        text: str = answer.read().decode()
    counted = re.findall(r"^acp_proxy_turns_total\{.*kind=\"turn\".*\} (\d+)$", text, re.MULTILINE)
    return text if sum(map(int, counted)) == turns else ""


def test_the_increase_over_hours_is_within_two_hundredths_of_the_report(
    snapshots: tuple[list[str], list[dict[str, Any]]], tmp_path: Path
) -> None:
    exposed, reported = snapshots
    hours = len(exposed)
    with prometheus(tmp_path, history=history(exposed)) as server:
        for metric, unit in (("acp_proxy_cost_total", "currency"), ("acp_proxy_tokens_total", "type")):
            shown = spent(server, metric, unit, hours)
            wanted = amounts(reported[-1], unit)
            for key, amount in amounts(reported[0], unit).items():
                wanted[key] -= amount
            wanted = {key: amount for key, amount in wanted.items() if amount}
            assert len(wanted) >= len(SESSIONS)
            # Prometheus 3 leaves a window's first sample out and makes up for it: 59 minutes are taken for 60.
            assert shown == pytest.approx(wanted, rel=0.02)


def history(exposed: list[str]) -> str:
    """An hour of scrapes of each, one series after the other."""
    points: dict[str, list[str]] = defaultdict(list)
    for hour, text in enumerate(exposed):
        for line in text.splitlines():
            if line.startswith(("acp_proxy_cost_total", "acp_proxy_tokens_total")):
                series, _, value = line.rpartition(" ")
                times = range(BEGAN + hour * HOUR, BEGAN + (hour + 1) * HOUR, SCRAPE)
                points[series] += [f"{series} {value} {at}\n" for at in times]
    return "".join(line for series in sorted(points) for line in points[series])


def spent(server: Prometheus, metric: str, unit: str, hours: int) -> dict[tuple[str, str], float]:
    """A bar for each hour, as in a panel, added up."""
    expression = f"sum by (agent, {unit}) (increase({metric}[1h]))"
    bars = server.query_range(expression, BEGAN + 1.5 * HOUR, BEGAN + (hours - 0.5) * HOUR, HOUR)
    sums = {(bar.labels["agent"], bar.labels[unit]): float(sum(value for _, value in bar.points)) for bar in bars}
    return {key: amount for key, amount in sums.items() if amount}


def amounts(report: dict[str, Any], unit: str) -> dict[tuple[str, str], float]:
    field = "cost" if unit == "currency" else "tokens"
    return {
        (row["key"], name): float(Decimal(amount))
        for row in report["rows"]
        for name, amount in row[field].items()
        if name != "total"
    }

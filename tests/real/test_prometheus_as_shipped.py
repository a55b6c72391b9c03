"""deploy/prometheus/prometheus.yml as it stands, but for addresses: it shows its token, and names the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.daemons import started
from harness.ports import free_port
from harness.prometheus import Prometheus
from tests.real.team import Team

pytestmark = [pytest.mark.needs("prometheus", "promtool"), pytest.mark.xdist_group("prometheus")]

SHIPPED = Path(__file__).parents[2] / "deploy/prometheus"


@contextmanager
def shipped(directory: Path, port: int) -> Iterator[Prometheus]:
    text = (SHIPPED / "prometheus.yml").read_text(encoding="utf-8")
    for place, ours in (
        ("serve:9464", f"127.0.0.1:{port}"),
        ("alertmanager:9093", "127.0.0.1:9"),
        ("/run/secrets/serve_token", str(directory / "serve_token")),
        ("recording.rules.yml", str(SHIPPED / "recording.rules.yml")),
        ("alert.rules.yml", str(SHIPPED / "alert.rules.yml")),
        ("_interval: 15s", "_interval: 1s"),
        ("_interval: 1m", "_interval: 1s"),
    ):
        assert text.count(place) == 1
        text = text.replace(place, ours)
    config, own = directory / "prometheus.yml", free_port()
    config.write_text(text, encoding="utf-8")
    data = f"--storage.tsdb.path={directory / 'data'}"
    command = ["prometheus", f"--config.file={config}", data, f"--web.listen-address=127.0.0.1:{own}"]
    with started(command, f"http://127.0.0.1:{own}/-/ready", directory / "prometheus.log") as pid:
        yield Prometheus(f"http://127.0.0.1:{own}", pid)


@pytest.fixture
def token(tmp_path: Path) -> Path:
    file = tmp_path / "serve_token"
    file.touch(mode=0o600)
    file.write_text("one-of-the-team\n")
    return file


def test_it_scrapes_a_ledger_behind_a_token_and_every_rule_is_well(tmp_path: Path, token: Path) -> None:
    team = Team(tmp_path, f"sqlite:///{tmp_path}/ledger.db")
    team.play("claude-agent-acp-0.100.0/basic", "--team", "core")
    with team.served("--token-file", str(token)) as port, shipped(tmp_path, port) as server:
        (sample,) = server.until('team:acp_proxy_cost_total:sum{currency!=""}')
        assert sample.labels.items() >= {"job": "acp-proxy", "instance": "ledger", "team": "core"}.items()
        server.until("team:acp_proxy_cost:increase1h")
        for rule in (rule for group in server.get("rules")["groups"] for rule in group["rules"]):
            assert rule["health"] in ("ok", "unknown")  # those that are evaluated every five minutes
            server.query(rule["query"])


def test_a_wrong_token_is_an_exporter_that_is_down_until_it_is_replaced(tmp_path: Path, token: Path) -> None:
    team = Team(tmp_path, f"sqlite:///{tmp_path}/ledger.db")
    servers = tmp_path / "token_of_the_server"  # a file of its own: what changes in one is taken at once
    servers.touch(mode=0o600)
    servers.write_text("another\n")
    with team.served("--token-file", str(servers)) as port, shipped(tmp_path, port) as server:
        server.until('ALERTS{alertname="AcpProxyExporterDown", instance="ledger", alertstate="pending"}')
        servers.write_bytes(token.read_bytes())
        server.until('up{instance="ledger"} == 1')  # a token that is replaced needs no restart

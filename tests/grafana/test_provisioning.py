"""The files that a Grafana reads at its start fit the dashboards, and what `deploy/` puts around them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.grafana.dashboards import DIRECTORY

ROOT = Path(__file__).parent.parent.parent
PROVISIONING = ROOT / "grafana" / "provisioning"


def _read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _mounts() -> dict[Path, str]:
    """What compose puts where in Grafana's container."""
    volumes = [each.split(":") for each in _read(ROOT / "deploy/compose.yaml")["services"]["grafana"]["volumes"]]
    return {(ROOT / "deploy" / source).resolve(): target for source, target, *_ in volumes if source.startswith(".")}


def test_dashboards_are_read_from_where_compose_puts_them() -> None:
    (provider,) = _read(PROVISIONING / "dashboards/acp-proxy.yaml")["providers"]
    assert provider["options"]["path"] == _mounts()[DIRECTORY.resolve()]
    assert _mounts()[PROVISIONING.resolve()] == "/etc/grafana/provisioning"


def test_the_data_source_is_a_prometheus_that_scrapes_as_often_as_ours() -> None:
    (source,) = _read(PROVISIONING / "datasources/acp-proxy.yaml")["datasources"]
    assert (source["type"], source["uid"]) == ("prometheus", "acp-proxy-prometheus")
    scraped = _read(ROOT / "deploy/prometheus/prometheus.yml")["global"]["scrape_interval"]
    assert source["jsonData"]["timeInterval"] == scraped


def test_the_data_source_leaves_a_grafana_its_own_default() -> None:
    (source,) = _read(PROVISIONING / "datasources/acp-proxy.yaml")["datasources"]
    assert "isDefault" not in source


def test_the_data_source_names_the_prometheus_of_compose() -> None:
    (source,) = _read(PROVISIONING / "datasources/acp-proxy.yaml")["datasources"]
    assert source["url"] == "http://prometheus:9090"
    assert "prometheus" in _read(ROOT / "deploy/compose.yaml")["services"]

"""What other tests take for granted of the servers that they start: a history is there, alerts arrive."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from harness.prometheus import Series, prometheus
from tests.real.alertmanager import alertmanager, webhook

pytestmark = pytest.mark.needs("prometheus", "promtool")

BEGAN = 1_793_500_000
HISTORY = "# TYPE cost counter\n" + "".join(
    f'cost_total{{team="core"}} {minute}.123456789 {BEGAN + 60 * minute}\n' for minute in range(180)
)
ALERT = """
groups:
  - name: test
    rules:
      - alert: Up
        expr: up == 1
        labels: {severity: warning}
"""


def test_a_history_is_read_to_the_last_digit(tmp_path: Path) -> None:
    with prometheus(tmp_path, history=HISTORY) as server:
        (sample,) = server.query("cost_total", at=BEGAN + 60 * 100)
        assert sample.value == Decimal("100.123456789")
        (series,) = server.query_range("sum by (team) (cost_total)", BEGAN, BEGAN + 120, 60)
        digits = "123456789"
        points = tuple((BEGAN + 60 * minute, Decimal(f"{minute}.{digits}")) for minute in range(3))
        assert series == Series({"team": "core"}, points)
        assert server.get("label/team/values") == ["core"]


def test_an_alert_goes_through_alertmanager_into_a_webhook(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yml"
    rules.write_text(ALERT)
    with webhook() as receiver, alertmanager(tmp_path, receiver) as port:
        with prometheus(tmp_path, scrape=[port], rules=[rules], alertmanager=port) as server:
            server.until("up == 1")
            alert = receiver.next()
        assert alert["status"] == "firing"
        assert alert["commonLabels"]["alertname"] == "Up"

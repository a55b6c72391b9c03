"""A real Prometheus on loopback that scrapes given ports, evaluates given rules, and may begin with a history.

with prometheus(tmp_path, scrape=[9464], rules=[RULES]) as server:
    server.until("acp_proxy_ledger_up == 1")
    (sample,) = server.query("sum(acp_proxy_cost_total)")
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from harness.daemons import SECONDS, get, started, until
from harness.ports import free_port


@dataclass(frozen=True, slots=True)
class Sample:
    labels: Mapping[str, str]
    value: Decimal  # of the shortest text that is the same float64; may be NaN or infinite


@dataclass(frozen=True, slots=True)
class Series:
    labels: Mapping[str, str]
    points: tuple[tuple[float, Decimal], ...]  # Unix seconds, value


@dataclass(frozen=True, slots=True)
class Prometheus:
    url: str
    pid: int

    def query(self, expression: str, at: float | None = None) -> list[Sample]:
        """The instant vector at `at` (Unix seconds; by default now). Raises urllib.error.HTTPError for bad PromQL."""
        found = self.get("query", query=expression, time=at)
        if found["resultType"] == "scalar":
            return [Sample({}, Decimal(found["result"][1]))]
        return [Sample(each["metric"], Decimal(each["value"][1])) for each in found["result"]]

    def query_range(self, expression: str, start: float, end: float, step: float) -> list[Series]:
        """The same at every `step` seconds from `start` to `end`, both included."""
        found = self.get("query_range", query=expression, start=start, end=end, step=step)
        return [
            Series(each["metric"], tuple((at, Decimal(text)) for at, text in each["values"]))
            for each in found["result"]
        ]

    def until(self, expression: str, within: float = SECONDS) -> list[Sample]:
        """What `expression` finds as soon as it finds something."""
        return until(lambda: self.query(expression), expression, within)

    def get(self, what: str, **parameters: str | float | None) -> Any:
        """`data` of /api/v1/WHAT, for what has no method: label/team/values, rules, alerts, targets."""
        return get(f"{self.url}/api/v1/{what}", **parameters)["data"]


@contextmanager
def prometheus(
    directory: Path,
    *,
    scrape: Sequence[int] = (),
    rules: Sequence[Path] = (),
    alertmanager: int | None = None,
    history: str | None = None,
    more: Mapping[str, Any] | None = None,
) -> Iterator[Prometheus]:
    """A server that keeps its files in `directory` and ends with the block.

    `scrape` are ports of 127.0.0.1 that have /metrics, scraped as job "acp-proxy" each second, in which rules are
    evaluated, too. `history` is OpenMetrics text with timestamps; it is there from the beginning. So is
    what `backfill` put into `directory`/prometheus before. `more` are sections of its configuration, in place of ours.
    """
    port, data = free_port(), directory / "prometheus"
    data.mkdir(exist_ok=True)
    config = data / "prometheus.json"  # JSON is YAML
    config.write_text(json.dumps(_config(scrape, rules, alertmanager) | dict(more or {})))
    if history is not None:
        backfill(history, data)
    command = [
        "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={data}",
        "--storage.tsdb.retention.time=10y",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]
    url = f"http://127.0.0.1:{port}"
    with started(command, f"{url}/-/ready", directory / "prometheus.log") as pid:
        yield Prometheus(url, pid)


def backfill(history: str | Path, data: Path, within: float = SECONDS) -> None:
    """Makes blocks of OpenMetrics text, or of a file of it, in the directory of a Prometheus that does not run."""
    text = data / "history.om"
    if isinstance(history, Path):
        text = history
    else:
        text.write_text(history if history.endswith("# EOF\n") else f"{history}# EOF\n", encoding="utf-8")
    # Long blocks: for each the whole text is read again.
    long = "--max-block-duration=720h"
    promtool("tsdb", "create-blocks-from", "openmetrics", long, str(text), str(data), within=within)


def promtool(*arguments: str, stdin: str | None = None, within: float = SECONDS) -> str:
    """What promtool says. Raises AssertionError with it when it is not content."""
    command = ["promtool", *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=within, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _config(scrape: Sequence[int], rules: Sequence[Path], alertmanager: int | None) -> dict[str, Any]:
    def targets(*ports: int) -> list[dict[str, Any]]:
        return [{"targets": [f"127.0.0.1:{port}" for port in ports]}]

    return {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(path.resolve()) for path in rules],
        "scrape_configs": [{"job_name": "acp-proxy", "static_configs": targets(*scrape)}] if scrape else [],
        "alerting": {"alertmanagers": [{"static_configs": targets(alertmanager)}] if alertmanager else []},
    }

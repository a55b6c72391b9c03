"""The file of `acp-proxy metrics --textfile`, read by a real node_exporter that has metrics of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from acp_proxy.ledger import open_ledger
from harness.daemons import SECONDS, started
from harness.ports import free_port
from harness.rows import line, row
from tests.metrics.scrapes import Scraped

pytestmark = pytest.mark.needs("prometheus-node-exporter")

ROOT = Path(__file__).parents[2]


def test_node_exporter_takes_every_family_and_has_nothing_to_complain_of(tmp_path: Path) -> None:
    directory = tmp_path / "collector"
    directory.mkdir()
    written = write(tmp_path, directory / "acp-proxy.prom")
    port, log = free_port(), tmp_path / "log"
    command = [
        "prometheus-node-exporter",
        f"--web.listen-address=127.0.0.1:{port}",
        "--collector.disable-defaults",
        "--collector.textfile",
        f"--collector.textfile.directory={directory}",
    ]
    address = f"http://127.0.0.1:{port}"  # asked until it answers: metrics that nobody reads to their end are an error
    with (
        started(command, f"{address}/", log),
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=SECONDS) as answer,
    ):
        told = Scraped(answer.read())
    assert told.value("node_textfile_scrape_error") == 0
    assert written.names <= told.names
    assert str(told.total("acp_proxy_cost_total")) == "0.045989"
    assert "level=error" not in log.read_text()


def write(home: Path, file: Path) -> Scraped:
    url = f"sqlite:///{home}/ledger.db"
    ledger = open_ledger(url, journals=())
    ledger.append([row(line("opus", "0.045989"))])
    ledger.close()
    command = [sys.executable, "-m", "acp_proxy", "metrics", "--ledger", url, "--textfile", str(file)]
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "USER": "alice"}
    subprocess.run(command, env=environ, check=True, timeout=SECONDS)
    return Scraped(file.read_bytes())

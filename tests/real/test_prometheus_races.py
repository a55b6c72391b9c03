"""A scrape that ends while rules are evaluated: what was spent before it is not what was spent since.

Prometheus tells nobody that it evaluates a rule. But what a rule reads it asks for at a remote storage, too, where
there is one. That is us: while Prometheus waits for our answer, a scrape that had begun before comes to its end.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.daemons import SECONDS, until
from harness.prometheus import Prometheus, prometheus

pytestmark = [pytest.mark.needs("prometheus", "promtool"), pytest.mark.xdist_group("prometheus")]

RULES = Path(__file__).parents[2] / "deploy/prometheus/recording.rules.yml"
SPENT = b"""
acp_proxy_ledger_up 1
acp_proxy_cost_total{agent="a",model="m",team="core",currency="USD",source="agent"} 500
acp_proxy_unpriced_tokens_total{agent="a",model="n"} 500
"""
METRICS = ["acp_proxy_cost_total", "acp_proxy_unpriced_tokens_total", "acp_proxy_ledger_up"]
NOTHING = b"\x02\x04\x0a\x00"  # a ReadResponse with one empty result, in Snappy's block format


class Exporter:
    """`/metrics` of a ledger in which something was spent, and the storage that is asked for what a rule reads."""

    def __init__(self) -> None:
        self.server: Prometheus | None = None
        self._metric = ""
        self._away = True
        self._waiting = False  # a scrape, until it is let go
        self._let_go = threading.Event()
        self._asked = 0  # since then

    def goes_away(self) -> None:
        self._away = True

    def is_held_until_asked_for(self, metric: str) -> None:
        """From now on a scrape ends only while a rule that reads `metric` is evaluated."""
        self._metric = metric
        self._let_go.clear()
        self._away = False

    def scraped(self) -> bytes | None:
        if self._away:
            return None
        self._asked, self._waiting = 0, True
        self._let_go.wait(SECONDS)
        self._waiting = False
        return SPENT

    def asked(self, metric: str) -> None:
        """For the first time, perhaps, by a rule whose moment is before that of the scrape: which is not to see it."""
        server = self.server
        if server is None or metric != self._metric or not self._waiting:
            return
        self._asked += 1
        if self._asked > 1:
            self._let_go.set()
            until(lambda: server.query("up == 1"), "the scrape is stored")


@contextmanager
def served(exporter: Exporter) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = exporter.scraped()
            self._say(503 if body is None else 200, body or b"", "text/plain; version=0.0.4")

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            exporter.asked(self.path.removeprefix("/"))
            self._say(200, NOTHING, "application/x-protobuf")

        def _say(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if kind == "application/x-protobuf":
                self.send_header("Content-Encoding", "snappy")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_ledger_that_comes_or_comes_back_while_rules_read_it_has_spent_nothing(tmp_path: Path) -> None:
    exporter = Exporter()
    with served(exporter) as port:
        often = {"scrape_interval": "3s", "scrape_timeout": "3s", "evaluation_interval": "1s"}
        read = [
            {"url": f"http://127.0.0.1:{port}/{each}", "read_recent": True, "required_matchers": {"__name__": each}}
            for each in METRICS
        ]
        more = {"global": often, "remote_read": read}
        with prometheus(tmp_path, scrape=[port], rules=[RULES], more=more) as exporter.server:
            server = exporter.server
            for metric in METRICS:
                exporter.is_held_until_asked_for(metric)
                server.until("up == 1")
                assert increases(server) == {"cost": 0, "tokens": 0}, f"it came while {metric} was read"
                exporter.goes_away()
                server.until("up == 0")
                server.until("absent(team:acp_proxy_cost_total:sum)")


def increases(server: Prometheus) -> dict[str, float]:
    """As soon as the rules know them: in the last hour, where they ask for a day."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    rules = {rule["record"]: rule["expr"].replace("[1d:5m]", "[1h:]") for group in groups for rule in group["rules"]}
    (recorded,) = server.until("team:acp_proxy_cost:increase1h")
    (cost,) = server.until(rules["team:acp_proxy_cost:increase1d"])
    (tokens,) = server.until(rules["agent_model:acp_proxy_unpriced_tokens:increase1d"])
    assert cost.value == recorded.value
    return {"cost": float(cost.value), "tokens": float(tokens.value)}

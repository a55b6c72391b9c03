"""What real relays counted, as the exporter tells it; and series that are there before their first turn."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from acp_proxy.config import Config
from acp_proxy.ledger.budgets import BudgetLedger
from tests.agents.client import PATIENT
from tests.metrics.scrapes import Scraped, scrape

LINE = b'{"jsonrpc":"2.0","method":"_x","params":{}}\n'


def run(config: Config, home: Path, *agent: str, said: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [*PATIENT, "run", "--ledger", config.ledger.url, "--", *agent]
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "USER": "alice"}
    return subprocess.run(command, env=environ, input=said, capture_output=True, check=False, timeout=60)


def exits(found: Scraped) -> dict[tuple[str, ...], int]:
    return {key: int(value) for key, value in found.by("acp_proxy_agent_exits_total", "reason").items()}


def test_messages_and_bytes_are_those_that_each_side_sent(ledger: BudgetLedger, config: Config, tmp_path: Path) -> None:
    for _ in range(2):
        assert run(config, tmp_path, "cat", said=LINE * 1000).stdout == LINE * 1000
    found = scrape(ledger, config)
    for direction in ("client_to_agent", "agent_to_client"):
        assert found.value("acp_proxy_relay_messages_total", direction=direction) == 2000
        assert found.value("acp_proxy_relay_bytes_total", direction=direction) == 2000 * len(LINE)
        chunks = found.value("acp_proxy_relay_seconds_count", direction=direction)
        took = found.value("acp_proxy_relay_seconds_sum", direction=direction)
        assert chunks is not None
        assert 2 <= chunks <= 2000
        assert took is not None
        assert 0 < took < 60
    assert exits(found) == {("stopped",): 2}


def test_agents_that_end_by_themselves_are_told_apart(ledger: BudgetLedger, config: Config, tmp_path: Path) -> None:
    # Each ends while the client still has its end open, for sleep holds it.
    for script in ("exit 0", "exit 3", "kill -9 $$"):
        command = [*PATIENT, "run", "--ledger", config.ledger.url, "--", "sh", "-c", script]
        environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "USER": "alice"}
        with subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            process.wait(60)
            assert process.stdin
    assert exits(scrape(ledger, config)) == {("ok",): 1, ("failed",): 1, ("signal",): 1}


def test_a_signal_to_the_proxy_stops_the_agent(ledger: BudgetLedger, config: Config, tmp_path: Path) -> None:
    command = [*PATIENT, "run", "--ledger", config.ledger.url, "--", "cat"]
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "USER": "alice"}
    with subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(LINE)
        process.stdin.flush()
        assert process.stdout.readline() == LINE
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    found = scrape(ledger, config)
    assert exits(found) == {("stopped",): 1}
    assert found.value("acp_proxy_relay_messages_total", direction="client_to_agent") == 1


def test_series_are_there_at_zero_before_their_first_turn(ledger: BudgetLedger, config: Config) -> None:
    ledger.tallied.expect("default", "codex-acp", "core", "gpt-9")
    ledger.tallied.expect("default", "codex-acp", "core", "gpt-9")
    found = scrape(ledger, config)
    series = {"agent": "codex-acp", "model": "gpt-9", "team": "core"}
    assert found.value("acp_proxy_tokens_total", **series, type="output", source="agent") == 0
    assert found.value("acp_proxy_cost_total", **series, currency="USD", source="computed") == 0
    turns = {"agent": "codex-acp", "team": "core", "kind": "turn", "stop_reason": "end_turn"}
    assert found.value("acp_proxy_turns_total", **turns) == 0
    assert found.value("acp_proxy_turns_without_usage_total", agent="codex-acp") == 0


def test_what_relays_count_is_there_at_zero_before_any_has_run(ledger: BudgetLedger, config: Config) -> None:
    found = scrape(ledger, config)
    for direction in ("client_to_agent", "agent_to_client"):
        assert found.value("acp_proxy_relay_bytes_total", direction=direction) == 0
        assert found.value("acp_proxy_relay_seconds_count", direction=direction) == 0
    for reason in ("interceptor", "rows_dropped", "partly_read"):
        assert found.value("acp_proxy_relay_errors_total", reason=reason) == 0

"""The summary on stderr, however a run ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import pytest

from acp_proxy.ledger import Query, open_ledger
from acp_proxy.ledger.places import journal_directories
from tests.pace import slower
from tests.unread import full_pipe

PYTHON = [sys.executable, "-m"]
PROMPT = {"sessionId": "demo-session", "prompt": [{"type": "text", "text": "hi"}]}


class Run:
    """`acp-proxy run` around the demo agent, with the test as its client."""

    def __init__(
        self,
        home: Path,
        *options: str,
        stderr: int | IO[bytes] = subprocess.PIPE,
        agent: Sequence[str] = (*PYTHON, "acp_proxy.demo_agent"),
        started_by: Sequence[str] = (),
    ) -> None:
        command = [*started_by, *PYTHON, "acp_proxy", "run", *options, "--", *agent]
        environ = {"HOME": str(home), "PATH": os.environ["PATH"]}
        self.process = subprocess.Popen(
            command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
        )
        self._id = 0

    def ask(self, method: str, **params: Any) -> Any:
        assert self.process.stdin
        assert self.process.stdout
        self._id += 1
        self.process.stdin.write(
            json.dumps({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}).encode() + b"\n"
        )
        self.process.stdin.flush()
        while (message := json.loads(self.process.stdout.readline())).get("id") != self._id:
            pass
        return message

    def prompt(self) -> None:
        self.ask("initialize", protocolVersion=1)
        self.ask("session/new", cwd="/", mcpServers=[])
        self.ask("session/prompt", **PROMPT)

    def end(self, number: signal.Signals | None = None) -> tuple[int, str]:
        """By a signal, or by the end of stdin: the exit status, and stderr without the log.

        There a busy machine may say that it had no time to write all into the ledger.
        """
        if number is not None:
            self.process.send_signal(number)
        _, said = self.process.communicate(timeout=60)
        shown = [line for line in (said or b"").decode().splitlines(keepends=True) if not line.startswith("timestamp=")]
        return self.process.returncode, "".join(shown)


@pytest.mark.parametrize("number", [None, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_what_was_used_is_said_by_model_and_kind(tmp_path: Path, number: signal.Signals | None) -> None:
    run = Run(tmp_path)
    run.prompt()
    _, said = run.end(number)
    assert [line.split() for line in said.splitlines() if line] == [
        ["model", "kind", "turns", "prompt", "completion", "total", "cost"],
        ["claude-sonnet-5", "turn", "1", "12,242", "96", "12,338", "$0.0314"],
    ]


@pytest.mark.parametrize("number", [None, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_is_there_within_500_ms(tmp_path: Path, number: signal.Signals | None) -> None:
    """Once in three times, for a busy machine takes its own time; a wait of ours would be in each of them."""
    assert any(_time_to_end(tmp_path, number) < 0.5 * slower() for _ in range(3))


def _time_to_end(home: Path, number: signal.Signals | None) -> float:
    run = Run(home)
    run.prompt()
    began = time.monotonic()
    _, said = run.end(number)
    assert "12,338" in said
    return time.monotonic() - began


def test_it_is_said_of_an_agent_that_fails_too(tmp_path: Path) -> None:
    run = Run(tmp_path, agent=["sh", "-c", f"'{sys.executable}' -m acp_proxy.demo_agent; exit 3"])
    run.prompt()
    status, said = run.end()
    assert status == 3
    assert "12,338" in said


def test_without_a_turn_nothing_is_said(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.ask("initialize", protocolVersion=1)
    assert run.end() == (0, "")


def test_no_summary_is_written_to_who_wants_none(tmp_path: Path) -> None:
    run = Run(tmp_path, "--no-summary")
    run.prompt()
    assert run.end() == (0, "")


def test_a_stderr_that_nobody_can_write_to_changes_no_exit_status(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        run = Run(tmp_path, stderr=full)
        run.prompt()
        assert run.end()[0] == 0


def test_a_stderr_that_nobody_reads_any_more_changes_no_exit_status(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.prompt()
    assert run.process.stderr
    run.process.stderr.close()
    run.process.stderr = None
    assert run.end()[0] == 0


def test_a_full_stderr_that_nobody_reads_holds_up_no_end(tmp_path: Path) -> None:
    with full_pipe() as (_, full):
        run = Run(tmp_path, stderr=full)
        run.prompt()
        try:
            assert run.end()[0] == 0
        finally:
            run.process.kill()


def test_a_stderr_that_came_closed_changes_neither_the_exit_status_nor_what_is_kept(tmp_path: Path) -> None:
    run = Run(tmp_path, started_by=("sh", "-c", 'exec "$@" 2>&-', "sh"))
    run.prompt()
    assert run.end()[0] == 0
    journals = journal_directories({"HOME": str(tmp_path)})
    ledger = open_ledger(f"sqlite:///{tmp_path}/.local/state/acp-proxy/ledger.db", journals=journals)
    assert len(list(ledger.rows(Query()))) == 1
    ledger.close()

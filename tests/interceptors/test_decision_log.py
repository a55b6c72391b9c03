"""What a run logs at the levels that nobody gets unasked."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

WORD = "a-word-that-only-the-prompt-has"
ASKED = (
    ("initialize", {"protocolVersion": 1}),
    ("session/new", {"cwd": "/", "mcpServers": []}),
    ("session/prompt", {"sessionId": "demo-session", "prompt": [{"type": "text", "text": WORD}]}),
)
BEGUN = ["agent.named", "session.opened", "turn.started"]


@pytest.mark.parametrize(
    ("level", "events"), [("debug", [*BEGUN, "row.booked"]), ("info", ["row.booked"]), ("warning", [])]
)
def test_a_log_tells_what_was_decided_as_far_as_its_level_asks_for_it(
    tmp_path: Path, level: str, events: list[str]
) -> None:
    said = logged(tmp_path, level)
    assert sorted(re.findall(r" event=(\S+)", said)) == sorted(events)  # the client does not wait for answers
    assert WORD not in said


def test_a_row_is_logged_with_its_figures_and_where_they_come_from(tmp_path: Path) -> None:
    (row,) = logged(tmp_path, "info").splitlines()
    assert " kind=turn stop=end_turn model=claude-sonnet-5 input=412 cached_read=0 cached_write=11830 output=96 " in row
    assert ' tokens_by=agent cost="0.031359 USD" cost_by=computed context=12338 ' in row


def test_the_row_of_a_turn_that_no_agent_answered_is_logged_before_the_run_ends(tmp_path: Path) -> None:
    said = logged(tmp_path, "info", agent=("-c", "import sys; sys.stdin.read()"))
    assert " tokens_by=none " in said
    assert 'why="disconnected; the agent reports nothing of it"' in said


def logged(home: Path, level: str, agent: tuple[str, ...] = ("-m", "acp_proxy.demo_agent")) -> str:
    """The log of a run around the demo agent, or another program of Python's."""
    file = home / "log"
    options = ["--log", str(file), "--log-level", level]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
        for number, (method, params) in enumerate(ASKED)
    ]
    subprocess.run(
        [sys.executable, "-m", "acp_proxy", "run", *options, "--", sys.executable, *agent],
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
        input=b"\n".join(lines) + b"\n",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return file.read_text(encoding="utf-8") if file.exists() else ""

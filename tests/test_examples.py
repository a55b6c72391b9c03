"""The examples, installed as anybody would, found through their entry points by the command, and seen at work."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.xdist_group("examples")  # one wheel for all tests of it

EXAMPLES = Path(__file__).parent.parent / "examples/acp-proxy-examples"
PROMPT = {"sessionId": "demo-session", "prompt": [{"type": "text", "text": "hi"}]}
MESSAGES = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
    {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}},
    *(
        {
            "jsonrpc": "2.0",
            "id": number,
            "method": "session/prompt",
            "params": {"sessionId": "demo-session", "prompt": []},
        }
        for number in (3, 4, 5)
    ),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the package is installed, with its metadata: the wheel that its build back end makes, unpacked."""
    site = tmp_path_factory.mktemp("site")
    build = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    made = subprocess.run(
        [sys.executable, "-c", build, str(site)], cwd=EXAMPLES, capture_output=True, text=True, check=True
    )
    wheel = made.stdout.split()[-1]
    with ZipFile(site / wheel) as archive:
        archive.extractall(site)
    return site


def answers(site: Path, home: Path, **environ: str) -> list[Any]:
    command = [
        sys.executable,
        "-m",
        "acp_proxy",
        "run",
        "--no-summary",
        "--",
        sys.executable,
        "-m",
        "acp_proxy.demo_agent",
    ]
    done = subprocess.run(
        command,
        input="".join(json.dumps(message) + "\n" for message in MESSAGES),
        env={"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": str(site), **environ},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return [message for line in done.stdout.splitlines() if "id" in (message := json.loads(line))]


def test_the_observer_writes_a_line_for_each_turn(site: Path, tmp_path: Path) -> None:
    log = tmp_path / "turns.jsonl"
    answers(site, tmp_path, ACP_TURN_LOG=str(log))
    turns = [json.loads(line) for line in log.read_text().splitlines()]
    assert [turn["kind"] for turn in turns] == ["turn"] * 3
    assert turns[0]["tokens"] == 12338
    assert turns[0]["cost"] == {"USD": "0.031359"}


def test_a_file_that_takes_nothing_keeps_neither_a_turn_nor_the_end(site: Path, tmp_path: Path) -> None:
    log = tmp_path / "turns.jsonl"
    os.mkfifo(log)  # which nobody reads
    said = {message["id"]: message for message in answers(site, tmp_path, ACP_TURN_LOG=str(log))}
    assert said[5]["result"]["stopReason"] == "end_turn"


def test_the_enforcer_refuses_what_is_too_much_and_says_until_when(site: Path, tmp_path: Path) -> None:
    said = {message["id"]: message for message in answers(site, tmp_path, ACP_PROMPTS_PER_HOUR="2")}
    assert [said[number]["result"]["stopReason"] for number in (3, 4)] == ["end_turn"] * 2
    assert said[5]["error"]["message"] == "2 prompts in an hour are enough; the next may go in 60 minutes."


def test_the_page_on_extending_shows_the_observer_as_it_is() -> None:
    page = (Path(__file__).parent.parent / "docs/extending.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert shown in (EXAMPLES / "acp_proxy_examples/turn_log.py").read_text(encoding="utf-8")


def test_they_do_nothing_unless_they_are_asked_to(site: Path, tmp_path: Path) -> None:
    assert all("result" in message for message in answers(site, tmp_path))

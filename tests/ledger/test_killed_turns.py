"""A whole group that is killed in mid-turn, as some editors do: what its agent had told by then is booked, once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from acp_proxy.core.usage import NOTHING, Usage
from acp_proxy.ledger.journal.records import read_journal
from acp_proxy.ledger.places import journal_directories
from harness.faults.trial import until
from tests.agents.client import python, running
from tests.editor import BUDGET, PATIENT, Editor
from tests.ledger.conftest import ONE_AT_A_TIME
from tests.midday import midday

pytestmark = ONE_AT_A_TIME

# An agent that tells what its prompt says, a word at a time, and ends the turn if the last of them is `end`.
AGENT = """
import json, sys
name, tell = sys.argv[1:]
def say(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def update(meta):
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": ""}, "_meta": meta}
    say(method="session/update", params={"sessionId": "s", "update": update})
def call(input, output):
    usage = {"inputTokens": input, "outputTokens": output, "totalTokens": input + output}
    return {"usage": usage}
def so_far(input, output):
    return {"field_meta": {"openhands.dev/metrics": {"input_tokens": input, "output_tokens": output, "cost": 0}}}
for line in sys.stdin:
    asked = json.loads(line)
    match asked["method"]:
        case "initialize":
            who = {"name": name, "version": "1.16.0"}
            say(id=asked["id"], result={"protocolVersion": 1, "agentInfo": who})
        case "session/new" | "session/load":
            say(id=asked["id"], result={"sessionId": "s", "models": {"currentModelId": "claude-sonnet-5"}})
        case "session/prompt":
            words = asked["params"]["prompt"][0]["text"].split()
            for word in words:
                if word != "end": update({"call": call, "so_far": so_far}[tell](*map(int, word.split("+"))))
            if words[-1] == "end": say(id=asked["id"], result={"stopReason": "end_turn"})
            else: say(method="working", params={})
"""
QWEN = ("qwen-code", "call")
OPENHANDS = ("OpenHands CLI ACP Agent", "so_far")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / ".config/acp-proxy").mkdir(parents=True)
    (tmp_path / ".config/acp-proxy/config.toml").write_text(BUDGET + PATIENT)
    return {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "TZ": midday(), "USER": "alice"}


@contextmanager
def editor(url: str, environ: dict[str, str], agent: tuple[str, str], load: str | None = None) -> Iterator[Editor]:
    relay = (sys.executable, "-m", "acp_proxy", "run", "--no-summary", "--ledger", url, "--", *python(AGENT), *agent)
    with running(*relay, env=environ) as process:
        yield Editor(process, load)


def known(environ: dict[str, str]) -> Usage:
    """What journals have of turns that run."""
    files = [path for directory in journal_directories(environ) for path in directory.glob("*.journal")]
    found = [contents for path in files if (contents := read_journal(path.read_bytes()))]
    return sum((row.entry.usage for contents in found for row in contents.open), NOTHING)


def told(environ: dict[str, str], url: str, *command: str) -> str:
    whole = [sys.executable, "-m", "acp_proxy", *command, "--ledger", url]
    return subprocess.run(whole, env=environ, capture_output=True, text=True, check=True).stdout


def turns(environ: dict[str, str], url: str) -> Any:
    return json.loads(told(environ, url, "report", "--by", "turn", "--json"))["rows"]


def test_its_calls_are_booked_with_their_price_and_as_a_lower_bound(url: str, environ: dict[str, str]) -> None:
    with editor(url, environ, QWEN) as made:
        made.prompt("1000+100 2000+200")
        assert until(lambda: known(environ) == Usage(3000, output=300))
        made.kill()
    (row,) = turns(environ, url)
    assert row["tokens"]["total"] == 3300
    assert row["cost"] == {"USD": "0.009"}  # 2 $ and 10 $ a million
    assert (row["usage_source"], row["cost_source"], row["stop_reason"]) == ("partial", "computed", "crashed")
    assert told(environ, url, "status") == "≥ $0.009 today · $0.99 left of cap · last turn ≥ $0.009\n"
    (charged,) = json.loads(told(environ, url, "budget", "list", "--json"))["budgets"]
    assert (charged["spent"], charged["held"], charged["at_least"]) == ("0.009", "0", True)
    (focus,) = json.loads(told(environ, url, "export", "--focus", "--json"))["rows"]
    assert (focus["BilledCost"], focus["x_UsageSource"], focus["x_CostAtLeast"]) == ("0.009", "partial", True)


def test_who_goes_on_with_the_session_books_only_what_came_since(url: str, environ: dict[str, str]) -> None:
    with editor(url, environ, OPENHANDS) as made:
        made.prompt("1000+100 end")
        made.prompt("2500+200")
        assert until(lambda: known(environ) == Usage(1500, output=100))
        made.kill()
    with editor(url, environ, OPENHANDS, load="s") as made:
        made.prompt("4500+500 end")
        made.leave()
    found = [(row["usage_source"], row["tokens"]["input"], row["tokens"]["output"]) for row in turns(environ, url)]
    assert found == [("agent", 2000, 300), ("partial", 1500, 100), ("agent", 1000, 100)]  # the newest first

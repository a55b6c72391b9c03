"""Budgets as a user meets them: the installed command, real processes, one ledger, and kill -9."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from acp_proxy.config import load
from acp_proxy.config.digest import digest
from acp_proxy.ledger import Query, Row, open_ledger
from acp_proxy.ledger.places import journal_directories
from acp_proxy.serve.live import running_turns
from tests.agents.client import line, python, running, send, send_and_close
from tests.faults.trial import until

AGENT = """
import json, sys
def say(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    match asked.get("method"):
        case "initialize":
            who = {"name": "x", "version": "1"}
            say(id=asked["id"], result={"protocolVersion": 1, "agentInfo": who})
        case "session/new": say(id=asked["id"], result={"sessionId": "s"})
        case "session/prompt":
            text = asked["params"]["prompt"][0]["text"]
            if text != "silent":
                cost = {"amount": float(text.split()[-1]), "currency": "USD"}
                update = {"sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": cost}
                say(method="session/update", params={"sessionId": "s", "update": update})
            if text.startswith("end"): say(id=asked["id"], result={"stopReason": "end_turn"})
            else:
                prompt = asked["id"]
                say(method="working", params={})
        case "_end": say(id=prompt, result={"stopReason": "end_turn"})
"""
PATIENT = '[ledger]\nadmission_timeout = "20s"\n'  # whatever else the machine does
BUDGET = '[[budget]]\nname = "cap"\nwindow = "day"\nlimit = { amount = "1", currency = "USD" }\nhold = "0.2"\n'


class Editor:
    """Talks to one proxy in front of the agent."""

    def __init__(self, process: Any) -> None:
        self._process = process
        self._id = 0
        self.said: list[Any] = []
        self.ask("initialize", protocolVersion=1)
        self.ask("session/new", cwd="/", mcpServers=[])

    def ask(self, method: str, **params: Any) -> Any:
        """The answer, or the first sign that the agent works and gives none."""
        self._id += 1
        asked = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        send(self._process.stdin, json.dumps(asked).encode() + b"\n")
        while True:
            message = json.loads(line(self._process.stdout))
            self.said.append(message)
            if message.get("id") == self._id or message.get("method") == "working":
                return message

    def prompt(self, text: str) -> Any:
        return self.ask("session/prompt", sessionId="s", prompt=[{"type": "text", "text": text}])

    def end_turn(self) -> None:
        """Of the last prompt that was given no answer."""
        send(self._process.stdin, b'{"jsonrpc": "2.0", "method": "_end"}\n')
        while json.loads(line(self._process.stdout)).get("result") != {"stopReason": "end_turn"}:
            pass

    def leave(self) -> int:
        send_and_close(self._process.stdin, b"")
        return int(self._process.wait(20))

    def kill(self) -> None:
        """As some editors do: everyone at once."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(20)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / ".config/acp-proxy").mkdir(parents=True)
    (tmp_path / ".config/acp-proxy/config.toml").write_text(BUDGET + PATIENT)
    return {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "USER": "alice"}


def proxy(environ: dict[str, str], *options: str) -> Any:
    agent = python(AGENT)
    command = (sys.executable, "-m", "acp_proxy", "run", "--agent", "claude-agent-acp", *options, "--", *agent)
    return running(*command, env=environ)


def rows(environ: dict[str, str]) -> list[Row]:
    url = f"sqlite:///{environ['HOME']}/.local/state/acp-proxy/ledger.db"
    with closing(open_ledger(url, journals=journal_directories(environ))) as ledger:
        return list(ledger.rows(Query()))


def known_of_the_first(environ: dict[str, str]) -> list[str]:
    """What the first of the turns that run has cost, as anyone would take it over now."""
    url = f"sqlite:///{environ['HOME']}/.local/state/acp-proxy/ledger.db"
    journals = journal_directories(environ)
    with closing(open_ledger(url, journals=journals)) as ledger:
        first, *_ = running_turns(ledger, "default", journals, time.time_ns())
    return [cost.text for cost in first.costs]


def test_a_cap_holds_over_processes(environ: dict[str, str]) -> None:
    with proxy(environ) as process:
        editor = Editor(process)
        assert editor.prompt("end 0.9")["result"] == {"stopReason": "end_turn"}
        assert editor.leave() == 0
    with proxy(environ) as process:
        editor = Editor(process)
        assert editor.prompt("end 0.1")["result"] == {"stopReason": "end_turn"}
        refused = editor.prompt("end 0.2")["result"]
        assert refused["_meta"] == {"acp-proxy": {"budget": "cap"}}
        editor.leave()
    assert [[cost.text for cost in row.entry.costs] for row in rows(environ)] == [["0.9"], ["0.1"]]


def test_a_killed_turn_is_booked_at_what_it_had_cost(environ: dict[str, str]) -> None:
    with proxy(environ) as process:
        editor = Editor(process)
        editor.prompt("hang 0.7")
        editor.prompt("hang 0.75")  # queued behind it; what the agent says of its cost is noted ten times a second
        assert until(lambda: known_of_the_first(environ) == ["0.75"])
        editor.kill()
    first, *_ = sorted(rows(environ), key=lambda row: row.entry.id)
    assert [cost.text for cost in first.entry.costs] == ["0.75"]


def test_a_killed_turn_without_any_figure_is_booked_at_what_it_held(environ: dict[str, str]) -> None:
    with proxy(environ) as process:
        Editor(process).prompt("silent")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(20)
    (row,) = rows(environ)
    assert [cost.text for cost in row.entry.costs] == ["0.2"]
    assert row.entry.cost_source == "estimated"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_turn_that_a_signal_ends_is_settled(environ: dict[str, str], number: signal.Signals) -> None:
    with proxy(environ) as process:
        editor = Editor(process)
        editor.prompt("hang 0.3")
        process.send_signal(number)
        process.wait(20)
    (row,) = rows(environ)
    assert [cost.text for cost in row.entry.costs] == ["0.3"]


def test_the_flag_limits_one_run_and_not_the_next(environ: dict[str, str]) -> None:
    for _ in range(2):
        with proxy(environ, "--budget", "0.1") as process:
            editor = Editor(process)
            assert editor.prompt("end 0.1")["result"] == {"stopReason": "end_turn"}
            assert editor.prompt("end 0.2")["result"]["_meta"] == {"acp-proxy": {"budget": "--budget"}}
            editor.leave()


def test_the_ledger_knows_by_which_files_a_proxy_judged(environ: dict[str, str]) -> None:
    with proxy(environ) as process:
        Editor(process).leave()
    with closing(open_ledger(f"sqlite:///{environ['HOME']}/.local/state/acp-proxy/ledger.db", journals=())) as ledger:
        config = load({}, environ)
        found = {said.layer: said.digest for said in ledger.settings("default", time.time_ns())}
    assert found == {"admin": digest(config, "admin"), "user": digest(config, "user")}


def test_a_mistake_in_a_budget_keeps_the_agent_from_being_started(environ: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / ".config/acp-proxy/config.toml"
    file.write_text(BUDGET.replace('"day"', '"dayly"'))
    with proxy(environ) as process:
        _, error = process.communicate(timeout=20)
        assert process.returncode == 2
        assert error.startswith(f"acp-proxy: {file}:3: budget.window: expected ".encode())
        assert error.count(b"\n") == 1

"""An editor, to one installed proxy in front of an agent that costs what its prompt says."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from tests.agents.client import line, python, running, send, send_and_close

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
BUDGET = '[[budget]]\nname = "cap"\nwindow = "total"\nlimit = { amount = "1", currency = "USD" }\nhold = "0.2"\n'


class Editor:
    """Talks to one proxy in front of the agent, in a new session, or in one that it loads."""

    def __init__(self, process: Any, load: str | None = None) -> None:
        self._process = process
        self._id = 0
        self.said: list[Any] = []
        self.ask("initialize", protocolVersion=1)
        if load is None:
            self.ask("session/new", cwd="/", mcpServers=[])
        else:
            self.ask("session/load", sessionId=load, cwd="/", mcpServers=[])

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
        return int(self._process.wait())

    def kill(self) -> None:
        """As some editors do: everyone at once."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def proxy(environ: dict[str, str], *options: str) -> Any:
    agent = python(AGENT)
    command = (sys.executable, "-m", "acp_proxy", "run", "--agent", "claude-agent-acp", *options, "--", *agent)
    return running(*command, env=environ)

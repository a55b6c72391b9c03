"""Machines of developers: an editor with a proxy on each, and what it has of the hub's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.hub.ledger import HubLedger

POOL = {"window": "month", "limit": {"turns": 20}}


class Editor:
    """One proxy with an agent, on a machine of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._number = 0
        self.call("initialize", protocolVersion=1, clientCapabilities={})
        self._session = self.call("session/new", cwd="/", mcpServers=[])[0]["sessionId"]

    def call(self, method: str, **params: Any) -> tuple[Any, str]:
        """The result, and the text that was said before it."""
        assert self._process.stdin
        assert self._process.stdout
        self._number += 1
        asked = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        said = ""
        for line in self._process.stdout:
            message = json.loads(line)
            if message.get("id") == self._number:
                return message["result"], said
            said += message["params"].get("update", {}).get("content", {}).get("text", "")
        raise AssertionError("the proxy has ended")

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def prompt(self) -> str:
        """What was said."""
        return self.call("session/prompt", sessionId=self._session, prompt=[{"type": "text", "text": "go"}])[1]


@contextmanager
def editor(home: Path, url: str, token: str) -> Iterator[Editor]:
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "ACP_PROXY_HUB_TOKEN": token, "LOGNAME": "somebody"}
    environment["ACP_PROXY_LEDGER__ADMISSION_TIMEOUT"] = "3s"
    command = [sys.executable, "-m", "acp_proxy", "run", "--ledger", url, "--no-summary", "--"]
    agent = [sys.executable, "-m", "acp_proxy.demo_agent"]
    home.mkdir(exist_ok=True)
    with subprocess.Popen(
        [*command, *agent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        yield Editor(process)
        assert process.stdin
        process.stdin.close()


def lent(home: Path) -> dict[str, Any]:
    """The lease that a machine has, empty while it has none."""
    for path in home.rglob("*.lease"):
        found: dict[str, Any] = json.loads(path.read_bytes())["current"] or {}
        return found
    return {}


def ledger_of(url: str, who: str) -> HubLedger:
    opened = open_ledger(url, journals=())
    assert isinstance(opened, HubLedger)
    return opened

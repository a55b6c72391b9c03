"""`acp-proxy demo`: a whole session against the bundled agent, through the real relay, into a ledger of its own.

It plays the editor and shows what an editor gets. It needs no network and no key, and leaves nothing behind.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, cast

from rich.console import Console
from rich.text import Text

PROMPTS = ("What does this project do?", "Fix the failing test.", "Why did that help? One sentence.")
REPORTS = ("report --by turn", "report --by model")
SECONDS = 20  # many times what a healthy run takes

NEXT = """\
To meter a real agent, put acp-proxy before its command in your editor's settings:

  AGENT ARGS…  →  acp-proxy run -- AGENT ARGS…

and work as before. Then:

  acp-proxy report --by model     what was spent; also by day, session, project, agent …
  acp-proxy prices show MODEL     what a model costs
  acp-proxy doctor                whether everything is in order
"""


class DemoError(Exception):
    """The relay or the agent did not do its part; the text is one line and says what was seen."""


def main() -> int:
    """Returns the exit status."""
    console = Console(highlight=False, soft_wrap=True)
    with tempfile.TemporaryDirectory(prefix="acp-proxy-demo-") as home:
        try:
            _play(console, _Installation.in_directory(Path(home)))
        except DemoError as error:
            sys.stderr.write(f"acp-proxy: demo: {error}\n")
            return 1
    return 0


def _play(console: Console, installation: _Installation) -> None:
    console.print(
        "[bold]$ acp-proxy run -- python -m acp_proxy.demo_agent[/]   [dim]started as an editor starts it[/]\n"
    )
    with installation.editor() as editor:
        editor.call("initialize", {"protocolVersion": 1, "clientInfo": {"name": "demo", "version": "1"}})
        session = editor.call("session/new", {"cwd": str(installation.project), "mcpServers": []})["sessionId"]
        for prompt in PROMPTS:
            editor.call("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": prompt}]})
            _show_turn(console, prompt, editor.updates)
    console.print("[dim]The agent has ended, and acp-proxy sums up on stderr:[/]")
    console.print(Text(editor.stderr.strip("\n")))
    for command in REPORTS:
        console.print(f"\n[bold]$ acp-proxy {command}[/]")
        installation.run(command.split())
    console.print(Text("\n" + NEXT), end="")


def _show_turn(console: Console, prompt: str, updates: list[dict[str, Any]]) -> None:
    said = "".join(update["content"]["text"] for update in updates if update["sessionUpdate"] == "agent_message_chunk")
    tools = [update["title"] for update in updates if update["sessionUpdate"] == "tool_call"]
    console.print(Text.assemble(("you    ", "bold cyan"), prompt))
    if tools:
        console.print(Text("       tools: " + ", ".join(tools), "dim"))
    console.print(Text.assemble(("agent  ", "bold"), said.strip()))
    for update in updates:
        if update["sessionUpdate"] == "usage_update":
            console.print(Text.assemble("       ", (_context(update), "green"), ("   ← acp-proxy adds this", "dim")))
    console.print()


def _context(update: dict[str, Any]) -> str:
    used, size, cost = update["used"], update["size"], update.get("cost")
    about = "about " if update["_meta"]["acp-proxy"]["estimated"] else ""
    context = f"context {about}{used:,} of {size:,} tokens ({used / size:.0%})"
    return f"{context}, session {cost['amount']:.4f} {cost['currency']}" if cost else context


@dataclass(frozen=True, slots=True)
class _Installation:
    """acp-proxy as a user has it, but with an empty configuration and a ledger that goes with the directory."""

    project: Path
    options: list[str]
    environment: dict[str, str]

    @classmethod
    def in_directory(cls, home: Path) -> _Installation:
        project = home / "thermometer"
        project.mkdir()
        (home / "config.toml").touch()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ACP_PROXY_")}
        options = ["--config", str(home / "config.toml"), "--ledger", f"sqlite:///{home / 'ledger.db'}"]
        return cls(project, options, environment | {"XDG_STATE_HOME": str(home)})

    @contextmanager
    def editor(self) -> Iterator[_Editor]:
        agent = ["run", *self.options, "--", sys.executable, "-m", "acp_proxy.demo_agent"]
        command, pipe = [sys.executable, "-m", "acp_proxy", *agent], subprocess.PIPE
        with (
            tempfile.TemporaryFile() as stderr,
            subprocess.Popen(
                command, cwd=self.project, env=self.environment, stdin=pipe, stdout=pipe, stderr=stderr
            ) as process,
        ):
            late = threading.Timer(SECONDS, process.kill)
            late.start()
            try:
                editor = _Editor(cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout))
                yield editor
                editor.close()
                process.wait()
                stderr.seek(0)
                editor.stderr = stderr.read().decode(errors="replace")
            finally:
                late.cancel()
                process.kill()

    def run(self, command: list[str]) -> None:
        """Runs one of the commands that read the ledger; its output goes where ours goes."""
        sys.stdout.flush()
        arguments = [sys.executable, "-m", "acp_proxy", command[0], *self.options, *command[1:]]
        if subprocess.run(arguments, cwd=self.project, env=self.environment, timeout=SECONDS).returncode != 0:
            raise DemoError(f"acp-proxy {' '.join(command)} failed")


class _Editor:
    """The client's end of the relay: asks one thing at a time, keeps the updates that came before the answer."""

    def __init__(self, to_proxy: IO[bytes], from_proxy: IO[bytes]) -> None:
        self._to, self._from = to_proxy, from_proxy
        self._id = 0
        self.updates: list[dict[str, Any]] = []
        self.stderr = ""

    def close(self) -> None:
        self._to.close()

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._id += 1
        self.updates.clear()
        line = json.dumps({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        try:
            self._to.write(line.encode() + b"\n")
            self._to.flush()
        except BrokenPipeError:
            raise DemoError(f"acp-proxy was gone before {method}") from None
        for answer in self._from:
            match json.loads(answer, parse_float=Decimal):
                case {"method": "session/update", "params": {"update": update}}:
                    self.updates.append(update)
                case {"id": self._id, "result": result}:
                    return dict(result)
                case other:
                    raise DemoError(f"{method}: unexpected {other}")
        raise DemoError(f"acp-proxy ended during {method}")

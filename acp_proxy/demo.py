"""`acp-proxy demo`: a whole session against the bundled agent, through the real relay, into a ledger of its own.

It plays the editor and shows what an editor gets. It needs no network and no key, and leaves nothing behind.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, cast

from msgspec import Struct
from rich.console import Console
from rich.text import Text

from acp_proxy.core.money import Money, amount_text

PROMPTS = ("What does this project do?", "Fix the failing test.", "Why did that help? One sentence.")
AFTERWARDS = (("budget", "list"), ("report", "--by", "turn"))
GRANT = ("budget", "grant", "demo", "--amount", "0.05", "--for", "2h", "--reason", "one more answer")
CONFIG = """\
[ledger]
admission_timeout = "10s"
[[budget]]
name = "demo"
window = "month"
limit = { amount = "0.06", currency = "USD" }
thresholds = [90]
"""  # two turns of the script take nearly all of it; a slow machine tells the same story
SECONDS = 120  # many times what a run takes, also on a slow machine
_WIDTH = 80  # of texts that are wrapped, at most
_INDENT = " " * 7

NEXT = """\
To meter a real agent, put acp-proxy before its command in your editor:

  AGENT ARGS…  →  acp-proxy run -- AGENT ARGS…

`acp-proxy setup zed` does it for Zed; `acp-proxy setup --list` has the others.
Work as before. Then:

  acp-proxy report --by model   what was spent; also by day, session, project …
  acp-proxy budget list         what is left of each [[budget]] you configured
  acp-proxy prices show MODEL   what a model costs
  acp-proxy doctor              whether everything is in order
"""


class DemoError(Exception):
    """The relay or the agent did not do its part; the text is one line and says what was seen."""


def main() -> int:
    """Returns the exit status."""
    console = _Console(highlight=False, soft_wrap=True)
    with tempfile.TemporaryDirectory(prefix="acp-proxy-demo-") as home:
        try:
            _play(console, _Installation.in_directory(Path(home)))
        except DemoError as error:
            sys.stderr.write(f"acp-proxy: demo: {error}\n")
            return 1
    return 0


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # no failure, as of every other command: `acp-proxy demo | head`


def _play(console: Console, installation: _Installation) -> None:
    console.print("[bold]$ acp-proxy run -- python -m acp_proxy.demo_agent[/]   [dim]as an editor starts it[/]\n")
    with installation.editor() as editor:
        session = editor.open(installation.project)
        for prompt in PROMPTS:
            if not _ask(console, editor, session, prompt):
                installation.run(console, GRANT)
                console.print()
                if not _ask(console, editor, session, prompt):
                    raise DemoError("a prompt was refused in spite of a grant")
    console.print("[dim]The agent has ended, and acp-proxy sums up on stderr:[/]")
    console.print(Text(editor.stderr.strip("\n")))
    for command in AFTERWARDS:
        console.print()
        installation.run(console, command)
    console.print(Text("\n" + NEXT), end="")


def _ask(console: Console, editor: _Editor, session: str, prompt: str) -> bool:
    """Sends a prompt, and shows what comes of it; False when it was refused."""
    answer = editor.call("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": prompt}]})
    refused = bool(answer.get("_meta", {}).get("acp-proxy", {}).get("budget"))
    said = "".join(
        update["content"]["text"] for update in editor.updates if update["sessionUpdate"] == "agent_message_chunk"
    )
    console.print(Text.assemble(("you    ", "bold cyan"), prompt))
    if refused:
        _show_ours(console, said, "red", "acp-proxy answers this, and the agent never sees the prompt")
    else:
        _show_turn(console, said.strip(), editor.updates)
    console.print()
    return not refused


def _show_turn(console: Console, said: str, updates: list[dict[str, Any]]) -> None:
    tools = [update["title"] for update in updates if update["sessionUpdate"] == "tool_call"]
    if tools:
        console.print(Text("       tools: " + ", ".join(tools), "dim"))
    console.print(Text.assemble(("agent  ", "bold"), said))
    for update in updates:
        match update["sessionUpdate"]:
            case "usage_update":
                _show_ours(console, _context(update), "green", "acp-proxy adds this")
            case "notice":
                _show_ours(console, update["description"], "yellow", "acp-proxy warns")


def _show_ours(console: Console, text: str, style: str, who: str) -> None:
    """What is not the agent's, with an arrow to who says it: below it where a terminal has no room beside it."""
    room = console.width - len(_INDENT) if console.is_terminal else None
    *lines, last = textwrap.wrap(text, min(_WIDTH, room or _WIDTH), break_on_hyphens=False)
    for line in lines:
        console.print(Text(_INDENT + line, style))
    arrow = f"   ← {who}"
    if room is None or len(last) + len(arrow) <= room:
        console.print(Text.assemble(_INDENT, (last, style), (arrow, "dim")))
    else:
        console.print(Text(_INDENT + last, style))
        console.print(Text(_INDENT + arrow.lstrip(), "dim"))


def _context(update: dict[str, Any]) -> str:
    used, size, cost = update["used"], update["size"], update.get("cost")
    about = "about " if update["_meta"]["acp-proxy"]["estimated"] else ""
    context = f"context {about}{used:,} of {size:,} tokens ({used / size:.0%})"
    if not cost:
        return context
    return f"{context}, session {amount_text(Money.of(cost['amount'], cost['currency']), 4)}"


class _Installation(Struct, frozen=True):
    """acp-proxy as a user has it, but with one budget and a ledger that goes with the directory."""

    project: Path
    options: list[str]
    environment: dict[str, str]

    @classmethod
    def in_directory(cls, home: Path) -> _Installation:
        project = home / "thermometer"
        project.mkdir()
        (home / "config.toml").write_text(CONFIG, encoding="utf-8")
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
            editor = _Editor(cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout))
            try:
                yield editor
                editor.close()
                process.wait()
                stderr.seek(0)
                editor.stderr = stderr.read().decode(errors="replace")
            finally:
                late.cancel()
                process.kill()
                with suppress(BrokenPipeError):  # of what was not written: it would stand in for the error of it
                    editor.close()

    def run(self, console: Console, command: Sequence[str]) -> None:
        """Shows and runs one of the commands that need no agent; its output goes where ours goes."""
        console.print(Text(f"$ acp-proxy {shlex.join(command)}", "bold"))
        sys.stdout.flush()
        arguments = [sys.executable, "-m", "acp_proxy", *self.options, *command]
        if subprocess.run(arguments, cwd=self.project, env=self.environment, timeout=SECONDS).returncode != 0:
            raise DemoError(f"acp-proxy {shlex.join(command)} failed")


class _Editor:
    """The client's end of the relay: asks one thing at a time, keeps the updates that came before the answer."""

    def __init__(self, to_proxy: IO[bytes], from_proxy: IO[bytes]) -> None:
        self._to, self._from = to_proxy, from_proxy
        self._id = 0
        self.updates: list[dict[str, Any]] = []
        self.stderr = ""

    def open(self, project: Path) -> str:
        """The id of a new session; this editor shows notices."""
        capabilities: dict[str, Any] = {"session": {"notices": {}}}
        client = {"clientInfo": {"name": "demo", "version": "1"}, "clientCapabilities": capabilities}
        self.call("initialize", {"protocolVersion": 1, **client})
        return str(self.call("session/new", {"cwd": str(project), "mcpServers": []})["sessionId"])

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

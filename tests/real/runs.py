"""One run: an agent, a scenario, and what the model served and the ledger holds afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acp_proxy.config import load
from acp_proxy.importing import command
from tests.real.agents import COMMON, Agent
from tests.real.client import Client
from tests.real.model import Model, Tokens
from tests.real.server import serving

Say = Callable[..., Awaitable[None]]
PROXY = [str(Path(sys.executable).parent / "acp-proxy")]


async def basic(say: Say) -> None:
    await say("hello")
    await say("THINK and say hello again")


async def tools(say: Say) -> None:
    for text in (
        "TOOL:shell please",
        "TOOL:read please",
        "TOOL:write please",
        "TOOL:shell*3 please",
        "hello after tools",
    ):
        await say(text)


async def cancel(say: Say) -> None:
    await say("hello")
    await say("SLOW answer please", cancel_after=2)
    await say("hello after cancel")


SCENARIOS: dict[str, Callable[[Say], Awaitable[None]]] = {"basic": basic, "tools": tools, "cancel": cancel}


@dataclass(frozen=True, slots=True)
class Turn:
    """A prompt, and what the model served while it ran."""

    main: Tokens
    side: Tokens  # asked by the agent on its own account
    unfinished: bool  # the agent hung up on a call


@dataclass(frozen=True, slots=True)
class Run:
    turns: list[Turn]
    rows: list[dict[str, Any]]  # of `report --by turn --json`; empty when run directly
    completed: list[dict[str, Any]]  # the same after the agent's books were imported
    usage_updates: int  # that the client got
    added: int  # of those, acp-proxy's
    status: int


def run(agent: Agent, scenario: str, version: int, npm: Path, home: Path, *, direct: bool) -> Run:
    """Plays `scenario` in `home`, an empty directory. Raises AgentError when the agent does not answer."""
    model = Model(workplace(home))
    with serving(model) as port:
        started, environment = started_by(agent, npm, home, port)
        relay = [] if direct else [*PROXY, "run", "--ledger", _ledger(home), "--"]
        turns, client, status = asyncio.run(_play([*relay, *started], environment, agent, scenario, version, model))
    if direct:
        return Run(turns, [], [], client.usage_updates, client.added, status)
    rows = _rows(home, environment)
    _import(home, environment)
    return Run(turns, rows, _rows(home, environment), client.usage_updates, client.added, status)


def workplace(home: Path) -> Path:
    """A directory for the agent to work in."""
    work = home / "work"
    (home / "tmp").mkdir(parents=True)
    work.mkdir()
    (work / "notes.txt").write_text("line one\nline two\n")
    (work / "written.txt").write_text("old\n")  # some agents only write to files that are there
    return work


def started_by(agent: Agent, npm: Path, home: Path, port: int) -> tuple[list[str], dict[str, str]]:
    """The agent's command and environment, when its model is at `port`; its files are written."""
    fill = {"{port}": str(port), "{home}": str(home), "{npm}": str(npm)}
    for name, text in agent.files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(_filled(text, fill))
    environment = {name: _filled(value, fill) for name, value in (COMMON | agent.environment).items()}
    return [_filled(word, fill) for word in agent.command], environment


async def _play(
    command: list[str], environment: dict[str, str], agent: Agent, scenario: str, version: int, model: Model
) -> tuple[list[Turn], Client, int]:
    turns: list[Turn] = []
    with (model.directory.parent / "stderr").open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=model.directory,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            limit=1 << 28,
            start_new_session=True,
        )
    try:
        client = Client(process, version)
        await client.initialize()
        session = await client.session(model.directory, agent.sign_in, agent.asking_mode)

        async def say(text: str, cancel_after: float | None = None) -> None:
            model.prompts.append(text)
            before = len(model.calls)
            await client.prompt(session, text, cancel_after)
            turns.append(_served(model, before))

        await SCENARIOS[scenario](say)
        return turns, client, await client.close()
    finally:
        with contextlib.suppress(ProcessLookupError):  # the group of this agent alone
            os.killpg(process.pid, signal.SIGKILL)


def _served(model: Model, since: int) -> Turn:
    calls = model.calls[since:]
    main = sum((call.tokens for call in calls if call.kind == "main"), Tokens())
    side = sum((call.tokens for call in calls if call.kind == "side"), Tokens())
    return Turn(main, side, not all(call.finished for call in calls))


def _rows(home: Path, environment: dict[str, str]) -> list[dict[str, Any]]:
    report = [*PROXY, "report", "--ledger", _ledger(home), "--by", "turn", "--json"]
    done = subprocess.run(report, env=environment, capture_output=True, check=True, timeout=30)
    return sorted(json.loads(done.stdout)["rows"], key=lambda row: (row["started_at"], row["ended_at"], row["key"]))


def _import(home: Path, environment: dict[str, str]) -> None:
    """As somebody does it an hour later."""
    config = load({"ledger": _ledger(home)}, environment)
    command.main(command.Asked(), config, environment, time.time_ns() + 3600 * 10**9)


def _ledger(home: Path) -> str:
    return f"sqlite:///{home / 'ledger.db'}"


def _filled(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def say(*lines: str) -> None:
    """To whoever watches, at once: a run takes minutes."""
    for line in lines:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()

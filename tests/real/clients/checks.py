"""What each checker and client says of a released agent, as lines; the agent is offline, its model on loopback."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tests.real.agents import Agent
from tests.real.clients import chain_proxy, conformance, judging, linting, sdk_session
from tests.real.clients.toad import screen
from tests.real.clients.toad import toad as found
from tests.real.model import Model
from tests.real.runs import PROXY, started_by, workplace
from tests.real.server import serving

CONDUCTOR = "@thinkwell/conductor@0.5.7"
CHAIN_PROXY = [sys.executable, chain_proxy.__file__]
SECONDS = 90  # for one command of a client
HELLO, WORK, LONG = "hello", "TOOL:shell*2 please", "SLOW answer please"
COST = re.compile(r"(?<=%\)) • \$[\d.]+")  # which acp-proxy adds where the agent does not say it
SAID_BY_LINTER = "Say 'hello' and nothing else."


@dataclass(frozen=True, slots=True)
class Place:
    """An agent that is ready to be started in a home of its own, directly or behind acp-proxy."""

    agent: Agent
    relay: list[str]  # what `command` begins with, where it is relayed
    command: list[str]
    environment: dict[str, str]
    home: Path
    directory: Path
    npm: Path

    @property
    def direct(self) -> list[str]:
        return self.command[len(self.relay) :]


Check = Callable[[Place], list[str]]


def played(check: Check, agent: Agent, npm: Path, home: Path, *, relayed: bool) -> list[str]:
    """What `check` says; `home` is an empty directory."""
    model = Model(workplace(home))
    model.prompts += [HELLO, WORK, LONG, SAID_BY_LINTER]
    with serving(model) as port:
        command, environment = started_by(agent, npm, home, port)
        environment["ACPX_AUTH_API_KEY"] = "none"
        relay = [*PROXY, "run", "--"] if relayed else []
        return check(Place(agent, relay, [*relay, *command], environment, home, model.directory, npm))


def conformance_1(place: Place) -> list[str]:
    return _conformance(place, 1)


def conformance_2(place: Place) -> list[str]:
    return _conformance(place, 2)


def _conformance(place: Place, version: int) -> list[str]:
    sign_in = place.agent.sign_in
    subject = conformance.Subject(place.command, place.environment, place.directory, version, LONG, sign_in)
    verdicts = judging.judged(asyncio.run(conformance.record(subject)), version)
    return [f"{name}: {verdict}" for name, verdict in verdicts.items()]


def acplint(place: Place) -> list[str]:
    categories = (*linting.QUICK, *linting.SLOW)
    said = asyncio.run(linting.report(place.command, place.environment, place.home / "report.json", categories))
    results = [f"{result['name']}: {result['status']} {result['message'] or ''}" for result in said["results"]]
    return [*results, *said["findings"], f"status {said['status']}: {said['conformance_level']}"]


def sdk(place: Place) -> list[str]:
    """A session of the official SDK's client: a greeting, a turn with tools, one that is cancelled; all that it got."""
    agent = place.agent
    told = sdk_session.session(
        place.command,
        place.environment,
        place.directory,
        agent.sign_in,
        agent.asking_mode,
        says=(HELLO, WORK),
        waits=LONG,
    )
    return [_steady(line, place) for line in sdk_session.lines(told)]


def acpx(place: Place) -> list[str]:
    """A session of acpx: a greeting, a turn with tools, a look at the session; what it prints."""
    agents = {"agents": {"agent": {"command": shlex.join(place.command)}}}
    (place.home / ".acpx").mkdir()
    (place.home / ".acpx/config.json").write_text(json.dumps(agents))
    client = ["node", str(place.npm / "acpx/node_modules/acpx/dist/cli.js"), "--approve-all", "--ttl", "20", "agent"]
    steps = [("sessions", "new"), (HELLO,), (WORK,), ("sessions", "list"), ("sessions", "close")]
    if place.agent.asking_mode:
        steps.insert(1, ("set-mode", place.agent.asking_mode))
    said = [line for step in steps for line in _run([*client, *step], place)]
    return [_steady(line, place) for line in said]


def before_conductor(place: Place) -> list[str]:
    """The session of `sdk` with acp-proxy before a conductor, its proxy, and the agent."""
    return _conducted(place, [*place.relay, *_conductor(place, CHAIN_PROXY, place.direct)])


def before_proxy(place: Place) -> list[str]:
    return _conducted(place, _conductor(place, [*place.relay, *CHAIN_PROXY], place.direct))


def after_proxy(place: Place) -> list[str]:
    return _conducted(place, _conductor(place, CHAIN_PROXY, place.command))


def _conductor(place: Place, *commands: list[str]) -> list[str]:
    program = Path(__file__).with_name("conductor.mjs")
    return ["node", str(program), str(place.npm / "conductor/node_modules"), *map(shlex.join, commands)]


def _conducted(place: Place, command: list[str]) -> list[str]:
    """But how much of the last answer came before it was cancelled: what passes a chain takes its time."""
    lines = sdk(replace(place, command=command))
    said = [re.sub(r'(?<="stopReason": "cancelled").*', "", line) for line in lines if '"slow ' not in line]
    if place.relay:
        report = [*PROXY, "report", "--by", "turn", "--json"]
        rows = json.loads(subprocess.run(report, env=place.environment, capture_output=True, check=True).stdout)["rows"]
        ended = [row["stop_reason"] for row in sorted(rows, key=lambda row: row["key"]) if row["kind"] == "turn"]
        if ended != ["end_turn", "end_turn", "cancelled"]:
            said.append(f"booked: {ended}")
    return said


def toad(place: Place) -> list[str]:
    """Toad's screen after a greeting."""
    terminal = place.environment | {"TERM": "xterm-256color"}
    for unwanted in ("CI", "NO_COLOR"):
        del terminal[unwanted]
    command = [
        found() or "toad",
        "acp",
        "--title",
        "Agent",
        "--project-dir",
        str(place.directory),
        shlex.join(place.command),
    ]
    with screen(place.home) as shown:
        shown.start(command, terminal, place.directory)
        shown.shows("Modes")  # which Toad knows when the session is there
        shown.still()
        shown.types(HELLO)
        shown.shows("Hello from the model")
        shown.shows("%)")  # of the context, in the status line
        lines = shown.still()
    lines = [COST.sub("", line) for line in lines if "━━" not in line and "Agent connected" not in line]  # those move
    return [re.sub(" +", " ", _steady(line, place)) for line in lines]


def _run(command: list[str], place: Place) -> list[str]:
    done = subprocess.run(
        command,
        env=place.environment,
        cwd=place.directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    return [*done.stdout.splitlines(), f"[status {done.returncode}]"]


def _steady(line: str, place: Place) -> str:
    """Without what differs from run to run: directories, ports, ids, times."""
    line = re.sub(r"127\.0\.0\.1:\d+", "MODEL", line.replace(str(place.home), "~"))
    line = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "ID", line)
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z|\b\d+(\.\d+)?\s?m?s\b", "TIME", line)


CHECKS: dict[str, Check] = {
    "conformance-1": conformance_1,
    "conformance-2": conformance_2,
    "acplint": acplint,
    "sdk": sdk,
    "acpx": acpx,
    "before-conductor": before_conductor,
    "before-proxy": before_proxy,
    "after-proxy": after_proxy,
    "toad": toad,
}

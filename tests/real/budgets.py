"""`python -m tests.real.budgets --npm DIR [SCENE …]`: shows budgets as people see them who use released agents in acpx.

What is to be seen is judged, too: the status is 1 when a scene lacks something.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.real.agents import CLAUDE, CODEX, GOOSE, NODE, Agent
from tests.real.model import Model
from tests.real.runs import PROXY, say, started_by, workplace
from tests.real.server import serving

ACPX = "acpx@0.19.1"
SECONDS = 60  # for one command
IDLE = 20  # seconds until acpx ends an agent that nobody uses, should it not be closed

BUDGET = """\
[[budget]]
name = "demo"
window = "day"
"""
GRANT = ("acp-proxy", "budget", "grant", "demo", "--for", "2h", "--reason", "one more answer", "--amount")
LIST = ("acp-proxy", "budget", "list")
PRICED_GOOSE = replace(GOOSE, environment=GOOSE.environment | {"GOOSE_MODEL": "gpt-4o"})  # it reports what it can price


@dataclass(frozen=True, slots=True)
class Scene:
    """`steps` are commands, `shows` what is to be read in their output, in this order.

    The step `plan` sets how much of the user's plan is used from then on, as the server tells it.
    """

    agent: Agent
    config: str
    steps: tuple[tuple[str, ...], ...]
    shows: tuple[str, ...]


def _message(agent: Agent, limit: str) -> Scene:
    prompts = ("hello", "hello again", "and once more")
    return Scene(
        agent,
        BUDGET + f'limit = {{ amount = "{limit}", currency = "USD" }}\nthresholds = [50]\n',
        (*(("acpx", prompt) for prompt in prompts), LIST, (*GRANT, "0.05"), ("acpx", prompts[-1]), LIST),
        ('50 % of budget "demo" is reached', "Not sent to the agent", "[done] end_turn", "Granted", "Hello from"),
    )


def _error(agent: Agent) -> Scene:
    return Scene(
        agent,
        BUDGET + 'limit = { turns = 1 }\nthresholds = []\n[refusal]\nstyle = "error"\n',
        (("acpx", "hello"), ("acpx", "hello again"), (*GRANT, "1"), ("acpx", "hello again"), LIST),
        ("Hello from", "Not sent to the agent", "[status 1]", "Granted", "Hello from", "[done] end_turn"),
    )


_MONEY = ('amount = "0.03", currency = "USD"', "0.1")  # a limit, and what is granted then
_TOKENS = ("tokens = 20_000", "50000")


def _running(agent: Agent, on_exceed: str, shows: tuple[str, ...], limit_and_grant: tuple[str, str] = _MONEY) -> Scene:
    limit, grant = limit_and_grant
    config = f'limit = {{ {limit} }}\nthresholds = []\non_exceed = "{on_exceed}"\n'
    steps = (("acpx", "TOOL:shell*5 please"), ("acpx", "hello"), LIST, (*GRANT, grant), ("acpx", "hello"))
    after = ("Not sent to the agent", "Granted", "Hello from", "[done] end_turn")
    return Scene(agent, BUDGET + config, steps, (*shows, *after))


SEATED = replace(  # signed in to a plan
    CLAUDE,
    environment={name: value for name, value in CLAUDE.environment.items() if name != "ANTHROPIC_API_KEY"}
    | {"CLAUDE_CODE_OAUTH_TOKEN": "any"},
)
STATUS = ("acp-proxy", "status")
PLANS = ("acp-proxy", "report", "--plans")
METRICS = ("acp-proxy", "metrics")
KEEP = '[[budget]]\nname = "keep-some"\nlimit = { plan = "five_hour", percent = 80 }\n'


def _claude_limits(used: str, week: str, overage: str) -> dict[str, str]:
    """As the provider's headers tell the windows: a fraction, and Unix seconds."""
    now, prefix = int(time.time()), "anthropic-ratelimit-unified"
    status = "allowed" if float(used) < 0.75 else "allowed_warning"
    five = {"status": status, "utilization": used, "reset": str(now + 7200), "surpassed-threshold": "0.75"}
    of_week = {"status": "allowed", "utilization": week, "reset": str(now + 3 * 86_400)}
    return {
        f"{prefix}-status": status,
        f"{prefix}-reset": str(now + 7200),
        f"{prefix}-representative-claim": "five_hour",
        f"{prefix}-overage-status": overage,
        **{f"{prefix}-5h-{name}": value for name, value in five.items()},
        **{f"{prefix}-7d-{name}": value for name, value in of_week.items()},
    }


def _codex_limits(used: str, week: str, overage: str) -> dict[str, str]:
    now = int(time.time())
    return {
        "x-codex-primary-used-percent": str(float(used) * 100),
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": str(now + 7200),
        "x-codex-secondary-used-percent": str(float(week) * 100),
        "x-codex-secondary-window-minutes": "10080",
        "x-codex-secondary-reset-at": str(now + 3 * 86_400),
        "x-codex-credits-has-credits": "true" if overage == "allowed" else "false",
        "x-codex-credits-unlimited": "false",
    }


def _plan(agent: Agent) -> Scene:
    """Below the limit, above it, and refused; seen wherever a window is shown."""
    return Scene(
        agent,
        KEEP,
        (
            ("plan", "0.62", "0.34", "rejected"), ("acpx", "hello"), STATUS,
            ("plan", "0.83", "0.34", "rejected"), ("acpx", "hello again"), STATUS, ("acpx", "and once more"),
            PLANS, METRICS,
        ),
        (
            "Hello from", "5 h: 62 % until", "Hello from", "5 h: 83 % until", "keep-some refuses prompts",
            "Not sent to the agent", "5 h", "83 %", "acp_proxy_plan_used_ratio", 'window="five_hour"} 0.83',
        ),
    )  # fmt: skip


def _overage(agent: Agent) -> Scene:
    config = KEEP.replace("80 }", '100 }\non_overage = "deny"')
    steps = (("plan", "0.5", "1.0", "allowed"), ("acpx", "hello"), ("acpx", "hello again"), STATUS)
    return Scene(agent, config, steps, ("Hello from", "Not sent to the agent", "paid beside", "week: 100 % until"))


SCENES = {
    "claude-plan": _plan(SEATED),
    "claude-overage": _overage(SEATED),
    "codex-plan": _plan(CODEX),
    "codex-overage": _overage(CODEX),
    "claude-message": _message(CLAUDE, "0.035"),
    "codex-message": _message(CODEX, "0.02"),
    "claude-error": _error(CLAUDE),
    "codex-error": _error(CODEX),
    "goose-deny": _running(PRICED_GOOSE, "deny_next_tool", ("A tool was not permitted", "(failed)", "[done] end_turn")),
    "goose-cancel": _running(PRICED_GOOSE, "cancel", ("The agent was told to stop", "[done] cancelled")),
    # These two tell what a turn has cost when it ends, but meanwhile how full their context is.
    "claude-cancel": _running(CLAUDE, "cancel", ("The agent was told to stop", "[done] cancelled"), _TOKENS),
    "claude-at-end": _running(CLAUDE, "cancel", ("Hello from", "[done] end_turn")),
    "codex-cancel": _running(CODEX, "cancel", ("The agent was told to stop", "[done] cancelled"), _TOKENS),
    "codex-deny": _running(CODEX, "deny_next_tool", ("Hello from", "[done] end_turn")),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="show-budgets", description=(__doc__ or "").partition(": ")[2])
    parser.add_argument("scenes", nargs="*", metavar="SCENE", help=f"of {', '.join(SCENES)}; default: all")
    parser.add_argument("--npm", type=Path, required=True, help="where the packages are installed")
    parser.add_argument("--packages", action="store_true", help="list what has to be installed, and stop")
    parser.add_argument("--whole", action="store_true", help="all that acpx prints")
    options = parser.parse_args()
    scenes = {name: SCENES[name] for name in options.scenes or SCENES}
    if options.packages:
        needed = {scene.agent.name: scene.agent.package for scene in scenes.values()}
        say(f"node{NODE} node@{NODE}", f"acpx {ACPX}", *(f"{name} {package}" for name, package in needed.items()))
        return 0

    good = True
    for name, scene in scenes.items():
        say(f"### {name}: {scene.agent.package.rpartition('/')[2]}", "```toml", scene.config + "```", "```console")
        seen = ""
        for command, output in played(scene, options.npm):
            say(f"$ {command}", output if options.whole else shortened(output))
            seen += output
        say("```")
        if missing := lacks(seen, scene.shows):
            say(f"LACKS: {missing}")
            good = False
    return 0 if good else 1


def played(scene: Scene, npm: Path) -> Iterator[tuple[str, str]]:
    """Each command, and what it prints."""
    with tempfile.TemporaryDirectory(prefix="show-budgets-", ignore_cleanup_errors=True) as home_name:
        home = Path(home_name)
        model = Model(workplace(home))
        with serving(model) as port:
            agent, environment = started_by(scene.agent, npm, home, port)
            environment["ACPX_AUTH_API_KEY"] = "none"  # for agents that want a sign-in
            _configure(home, scene, agent)
            client = [
                "node",
                str(npm / "acpx/node_modules/acpx/dist/cli.js"),
                "--approve-all",
                "--ttl",
                str(IDLE),
                "agent",
            ]

            def run(*command: str) -> str:
                return _run(command, environment, model.directory)

            run(*client, "sessions", "new")
            if scene.agent.asking_mode:
                run(*client, "set-mode", scene.agent.asking_mode)
            try:
                for program, *words in scene.steps:
                    if program == "plan":
                        tell = _codex_limits if scene.agent.name == CODEX.name else _claude_limits
                        model.limits = tell(*words)
                    elif program == "acpx":
                        model.prompts += words
                        yield shlex.join([program, "agent", *words]), run(*client, *words)
                    else:
                        yield shlex.join([program, *words]), run(*PROXY, *words)
            finally:
                run(*client, "sessions", "close")


def _configure(home: Path, scene: Scene, agent: list[str]) -> None:
    acpx = {"agents": {"agent": {"command": shlex.join([*PROXY, "run", "--", *agent])}}}
    for path, text in (".config/acp-proxy/config.toml", scene.config), (".acpx/config.json", json.dumps(acpx)):
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text)


def _run(command: tuple[str, ...], environment: dict[str, str], directory: Path) -> str:
    done = subprocess.run(
        command,
        env=environment,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    return done.stdout + (f"[status {done.returncode}]\n" if done.returncode else "")


def shortened(output: str) -> str:
    """Without the calls of the protocol, and of tools only how they ended."""
    kept = re.sub(r"^(\[(acpx|client)\]| ).*\n|^\[tool\].*\((pending|running)\)\n", "", output, flags=re.MULTILINE)
    return re.sub(r"\n{2,}", "\n", kept).strip()


def lacks(seen: str, shows: tuple[str, ...]) -> str | None:
    """The first of `shows` that is not in what was seen after the ones before it."""
    at = 0
    for text in shows:
        at = seen.find(text, at) + len(text)
        if at < len(text):
            return text
    return None


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tests.real.newcomer --npm DIR`: times what docs/first-minutes.md tells, in an empty home.

A client takes the place of Zed and starts what Zed's settings say; a server on loopback takes the place of the model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from tests.real.agents import CLAUDE, NODE
from tests.real.client import Client
from tests.real.model import Model
from tests.real.runs import started_by, workplace
from tests.real.server import serving

ROOT = Path(__file__).parent.parent.parent
SECONDS = 300  # for one step


def main() -> int:
    parser = argparse.ArgumentParser(prog="first-minutes", description=(__doc__ or "").partition(": ")[2])
    parser.add_argument("--npm", type=Path, required=True, help="where a Node is installed")
    npm = parser.parse_args().npm
    with tempfile.TemporaryDirectory(prefix="first-minutes-", ignore_cleanup_errors=True) as place:
        home = Path(place, "home")
        home.mkdir()
        return _play(home, npm, _wheel(Path(place)))


def _play(home: Path, npm: Path, wheel: Path) -> int:
    """Returns the exit status."""
    began = time.monotonic()
    programs = f"{home}/venv/bin:{npm}/node{NODE}/node_modules/node/bin"
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "ACP_PROXY_"))}
    environ = inherited | {"HOME": str(home), "PATH": f"{programs}:{os.defpath}", "NO_COLOR": "1"}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a newcomer's Python keeps what it compiled

    _step(environ, sys.executable, "-m", "venv", f"{home}/venv")
    _step(environ, "pip", "install", "--quiet", str(wheel))
    _step(environ, "acp-proxy", "demo")
    _step(environ, "acp-proxy", "setup", "zed", "--agent", "claude")
    _turn(home, npm, environ)
    report = _step(environ, "acp-proxy", "report", "--by", "turn")
    _step(environ, "acp-proxy", "status")
    _say(f"in all: {time.monotonic() - began:.1f} s")
    return 0 if "claude" in report and "$" in report else 1


def _step(environ: Mapping[str, str], *command: str) -> str:
    """What the command printed. Raises CalledProcessError when it failed."""
    began = time.monotonic()
    program = shutil.which(command[0], path=environ["PATH"]) or command[0]
    done = subprocess.run(
        [program, *command[1:]], env=environ, cwd=environ["HOME"], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=SECONDS,
    )  # fmt: skip
    _say(f"$ {' '.join(command)}   [{time.monotonic() - began:.1f} s]", done.stdout)
    done.check_returncode()
    return done.stdout


def _turn(home: Path, npm: Path, environ: Mapping[str, str]) -> None:
    settings = json.loads((home / ".config/zed/settings.json").read_text())
    (entry,) = settings["agent_servers"].values()
    program = shutil.which(entry["command"], path=environ["PATH"]) or entry["command"]
    model = Model(workplace(home.parent / "agent"))
    with serving(model) as port:
        _, offline = started_by(CLAUDE, npm, home.parent / "agent", port)
        model.prompts.append("hello")
        kept = {name: environ[name] for name in ("HOME", "PATH")}
        asyncio.run(_prompt([program, *entry["args"]], {**environ, **offline, **kept}, model.directory))


async def _prompt(command: list[str], environ: Mapping[str, str], directory: Path) -> None:
    began = time.monotonic()
    pipe = subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, cwd=directory, env=environ, stdin=pipe, stdout=pipe, limit=1 << 28
    )
    client = Client(process, 1)
    await client.initialize()
    _say(f"the agent answers   [{time.monotonic() - began:.1f} s]")
    session = await client.session(directory, None, None)
    await client.call("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "hello"}]})
    _say(f"the first turn is over   [{time.monotonic() - began:.1f} s], updates of usage: {client.usage_updates}")
    await client.close()


def _wheel(place: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=SECONDS)
    return next(place.glob("*.whl"))


def _say(*lines: str) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

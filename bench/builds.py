"""`python -m bench.builds --built DIR --before TREE`: this build beside an earlier one, figure by figure in one run.

Each figure is measured in turn on both builds, so that a slow minute of a shared machine falls on both alike. What is
printed is the median of each, and the median of the ratios (now / before) of the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.peer import Peer, proc

PROXIES = 64
TURNS = 2000  # in the ledger that commands are asked of
_COLD = 200  # turns
_CACHES = 64 << 20  # bytes that are read between two turns: more than the processor caches
_PAGE = 4096
_BUDGET = '[[budget]]\nname = "daily"\nwindow = "day"\nlimit = { amount = "1000000", currency = "USD" }\n'
_LEDGER = (
    "import sys, pathlib; from bench.ledgers import ledger_of; ledger_of(int(sys.argv[2]), pathlib.Path(sys.argv[1]))"
)

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Build:
    """A tree with a virtualenv of its own, and a home directory that it made a ledger in."""

    tree: Path
    agent: Path
    home: Path

    @property
    def command(self) -> str:
        return str(self.tree / ".venv/bin/acp-proxy")

    @property
    def relay(self) -> list[str]:
        return [self.command, "run", "--no-summary", "--", str(self.agent)]

    @contextmanager
    def relaying(self, config: str = "") -> Iterator[Peer]:
        with tempfile.TemporaryDirectory(prefix="bench-builds") as home:
            own = Path(home, ".config/acp-proxy")
            own.mkdir(parents=True)
            if config:
                (own / "config.toml").write_text(config, encoding="utf-8")
            with Peer(self.relay, environment=_environment(Path(home))) as peer:
                yield peer


def memory(build: Build) -> Figures:
    """MB of one relay, at rest and after a turn."""
    with build.relaying() as peer:
        time.sleep(1.5)
        found = {"resident at rest, MB": peer.memory("VmRSS")}
        peer.hello()
        _turn(peer)
        time.sleep(1.5)  # its row is in the ledger
        return found | {"resident after a turn, MB": peer.memory("VmRSS")}


def private(build: Build) -> Figures:
    """MB that belong to no more than one of many idle relays, together."""
    with ExitStack() as stack:
        peers = [stack.enter_context(build.relaying()) for _ in range(PROXIES)]
        time.sleep(4)
        return {f"private of {PROXIES} idle proxies, MB": sum(_private(pid) for peer in peers for pid in _relays(peer))}


def cold_turns(build: Build) -> Figures:
    """CPU of a relay for a turn under no budget, when the client has used all of the processor's caches before it."""
    trash = bytearray(_CACHES)
    with build.relaying() as peer:
        peer.hello()
        for _ in range(20):
            _turn(peer)
        used = 0
        for _ in range(_COLD):
            for at in range(0, _CACHES, _PAGE // 64):
                trash[at] = 1
            before = peer.cpu_ns()
            _turn(peer)
            used += peer.cpu_ns() - before
        return {"CPU of a turn with cold caches, us": used / 1e3 / _COLD}


def commands(build: Build) -> Figures:
    """CPU of commands, user and system; the status is never one that was kept."""
    asked: Mapping[str, list[str]] = {
        "status made anew, CPU ms": ["status", "--format", f"{{today}} {time.monotonic_ns()}"],
        "report, CPU ms": ["report"],
        "budget list, CPU ms": ["budget", "list"],
    }
    return {name: _cpu_ms(build, words) for name, words in asked.items()}


MEASURES: Mapping[str, tuple[Callable[[Build], Figures], int]] = {  # with how many rounds
    "memory": (memory, 7),
    "private": (private, 3),
    "cold": (cold_turns, 5),
    "commands": (commands, 15),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench-builds")
    parser.add_argument("--built", type=Path, required=True, help="where the bench agent is")
    parser.add_argument("--before", type=Path, required=True, help="the tree of the earlier build, with its .venv")
    parser.add_argument("--parts", nargs="+", choices=MEASURES, default=list(MEASURES))
    options = parser.parse_args()
    agent = options.built / "agent"
    with tempfile.TemporaryDirectory(prefix="bench-builds") as directory:
        trees = {"before": options.before.resolve(), "now": Path.cwd()}
        builds = {name: _build(tree, agent, Path(directory, name)) for name, tree in trees.items()}
        rounds = _measured(builds, options.parts)
    sys.stdout.write("| | before | now | now / before |\n|---|--:|--:|--:|\n")
    for figure, (before, now) in rounds.items():
        ratio = statistics.median(mine / other for mine, other in zip(now, before, strict=True))
        cells = f"{statistics.median(before):.4g} | {statistics.median(now):.4g} | {ratio:.2f}"
        sys.stdout.write(f"| {figure} | {cells} |\n")
    return 0


def _measured(builds: Mapping[str, Build], parts: list[str]) -> dict[str, tuple[list[float], list[float]]]:
    found: dict[str, tuple[list[float], list[float]]] = {}
    for part in parts:
        measure, rounds = MEASURES[part]
        for number in range(rounds):
            sys.stderr.write(f"{part}: round {number + 1} of {rounds}\n")
            order = ("before", "now") if number % 2 else ("now", "before")
            for name in order:
                for figure, value in measure(builds[name]).items():
                    found.setdefault(figure, ([], []))[name == "now"].append(value)
    return found


def _build(tree: Path, agent: Path, directory: Path) -> Build:
    """With a ledger that the build itself made: one of a newer build may have a schema that an older one refuses."""
    python = tree / ".venv/bin/python"
    subprocess.run([python, "-c", _LEDGER, directory, str(TURNS)], cwd=tree, check=True, timeout=300)
    home = directory / str(TURNS)
    (home / ".config/acp-proxy/config.toml").write_text(_BUDGET, encoding="utf-8")
    return Build(tree, agent, home)


def _turn(peer: Peer) -> None:
    peer.send(peer.prompt("noop"))
    peer.drain()


def _cpu_ms(build: Build, words: list[str]) -> float:
    timed = [sys.executable, "-I", "-S", str(Path(__file__).with_name("timed.py")), build.command, *words]
    done = subprocess.run(timed, env=_environment(build.home), check=True, capture_output=True, timeout=60)
    return float(json.loads(done.stdout)["cpu ms"])


def _private(pid: int) -> float:
    lines = proc(f"/proc/{pid}/smaps_rollup").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private")) / 1024


def _relays(peer: Peer) -> list[int]:
    """Before the first message nothing tells which process is the agent, but that it is the relay's child."""
    return [peer.process.pid]


def _environment(home: Path) -> dict[str, str]:
    """Of a user with nothing but a home directory."""
    return {"HOME": str(home), "PATH": os.environ["PATH"], "TZ": "UTC", "XDG_STATE_HOME": "", "XDG_CONFIG_HOME": ""}


if __name__ == "__main__":
    sys.exit(main())

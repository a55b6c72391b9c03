"""What `scripts/bench` measures, part by part, and the relays that it compares."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench import right, spawned, traffic
from bench.goals import AGAIN, BARE, SMALLEST, US
from bench.peer import Peer, proc
from bench.rounds import Relays, Results, afresh, alive
from bench.traffic import Figures

PEERS = Path(__file__).parent / "peers"
RELAYS = ("c", US, "socat", "node-pipe", "ts-conductor", "asyncio-json", "python-sdk")  # in the order of tables

Names = tuple[str, ...]
_ALL: Names = ("direct", *RELAYS, AGAIN)
_LIMIT: Names = ("direct", "c", US, AGAIN)
_OURS: Names = (US,)


@dataclass(frozen=True, slots=True)
class Part:
    """One of the two measures; `batches` bounds how often."""

    relays: Names
    alive: Callable[[Peer], Figures] | None = None
    afresh: Callable[[list[str]], Figures] | None = None
    batches: int = 1000
    warm_up: int = 2
    pinned: bool = True  # client, relay and agent on one CPU, for far less noise

    def run(self, results: Results, name: str, available: Relays, batches: int) -> None:
        relays = {relay: available[relay] for relay in self.relays if relay in available}
        free = os.sched_getaffinity(0)
        if self.pinned:
            os.sched_setaffinity(0, {_idlest_cpu()})
        try:
            if self.alive:
                alive(results, name, self.alive, relays, min(batches, self.batches), self.warm_up)
            if self.afresh:
                afresh(results, name, self.afresh, relays, min(batches, self.batches))
        finally:
            os.sched_setaffinity(0, free)


PARTS = {
    "start": Part(("direct", "exec", *RELAYS), afresh=spawned.start, batches=8, pinned=False),  # as users have it
    "life": Part(_OURS, afresh=right.life, batches=1, pinned=False),
    "fidelity": Part(_OURS, afresh=right.fidelity, batches=1, pinned=False),
    "pings": Part(_ALL, traffic.pings),
    "updates": Part(_LIMIT, traffic.updates),
    "usages": Part(_LIMIT, traffic.usages),
    "turns": Part(_LIMIT, traffic.turns),
    "chunks": Part((*_ALL, SMALLEST), traffic.chunks),
    "tail": Part((US, BARE, SMALLEST), traffic.tail),
    "stream": Part(_ALL, traffic.Stream("msg")),
    "burst": Part(_ALL, traffic.Stream("burst")),
    "duplex": Part(_ALL, traffic.Duplex()),
    "1 MB": Part(_ALL, traffic.Huge(1)),
    "16 MB": Part(_ALL, traffic.Huge(16), batches=20),
    "16 MB behind 1 MB": Part(_ALL, traffic.Huge(16, behind=1), batches=20),
    "100 MB": Part(_ALL, traffic.Huge(100), batches=2, warm_up=1),
    "rest": Part(RELAYS, afresh=spawned.rest, batches=1),
    "stall": Part(RELAYS, afresh=spawned.stall, batches=1),
    "lost": Part(_OURS, afresh=spawned.lost, batches=1),
}


def relays(built: Path) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Commands by name, and why others are not there.

    `direct` is the agent alone, `exec` a Python that does nothing but become the agent.
    """
    agent, node, modules = str(built / "agent"), shutil.which("node"), built / "node_modules"
    in_c = [str(built / "relay_rw"), "--", agent]
    found: dict[str, list[str]] = {
        "direct": [agent],
        "c": in_c,
        AGAIN: in_c,
        US: [str(Path(sys.executable).parent / "acp-proxy"), "run", "--", agent],
        BARE: [sys.executable, str(PEERS / "bare.py"), "--", agent],
        SMALLEST: [sys.executable, str(PEERS / "smallest.py"), "--", agent],
        "asyncio-json": [sys.executable, str(PEERS / "asyncio_json.py"), "--", agent],
        "exec": [sys.executable, "-c", "import os, sys; os.execv(sys.argv[1], sys.argv[1:])", agent],
    }
    absent: dict[str, str] = {}
    offer = partial(_offer, found, absent)
    has_conductor = (modules / "@thinkwell/conductor").exists()
    offer("python-sdk", importlib.util.find_spec("acp"), [sys.executable, f"{PEERS}/python_sdk.py", "--", agent], _PIP)
    offer("socat", shutil.which("socat"), ["socat", "-b", "65536", "STDIO", f"EXEC:{agent}"], "apt install socat")
    offer("node-pipe", node, [str(node), f"{PEERS}/node_pipe.mjs", "--", agent], "Node is not installed")
    conductor = [str(node), f"{PEERS}/ts_conductor.mjs", str(modules), "--", agent]
    offer("ts-conductor", node and has_conductor, conductor, "npm install @thinkwell/conductor failed")
    return found, absent


_PIP = "pip install agent-client-protocol"


def _offer(
    found: dict[str, list[str]], absent: dict[str, str], name: str, is_there: object, command: list[str], why: str
) -> None:
    if is_there:
        found[name] = command
    else:
        absent[name] = why


def _idlest_cpu() -> int:
    def idle() -> dict[int, int]:
        rows = [line.split() for line in proc("/proc/stat").splitlines() if line.startswith("cpu") and line[3] != " "]
        return {int(row[0][3:]): int(row[4]) for row in rows}

    before = idle()
    time.sleep(0.5)
    after = idle()
    return max(os.sched_getaffinity(0), key=lambda cpu: after[cpu] - before[cpu])

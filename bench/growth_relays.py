"""What relays cost as there is more of what they do: messages and turns of one session, and proxies on one ledger."""

from __future__ import annotations

import json
import os
import selectors
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.growth_ledgers import Costs, command_cost
from bench.peer import Peer

MESSAGES = (1000, 10_000, 100_000, 1_000_000)
TURNS = (100, 1000, 10_000, 100_000)
PROXIES = (1, 2, 4, 8, 16, 32, 64)
PERIOD = 0.25  # seconds between two turns of a proxy
SECONDS = 6.0  # of each number of proxies
BUDGET = '[[budget]]\nname = "daily"\nwindow = "day"\nlimit = { amount = "1000000", currency = "USD" }\n'
_ASKED = {
    "session last": ["session", "last"],
    "session --json": ["session", "last", "--json"],
    "status": ["status", "--format", "{now}"],
}
LONGEST = 150.0  # seconds for the turns of one session


def messages(agent: Path) -> Iterator[tuple[int, Costs]]:
    """After so many messages of one session, each in a write of its own."""
    with _home("") as home, _relay(agent, home) as peer:
        sent = 0
        for count in MESSAGES:
            used = peer.cpu_ns()
            peer.send(peer.prompt(f"stream n={count - sent} size=300 mode=msg"))
            peer.drain()
            yield count, {"MB": peer.memory("VmRSS"), "cpu us": (peer.cpu_ns() - used) / 1e3 / (count - sent)}
            sent = count


def turns(agent: Path) -> Iterator[tuple[int, Costs]]:
    """After so many turns of one session; the figures of turns are of the last ones. Stops when it takes too long."""
    with _home("") as home, _relay(agent, home) as peer:
        done, stop = 0, time.monotonic() + LONGEST
        for count in TURNS:
            took, used = list[float](), peer.cpu_ns()
            before = done
            while done < count and time.monotonic() < stop:
                took.append(_turn(peer))
                done += 1
            costs = {
                "MB": peer.memory("VmRSS"),
                "cpu us": (peer.cpu_ns() - used) / 1e3 / max(1, done - before),
                "ms": statistics.median(took[-100:]) * 1e3,
            }
            for name, command in _ASKED.items():
                cost = command_cost(home, command, times=1)
                costs |= {f"{name}, cpu ms": cost["cpu ms"], f"{name}, MB": cost["MB"]}
            yield done, costs
            if done < count:
                return


def _turn(peer: Peer) -> float:
    began = time.perf_counter()
    peer.send(peer.prompt("noop"))
    while b'"stopReason"' not in peer.line():
        pass
    return time.perf_counter() - began


def proxies(agent: Path) -> Iterator[tuple[int, Costs]]:
    """So many proxies on one ledger with a budget, with four turns a second each."""
    for count in PROXIES:
        with _home(BUDGET) as home, ExitStack() as stack:
            peers = [stack.enter_context(_relay(agent, home)) for _ in range(count)]
            used = sum(peer.cpu_ns() for peer in peers)
            took = sorted(_turns_of_all(peers))
            used = sum(peer.cpu_ns() for peer in peers) - used
            yield (
                count,
                {
                    "p50 ms": took[len(took) // 2] * 1e3,
                    "p99 ms": took[int(len(took) * 0.99)] * 1e3,
                    "turns/s": len(took) / SECONDS,
                    "cpu ms": used / 1e6 / len(took),
                    "MB": statistics.median(peer.memory("VmRSS") for peer in peers),
                },
            )


@dataclass(slots=True)
class _Line:
    peer: Peer
    due: float
    began: float = 0.0  # of the turn that runs
    tail: bytes = b""
    took: list[float] = field(default_factory=list)


def _turns_of_all(peers: list[Peer]) -> Iterator[float]:
    """How long each turn took, in seconds."""
    start = time.monotonic()
    lines = [_Line(peer, start + PERIOD * at / len(peers)) for at, peer in enumerate(peers)]
    with selectors.DefaultSelector() as selector:
        for line in lines:
            selector.register(line.peer.from_relay, selectors.EVENT_READ, line)
        while (now := time.monotonic()) < start + SECONDS or any(line.began for line in lines):
            for line in lines:
                if not line.began and line.due <= now < start + SECONDS:
                    line.due, line.began, line.tail = line.due + PERIOD, now, b""
                    line.peer.send(line.peer.prompt("noop"))
            for key, _ in selector.select(0.002):
                _take(key.data)
    for line in lines:
        yield from line.took


def _take(line: _Line) -> None:
    line.tail += line.peer.read()
    if line.began and b'"stopReason"' in line.tail and line.tail.endswith(b"\n"):
        line.took.append(time.monotonic() - line.began)
        line.began = 0.0


@contextmanager
def _home(config: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="growth") as directory:
        home = Path(directory)
        (home / ".config/acp-proxy").mkdir(parents=True)
        (home / ".config/acp-proxy/config.toml").write_text(config, encoding="utf-8")
        yield home


@contextmanager
def _relay(agent: Path, home: Path) -> Iterator[Peer]:
    command = [str(Path(sys.executable).parent / "acp-proxy"), "run", "--no-summary", "--", str(agent)]
    own = {"HOME": str(home), "XDG_STATE_HOME": str(home / ".local/state"), "XDG_CONFIG_HOME": str(home / ".config")}
    with Peer(command, seconds=600, environment=own | {"USER": "alice"}) as peer:
        yield peer.hello()


if __name__ == "__main__":  # one part, for a look
    for count, costs in {"messages": messages, "turns": turns, "proxies": proxies}[sys.argv[1]](Path(sys.argv[2])):
        sys.stdout.write(f"{count} {json.dumps(costs)}{os.linesep}")

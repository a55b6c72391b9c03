"""What is measured on relays that are started for it: start, rest, and a reader that stalls."""

from __future__ import annotations

import os
import select
import subprocess
import time

from bench.peer import Peer, proc
from bench.traffic import Figures

STALLED_MB = 256  # offered to a reader that does not read


def start(command: list[str]) -> Figures:
    """From spawn to the answer of `initialize`, with an agent that boots for 300 ms; then from stdin's end to exit."""
    with Peer(command, environment={"BENCH_AGENT_STARTUP_MS": "300"}) as peer:
        peer.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        up = time.perf_counter_ns() - peer.began
        began = time.perf_counter_ns()
        if peer.process.stdin:
            peer.process.stdin.close()
        try:
            peer.process.wait(5)
        except subprocess.TimeoutExpired:  # some relays do not end with their client
            return {"start ms": up / 1e6}
        return {"start ms": up / 1e6, "exit ms": (time.perf_counter_ns() - began) / 1e6}


def rest(command: list[str]) -> Figures:
    """A second in which nothing happens."""
    with Peer(command) as peer:
        peer.hello()
        time.sleep(0.5)
        switches = peer.context_switches()
        time.sleep(1)
        return {"RSS MB": peer.memory("VmRSS"), "wake-ups/s": peer.context_switches() - switches}


def stall(command: list[str]) -> Figures:
    """A reader that stops for a second: what the whole path takes in meanwhile, and what the relay grows by."""
    sides = {"down": _stall_down(command, to_the_end=False), "up": _stall_up(command)}
    return {f"{side} {name}": value for side, figures in sides.items() for name, value in figures.items()}


def lost(command: list[str]) -> Figures:
    """How many lines do not come when the reader goes on."""
    return _stall_down(command, to_the_end=True)


def _stall_down(command: list[str], *, to_the_end: bool) -> dict[str, float]:
    with Peer(command) as peer:
        peer.hello()
        time.sleep(0.4)
        idle, written, count = peer.memory("VmRSS"), _written(peer.agent), (STALLED_MB << 20) // 300
        peer.send(peer.prompt(f"stream n={count} size=300 mode=burst"))
        grew = _peak_over(peer, idle, seconds=1)
        held = (_written(peer.agent) - written) / 2**20
        if not to_the_end:
            return {"held MB": held, "grew MB": grew}
        _, lines, _ = peer.drain()
        return {"lines lost": max(0, count + 1 - lines)}


def _stall_up(command: list[str]) -> dict[str, float]:
    note = b'{"jsonrpc":"2.0","method":"_bench/note","params":{"pad":"%s"}}\n' % (b"x" * 240)
    with Peer(command) as peer:
        peer.hello()
        time.sleep(0.4)
        idle, sent, grew = peer.memory("VmRSS"), 0, 0.0
        peer.send(peer.prompt("sleep ms=1500"))
        os.set_blocking(peer.to_relay, False)
        block = rest = memoryview(note * 200)
        stop = time.monotonic() + 1
        while time.monotonic() < stop and sent < STALLED_MB << 20:
            if not select.select([], [peer.to_relay], [], 0.05)[1]:
                grew = max(grew, peer.memory("VmRSS") - idle)
                continue
            size = os.write(peer.to_relay, rest)
            sent += size
            rest = rest[size:] or block
        return {"held MB": sent / 2**20, "grew MB": grew}


def _peak_over(peer: Peer, idle: float, seconds: float) -> float:
    peak, stop = 0.0, time.monotonic() + seconds
    while time.monotonic() < stop:
        time.sleep(0.05)
        peak = max(peak, peer.memory("VmRSS") - idle)
    return peak


def _written(pid: int) -> int:
    return int(proc(f"/proc/{pid}/io").split("wchar: ")[1].split()[0])

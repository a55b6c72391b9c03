"""What is measured on relays that stay alive: short batches alternate, so that a bad moment hits all alike.

Each function takes a peer and returns figures by name.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable

from bench.peer import SESSION, Died, Peer

Figures = dict[str, float]

PINGS = 100  # a batch
PACED = 100
LONG = 1600  # chunks in one turn, so that the turn is little of what they take
SLICE = 0.1  # seconds that a batch of a stream should take


def pings(peer: Peer) -> Figures:
    """Round trips of 200 bytes each way that no relay has to understand."""
    return _round_trips(peer, [peer.ping() for _ in range(PINGS)], b"\n")


def updates(peer: Peer) -> Figures:
    """The same with a usage_update before each answer, while a turn runs: a message that a meter has to understand."""
    peer.send(peer.prompt("wait"))
    figures = _round_trips(peer, [peer.ping("usage") for _ in range(PINGS)], b'"result"')
    peer.send(peer.ping("done"))
    answers = 0
    while answers < 2:  # the turn's, and that of the last request
        answers += b'"result"' in peer.line()
    return figures


def turns(peer: Peer) -> Figures:
    """Whole turns: a prompt, and a response with usage. What a relay adds of its own is part of it."""
    return _round_trips(peer, [peer.prompt("noop", 200) for _ in range(PINGS)], b'"stopReason"')


def _round_trips(peer: Peer, lines: list[bytes], last: bytes) -> Figures:
    times = []
    used, stop, clock = peer.cpu_ns(), time.monotonic() + 3, time.perf_counter_ns
    for line in lines:
        began = clock()
        os.write(peer.to_relay, line)
        data = os.read(peer.from_relay, 65536)
        while data[-1:] != b"\n" or last not in data:
            data += peer.read(65536)
        times.append(clock() - began)
        if time.monotonic() > stop:
            break
    used = peer.cpu_ns() - used
    return {"p50 us": sorted(times)[len(times) // 2] / 1e3, "cpu us": used / 1e3 / len(times) / 2}


def chunks(peer: Peer) -> Figures:
    """One chunk of 300 bytes a millisecond: the cost of a message that comes alone."""
    return _paced(peer, f"stream n={PACED} size=300 mode=paced us=1000 usage=0", b"agent_message_chunk", _time_in_text)


def tail(peer: Peer) -> Figures:
    """The same over a longer time, for the few that take long."""
    return _paced(peer, f"stream n={LONG} size=300 mode=paced us=1000 usage=0", b"agent_message_chunk", _time_in_text)


def usages(peer: Peer) -> Figures:
    """One usage_update a millisecond, which finds everybody asleep."""
    return _paced(peer, f"stream n={PACED} mode=paced us=1000 usage=1", b'"ns":', _time_in_meta)


def _paced(peer: Peer, command: str, marks: bytes, sent_at: Callable[[bytes], int]) -> Figures:
    late, used = list[int](), peer.cpu_ns()
    peer.send(peer.prompt(command))
    while b'"stopReason"' not in (line := peer.line()):
        now = time.monotonic_ns()
        if marks in line:
            late.append(now - sent_at(line))
    used = peer.cpu_ns() - used
    late.sort()
    return {
        "p50 us": late[len(late) // 2] / 1e3,
        "p99 us": late[int(len(late) * 0.99)] / 1e3,
        "cpu us": used / 1e3 / len(late),
    }


def _time_in_text(line: bytes) -> int:
    return int(json.loads(line)["params"]["update"]["content"]["text"].split()[1])


def _time_in_meta(line: bytes) -> int:
    return int(json.loads(line)["params"]["update"]["_meta"]["ns"])


class Stream:
    """Chunks as fast as they go: `burst` in writes of 60 KiB, `msg` each in a write of its own, as agents do."""

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._rates: dict[Peer, float] = {}

    def __call__(self, peer: Peer) -> Figures:
        count = max(1000, min(200_000, int(self._rates.get(peer, 1e4) * SLICE)))
        used, began = peer.cpu_ns(), time.perf_counter_ns()
        peer.send(peer.prompt(f"stream n={count} size=300 mode={self._mode}"))
        _, lines, _ = peer.drain()
        seconds = (time.perf_counter_ns() - began) / 1e9
        if lines < count + 1:
            raise Died(f"{lines} lines of {count + 1}")
        self._rates[peer] = count / seconds
        return {"k/s": count / seconds / 1e3, "cpu us": (peer.cpu_ns() - used) / 1e3 / count}


class Duplex:
    """Both directions at once: requests written without waiting for their answers."""

    def __init__(self) -> None:
        self._rates: dict[Peer, float] = {}

    def __call__(self, peer: Peer) -> Figures:
        count = max(500, min(20_000, int(self._rates.get(peer, 1e4) * SLICE)))
        began, answers = time.perf_counter_ns(), 0
        unsent = memoryview(b"".join(peer.ping() for _ in range(count)))
        os.set_blocking(peer.to_relay, False)
        try:
            while answers < count:
                readable, writable, _ = select.select([peer.from_relay], [peer.to_relay] if unsent else [], [])
                if writable:
                    unsent = unsent[os.write(peer.to_relay, unsent[:65536]) :]
                if readable:
                    answers += peer.read().count(b"\n")
        finally:
            os.set_blocking(peer.to_relay, True)
        self._rates[peer] = count / (time.perf_counter_ns() - began) * 1e9
        return {"k/s": self._rates[peer] / 1e3}


class Huge:
    """One line of many MB from the agent, and one to it: rate, delay of the first byte, memory over the idle one.

    `behind` such lines of another size, or after a pause in which other relays had the processor.
    """

    def __init__(self, megabytes: int, *, behind: int = 0) -> None:
        self._size = megabytes << 20
        self._before = Huge(behind) if behind else None

    def __call__(self, peer: Peer) -> Figures:
        if self._before:
            self._before(peer)
        down = self._measured(peer, peer.prompt(f"big size={self._size}"))
        image = b'{"type":"image","mimeType":"image/png","data":"' + b"A" * self._size + b'"}'
        text = b'{"type":"text","text":"bench noop"}'
        params = b'{"sessionId":"%s","prompt":[%s,%s]}' % (SESSION.encode(), text, image)
        up = self._measured(peer, b'{"jsonrpc":"2.0","id":"big","method":"session/prompt","params":%s}\n' % params)
        return {
            "down MB/s": down[0],
            "down first byte ms": down[1],
            "down peak MB": down[2],
            "up MB/s": up[0],
            "up peak MB": up[2],
        }

    def _measured(self, peer: Peer, line: bytes) -> tuple[float, float, float]:
        idle = peer.memory("VmRSS")
        peer.forget_peak()
        began = time.perf_counter_ns()
        peer.send(line)
        _, _, first = peer.drain()
        rate = self._size / (time.perf_counter_ns() - began) * 1e3
        return rate, (first - began) / 1e6, peer.memory("VmHWM") - idle

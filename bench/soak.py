"""Load held for a long time: many proxies on one ledger, each with a burst every second.

`python -m bench.soak` counts lines that are lost, changed or out of order and turns that are not booked, and draws the
memory of the relays. All clients are one program in C, so that the load is the relays' own.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from acp_proxy.ledger import Query, open_ledger
from acp_proxy.ledger.places import journal_directories, sqlite_url
from acp_proxy.system.directories import default_ledger
from bench.documents import MEASURED, machine, put, put_json, put_picture, today
from bench.peer import Died, Peer, proc
from bench.svg import Axis, lines

PERIOD_MS = 1000  # between two bursts of a proxy
SAMPLED = 2.0  # seconds between two looks at memory
SEARCHED = (500, 1000, 1500, 2000, 3000)  # lines of a burst
_SEARCH_SECONDS = 15
_PAGE = os.sysconf("SC_PAGE_SIZE") / 2**20
_TICK = os.sysconf("SC_CLK_TCK")


class Counted(msgspec.Struct):
    """What the clients saw; what they say of it is in bench/c/clients.c."""

    relayed: int
    offered: int
    lost: int
    disordered: int
    changed: int
    turns: int
    skipped: int
    others: int
    seconds: float
    delay_p50_ms: float
    delay_p99_ms: float
    delay_most_ms: float


@dataclass(slots=True)
class Sample:
    minute: float
    median: float  # MB resident
    most: float


@dataclass(slots=True)
class Load:
    proxies: int
    lines: int  # of a burst
    rate: int  # lines a second within it


@dataclass(slots=True)
class Held:
    """What one load came to. `booked` are turns of the ledger, of this load and of those before."""

    load: Load
    counted: Counted
    due: int = 0  # turns that are to be in the ledger then
    booked: int = 0
    relay_cpu: float = 0.0  # seconds of all relays
    agent_cpu: float = 0.0
    samples: list[Sample] = field(default_factory=list)

    @property
    def good(self) -> bool:
        counted = self.counted
        return not counted.lost + counted.disordered + counted.changed and self.booked == self.due

    @property
    def part(self) -> float:
        """Of what was offered, how much was relayed."""
        return self.counted.relayed / self.counted.offered

    def as_json(self) -> dict[str, Any]:
        return {
            "load": asdict(self.load),
            "counted": msgspec.to_builtins(self.counted),
            "booked": self.booked,
            "relay_cpu_seconds": self.relay_cpu,
            "agent_cpu_seconds": self.agent_cpu,
            "samples": [asdict(sample) for sample in self.samples],
        }

    def table(self) -> Iterator[str]:
        counted, load = self.counted, self.load
        offered = load.proxies * load.lines * 1000 // PERIOD_MS
        first, last = _thirds([sample.median for sample in self.samples])
        rows = {
            "proxies, minutes": f"{load.proxies}, {counted.seconds / 60:.1f}",
            "burst of each, every second": f"{load.lines:,} lines at {load.rate:,} a second",
            "offered in all": f"{offered:,} lines a second",
            "lines relayed": f"{counted.relayed:,}, {self.part:.1%} of those offered",
            "lines lost, out of order, changed": f"{counted.lost}, {counted.disordered}, {counted.changed}",
            "bursts skipped, for the one before had not ended": f"{counted.skipped:,}",
            "turns acknowledged, booked": f"{self.due:,}, {self.booked:,}",
            "delay from agent to client, p50, p99, most": f"{counted.delay_p50_ms:.2g}, {counted.delay_p99_ms:.3g}, "
            f"{counted.delay_most_ms:.4g} ms",
            "CPU of the relays, a line": f"{self.relay_cpu / max(1, counted.relayed) * 1e6:.2f} µs",
            "CPU of relays": f"{self.relay_cpu / counted.seconds:.2f} cores",
            "CPU of agents": f"{self.agent_cpu / counted.seconds:.2f} cores",
            "resident, first and last third": f"{first:.1f} MB, {last:.1f} MB (median relay)",
            "resident, most of any relay": f"{max(sample.most for sample in self.samples):.1f} MB",
        }
        yield "| | |"
        yield "|---|---|"
        yield from (f"| {name} | {value} |" for name, value in rows.items())


def hold(built: Path, home: Path, loads: Sequence[Load], seconds: float) -> list[Held]:
    """Each load in its turn, through the same proxies, which are evenly out of step."""
    environ = {"HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "XDG_CONFIG_HOME": str(home / "config")}
    relay = [str(Path(sys.executable).parent / "acp-proxy"), "run", "--no-summary", "--", str(built / "agent")]
    with ExitStack() as stack:
        peers = []
        for _ in range(max(load.proxies for load in loads)):
            peers.append(stack.enter_context(Peer(relay, seconds=len(loads) * (seconds + 300), environment=environ)))
            peers[-1].hello()
        all_held = [_run(str(built / "clients"), peers, load, seconds) for load in loads]
        for peer in peers:
            if peer.process.stdin:
                peer.process.stdin.close()
        for peer in peers:
            peer.process.wait(60)
    with closing(open_ledger(sqlite_url(default_ledger(environ)), journals=journal_directories(environ))) as ledger:
        booked = sum(sums.turns for sums in ledger.summed(Query(), ()))
    for held in all_held:
        held.due, held.booked = sum(each.counted.turns for each in all_held), booked
    return all_held


def _run(program: str, peers: Sequence[Peer], load: Load, seconds: float) -> Held:
    ends = [(peer.to_relay, peer.from_relay) for peer in peers]
    command = [program, str(seconds), str(load.lines), str(1_000_000 // load.rate), str(PERIOD_MS)]
    command += [f"{to}:{come}" for to, come in ends]
    relays, agents = [peer.process.pid for peer in peers], [peer.agent for peer in peers]
    relay_cpu, agent_cpu = _cpu(relays), _cpu(agents)
    began, samples = time.monotonic(), list[Sample]()
    passed = [end for pair in ends for end in pair]
    with subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=passed) as clients:
        while clients.poll() is None:
            samples.append(_sample(peers, (time.monotonic() - began) / 60))
            with contextlib.suppress(subprocess.TimeoutExpired):
                clients.wait(SAMPLED)
        if clients.returncode or clients.stdout is None:
            raise Died("the clients gave up")
        counted = msgspec.json.decode(clients.stdout.read(), type=Counted)
    held = Held(load, counted, samples=samples)
    held.relay_cpu, held.agent_cpu = _cpu(relays) - relay_cpu, _cpu(agents) - agent_cpu
    sys.stderr.write(f"held: {load.proxies} x {load.lines} lines a second: {held.part:.1%}\n")
    return held


def _sample(peers: Sequence[Peer], minute: float) -> Sample:
    resident = [int((proc(f"/proc/{peer.process.pid}/statm") or "0 0").split()[1]) * _PAGE for peer in peers]
    return Sample(minute, statistics.median(resident), max(resident))


def _cpu(pids: Sequence[int]) -> float:
    """Seconds, user and system."""
    stats = [proc(f"/proc/{pid}/stat").rpartition(")")[2].split() for pid in pids]
    return sum(int(stat[11]) + int(stat[12]) for stat in stats if stat) / _TICK


def _thirds(values: Sequence[float]) -> tuple[float, float]:
    """The medians of the first third and of the last one."""
    size = max(1, len(values) // 3)
    return statistics.median(values[:size]), statistics.median(values[-size:])


def drawn(held: Held) -> str:
    """Resident memory over time: the median relay, and the largest."""
    series = {
        "median relay": [(sample.minute, sample.median) for sample in held.samples],
        "largest relay": [(sample.minute, sample.most) for sample in held.samples],
    }
    title = f"Resident memory of {held.load.proxies} relays under load"
    return lines(title, Axis("minutes", logarithmic=False), Axis("MB", logarithmic=False), series)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/soak load", description=__doc__)
    parser.add_argument("--proxies", type=int, default=64)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--lines", type=int, default=2000, help="of a burst (2000)")
    parser.add_argument("--rate", type=int, default=20_000, help="lines a second within a burst (20000)")
    parser.add_argument("--search", action="store_true", help="instead, larger and larger bursts for 15 s each")
    parser.add_argument("--write", action="store_true", help="put table, picture and figures into docs/")
    parser.add_argument("--built", type=Path, required=True, help="where the programs in C are")
    arguments = parser.parse_args()
    sizes, seconds = (SEARCHED, _SEARCH_SECONDS) if arguments.search else ([arguments.lines], arguments.minutes * 60)
    loads = [Load(arguments.proxies, size, arguments.rate) for size in sizes]
    with tempfile.TemporaryDirectory(prefix="soak") as home:
        held = hold(arguments.built, Path(home), loads, seconds)
    table = list(_searched(held)) if arguments.search else [f"Measured {today()} on {machine()}.", "", *held[0].table()]
    sys.stdout.write("\n".join(table) + "\n")
    if arguments.write:
        _write(held, table, "load-search" if arguments.search else "load")
    return 0 if all(each.good for each in held) else 1


def _searched(all_held: Sequence[Held]) -> Iterator[str]:
    yield "| lines of a burst | offered | relayed | part | delay p50, p99 | CPU of the relays | faults |"
    yield "|---|---|---|---|---|---|---|"
    for held in all_held:
        counted, load = held.counted, held.load
        offered, rate = load.proxies * load.lines * 1000 // PERIOD_MS, counted.relayed / counted.seconds
        delay = f"{counted.delay_p50_ms:.2g}, {counted.delay_p99_ms:.3g} ms"
        faults = "none" if held.good else "**some**"
        yield (
            f"| {load.lines:,} | {offered:,}/s | {rate:,.0f}/s | {held.part:.0%} | {delay} "
            f"| {held.relay_cpu / counted.seconds:.2f} cores | {faults} |"
        )


def _write(all_held: Sequence[Held], table: Sequence[str], name: str) -> None:
    figures = {"date": today(), "machine": machine(), "runs": [held.as_json() for held in all_held]}
    put_json(MEASURED / f"{name}.json", figures)
    put("reliability.md", name, [*table, "", f"Every figure: [{name}.json](measured/{name}.json)."])
    if name == "load":
        put_picture("soak-memory.svg", drawn(all_held[0]))


if __name__ == "__main__":
    sys.exit(main())

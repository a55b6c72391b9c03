"""Load held for a long time: many proxies on one ledger, each with a burst every second.

`python -m bench.soak` counts the lines that are lost or out of order, the turns that are not booked, and samples the
memory of every relay, which it draws.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import selectors
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

from acp_proxy.ledger import Query, open_ledger
from acp_proxy.ledger.places import default_url, journal_directories
from bench.peer import Died, Peer, proc

PERIOD = 1.0  # seconds between two bursts of a proxy
SAMPLED = 2.0  # seconds between two looks at memory
_PAGE = os.sysconf("SC_PAGE_SIZE") / 2**20


@dataclass(slots=True)
class Line:
    """One proxy under load, and what came through it."""

    peer: Peer
    lines: int  # of a burst
    rate: int  # lines a second within it
    due: float
    busy: bool = False
    next: int = 0  # the number of the line that is due
    rest: bytes = b""
    turns: int = 0
    relayed: int = 0
    lost: int = 0
    disordered: int = 0
    skipped: int = 0  # bursts that were due while the last one still ran

    def begin_if_due(self, now: float) -> None:
        if now < self.due:
            return
        self.due += PERIOD
        if self.busy:
            self.skipped += 1
            return
        self.busy, self.next = True, 0
        command = f"stream n={self.lines} size=300 mode=paced us={1_000_000 // self.rate} usage=0"
        self.peer.send(self.peer.prompt(command))

    def read(self) -> None:
        *whole, self.rest = (self.rest + self.peer.read()).split(b"\n")
        for line in whole:
            if b'"agent_message_chunk"' in line:
                self._take(int(line.partition(b'"text":"')[2].split(b" ")[1]))
            elif b'"stopReason"' in line:
                self.lost += self.lines - self.next
                self.turns += 1
                self.busy = False

    def _take(self, number: int) -> None:
        self.relayed += 1
        if number > self.next:
            self.lost += number - self.next
        self.disordered += number < self.next
        self.next = number + 1


@dataclass(slots=True)
class Sample:
    minute: float
    median: float  # MB resident
    most: float


@dataclass(slots=True)
class Held:
    seconds: float
    lines: list[Line]
    booked: int = 0
    samples: list[Sample] = field(default_factory=list)

    def total(self, name: str) -> int:
        return sum(int(getattr(line, name)) for line in self.lines)

    @property
    def good(self) -> bool:
        return not self.total("lost") and not self.total("disordered") and self.booked == self.total("turns")

    def told(self) -> Iterator[str]:
        first, last = _thirds([sample.median for sample in self.samples])
        yield f"proxies                      {len(self.lines)}"
        yield f"minutes                      {self.seconds / 60:.1f}"
        yield f"lines relayed                {self.total('relayed')}"
        yield f"lines lost, out of order     {self.total('lost')}, {self.total('disordered')}"
        yield f"turns acknowledged, booked   {self.total('turns')}, {self.booked}"
        yield f"bursts skipped as too late   {self.total('skipped')}"
        yield f"resident, first, last third  {first:.1f} MB, {last:.1f} MB (median relay)"
        yield f"resident, most of any relay  {max(sample.most for sample in self.samples):.1f} MB"


def hold(agent: str, home: Path, proxies: int, seconds: float, lines: int, rate: int) -> Held:
    """Bursts of `lines` at `rate` a second through so many proxies, evenly out of step."""
    environ = {"HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "XDG_CONFIG_HOME": str(home / "config")}
    relay = [str(Path(sys.executable).parent / "acp-proxy"), "run", "--no-summary", "--", agent]
    with ExitStack() as stack:
        peers = [stack.enter_context(Peer(relay, seconds=seconds + 300, environment=environ)) for _ in range(proxies)]
        for peer in peers:
            peer.hello()
        began = time.monotonic()
        all_lines = [Line(peer, lines, rate, began + PERIOD * at / proxies) for at, peer in enumerate(peers)]
        held = Held(seconds, all_lines)
        _run(held, began)
        for peer in peers:
            if peer.process.stdin:
                peer.process.stdin.close()
        for peer in peers:
            peer.process.wait(60)
    with closing(open_ledger(default_url(environ), journals=journal_directories(environ))) as ledger:
        held.booked = sum(sums.turns for sums in ledger.summed(Query(), ()))
    return held


def _run(held: Held, began: float) -> None:
    sample_at = began
    with selectors.DefaultSelector() as selector:
        for line in held.lines:
            selector.register(line.peer.from_relay, selectors.EVENT_READ, line)
        while (now := time.monotonic()) < began + held.seconds or any(line.busy for line in held.lines):
            if now > began + held.seconds + 120:
                raise Died("bursts that do not end")
            if now < began + held.seconds:
                for line in held.lines:
                    line.begin_if_due(now)
            if now >= sample_at:
                sample_at += SAMPLED
                held.samples.append(_sample(held.lines, (now - began) / 60))
            for key, _ in selector.select(0.02):
                key.data.read()


def _sample(lines: Sequence[Line], minute: float) -> Sample:
    resident = [int((proc(f"/proc/{line.peer.process.pid}/statm") or "0 0").split()[1]) * _PAGE for line in lines]
    return Sample(minute, statistics.median(resident), max(resident))


def _thirds(values: Sequence[float]) -> tuple[float, float]:
    """The medians of the first third and of the last one."""
    size = max(1, len(values) // 3)
    return statistics.median(values[:size]), statistics.median(values[-size:])


def drawn(held: Held) -> str:
    """Resident memory over time as an SVG: the median relay, and the largest."""
    width, height, left, bottom = 720, 280, 50, 40
    end = max(sample.minute for sample in held.samples) or 1
    top = max(sample.most for sample in held.samples) * 1.2

    def points(name: str) -> str:
        places = (
            (left + sample.minute / end * (width - left - 10), (1 - getattr(sample, name) / top) * (height - bottom))
            for sample in held.samples
        )
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)

    marks = [
        f'<text x="{left - 6}" y="{(1 - value / top) * (height - bottom) + 4:.0f}" text-anchor="end">{value}</text>'
        for value in range(0, int(top) + 1, 10)
    ] + [
        f'<text x="{left + minute / end * (width - left - 10):.0f}" y="{height - bottom + 18}" '
        f'text-anchor="middle">{minute}</text>'
        for minute in range(int(end) + 1)
    ]
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" \
font-size="12">
<title>Resident memory of {len(held.lines)} relays under load</title>
<rect width="{width}" height="{height}" fill="#fff"/>
<path d="M{left} 0V{height - bottom}H{width - 10}" fill="none" stroke="#888"/>
{"".join(marks)}
<text x="{left}" y="{height - 4}">minutes; MB resident of the median relay (dark) and of the largest (light)</text>
<polyline points="{points("most")}" fill="none" stroke="#7fc4bd" stroke-width="2"/>
<polyline points="{points("median")}" fill="none" stroke="#00695c" stroke-width="2"/>
</svg>
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/soak load", description=__doc__)
    parser.add_argument("--proxies", type=int, default=64)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--lines", type=int, default=2000, help="of a burst (2000)")
    parser.add_argument("--rate", type=int, default=20_000, help="lines a second within a burst (20000)")
    parser.add_argument("--agent", required=True, help="the bench agent, built")
    parser.add_argument("--picture", type=Path, help="an SVG of memory over time")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak") as home, contextlib.suppress(KeyboardInterrupt):
        held = hold(
            arguments.agent,
            Path(home),
            arguments.proxies,
            arguments.minutes * 60,
            arguments.lines,
            arguments.rate,
        )
        sys.stdout.write("\n".join(held.told()) + "\n")
        if arguments.picture:
            arguments.picture.write_text(drawn(held))
        return 0 if held.good else 1
    return 130


if __name__ == "__main__":
    sys.exit(main())

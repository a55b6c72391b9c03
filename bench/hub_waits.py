"""How long prompts wait for admission when many proxies ask a hub, and how many it admits: its goals, as a table.

All share one budget. The link with the delay lies between proxies and hub, or proxies and PostgreSQL; a hub stands
beside its database. Ratios are those of one round, the median of all rounds. `before` is an earlier build, whose
proxies ask PostgreSQL themselves.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from acp_proxy.hub.auth.access_tokens import AccessTokens
from acp_proxy.hub.store import Store
from acp_proxy.hub.store.families import Family
from acp_proxy.hub.store.people import Holder
from acp_proxy.ledger import open_ledger
from bench.documents import machine, put, today
from bench.postgres_far import linked, ready, started, told
from harness.faults.hubs import HubProcess
from harness.postgres import Server, running

_ROOT = Path(__file__).parents[1]
_WRITER = Path(__file__).with_name("far_writer.py")
_BEFORE, _DIRECT, _HUB, _FILE = "PostgreSQL, before", "PostgreSQL", "a hub on PostgreSQL", "a hub on SQLite"
_SHARES = (50, 99)  # percentiles
# Seconds between two turns of a proxy: the wait is measured, and not how much the ledger does at most. And of people.
_PAUSE, _AT_EASE = 0.5, 5.0
_EASY = "a hub on PostgreSQL, at ease"
_FAR = 40  # ms, of the link on which a hub is to be so much faster than PostgreSQL was
_NEAR = 2  # ms, of the link on which admissions are counted
_HOUR = 3600
_PARTS = ("waits", "rates", "idle")

Figures = dict[str, float]
T = TypeVar("T")


class Goal(NamedTuple):
    text: str
    of: Callable[[Figures], float]
    limit: float
    unit: str
    at_least: bool = False

    def line(self, rounds: Sequence[Figures]) -> str:
        found = [self.of(each) for each in rounds if _has(each, self.of)]
        bound = f"{'≥' if self.at_least else '≤'} {self.limit:,g} {self.unit}"
        if not found:
            return f"| {self.text} | not measured | {bound} | |"
        value = statistics.median(found)
        is_met = value >= self.limit if self.at_least else value <= self.limit
        return f"| {self.text} | {value:,.3g} {self.unit} | {bound} | {'met' if is_met else '**missed**'} |"


def _has(figures: Figures, of: Callable[[Figures], float]) -> bool:
    try:
        of(figures)
    except (KeyError, ZeroDivisionError):
        return False
    return True


def _goals(proxies: int, delays: Sequence[int], idle: int) -> Iterator[Goal]:
    for way, pause in ((_EASY, _AT_EASE), (_HUB, _PAUSE)):
        for delay in delays:
            for share, most in zip(_SHARES, (3, 15), strict=True):
                key = _wait(delay, way, share)
                text = f"{proxies} proxies, {pause:g} s between turns: a wait beyond the link's {delay} ms, p{share}"
                yield Goal(text, lambda each, key=key, delay=delay: each[key] - delay, most, "ms")  # type: ignore[misc]
    far = [_wait(_FAR, way, 50) for way in (_BEFORE, _HUB)]
    yield Goal(f"at {_FAR} ms the p50 before, of a hub's", lambda each: each[far[0]] / each[far[1]], 5, "×", True)
    yield Goal(
        f"admissions with their rows at {_NEAR} ms, of what was before",
        lambda each: each["hub"] / each["before"],
        15,
        "×",
        True,
    )
    yield Goal(
        "the same statements from one process, of what a hub does",
        lambda each: each["statements"] / each["hub"],
        2,
        "×",
    )
    yield Goal(f"memory of a hub with {idle:,} signed-in idle proxies", lambda each: each["idle"], 300, "MB")


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench-hub", description=__doc__)
    parser.add_argument("--before", type=Path, metavar="TREE")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6, help="of each figure in a round")
    parser.add_argument("--proxies", type=int, default=64)
    parser.add_argument("--idle", type=int, default=5000, help="proxies that have signed in and rest")
    parser.add_argument("--delays", type=int, nargs="*", default=(0, _NEAR, _FAR), help="milliseconds, there and back")
    parser.add_argument("--parts", nargs="+", choices=_PARTS, default=_PARTS, help="only these")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/hub.md")
    asked = parser.parse_args()
    rounds: list[Figures] = []
    with running(settings=()) as server:  # with fsync
        for number in range(asked.rounds):
            one = _Round(server, f"round{number}", asked)
            rounds.append(one.figures())
            sys.stderr.write(f"round {number + 1}: {json.dumps(rounds[-1])}\n")
    text = list(_report(rounds, asked))
    sys.stdout.write("\n".join(text) + "\n")
    if asked.write:
        put("hub.md", "measured", text)


def _report(rounds: Sequence[Figures], asked: argparse.Namespace) -> Iterator[str]:
    yield (
        f"Measured {today()} on {machine()}, load {os.getloadavg()[1]:.0f} (the measurement's own included), "
        f"{asked.proxies} proxies, {asked.rounds} rounds."
    )
    yield from ("", "| figure | measured | goal | |", "|---|--:|--:|---|")
    for goal in _goals(asked.proxies, asked.delays, asked.idle):
        yield goal.line(rounds)
    yield from ("", f"| at {_NEAR} ms, {asked.proxies} proxies | admissions with their rows, a second |", "|---|--:|")
    ways = {"before": _BEFORE, "hub": _HUB, "file": _FILE, "statements": "the same statements, one process, no link"}
    for key, way in ways.items():
        if found := [each[key] for each in rounds if key in each]:
            yield f"| {way} | {statistics.median(found):,.3g} |"
    yield from ("", "| link | proxies ask | p50, ms | p99, ms | p50 | p99 |", "|--:|---|--:|--:|--:|--:|")
    for delay in asked.delays:
        for way in (_BEFORE, _DIRECT, _EASY, _HUB, _FILE):
            if _wait(delay, way, 50) in rounds[0]:
                yield _waits_line(delay, way, rounds)


def _waits_line(delay: int, way: str, rounds: Sequence[Figures]) -> str:
    keys = [(_wait(delay, way, share), _wait(delay, _DIRECT, share)) for share in _SHARES]
    waits = [statistics.median(each[key] for each in rounds) for key, _ in keys]
    ratios = [statistics.median(each[key] / each[direct] for each in rounds) for key, direct in keys]
    figures = [f"{wait:,.3g}" for wait in waits] + [f"{ratio:.1f} ×" for ratio in ratios]
    return f"| {delay} ms | {way} | {' | '.join(figures)} |"


def _wait(delay: int, way: str, share: int) -> str:
    return f"{delay} ms, {way}, p{share}"


class _Round:
    """Each figure has a database of its own."""

    def __init__(self, server: Server, name: str, asked: argparse.Namespace) -> None:
        self._server = server
        self._name = name
        self._seconds: float = asked.seconds
        self._proxies: int = asked.proxies
        self._idle: int = asked.idle
        self._delays: Sequence[int] = asked.delays
        self._before: Path | None = asked.before
        self._parts: Sequence[str] = asked.parts

    def figures(self) -> Figures:
        found = Figures()
        for delay in self._delays if "waits" in self._parts else ():
            for way in (_BEFORE, _DIRECT, _EASY, _HUB, _FILE):
                if way != _BEFORE or (self._before and delay == _FAR):
                    ordered = sorted(self._waits(way, delay))
                    for share in _SHARES:
                        found[_wait(delay, way, share)] = ordered[len(ordered) * share // 100] * 1000
        if "rates" in self._parts:
            if self._before:
                found["before"] = self._direct_rate()
            found["hub"] = self._hub_rate(_HUB)
            found["file"] = self._hub_rate(_FILE)
            found["statements"] = self._statements_rate()
        if "idle" in self._parts:
            found["idle"] = self._idle_memory()
        return found

    def _waits(self, way: str, delay: int) -> list[float]:
        """Seconds, of each prompt."""
        if way in (_BEFORE, _DIRECT):
            with self._linked_database(delay) as url:
                return [wait for each in self._written(way, url, "people") for wait in each["waits"]]
        pause = _AT_EASE if way == _EASY else _PAUSE
        seconds = max(self._seconds, 2 * pause)
        with self._hub(way) as house, linked(house.hub.port, delay) as port, ExitStack() as stack:
            tokens = house.signed_in(self._proxies)
            environ = {**os.environ, "HOME": str(house.directory)}
            processes = []
            for number, token in enumerate(tokens):
                url = f"http://127.0.0.1:{port}/"
                command = [sys.executable, "-m", "bench.hub_writer", url, str(number), str(seconds), str(pause)]
                processes += started(stack, [command], _ROOT, {**environ, "ACP_PROXY_HUB_TOKEN": token}, wait=False)
            ready(processes)
            return [wait for each in told(processes) for wait in json.loads(each)]

    def _direct_rate(self) -> float:
        with self._linked_database(_NEAR) as url:
            turns: int = sum(each["turns"] for each in self._written(_BEFORE, url, "held"))
            return turns / self._seconds

    def _written(self, way: str, url: str, kind: str) -> list[dict[str, Any]]:
        tree = self._before if way == _BEFORE and self._before else _ROOT
        python, environ = str(tree / ".venv/bin/python"), {**os.environ, "PYTHONPATH": str(tree)}
        writer = [python, str(_WRITER), url]
        with ExitStack() as stack:
            told(started(stack, [[*writer, "open", "0", "0"]], tree, environ))  # so that all find its tables
            commands = [[*writer, kind, str(number), str(self._seconds)] for number in range(self._proxies)]
            return [json.loads(each) for each in told(started(stack, commands, tree, environ))]

    def _hub_rate(self, way: str) -> float:
        with self._hub(way) as house, linked(house.hub.port, _NEAR) as port:
            command = [sys.executable, "-m", "bench.hub_load", str(port), str(self._seconds)]
            with _talking(command, house.signed_in(self._proxies)) as load:
                load.stdout.readline()  # type: ignore[union-attr]
                return int(load.communicate("\n", timeout=120)[0]) / self._seconds

    def _statements_rate(self) -> float:
        url = self._server.create(f"{self._name}-statements")
        command = [sys.executable, "-m", "bench.hub_statements", url, str(self._proxies), str(self._seconds)]
        done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=120)
        return int(done.stdout) / self._seconds

    def _idle_memory(self) -> float:
        """MB that the hub has when all have signed in, and rested for a moment."""
        with self._hub(_HUB) as house:
            command = [sys.executable, "-m", "bench.hub_idle", str(house.hub.port)]
            with _talking(command, house.signed_in(self._idle)) as proxies:
                assert proxies.stdout is not None  # noqa: S101  # it is a pipe
                there = int(proxies.stdout.readline())
                time.sleep(2)
                status = Path(f"/proc/{house.hub.pid}/status").read_text(encoding="utf-8")
                stayed = int(proxies.communicate("\n", timeout=60)[0])
            if not there == stayed == self._idle:
                raise SystemExit(f"bench-hub: of {self._idle} proxies {stayed} were there")
            found = re.search(r"VmRSS:\s+(\d+) kB", status)
            return int(found[1]) / 1024 if found else 0

    @contextmanager
    def _linked_database(self, delay: int) -> Iterator[str]:
        url = self._server.create(f"{self._name}-{time.monotonic_ns()}")
        with linked(self._server.port, delay) as port:
            yield url.replace(f":{self._server.port}/", f":{port}/")

    @contextmanager
    def _hub(self, way: str) -> Iterator[_House]:
        with tempfile.TemporaryDirectory(prefix="acp-proxy-bench-") as directory:
            url = f"sqlite:///{directory}/ledger.db"
            if way != _FILE:
                url = self._server.create(f"{self._name}-{time.monotonic_ns()}")
            house = _House(Path(directory), url)
            try:
                house.hub.start()
                yield house
            finally:
                house.hub.kill()


class _House:
    """A hub, and who has signed in at it. They share a budget, which only administrators' own are."""

    def __init__(self, directory: Path, database: str) -> None:
        self.directory = directory
        self.hub = HubProcess(directory, database, "hub")
        self._database = database
        self._store(lambda store: store.tokens.first(0))  # its tables are there then

    def signed_in(self, number: int) -> list[str]:
        """Access tokens, as of people and machines that a provider has let in."""
        now = int(time.time())

        def signed(store: Store) -> list[str]:
            tokens = AccessTokens(store.keys.current(now), store.installation, "default")
            holders = [Holder(f"user{each}", "administrator", "core", ()) for each in range(number)]
            families = [
                Family(f"f{each}", f"user{each}", None, None, None, now, now, now + _HOUR) for each in range(number)
            ]
            return [tokens.sign(*each, now) for each in zip(holders, families, strict=True)]

        return self._store(signed)

    def _store(self, question: Callable[[Store], T]) -> T:
        with closing(open_ledger(self._database, journals=())) as ledger:
            return question(Store(ledger.tables, "default"))


@contextmanager
def _talking(command: Sequence[str], lines: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """A process that was told these lines, and an empty one."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=_ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            if process.stdin:
                process.stdin.write("\n".join([*lines, "", ""]))
                process.stdin.flush()
            yield process
        finally:
            process.kill()


if __name__ == "__main__":
    main()

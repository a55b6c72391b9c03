"""`python -m bench.postgres_far --before TREE`: many writers on a far ledger on PostgreSQL, beside an earlier build.

Both take turns on one server. Each writer is a process with a user of its own, all are of one organisation; each turn
is appended, under a budget that all share it is held before. Ratios are those of one round, the median of all rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from harness.postgres import Server, name_of, running

_WRITER = Path(__file__).with_name("far_writer.py")
_ROOT = Path(__file__).parents[1]
_DELAYS = (0, 2, 10, 40)  # milliseconds, there and back
_PROMPTS = 40  # of the link on which prompts wait
_LONGEST = 120.0  # seconds

Figures = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, metavar="TREE")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6, help="of each figure in a round")
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--delays", type=int, nargs="*", default=_DELAYS, help="milliseconds, there and back")
    arguments = parser.parse_args()
    builds = {"now": _ROOT} | ({"before": arguments.before} if arguments.before else {})
    rounds: dict[str, list[Figures]] = {name: [] for name in builds}
    with running(settings=()) as server:  # with fsync
        for number in range(arguments.rounds):
            for name, tree in builds.items():
                one = _Round(tree, server, f"{name}{number}", arguments.seconds, arguments.writers)
                rounds[name].append(one.figures(arguments.delays))
    sys.stdout.write("| | before | now | ratio |\n|---|--:|--:|--:|\n")
    for figure in rounds["now"][0]:
        sys.stdout.write(_line(figure, {name: [each[figure] for each in found] for name, found in rounds.items()}))


def _line(figure: str, found: dict[str, list[float]]) -> str:
    now, before = found["now"], found.get("before", found["now"])
    ratios = [one / other if "turns/s" in figure else other / one for one, other in zip(now, before, strict=True)]
    medians = " | ".join(f"{statistics.median(each):,.3g}" for each in (before, now))
    return f"| {figure} | {medians} | {statistics.median(ratios):.1f} × |\n"


class _Round:
    """Of one build."""

    def __init__(self, tree: Path, server: Server, name: str, seconds: float, writers: int) -> None:
        self._tree = tree
        self._server = server
        self._name = name
        self._seconds = seconds
        self._writers = writers

    def figures(self, delays: Sequence[int]) -> Figures:
        found = Figures()
        for delay in delays:
            with self._linked(delay) as url:
                for kind, how in (("rows", "rows only"), ("held", "one shared budget")):
                    turns = sum(each["turns"] for each in self._run(url(kind), [kind] * self._writers))
                    found[f"{delay} ms, {how}, turns/s"] = turns / self._seconds
        with self._linked(_PROMPTS) as url:
            found |= self._waits("alone", self._run(url("alone"), ["look"])[0])
            others = ["held"] * self._writers
            found |= self._waits(f"with {self._writers} others", self._run(url("others"), ["look", *others])[0])
        with self._linked(0) as url:
            found[f"{self._writers} open an empty database, s"] = self._opened(url("empty"), self._writers)
        return found

    def _waits(self, how: str, told: dict[str, Any]) -> Figures:
        ordered = sorted(told["waits"])
        shares = {"p50": ordered[len(ordered) // 2], "p99": ordered[len(ordered) * 99 // 100]}
        return {f"{_PROMPTS} ms, a prompt's wait {how}, {name}, ms": wait * 1000 for name, wait in shares.items()}

    def _opened(self, url: str, number: int) -> float:
        """Seconds until so many processes that are there have opened a ledger in an empty database."""
        with ExitStack() as stack:
            processes = self._started(stack, url, ["open"] * number)
            began = time.monotonic()
            for process in processes:
                go_on(process)
            for process in processes:
                until_ready(process)
            taken = time.monotonic() - began
            told(processes)
            return taken

    def _run(self, url: str, kinds: Sequence[str]) -> list[dict[str, Any]]:
        self._opened(url, 1)  # so that all find its tables
        with ExitStack() as stack:
            processes = self._started(stack, url, kinds)
            # As the server does it by itself each minute: of an older ledger it knows how many rows there are.
            self._server.execute(name_of(url), "ANALYZE")
            return [json.loads(each) for each in told(processes)]

    def _started(self, stack: ExitStack, url: str, kinds: Sequence[str]) -> list[subprocess.Popen[str]]:
        python, environ = str(self._tree / ".venv/bin/python"), {**os.environ, "PYTHONPATH": str(self._tree)}
        commands = [
            [python, str(_WRITER), url, kind, str(number), str(self._seconds)] for number, kind in enumerate(kinds)
        ]
        return started(stack, commands, self._tree, environ)

    @contextmanager
    def _linked(self, delay: int) -> Iterator[Callable[[str], str]]:
        """Makes URLs of new databases, on such a link."""
        with linked(self._server.port, delay) as port:
            yield lambda name: self._server.create(f"{self._name}-{delay}-{name}").replace(
                f":{self._server.port}/", f":{port}/"
            )


@contextmanager
def linked(port: int, delay: int) -> Iterator[int]:
    """The port at which the same answers, so many ms later, there and back."""
    if not delay:
        yield port
        return
    command = [sys.executable, "-m", "bench.delayed", str(port), str(delay / 2000)]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as link:
        try:
            yield int(link.stdout.readline() if link.stdout else 0)
        finally:
            link.kill()


def started(
    stack: ExitStack, commands: Sequence[Sequence[str]], tree: Path, environ: Mapping[str, str], *, wait: bool = True
) -> list[subprocess.Popen[str]]:
    """Processes that have said that they are ready, unless others are to be started meanwhile."""
    processes = []
    for command in commands:
        process = subprocess.Popen(
            command, cwd=tree, env=environ, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        stack.callback(process.kill)
        processes.append(stack.enter_context(process))
    if wait:
        ready(processes)
    return processes


def ready(processes: Sequence[subprocess.Popen[str]]) -> None:
    """Waits until each has said so."""
    for process in processes:
        until_ready(process)


def until_ready(process: subprocess.Popen[str]) -> None:
    if process.stdout:
        process.stdout.readline()


def go_on(process: subprocess.Popen[str]) -> None:
    if process.stdin:
        process.stdin.write("\n")
        process.stdin.flush()


def told(processes: Sequence[subprocess.Popen[str]]) -> list[str]:
    """What each has to say after it may begin."""
    for process in processes:
        go_on(process)
    return [process.communicate(timeout=_LONGEST)[0] for process in processes]


if __name__ == "__main__":
    main()

"""`python -m bench.postgres_builds --before TREE`: a ledger on PostgreSQL by this build beside an earlier one.

Both take turns on one server. What is printed is the median of each round's medians, of the ratios (now / before), and
how often each waits for the server.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from harness.faults.link import linked
from harness.postgres import Server, running

_MEASURED = Path(__file__).with_name("postgres_figures.py")
_ROOT = Path(__file__).parents[1]
_WAITS = 20  # of each kind that are counted

Figures = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, required=True, metavar="TREE")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--times", type=int, default=300, help="of each kind in a round")
    arguments = parser.parse_args()
    builds = {"now": _ROOT, "before": arguments.before}
    rounds: dict[str, list[Figures]] = {name: [] for name in builds}
    with running(settings=()) as server:  # with fsync
        for number in range(arguments.rounds):
            for name, tree in builds.items():
                url = server.create(f"{name}{number}")
                rounds[name].append(_measured(tree, url, arguments.times))
        waits = {name: _waits(tree, server, server.create(f"{name}-waits")) for name, tree in builds.items()}
    sys.stdout.write("| | before | now | now / before | waits before | now |\n|---|--:|--:|--:|--:|--:|\n")
    for figure in rounds["now"][0]:
        now, before = ([each[figure] for each in rounds[name]] for name in ("now", "before"))
        ratio = statistics.median(one / other for one, other in zip(now, before, strict=True))
        counted = " | ".join(f"{waits[name][figure]:.2g}" for name in ("before", "now"))
        cells = f"{statistics.median(before):.0f} µs | {statistics.median(now):.0f} µs | {ratio:.2f} | {counted}"
        sys.stdout.write(f"| {figure} | {cells} |\n")


def _measured(tree: Path, url: str, times: int, only: str = "") -> Figures:
    """Microseconds, by kind."""
    environ = {**os.environ, "PYTHONPATH": str(tree)}
    command = [str(tree / ".venv/bin/python"), str(_MEASURED), url, str(times), only]
    found = subprocess.run(command, cwd=tree, env=environ, check=True, stdout=subprocess.PIPE, text=True).stdout
    return dict(json.loads(found))


def _waits(tree: Path, server: Server, url: str) -> Figures:
    """By kind, through a link that counts them: what so many more of them cost."""
    found = Figures()
    for kind in _measured(tree, url, 1):
        counted = []
        for times in (_WAITS, 2 * _WAITS):
            with linked(server.port) as link:
                _measured(tree, url.replace(f":{server.port}/", f":{link.port}/"), times, kind)
                counted.append(link.journeys)
        found[kind] = (counted[1] - counted[0]) / _WAITS
    return found


if __name__ == "__main__":
    main()

"""What tests/faults does once, again and again: parties are killed and stopped at random moments, and all is counted.

`python -m bench.faults` prints a line for each kind; one that has a defect prints its seed and what was wrong.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.faults.trial import BUDGET, Home, Party, Verdict, kill, stop

_LINE = "{:<34} {:>6} {:>8} {:>7} {:>8} {:>7} {:>7} {:>5} {:>8} {:>6}"
_TITLES = ("", "trials", "lines", "begun", "acked", "booked", "cut", "lost", "doubled", "faults")

Trial = Callable[[Home, random.Random], Verdict]


def kinds() -> dict[str, tuple[str, Trial]]:
    """The configuration and the trial of each."""
    found: dict[str, tuple[str, Trial]] = {}
    all_parties: tuple[Party, ...] = ("client", "relay", "agent", "all")
    for name, config in (("", ""), (", a budget", BUDGET)):
        for party in all_parties:
            found[f"kill -9 {party}{name}"] = (config, partial(kill, party))
        for party in all_parties[:3]:
            found[f"SIGSTOP, SIGCONT {party}{name}"] = (config, partial(stop, party))
    return found


def counted(verdict: Verdict, *, budget: bool) -> Counter[str]:
    return Counter(
        trials=1,
        lines=verdict.lines,
        begun=len(verdict.reached),
        acked=len(verdict.acked),
        booked=sum(verdict.booked.values()),
        cut=len(set(verdict.booked) - set(verdict.acked)),
        lost=len(verdict.lost) + (len(verdict.unbooked) if budget else 0),
        doubled=len(verdict.doubled),
        faults=len(verdict.faults) + len(verdict.wrong) + len(verdict.invented),
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/soak faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    arguments = parser.parse_args()
    chance, end, good = random.Random(arguments.seed), time.monotonic() + arguments.minutes * 60, True  # noqa: S311
    figures = {name: Counter[str]() for name in kinds()}
    while time.monotonic() < end:
        for name, (config, trial) in kinds().items():
            seed = chance.randrange(1 << 32)
            with tempfile.TemporaryDirectory(prefix="faults") as directory:
                verdict = trial(Home(Path(directory), config), random.Random(seed))  # noqa: S311
            figures[name] += counted(verdict, budget=bool(config))
            if verdict.defects or (config and verdict.unbooked):
                good = False
                sys.stderr.write(f"{name}, seed {seed}: {verdict.defects} not booked: {verdict.unbooked}\n")
    sys.stdout.write(_LINE.format(*_TITLES) + "\n")
    for name, counts in figures.items():
        sys.stdout.write(_LINE.format(name, *(counts[title] for title in _TITLES[1:])) + "\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

"""Rounds of troubles with two hubs and many proxies, and what of it must be 0: a line for each, and all together."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from harness.faults.hubs import Outcome, round_of_troubles, team
from harness.postgres import running


def main() -> int:
    asked = _asked()
    found: list[Outcome] = []
    with running() as server, tempfile.TemporaryDirectory(prefix="acp-proxy-hub-") as directory:
        for number in range(asked.rounds):
            seed = asked.seed + number
            path = Path(directory, f"round{number}")
            path.mkdir()
            limit = asked.proxies * asked.turns * 3 // 4
            with team(path, server, limit) as ours:
                outcome = round_of_troubles(ours, random.Random(seed), asked.proxies, asked.turns, limit)
            found.append(outcome)
            sys.stdout.write(f"round {number + 1} (seed {seed}): {_line([outcome])}; {', '.join(ours.events)}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{asked.rounds} rounds, {asked.proxies} proxies, 2 hubs: {_line(found)}\n")
    return int(any(outcome.defects for outcome in found))


def _line(found: list[Outcome]) -> str:
    turns = sum(outcome.verdict.booked.total() for outcome in found)
    refused = sum(len(outcome.verdict.refused) for outcome in found)
    zeros = {
        "overspent": sum(outcome.overspent for outcome in found),
        "phantom refusals": sum(outcome.phantom_refusals for outcome in found),
        "lost": sum(outcome.lost for outcome in found),
        "doubled": sum(outcome.doubled for outcome in found),
    }
    told = ", ".join(f"{name} {number}" for name, number in zeros.items())
    return f"{turns} turns, {refused} refused; {told}"


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/prove-hub", description=__doc__)
    parser.add_argument("--proxies", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--turns", type=int, default=24, help="of each proxy")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

"""Rounds of troubles with two hubs and many proxies, and what of it must be 0: a line for each, and all together."""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from harness.faults.hub_rounds import Outcome, round_of_troubles
from harness.faults.hubs import team
from harness.postgres import running


def main() -> int:
    asked = _asked()
    found: list[Outcome] = []
    with running() as server, tempfile.TemporaryDirectory(prefix="acp-proxy-hub-") as directory:
        path = Path(directory, "rounds")
        path.mkdir()
        of_round = asked.turns + 1 + asked.more
        per_laptop = asked.proxies // asked.laptops
        with team(path, server, asked.laptops, per_laptop, asked.rounds * of_round) as ours:
            for number in range(asked.rounds):
                seed, began = asked.seed + number, time.monotonic()
                outcome = round_of_troubles(ours, random.Random(seed), asked.turns, asked.more)
                found.append(outcome)
                seconds = time.monotonic() - began
                took = f"{seconds:.0f} s, load {os.getloadavg()[0]:.0f}"
                _say(f"round {number + 1} (seed {seed}, {took}): {_line([outcome])}; {', '.join(ours.events)}")
                for fault in outcome.faults:
                    _say(f"  {fault}")
    _say(
        f"{asked.rounds} rounds, {per_laptop * asked.laptops} proxies, {asked.laptops} laptops, 2 hubs: {_line(found)}"
    )
    return int(any(outcome.defects for outcome in found))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _line(found: list[Outcome]) -> str:
    turns, refused = sum(each.turns for each in found), sum(each.refused for each in found)
    offline, unchecked = sum(each.offline for each in found), sum(each.unchecked for each in found)
    zeros = {
        "overspent": max(each.overspent for each in found),
        "phantom refusals": sum(each.phantom_refusals for each in found),
        "lost": max(each.lost for each in found),
        "doubled": max(each.doubled for each in found),
    }
    told = ", ".join(f"{name} {number}" for name, number in zeros.items())
    return f"{turns} turns ({offline} offline), {refused} refused, {unchecked} refused without a hub; {told}"


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/prove-hub", description=__doc__)
    parser.add_argument("--proxies", type=int, default=64)
    parser.add_argument("--laptops", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--turns", type=int, default=2, help="of each proxy in each round, while parts fail")
    parser.add_argument("--more", type=int, default=2, help="for which the budget is too small")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

"""What tests/faults tries once, again and again, at other moments each time: parties, places and databases fail.

`python -m bench.faults` prints a line for each kind; one that has a defect prints its seed and what was wrong. Needs
Linux, and the right to mount.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from harness.faults import databases, troubles
from harness.faults.link import linked
from harness.faults.trial import BUDGET, Home, Party, Verdict, kill, stop
from harness.places import mounted
from harness.postgres import Server, running

_LINE = "{:<38} {:>6} {:>8} {:>7} {:>8} {:>7} {:>7} {:>5} {:>8} {:>6}"
_TITLES = ("", "trials", "lines", "begun", "acked", "booked", "cut", "lost", "doubled", "faults")
_PARTIES: tuple[Party, ...] = ("client", "relay", "agent")

Trial = Callable[[Path, random.Random], Verdict]  # in an empty directory


def kinds(server: Server) -> dict[str, Trial]:
    """All that is tried, by what it is called; with a budget where the name says so."""
    return {**_of_parties(), **_of_places(), **_of_databases(server)}


def _of_parties() -> dict[str, Trial]:
    found: dict[str, Trial] = {}
    for name, config in (("", ""), (", a budget", BUDGET)):
        for party in (*_PARTIES, "all"):
            found[f"kill -9 {party}{name}"] = _killed(party, config)
        for party in _PARTIES:
            found[f"SIGSTOP, SIGCONT {party}{name}"] = _stopped(party, config)
    return found


def _killed(party: Party, config: str) -> Trial:
    return lambda path, chance: kill(party, Home(path, config), chance)


def _stopped(party: Party, config: str) -> Trial:
    return lambda path, chance: stop(party, Home(path, config), chance)


def _of_places() -> dict[str, Trial]:
    open_budget = BUDGET.replace("closed", "open").replace("20s", "1s")
    return {
        "the disk fills up": _on_a_small_disk,
        "the directory is read-only": _in_a_read_only_directory,
        "the quota is used up": lambda path, chance: troubles.quota_is_used_up(Home(path), chance),
        "no inode is left": _on_a_disk_of_few_files,
        "no descriptor is left": lambda path, chance: troubles.no_descriptor_is_left(Home(path), chance),
        "no thread can be started": lambda path, _: troubles.no_thread_can_be_started(Home(path)),
        "the clock jumps": lambda path, _: troubles.clock_jumps(Home(path)),
        "the clock jumps, a budget": lambda path, _: troubles.clock_jumps(Home(path, BUDGET)),
        "the SQLite file is damaged": lambda path, chance: troubles.file_is_damaged(Home(path), chance),
        "the SQLite file is moved away": lambda path, chance: troubles.ledger_is_moved_away(Home(path), chance),
        "a newer version comes": lambda path, chance: troubles.newer_version_comes(Home(path), chance),
        "a newer version comes, a budget": lambda path, chance: troubles.newer_version_comes(
            Home(path, open_budget), chance
        ),
    }


def _on_a_small_disk(path: Path, chance: random.Random) -> Verdict:
    disk = path / "disk"
    disk.mkdir()
    with mounted(disk, "size=8m"):
        return troubles.disk_fills_up(Home(path, state=disk), chance)


def _on_a_disk_of_few_files(path: Path, chance: random.Random) -> Verdict:
    disk = path / "disk"
    disk.mkdir()
    with mounted(disk, "size=8m,nr_inodes=50"):
        return troubles.no_inode_is_left(Home(path, state=disk), chance)


def _in_a_read_only_directory(path: Path, _: random.Random) -> Verdict:
    directory = path / "read-only"
    directory.mkdir()
    with mounted(directory, "ro,size=1m"):
        return troubles.directory_is_read_only(Home(path, url=f"sqlite:///{directory}/ledger.db"), directory)


def _of_databases(server: Server) -> dict[str, Trial]:
    def trial(what: Callable[..., Verdict], *needs: str, config: str = "", **more: int) -> Trial:
        def run(path: Path, chance: random.Random) -> Verdict:
            with linked(server.port) as link:
                has = {"server": server, "link": link, "chance": chance}
                home = databases.home_at(path, server, link, config)
                return what(home, **{need: has[need] for need in needs}, **more)

        return run

    return {
        "PostgreSQL answers slowly": trial(databases.answers_slowly, "link"),
        "PostgreSQL drops connections": trial(databases.drops_connections, "link", "chance"),
        "PostgreSQL says nothing": trial(databases.falls_silent, "link", "chance"),
        "kill -9 PostgreSQL": trial(databases.is_killed, "chance"),
        "SIGSTOP, SIGCONT PostgreSQL": trial(databases.is_paused, "server", "chance"),
        "PostgreSQL is stopped and started": trial(databases.fails_over, "server", "chance"),
        "the same, a budget": trial(databases.fails_over, "server", "chance", config=BUDGET, turns=60, meanwhile=0),
    }


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
    parser.add_argument("--only", default="", help="kinds with this in their name")
    arguments = parser.parse_args()
    with running() as server:
        figures, good = _tried(server, arguments)
    sys.stdout.write(_LINE.format(*_TITLES) + "\n")
    for name, counts in figures.items():
        sys.stdout.write(_LINE.format(name, *(counts[title] for title in _TITLES[1:])) + "\n")
    return 0 if good else 1


def _tried(server: Server, arguments: argparse.Namespace) -> tuple[dict[str, Counter[str]], bool]:
    """Each kind in turn, until the time is over."""
    chance, end, good = random.Random(arguments.seed), time.monotonic() + arguments.minutes * 60, True
    tried = {name: trial for name, trial in kinds(server).items() if arguments.only in name}
    figures = {name: Counter[str]() for name in tried}
    while time.monotonic() < end:
        for name, trial in tried.items():
            if time.monotonic() > end:
                break
            budget, seed = "budget" in name, chance.randrange(1 << 32)
            with tempfile.TemporaryDirectory(prefix="faults") as directory:
                try:
                    verdict = trial(Path(directory), random.Random(seed))
                except AssertionError as error:  # it did not come to an end
                    good = False
                    figures[name] += Counter(trials=1, faults=1)
                    sys.stderr.write(f"{name}, seed {seed}: {error}\n")
                    continue
            figures[name] += counted(verdict, budget=budget)
            if verdict.defects or (budget and verdict.unbooked):
                good = False
                sys.stderr.write(f"{name}, seed {seed}: {verdict.defects} not booked: {verdict.unbooked}\n")
    return figures, good


if __name__ == "__main__":
    sys.exit(main())

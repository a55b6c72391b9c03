"""Proves that a failover loses nothing: writers under one cap, in a cluster whose primary is killed or switched.

`python -m bench.failover_proof` starts a cluster on loopback, does so many rounds, and prints a line for each.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, get_args

import psycopg

from acp_proxy.ledger import LedgerUnavailableError, Query, open_ledger
from acp_proxy.ledger.places import journal_directories
from bench.accounts import HOLD, accounts
from harness.cluster.cluster import Cluster, Way, started
from harness.cluster.settings import Times
from harness.daemons import until

ROOT = Path(__file__).parent.parent
Happening = Literal["kill", "switchover", "cut"]
_LONGEST_CUT = 3.0  # seconds that replication stands still before the primary is killed


@dataclass(frozen=True, slots=True)
class Trial:
    happening: Happening
    way: Way = "hosts"  # by which writers reach the database
    writers: int = 16
    cap: int = 600  # in turns at their hold


@dataclass(slots=True)
class Outcome:
    """What was counted. `lost`, `doubled` and `phantom` are defects; so is `beyond` that exceeds `running`."""

    trial: Trial
    booked: int = 0
    lost: int = 0  # turns that ended and have no row
    doubled: int = 0
    phantom: int = 0  # prompts that were refused while the turns of all others left room
    beyond: int = 0  # turns that began beyond the cap
    running: int = 0  # when it happened
    ended: int = 0  # by then
    failed: int = 0  # writers that ended with an error
    unanswered: int = 0  # prompts that the ledger did not answer in time
    waited: list[float] = field(default_factory=list)  # seconds, of each prompt
    away: float = 0  # seconds until there was another primary
    warned: Counter[str] = field(default_factory=Counter)
    spent: int = 0  # by the account, in turns

    @property
    def faults(self) -> list[str]:
        found = {"lost": self.lost, "doubled": self.doubled, "phantom refusals": self.phantom}
        found["writers failed"] = self.failed
        faults = [f"{name}: {count}" for name, count in found.items() if count]
        if self.beyond > self.running:
            faults.append(f"{self.beyond} beyond the cap, {self.running} ran")
        if self.spent != self.booked:
            faults.append(f"the account says {self.spent} turns")
        return faults

    @property
    def line(self) -> str:
        waited = sorted(self.waited)
        turns = (self.booked, self.lost, self.doubled, self.phantom, self.beyond, self.ended, self.running)
        times = f"{self.away:>6.1f} {waited[len(waited) * 99 // 100]:>6.2f} {waited[-1]:>6.1f}"
        told = ", ".join(f"{name} {count}" for name, count in sorted(self.warned.items()))
        verdict = "; ".join(self.faults) or "ok"
        figures = "".join(f"{each:>8}" for each in (*turns, self.unanswered))
        return f"{self.trial.happening:<10}{figures} {times}  {verdict}  {told}"


_COLUMNS = ("booked", "lost", "doubled", "phantom", "beyond", "ended", "running", "unansw.")
HEADER = f"{'':<10}" + "".join(f"{each:>8}" for each in _COLUMNS) + f" {'away s':>6} {'p99 s':>6} {'max s':>6}"


def prove(trial: Trial, cluster: Cluster, database: str, directory: Path, chance: random.Random) -> Outcome:
    """One round against an empty ledger; `directory` is for journals and notes."""
    cluster.create(database)
    url = cluster.url(database, trial.way)
    until(lambda: _opens(url), "a ledger")
    outcome = Outcome(trial)
    with ExitStack() as stack:
        writers = [stack.enter_context(_writer(url, directory, number, trial.cap)) for number in range(trial.writers)]
        for writer in writers:
            writer.until_ready()
        for writer in writers:
            writer.go_on()
        _until_booked(url, chance.randint(trial.cap // 8, trial.cap // 2), chance)
        happened = _HAPPENINGS[trial.happening](cluster, chance)
        outcome.away = time.monotonic() - happened
        for writer in writers:
            writer.finish()
        outcome.failed = sum(1 for writer in writers if writer.wait())
    cluster.until_whole()
    _check(url, directory, happened, outcome)
    return outcome


def _kill(cluster: Cluster, _: random.Random) -> float:
    primary = cluster.primary
    happened = time.monotonic()
    primary.kill()
    cluster.until_led()
    primary.start()
    return happened


def _switch_over(cluster: Cluster, _: random.Random) -> float:
    happened = time.monotonic()
    cluster.switch_over()
    cluster.until_led()
    return happened


def _cut(cluster: Cluster, chance: random.Random) -> float:
    """What is committed in the moments before the kill reaches no standby."""
    primary = cluster.primary
    primary.link.fall_silent()
    try:
        time.sleep(chance.uniform(0, _LONGEST_CUT))
        happened = _kill(cluster, chance)
    finally:
        primary.link.speak()
    return happened


_HAPPENINGS: dict[Happening, Callable[[Cluster, random.Random], float]] = {
    "kill": _kill,
    "switchover": _switch_over,
    "cut": _cut,
}


def _opens(url: str) -> bool:
    """On a busy machine a leader may lose its place at any time."""
    with suppress(LedgerUnavailableError):
        open_ledger(url, journals=()).close()
        return True
    return False


def _until_booked(url: str, turns: int, chance: random.Random) -> None:
    """Returns at some moment after so many turns are booked."""

    def booked() -> bool:
        with (
            suppress(psycopg.OperationalError),
            closing(psycopg.connect(url, autocommit=True, prepare_threshold=None)) as connection,
        ):
            return connection.execute("SELECT count(*) >= %s FROM turn", (turns,)).fetchall() == [(True,)]
        return False

    until(booked, "turns", within=300)
    time.sleep(chance.uniform(0, 0.2))


def _check(url: str, directory: Path, happened: float, outcome: Outcome) -> None:
    """What the next commands on the ledger find, one on each machine, against what the writers noted."""
    trial = outcome.trial
    for number in range(trial.writers):
        journals = journal_directories({"XDG_STATE_HOME": str(directory / f"state{number}"), "HOME": str(directory)})
        open_ledger(url, journals=journals).close()
    with closing(open_ledger(url, journals=())) as ledger:
        booked = Counter(row.entry.id for row in ledger.rows(Query()))
        (standing,) = ledger.standing(accounts(trial.cap)[:1], time.time_ns())
    turns: dict[str, dict[str, float]] = {}
    for path in sorted(directory.glob("*.notes")):
        for line in path.read_text().splitlines():
            note: dict[str, Any] = json.loads(line)
            if note["what"] == "warned":
                outcome.warned[note["event"]] += 1
            elif "turn" in note:
                turns.setdefault(note["turn"], {})[note["what"]] = note["at"]
    outcome.booked = booked.total()
    outcome.spent = (standing.spent + standing.held) // HOLD
    outcome.lost = sum(1 for turn, seen in turns.items() if "ended" in seen and turn not in booked)
    outcome.doubled = sum(1 for rows in booked.values() if rows > 1)
    began = [seen for seen in turns.values() if "began" in seen]
    outcome.beyond = max(0, len(began) - trial.cap)
    outcome.running = sum(1 for seen in began if seen["asked"] <= happened <= seen["ended"])
    outcome.ended = sum(1 for seen in began if seen["ended"] < happened)
    outcome.unanswered = sum(1 for seen in turns.values() if "unanswered" in seen)
    answered = [(seen["asked"], seen.get("began") or seen.get("refused")) for seen in turns.values()]
    outcome.waited = [end - asked for asked, end in answered if end is not None]
    # Whoever was asked for by then may have held something.
    may_hold = sorted(seen["asked"] for seen in turns.values() if "refused" not in seen)
    refused = [seen["refused"] for seen in turns.values() if "refused" in seen]
    outcome.phantom = sum(1 for at in refused if sum(1 for asked in may_hold if asked <= at) < trial.cap)


class _Writer:
    """One of `bench.failover_writer`, as a process."""

    def __init__(self, process: subprocess.Popen[bytes], stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self._process, self._stdin, self._stdout = process, stdin, stdout

    def until_ready(self) -> None:
        self._stdout.readline()

    def go_on(self) -> None:
        self._stdin.write(b"\n")
        self._stdin.flush()

    def finish(self) -> None:
        self._stdin.close()

    def wait(self) -> int:
        return self._process.wait(240)


@contextmanager
def _writer(url: str, directory: Path, number: int, cap: int) -> Iterator[_Writer]:
    settings = json.dumps([url, str(directory), number, cap])
    command = [sys.executable, "-m", "bench.failover_writer", settings]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe) as process:
        try:
            if process.stdin and process.stdout:
                yield _Writer(process, process.stdin, process.stdout)
        finally:
            process.kill()


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/prove-failover", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="how many of each kind (20)")
    parser.add_argument("--mode", choices=["async", "sync"], default="async", help="of replication (async)")
    parser.add_argument("--kinds", choices=get_args(Happening), nargs="+", default=["kill"], help="what happens (kill)")
    parser.add_argument("--way", choices=get_args(Way), default="hosts", help="how writers connect (hosts)")
    parser.add_argument("--members", type=int, default=2, help="PostgreSQL servers (2)")
    parser.add_argument("--writers", type=int, default=16, help="processes that prompt (16)")
    parser.add_argument("--cap", type=int, default=600, help="of all of them, in turns (600)")
    parser.add_argument("--ttl", type=int, default=5, help="of Patroni's leader, in seconds (5)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (0)")
    arguments = parser.parse_args()
    chance, good = random.Random(arguments.seed), True
    times = Times(ttl=arguments.ttl, loop_wait=1, retry_timeout=2)
    with started(arguments.members, synchronous=arguments.mode == "sync", times=times) as cluster:
        sys.stdout.write(f"{HEADER}\n")
        for number in range(arguments.rounds):
            for kind in arguments.kinds:
                trial = Trial(kind, arguments.way, arguments.writers, arguments.cap)
                with tempfile.TemporaryDirectory() as directory:
                    outcome = prove(trial, cluster, f"round{number}{kind}", Path(directory), chance)
                good = good and not outcome.faults
                sys.stdout.write(f"{outcome.line}\n")
                sys.stdout.flush()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

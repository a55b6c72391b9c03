"""A trial: parties around a real proxy, something bad that happens to one of them, and the verdict on it.

The verdict compares what client and agent noted with what the ledger has once everybody is gone.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from acp_proxy.ledger import Query, open_ledger
from acp_proxy.ledger.places import journal_directories, sqlite_url
from acp_proxy.system.directories import default_ledger
from harness.faults.parties import CHUNKS, COST

ROOT = Path(__file__).parents[2]
LIMIT = 120.0  # seconds that anything may take on a busy machine
BUDGET = """
[ledger]
admission_timeout = "20s"
on_unavailable = "closed"
[[budget]]
name = "roomy"
window = "total"
limit = { amount = "1000000", currency = "USD" }
hold = "1"
"""

Party = Literal["client", "relay", "agent", "all"]


@dataclass(slots=True)
class Verdict:
    """Turns, by their sessions. Every one of `lost`, `doubled`, `invented`, `wrong` and `faults` is a defect."""

    asked: set[str]
    reached: set[str]  # the agent
    acked: list[str]  # their end reached the client, in this order
    refused: set[str]
    booked: Counter[str]
    wrong: set[str]  # acknowledged, and booked at another cost
    faults: list[str]  # lines that were lost or out of order, as the client saw it
    stderr: str = ""
    moved: set[str] = field(default_factory=set)  # booked, if at all, in a damaged file that was moved aside

    @property
    def lost(self) -> set[str]:
        """Acknowledged, and not booked."""
        return set(self.acked) - set(self.booked) - self.moved

    @property
    def unbooked(self) -> set[str]:
        """Begun by the agent, and not booked: a defect where a budget holds something for each turn."""
        return self.reached - set(self.booked) - self.moved

    @property
    def doubled(self) -> set[str]:
        return {session for session, rows in self.booked.items() if rows > 1}

    @property
    def invented(self) -> set[str]:
        return set(self.booked) - self.asked

    @property
    def defects(self) -> list[str]:
        named = {"lost": self.lost, "doubled": self.doubled, "invented": self.invented, "wrong cost": self.wrong}
        return [f"{name}: {sorted(found)}" for name, found in named.items() if found] + self.faults

    @property
    def lines(self) -> int:
        """That were relayed to the client in turns that ended, at least."""
        return len(self.acked) * (CHUNKS + 2)


@dataclass
class Home:
    """A user's machine: a home directory, a ledger, and who ran on it."""

    path: Path
    config: str = ""
    url: str = ""
    state: Path | None = None  # where state goes, if not below the home directory
    extra: Mapping[str, str] = field(default_factory=dict)  # environment
    settings: str = ".config/acp-proxy"  # where its system keeps the configuration

    def __post_init__(self) -> None:
        self.url = self.url or sqlite_url(default_ledger(self.environ))
        directory = self.path / self.settings
        directory.mkdir(parents=True, exist_ok=True)
        if self.config:
            (directory / "config.toml").write_text(self.config)

    @property
    def environ(self) -> dict[str, str]:
        state = {"XDG_STATE_HOME": str(self.state)} if self.state else {}
        return {"HOME": str(self.path), "PATH": os.environ["PATH"], "USER": "alice", **state, **self.extra}

    @contextmanager
    def trial(self, turns: int = 100_000, kept: int = 0) -> Iterator[Trial]:
        """A client that prompts so often, a proxy and an agent. What is left of them afterwards is killed.

        The last `kept` turns wait for `Trial.go_on`: whoever looks on may come late, and has something to happen to.
        """
        notes = self.path / f"notes-{os.urandom(4).hex()}"
        party = [sys.executable, "-S", "-m", "harness.faults.parties"]
        agent = [*party, "agent", f"{notes}.agent"]
        relay = [sys.executable, "-m", "acp_proxy", "run", "--ledger", self.url, "--no-summary", "--", *agent]
        client = [*party, "client", str(notes), str(turns), str(kept), *relay]
        with Path(f"{notes}.stderr").open("wb") as stderr:
            process = subprocess.Popen(
                client,
                cwd=ROOT,
                env=self._our_environ,
                stdin=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )
        try:
            yield Trial(process, notes)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    @property
    def _our_environ(self) -> dict[str, str]:
        return {**self.environ, "PYTHONPATH": os.pathsep.join([self.extra.get("PYTHONPATH", ""), str(ROOT)])}

    def verdict(self, *trials: Trial) -> Verdict:
        """Of trials that are over; the ledger is opened as the next command would."""
        if self.extra:  # who is dead there, only a command on the same system can tell
            doctor = [sys.executable, "-m", "acp_proxy", "doctor"]
            subprocess.run(doctor, cwd=ROOT, env=self._our_environ, stdout=subprocess.DEVNULL, check=True)
        with closing(open_ledger(self.url, journals=journal_directories(self.environ))) as ledger:
            rows = list(ledger.rows(Query()))
        cost = {row.entry.session: [cost.text for cost in row.entry.costs] for row in rows}
        acked = [session for trial in trials for session in trial.noted("acked")]
        return Verdict(
            asked={session for trial in trials for session in trial.noted("asked")},
            reached={session for trial in trials for session in trial.noted("reached")},
            acked=acked,
            refused={session for trial in trials for session in trial.noted("refused")},
            booked=Counter(row.entry.session for row in rows),
            wrong={session for session in acked if session in cost and cost[session] != [COST]},
            faults=[fault for trial in trials for fault in trial.noted("fault")],
            stderr="".join(trial.stderr for trial in trials),
        )


class Trial:
    """Three running parties. What they note is in files, and outlives them."""

    def __init__(self, process: subprocess.Popen[bytes], notes: Path) -> None:
        self._process = process
        self._notes = notes

    def noted(self, what: str) -> list[str]:
        lines = [line for suffix in ("", ".agent") for line in _read(f"{self._notes}{suffix}").splitlines()]
        return [line.partition(" ")[2] for line in lines if line.startswith(f"{what} ")]

    @property
    def stderr(self) -> str:
        return _read(f"{self._notes}.stderr")

    @property
    def acked(self) -> int:
        return len(self.noted("acked"))

    def pid(self, party: Party) -> int:
        if not until(lambda: self.noted(party)):
            raise AssertionError(f"no {party}: {self.stderr}")
        return int(self.noted(party)[0])

    def until_acked(self, turns: int) -> None:
        """Returns when so many turns have ended for the client."""
        assert until(lambda: self.acked >= turns), f"{self.acked} of {turns} turns: {self.stderr}"

    def go_on(self, kept: int = 0) -> None:
        """With the turns that were kept, but for so many."""
        new = Path(f"{self._notes}.go-on.new")
        new.write_text(str(kept))
        new.rename(f"{self._notes}.go-on")

    def until_warned(self, event: str) -> None:
        assert until(lambda: event in self.stderr), f"no {event} in {self.stderr!r}"

    def signal(self, party: Party, number: signal.Signals) -> None:
        if party == "all":  # as some editors do
            os.killpg(self._process.pid, number)
            self._process.wait(LIMIT)
        else:
            with suppress(ProcessLookupError):  # it was quicker
                os.kill(self.pid(party), number)

    def until_over(self) -> None:
        """Returns when all of them have ended by themselves."""
        pids = [int(pid) for party in ("client", "relay", "agent") for pid in self.noted(party)]
        self._process.wait(LIMIT)
        assert until(lambda: not any(alive(pid) for pid in pids)), f"somebody is left: {self.stderr}"


def until(condition: Callable[[], object], within: float = LIMIT) -> bool:
    """Whether it came true in time; for what is told in files, and the end of processes that are not our children."""
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)  # two processors are shared with those that are waited for
    return True


def alive(pid: int) -> bool:
    """Also where only the main thread has ended: another one still holds what the process held."""
    state, *fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split() or ["X"]
    return state not in "ZX" or (len(fields) > 16 and int(fields[16]) > 1)


def at_random_moment(chance: random.Random, within: float = 0.03) -> None:
    """Not at an event: what breaks between two events is looked for."""
    time.sleep(chance.uniform(0, within))


def kill(party: Party, home: Home, chance: random.Random) -> Verdict:
    """A trial in which one party is killed at some point of its work."""
    with home.trial() as trial:
        trial.pid("agent")
        trial.until_acked(chance.randint(0, 40))
        at_random_moment(chance)
        trial.signal(party, signal.SIGKILL)
        trial.until_over()
    return home.verdict(trial)


def stop(party: Party, home: Home, chance: random.Random, turns: int = 60, times: int = 3) -> Verdict:
    """A trial in which one party is stopped and goes on, several times."""
    with home.trial(turns) as trial:
        for number in range(times):
            trial.until_acked(turns * number // (times + 1))
            at_random_moment(chance)
            trial.signal(party, signal.SIGSTOP)
            at_random_moment(chance, 0.3)
            trial.signal(party, signal.SIGCONT)
        trial.until_over()
    return home.verdict(trial)


def _read(path: str) -> str:
    with suppress(OSError):
        return Path(path).read_text(errors="replace")
    return ""

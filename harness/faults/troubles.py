"""What goes wrong with a user's machine while parties run, each as a trial: disks, quotas, descriptors, clocks, files.

Tests do each of them once, `scripts/soak faults` for as long as one likes.
"""

from __future__ import annotations

import itertools
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from acp_proxy.ledger import Query, Row, open_ledger, open_reader
from acp_proxy.ledger.migrations import MIGRATIONS
from acp_proxy.ledger.places import sqlite_url
from acp_proxy.ledger.sqlite.file import queue_of
from acp_proxy.system.directories import default_ledger
from harness.faults.parties import AT_ONCE
from harness.faults.trial import Home, Trial, Verdict, until
from harness.places import make_writable

SCHEMA = len(MIGRATIONS)  # of this version
HOUR = 3600
JUMPS = (48 * HOUR, -72 * HOUR, 0, 10 * 365 * 24 * HOUR, 0, -HOUR)  # seconds that the clock is wrong by

# Of the clock until it jumps: some eight turns. It jumps by itself, for whoever looks on may come too late to move it.
READINGS = 50

JUMPING_CLOCK = f"""
import itertools, time
true, readings, jumps = time.time_ns, itertools.count(), {(0, *JUMPS)}
time.time_ns = lambda: true() + jumps[min(next(readings) // {READINGS}, len(jumps) - 1)] * 10**9
time.time = lambda: time.time_ns() / 1e9
"""

NO_THREADS = """
import threading
threading.stack_size(1 << 46)  # no machine has so much
"""


def disk_fills_up(home: Home, chance: random.Random, turns: int = 120) -> Verdict:
    """State is on a small disk; there is room again before the end."""
    assert home.state
    ballast = home.state / "ballast"
    with home.trial(turns) as trial:
        trial.until_acked(chance.randint(1, 20))
        fill(ballast)
        trial.until_acked(turns - 10)
        ballast.unlink()
        trial.until_over()
    return home.verdict(trial)


def quota_is_used_up(home: Home, chance: random.Random, turns: int = 150) -> Verdict:
    """No file may grow, as beyond a quota."""
    with home.trial(turns, kept=turns // 2) as trial:
        trial.until_acked(chance.randint(1, 20))
        with limited(trial, resource.RLIMIT_FSIZE, 64 * 1024):
            trial.go_on()
            trial.until_warned("ledger.unavailable")
            trial.until_acked(min(trial.acked + 20, turns))  # on a quick disk all may be over when it is told
        trial.until_over()
    return home.verdict(trial)


def directory_is_read_only(home: Home, read_only: Path, turns: int = 60) -> Verdict:
    """The ledger's, until the end; `home.url` is in it."""
    with home.trial(turns) as trial:
        trial.until_warned("ledger.unavailable")
        trial.until_over()
    make_writable(read_only)
    return home.verdict(trial)


def no_descriptor_is_left(home: Home, chance: random.Random, turns: int = 80) -> Verdict:
    """Not even for the ledger's file, which is opened at the first turn."""
    with home.trial(turns, kept=turns - AT_ONCE) as trial:
        relay = trial.pid("relay")
        assert until(lambda: trial.noted("asked"))  # it runs, and has read all its modules but those of the ledger
        used = max(int(descriptor.name) for descriptor in Path(f"/proc/{relay}/fd").iterdir())
        with limited(trial, resource.RLIMIT_NOFILE, used + 1):
            trial.go_on()
            trial.until_acked(chance.randint(20, 60))
        trial.until_over()
    return home.verdict(trial)


def no_thread_can_be_started(home: Home, turns: int = 60) -> Verdict:
    """Of the relay's; by then nobody else needs one."""
    _run_first(home, NO_THREADS)
    with home.trial(turns) as trial:
        trial.until_over()
        assert trial.noted("ended") == ["0"], trial.stderr
    return home.verdict(trial)


def no_inode_is_left(home: Home, chance: random.Random, turns: int = 120) -> Verdict:
    """State is on a disk with few of them; there are some again before the end."""
    assert home.state
    ballast = home.state / "ballast"
    ballast.mkdir()
    with home.trial(turns) as trial:
        trial.until_acked(chance.randint(1, 20))
        with suppress(OSError):
            for number in itertools.count():
                (ballast / str(number)).touch()
        trial.until_acked(turns - 10)
        shutil.rmtree(ballast)
        trial.until_over()
    return home.verdict(trial)


def ledger_is_moved_away(home: Home, chance: random.Random, turns: int = 200) -> Verdict:
    """The file alone, without its log, while two relays have it open; afterwards it has its log again."""
    ledger = default_ledger(home.environ)
    moved = ledger.with_name("moved.db")
    with home.trial(turns, kept=turns // 3) as first, home.trial(turns, kept=turns // 3) as second:
        for trial in (first, second):
            trial.until_acked(chance.randint(1, turns // 2))
        assert until(lambda: _log_of(ledger).exists() and _rows(ledger))  # they may come after the answers
        ledger.rename(moved)
        for trial in (first, second):
            trial.go_on()
        first.until_over()
        second.until_over()
    verdict = home.verdict(first, second)
    for log in ledger.parent.glob("ledger.db.left-*-wal"):  # none where both let go of the file before one began anew
        log.rename(_log_of(moved))
    verdict.moved |= {row.entry.session for row in _rows(moved)}
    return verdict


def clock_jumps(home: Home, turns: int = 60) -> Verdict:
    """Of the relay alone, by days and years, in both directions."""
    _run_first(home, JUMPING_CLOCK)
    with home.trial(turns) as trial:
        trial.until_over()
    return home.verdict(trial)


def file_is_damaged(home: Home, chance: random.Random, turns: int = 200) -> Verdict:
    """While one relay has it open, and before another opens it; rows from before are in the file that is moved."""
    ledger = default_ledger(home.environ)
    with home.trial(turns, kept=turns // 2) as first:
        first.until_acked(chance.randint(1, 40))
        first.signal("relay", signal.SIGSTOP)
        while not _damaged(ledger):  # it stopped in the middle of a transaction
            acked = first.acked
            first.signal("relay", signal.SIGCONT)
            until(lambda acked=acked: first.acked > acked, within=0.1)  # type: ignore[misc]  # mypy gives no type to a default of a lambda
            first.signal("relay", signal.SIGSTOP)
        with home.trial(20, kept=10) as second:
            second.until_warned("ledger.damaged")  # a relay that is at its end may have no time left to tell it
            second.go_on()
            second.until_over()
        before = first.acked
        first.go_on()
        first.signal("relay", signal.SIGCONT)
        first.until_over()
    verdict = home.verdict(first, second)
    verdict.moved |= set(first.noted("acked")[: before + AT_ONCE])
    return verdict


def newer_version_comes(home: Home, chance: random.Random, turns: int = 80) -> Verdict:
    """One changes the ledger under a relay that runs; afterwards this version is updated, too."""
    open_ledger(home.url, journals=()).close()
    with home.trial(turns, kept=turns // 2) as trial:
        trial.until_acked(chance.randint(1, 30))
        booked = set_version(home, SCHEMA + 1)
        trial.go_on()
        trial.until_warned("written by a newer acp-proxy")
        trial.until_over()
        assert set_version(home, SCHEMA) == booked, "an older version wrote on"
    return home.verdict(trial)


def newer_ledger_is_there(home: Home, turns: int = 60) -> tuple[Verdict, subprocess.CompletedProcess[str]]:
    """From the start; and what `report` says meanwhile."""
    set_version(home, SCHEMA + 1)
    with home.trial(turns, kept=turns // 2) as trial:
        trial.until_warned("ledger.unavailable")  # else the relay may be at its end before it has tried the ledger
        trial.go_on()
        trial.until_over()
    report = subprocess.run(
        [sys.executable, "-m", "acp_proxy", "report"], env=home.environ, capture_output=True, text=True, check=False
    )
    set_version(home, SCHEMA)
    return home.verdict(trial), report


def set_version(home: Home, version: int) -> int:
    """What a newer version does to a ledger that is open elsewhere, and how many rows it has by then."""
    path = str(default_ledger(home.environ))
    with closing(sqlite3.connect(path, isolation_level=None, timeout=20)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA user_version = {version}")
        (rows,) = connection.execute("SELECT count(*) FROM turn").fetchone()
        connection.execute("COMMIT")
    return int(rows)


def fill(path: Path) -> None:
    """Take all room that is left on its disk."""
    with path.open("wb", buffering=0) as ballast:
        for size in (1 << 16, 1 << 9):
            try:
                while True:
                    ballast.write(bytes(size))
            except OSError:
                continue


@contextmanager
def limited(trial: Trial, what: int, most: int) -> Iterator[None]:
    """Of the relay, while it runs."""
    relay = trial.pid("relay")
    soft, hard = resource.prlimit(relay, what)
    resource.prlimit(relay, what, (most, hard))
    yield
    with suppress(ProcessLookupError):  # it was quicker
        resource.prlimit(relay, what, (soft, hard))


def _run_first(home: Home, code: str) -> None:
    """In the relay's Python, before anything else: the client's and the agent's look for no such code (`-S`)."""
    site = home.path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(code)
    home.extra = {**home.extra, "PYTHONPATH": str(site)}


def _log_of(ledger: Path) -> Path:
    return ledger.with_name(f"{ledger.name}-wal")


def _rows(ledger: Path) -> list[Row]:
    with closing(open_reader(sqlite_url(ledger), journals=())) as opened:
        return list(opened.rows(Query()))


def _damaged(path: Path) -> bool:
    """Whether its first page could be spoiled, which everybody who opens it reads: not while somebody writes.

    Nor before anybody has: what never was a ledger stays where it is.
    """
    if not queue_of(path).exists():
        return False
    with closing(sqlite3.connect(path, timeout=0.1)) as connection:
        try:
            ((busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.OperationalError:  # it is locked altogether
            return False
    if not busy:
        with path.open("r+b") as file:
            file.write(b"\xff" * 4096)
    return not busy

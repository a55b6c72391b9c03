"""Disks, directories and descriptors that run out: the relay goes on, and rows arrive when it is over."""

from __future__ import annotations

import resource
import signal
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from acp_proxy.ledger.places import default_url
from tests.faults.parties import AT_ONCE
from tests.faults.trial import Home, Trial, until
from tests.ledger.conftest import make_writable

if sys.platform != "linux":
    pytest.skip("limits of another process are Linux's", allow_module_level=True)


def test_a_disk_that_fills_up_and_has_room_again(tmp_path: Path, disk: Path) -> None:
    home = Home(tmp_path, state=disk)
    with home.trial(120) as trial:
        trial.until_acked(10)
        _fill(disk / "ballast")
        trial.until_acked(110)
        (disk / "ballast").unlink()
        trial.until_over()
    verdict = home.verdict(trial)
    assert verdict.defects == []
    assert len(verdict.acked) == 120


def test_a_disk_that_is_full_from_the_start_costs_no_line(tmp_path: Path, disk: Path) -> None:
    """There is room for neither journal nor ledger: what is not booked is told."""
    home = Home(tmp_path, state=disk)
    _fill(disk / "ballast")
    with home.trial(30) as trial:
        trial.until_over()
    (disk / "ballast").unlink()
    verdict = home.verdict(trial)
    assert (len(verdict.acked), verdict.faults) == (30, [])
    assert "rows may be lost when the proxy is killed" in verdict.stderr
    assert "ledger.unavailable" in verdict.stderr


def test_files_that_may_grow_no_further(tmp_path: Path) -> None:
    """As beyond a quota."""
    home = Home(tmp_path)
    with home.trial(150) as trial:
        trial.until_acked(10)
        with limited(trial, resource.RLIMIT_FSIZE, 64 * 1024):
            trial.until_warned("ledger.unavailable")
            trial.until_acked(trial.acked + 20)
        trial.until_over()
    verdict = home.verdict(trial)
    assert verdict.defects == []
    assert len(verdict.acked) == 150


def test_a_directory_that_cannot_be_written_until_later(tmp_path: Path, read_only_directory: Path) -> None:
    home = Home(tmp_path, url=f"sqlite:///{read_only_directory}/ledger.db")
    with home.trial(60) as trial:
        trial.until_warned("ledger.unavailable")
        trial.until_over()
    make_writable(read_only_directory)
    verdict = home.verdict(trial)
    assert verdict.defects == []
    assert len(verdict.acked) == 60


def test_no_descriptor_is_left_for_a_while(tmp_path: Path) -> None:
    """Not even for the ledger's file, which is opened at the first turn."""
    home = Home(tmp_path)
    with home.trial(80) as trial:
        relay = trial.pid("relay")
        assert until(lambda: trial.noted("asked"))  # it runs, and has read all its modules but those of the ledger
        used = max(int(descriptor.name) for descriptor in Path(f"/proc/{relay}/fd").iterdir())
        with limited(trial, resource.RLIMIT_NOFILE, used + 1):
            trial.until_acked(40)
        trial.until_over()
    verdict = home.verdict(trial)
    assert verdict.defects == []
    assert len(verdict.acked) == 80


def test_a_file_that_was_damaged_is_moved_aside_and_everybody_goes_on(tmp_path: Path) -> None:
    """What it held is in the file that was moved; every turn since then is in the new one."""
    home = Home(tmp_path)
    ledger = Path(default_url(home.environ).removeprefix("sqlite:///"))
    with home.trial(200) as first:
        first.until_acked(20)
        first.signal("relay", signal.SIGSTOP)
        while not _damaged(ledger):  # it stopped in the middle of a transaction
            first.signal("relay", signal.SIGCONT)
            first.until_acked(first.acked + 1)
            first.signal("relay", signal.SIGSTOP)
        with home.trial(20) as second:
            second.until_over()
        before = first.acked
        first.signal("relay", signal.SIGCONT)
        first.until_over()
    verdict = home.verdict(first, second)
    assert verdict.faults == []
    assert (len(verdict.acked), verdict.doubled, verdict.wrong) == (220, set(), set())
    assert set(first.noted("acked")[before + AT_ONCE :]) | set(second.noted("acked")) <= set(verdict.booked)
    [aside] = ledger.parent.glob("ledger.db.corrupt-*Z")
    assert f"moved_to={aside}" in verdict.stderr
    assert verdict.stderr.count("ledger.damaged") == 1


@contextmanager
def limited(trial: Trial, what: int, most: int) -> Iterator[None]:
    """Of the relay, while it runs."""
    relay = trial.pid("relay")
    soft, hard = resource.prlimit(relay, what)
    resource.prlimit(relay, what, (most, hard))
    yield
    resource.prlimit(relay, what, (soft, hard))


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as ballast:
        for size in (1 << 16, 1 << 9):
            try:
                while True:
                    ballast.write(bytes(size))
            except OSError:
                continue


def _damaged(path: Path) -> bool:
    """Whether its first page could be spoiled, which everybody who opens it reads: not while somebody writes."""
    with closing(sqlite3.connect(path, timeout=0.1)) as connection:
        ((busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    if not busy:
        with path.open("r+b") as file:
            file.write(b"\xff" * 4096)
    return not busy

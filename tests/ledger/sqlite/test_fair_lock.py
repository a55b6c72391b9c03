"""Who writes next: real locks of the system, of this process and of another one."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from acp_proxy.ledger.sqlite.fair_lock import FairLock
from harness.faults.trial import until
from tests.threads import no_more_threads

_HOLD = """
import fcntl, sys
file = open(sys.argv[1])
fcntl.flock(file, fcntl.LOCK_EX)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "queue"
    path.touch()
    return path


@pytest.fixture
def held(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that is in."""
    with subprocess.Popen([sys.executable, "-c", _HOLD, path], stdin=-1, stdout=-1) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


def queued(path: Path) -> int:
    """How many wait, as the system tells it."""
    inode = f":{path.stat().st_ino} "
    return sum(" -> FLOCK " in line and inode in line for line in Path("/proc/locks").read_text().splitlines())


def enter(path: Path, patience: float, work: Callable[[bool], object]) -> threading.Thread:
    def go() -> None:
        with closing(FairLock(path, patience)) as turnstile, turnstile.turn() as entered:
            work(entered)

    thread = threading.Thread(target=go)
    thread.start()
    return thread


def test_they_enter_in_the_order_in_which_they_came(path: Path, held: subprocess.Popen[bytes]) -> None:
    order = list[int]()
    threads = list[threading.Thread]()
    for number in range(5):
        threads.append(enter(path, 60, lambda _, number=number: order.append(number)))  # type: ignore[misc]  # mypy gives no type to a default of a lambda
        assert until(lambda: queued(path) == len(threads))
    held.kill()
    for thread in threads:
        thread.join(60)
    assert order == [0, 1, 2, 3, 4]


def gets_in(turnstile: FairLock) -> bool:
    with turnstile.turn() as entered:
        return entered


def test_one_at_a_time_is_in(path: Path) -> None:
    with closing(FairLock(path, 60)) as first, closing(FairLock(path, 0.01)) as second:
        with first.turn() as entered, second.turn() as with_it:
            assert (entered, with_it) == (True, False)
        assert until(lambda: gets_in(second))  # who waited first has to wake, and its patience is short


@pytest.mark.usefixtures("held")
def test_after_its_patience_one_goes_on_without(path: Path) -> None:
    with closing(FairLock(path, 0.01)) as turnstile:
        for _ in range(3):
            with turnstile.turn() as entered:
                assert not entered
        assert until(lambda: queued(path))  # its thread may take longer than its patience
        assert queued(path) == 1


def test_a_turn_that_comes_too_late_is_passed_on(path: Path, held: subprocess.Popen[bytes]) -> None:
    with closing(FairLock(path, 0.01)) as late:
        with late.turn() as entered:
            assert not entered
        held.kill()
        with closing(FairLock(path, 60)) as another, another.turn() as entered:
            assert entered
        assert until(lambda: gets_in(late))


def test_whoever_closed_while_waiting_keeps_nobody_out(path: Path, held: subprocess.Popen[bytes]) -> None:
    with closing(FairLock(path, 0.01)) as gone, gone.turn() as entered:
        assert not entered
    held.kill()
    with closing(FairLock(path, 60)) as another, another.turn() as entered:
        assert entered


def test_where_no_thread_can_be_started_nobody_waits_for_a_turn(path: Path, held: subprocess.Popen[bytes]) -> None:
    with no_more_threads(), closing(FairLock(path, 60)) as turnstile:
        with turnstile.turn() as entered:
            assert not entered
        held.kill()
        held.wait()
        with turnstile.turn() as entered:
            assert entered

"""Disks, directories and descriptors that run out: the relay goes on, and rows arrive when it is over."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from acp_proxy.system.directories import default_ledger
from harness.faults import troubles
from harness.faults.trial import Home, Verdict

if sys.platform != "linux":
    pytest.skip("limits of another process are Linux's", allow_module_level=True)


def test_a_disk_that_fills_up_and_has_room_again(tmp_path: Path, disk: Path, chance: random.Random) -> None:
    check(troubles.disk_fills_up(Home(tmp_path, state=disk), chance), 120)


def test_a_disk_that_is_full_from_the_start_costs_no_line(tmp_path: Path, disk: Path) -> None:
    """There is room for neither journal nor ledger: what is not booked is told."""
    home = Home(tmp_path, state=disk)
    troubles.fill(disk / "ballast")
    with home.trial(30) as trial:
        trial.until_over()
    (disk / "ballast").unlink()
    verdict = home.verdict(trial)
    assert (len(verdict.acked), verdict.faults) == (30, [])
    assert "rows may be lost when the proxy is killed" in verdict.stderr
    assert "ledger.unavailable" in verdict.stderr


def test_files_that_may_grow_no_further(tmp_path: Path, chance: random.Random) -> None:
    check(troubles.quota_is_used_up(Home(tmp_path), chance), 150)


def test_a_directory_that_cannot_be_written_until_later(tmp_path: Path, read_only_directory: Path) -> None:
    home = Home(tmp_path, url=f"sqlite:///{read_only_directory}/ledger.db")
    check(troubles.directory_is_read_only(home, read_only_directory), 60)


def test_no_descriptor_is_left_for_a_while(tmp_path: Path, chance: random.Random) -> None:
    check(troubles.no_descriptor_is_left(Home(tmp_path), chance), 80)


def test_no_inode_is_left_for_a_while(tmp_path: Path, disk: Path, chance: random.Random) -> None:
    subprocess.run(["mount", "-o", "remount,nr_inodes=50", str(disk)], check=True)
    check(troubles.no_inode_is_left(Home(tmp_path, state=disk), chance), 120)


def test_no_thread_can_be_started(tmp_path: Path) -> None:
    """Rows wait in the journal, and are written by the relay itself at its end."""
    home = Home(tmp_path)
    verdict = troubles.no_thread_can_be_started(home)
    check(verdict, 60)
    (said,) = verdict.stderr.splitlines()
    assert "can't start new thread" in said


def test_a_ledger_that_is_moved_away_keeps_its_rows_and_everybody_goes_on_in_a_new_one(
    tmp_path: Path, chance: random.Random
) -> None:
    verdict = troubles.ledger_is_moved_away(Home(tmp_path), chance)
    check(verdict, 400)
    assert verdict.moved
    assert verdict.stderr.count("ledger.log_left") <= 1  # none where both let go of the file first


def test_a_file_that_was_damaged_is_moved_aside_and_everybody_goes_on(tmp_path: Path, chance: random.Random) -> None:
    """What it held is in the file that was moved; every turn since then is in the new one."""
    home = Home(tmp_path)
    verdict = troubles.file_is_damaged(home, chance)
    check(verdict, 220)
    ledger = default_ledger(home.environ)
    [aside] = ledger.parent.glob("ledger.db.corrupt-*Z")
    assert f"moved_to={aside}" in verdict.stderr.replace('"', "")  # around a path with a space
    assert verdict.stderr.count("ledger.damaged") == 1


def check(verdict: Verdict, turns: int) -> None:
    assert verdict.defects == []
    assert len(verdict.acked) == turns

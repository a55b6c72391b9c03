"""Whose process holds a turn: only its own user on its own host takes it for dead, for only he has its journal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from acp_proxy.ledger import log_warning
from acp_proxy.ledger.journal.writer import open_journal
from acp_proxy.ledger.owners import Owner
from acp_proxy.ledger.places import journal_of
from harness.faults.trial import until

PR_SET_DUMPABLE = 4
ENDED = f"""
import ctypes, os, sys
from acp_proxy.ledger.owners import Owner
owner = Owner.this()
if len(sys.argv) > 1:  # who may not read our Python's files by then
    os.setuid(int(sys.argv[1]))
    ctypes.CDLL(None).prctl({PR_SET_DUMPABLE}, 1)  # as one that this user has started
    owner = Owner.this()
print(owner.host, owner.pid, owner.started, sep="\\n")
"""

MAIN_THREAD_ENDS = """
import ctypes, os, sys, threading
from acp_proxy.ledger.owners import Owner
threading.Thread(target=lambda: os._exit(len(sys.stdin.read()))).start()
print(Owner.this().started, flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


def ended(*user: str) -> Owner:
    """A process that ran for a moment, as that user."""
    command = [sys.executable, "-c", ENDED, *user]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    host, pid, started = done.stdout.splitlines()
    return Owner(host, int(pid), started)


def test_a_process_of_ours_that_ended_is_gone() -> None:
    assert ended().is_gone


def test_a_process_that_lives_is_gone_only_if_it_began_at_another_time() -> None:
    this = Owner.this()
    assert [replace(this, started=began).is_gone for began in (this.started, "", "long ago")] == [False, False, True]


def test_of_a_user_whose_number_begins_with_ours_nobody_says_that_a_process_is_gone() -> None:
    dead = ended()
    assert not replace(dead, host=f"{dead.host}0").is_gone
    assert replace(dead, host=f"{dead.host} 0123abcd").is_gone  # with the directory of its journal


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of threads")
def test_a_process_whose_main_thread_ended_lives_until_the_others_have() -> None:
    """It holds its journal, and may be in the middle of a transaction."""
    command, pipe = [sys.executable, "-c", MAIN_THREAD_ENDS], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin
        assert process.stdout
        owner = replace(Owner.this(), pid=process.pid, started=process.stdout.readline().strip())
        stat = Path(f"/proc/{process.pid}/stat")
        assert until(lambda: ") Z " in stat.read_text())
        assert not owner.is_gone
        process.stdin.close()
        assert until(lambda: owner.is_gone)


@pytest.mark.parametrize("pid", [0, -1])
def test_a_number_that_stands_for_a_group_is_no_process(pid: int) -> None:
    assert replace(Owner.this(), pid=pid).is_gone


@pytest.mark.skipif(not Path("/proc/self/ns/pid").is_symlink(), reason="no namespaces of processes are to be seen here")
def test_containers_that_share_a_name_are_different_hosts() -> None:
    assert str(Path("/proc/self/ns/pid").readlink()) in Owner.this().host


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="only root can be somebody else")
def test_of_another_users_process_nobody_says_that_it_is_gone() -> None:
    assert not ended("65534").is_gone


def test_a_journal_is_known_by_its_owner_however_its_directory_is_spelt(tmp_path: Path) -> None:
    directory = tmp_path / "journals"
    (tmp_path / "link").symlink_to(directory)
    journal = open_journal([directory], f"sqlite:///{tmp_path}/ledger.db", log_warning)
    assert journal_of(Owner.this(tmp_path / "link"), [tmp_path / "link"])
    assert not journal_of(Owner.this(tmp_path), [directory])
    journal.close()

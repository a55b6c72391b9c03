"""kill -9 at random moments: whatever the client saw the end of is booked, once, at what it cost."""

from __future__ import annotations

import platform
import random
import subprocess
import sys
from pathlib import Path

import pytest

from acp_proxy.ledger.owners import Owner, this_host
from harness.faults.trial import BUDGET, Home, Party, kill, until


@pytest.mark.parametrize("party", ["client", "relay", "agent", "all"])
def test_who_is_killed_costs_no_turn_that_was_acknowledged(party: Party, chance: random.Random, tmp_path: Path) -> None:
    verdict = kill(party, Home(tmp_path), chance)
    assert verdict.defects == []


@pytest.mark.parametrize("party", ["client", "relay", "agent", "all"])
def test_under_a_budget_each_turn_that_the_agent_began_is_booked(
    party: Party, chance: random.Random, tmp_path: Path
) -> None:
    verdict = kill(party, Home(tmp_path, BUDGET), chance)
    assert verdict.defects == []
    assert verdict.unbooked == set()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_process_whose_main_thread_has_ended_is_not_gone_while_another_still_works() -> None:
    """As after a kill -9 in the middle of a transaction: its journal cannot be taken over yet."""
    exit_this_thread = {"x86_64": 60, "aarch64": 93}[platform.machine()]
    code = f"""
import ctypes, sys, threading
threading.Thread(target=sys.stdin.readline).start()
sys.stdout.write(open("/proc/self/stat").read().rpartition(")")[2].split()[19] + "\\n")
sys.stdout.flush()
ctypes.CDLL(None).syscall({exit_this_thread}, 0)
"""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout
        owner = Owner(this_host(), process.pid, process.stdout.readline().strip())
        stat = Path(f"/proc/{process.pid}/stat")
        assert until(lambda: stat.read_text().rpartition(") ")[2].startswith("Z"))
        assert not owner.is_gone
        process.kill()
        assert until(lambda: owner.is_gone)

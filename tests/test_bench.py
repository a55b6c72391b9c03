"""What benchmarks measure with is right itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

TIMED = Path(__file__).parent.parent / "bench/timed.py"


def test_the_memory_of_a_command_is_its_own_and_not_that_of_who_asks() -> None:
    large = "import subprocess, sys; kept = bytearray(100 << 20); sys.exit(subprocess.run(sys.argv[1:]).returncode)"
    timed = [sys.executable, "-I", "-S", str(TIMED), "/bin/true"]
    done = subprocess.run([sys.executable, "-c", large, *timed], capture_output=True, check=True, timeout=30)
    assert 0 < json.loads(done.stdout)["MB"] < 50


def test_a_command_that_fails_is_told_by_its_status() -> None:
    timed = [sys.executable, "-I", "-S", str(TIMED), "/bin/sh", "-c", "echo unseen; exit 3"]
    done = subprocess.run(timed, capture_output=True, check=False, timeout=30)
    assert (done.returncode, b"unseen" in done.stdout) == (3, False)

"""Runs pytest, and the few tests that failed once more, alone: `python -m tests.again ARGUMENTS…`, as pytest has them.

A machine that stands still for seconds can make any test fail that waits for another process. One that passes at the
second try is named at the end, and the run has passed; what it said at the first try stays above. Never where tests
could not be collected, where a worker died, or where more failed than chance explains.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

MOST = 5  # tests


class Failed:
    """A plugin that notes what failed."""

    def __init__(self) -> None:
        self.tests: dict[str, None] = {}  # as pytest takes them, in the order in which they failed
        self.incomplete = False  # nobody knows what else would have failed
        self.root: Path | None = None  # of their names

    def pytest_configure(self, config: pytest.Config) -> None:
        self.root = config.rootpath

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.tests[re.sub(r"@[^\]]*$", "", report.nodeid)] = None  # without the group that pytest-xdist puts there

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.incomplete |= report.failed

    @pytest.hookimpl(optionalhook=True)  # of pytest-xdist, when a worker has died
    def pytest_handlecrashitem(self) -> None:
        self.incomplete = True


def main(arguments: Sequence[str]) -> int:
    """The exit status: pytest's, or 0 when every test passed at one of two tries."""
    failed = Failed()
    status = pytest.main([*arguments], plugins=[failed])
    if status != pytest.ExitCode.TESTS_FAILED or failed.incomplete or not 0 < len(failed.tests) <= MOST:
        return int(status)
    sys.stdout.write(f"\nOnce more, alone: {len(failed.tests)} that failed\n")
    sys.stdout.flush()
    again = subprocess.run([sys.executable, "-m", "pytest", *failed.tests], cwd=failed.root, check=False)
    if again.returncode:
        return again.returncode
    for test in failed.tests:
        sys.stdout.write(f"FLAKY: {test} failed, and passed only at the second try\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

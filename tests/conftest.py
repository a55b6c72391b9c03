"""What every test shares: property tests are bounded in examples, not in time, for machines differ."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Generator, Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from acp_proxy.startup.start import ADMIN_FILE
from harness.postgres import databases_dropped

settings.register_profile(
    "house", deadline=None, max_examples=100, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")

# Of whoever runs the tests: what they start would look elsewhere for its files, or ask a proxy for what is on loopback.
# Within a hook of git, its commands would be about the repository of that hook; PG* say how to reach other databases.
for name in list(os.environ):
    if name.startswith(("ACP_PROXY_", "XDG_", "GIT_", "PG")) or name.lower().endswith("_proxy"):
        del os.environ[name]

# What is run in the background inherits these as ignored, and so would all that tests start.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_sessionstart() -> None:
    if Path(ADMIN_FILE).exists():
        pytest.exit(f"tests start commands that would obey {ADMIN_FILE}: move it away, or run scripts/test as root", 2)


# Where pytest looks for programs that a test needs; servers are in /usr/sbin, which is not on every PATH.
_PROGRAMS = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"
_MISSING = "not installed: "
_PACKAGES = {  # of Debian, where the package is not called like the program
    "amtool": "prometheus-alertmanager",
    "etcd": "etcd-server",
    "promtool": "prometheus",
    "systemd-analyze": "systemd",
}


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose programs are not installed: `scripts/test` passes on a machine with only Python and git."""
    for marker in item.iter_markers("needs"):
        if missing := [name for name in marker.args if not shutil.which(name, path=_PROGRAMS)]:
            pytest.skip(_MISSING + ", ".join(missing))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which programs would let more tests run, and which tests passed only at the second try."""
    skips = [report.longrepr for report in terminalreporter.stats.get("skipped", [])]
    reasons = [str(skip[2]).removeprefix("Skipped: ") for skip in skips if isinstance(skip, tuple)]
    missing = [reason.removeprefix(_MISSING) for reason in reasons if reason.startswith(_MISSING)]
    if missing:
        programs = {program for names in missing for program in names.split(", ")}
        packages = " ".join(sorted({_PACKAGES.get(program, program) for program in programs}))
        terminalreporter.write_line(f"{len(missing)} tests were skipped; to run them: apt install {packages}")
    failed = {report.nodeid for report in terminalreporter.stats.get("failed", [])}
    for report in terminalreporter.stats.get("rerun", []):
        if report.nodeid not in failed:
            terminalreporter.write_line(f"FLAKY: {report.nodeid} passed only at the second try")


_LONGEST_NAME = 200  # of a parameter


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Workers tell all names to each other, and tests theirs to what they start: a text of 20 MB is no name."""
    if isinstance(val, str | bytes) and len(val) > _LONGEST_NAME:
        return f"{argname} of {len(val)}"
    return None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Tests of a group share what takes long to start: they pass as well when it is started in every worker."""
    if session.config.getoption("loadgroup", default=False):
        apart = [
            item.nodeid for item in session.items if item.get_closest_marker("xdist_group") and "@" not in item.nodeid
        ]
        assert not apart, f"this pytest-xdist keeps no group together with this pytest: {apart[0]}"


@pytest.fixture(autouse=True)
def no_database_is_left() -> Iterator[None]:
    """All tests of a run together make more than a gigabyte of them."""
    with databases_dropped():
        yield


_FAILED = pytest.StashKey[bool]()
_places = count()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Removed after a test that passed: all together take more room than memory has.

    No other one of this run has its name, which pytest's own gives again: a thread of an earlier test may still be
    trying to write into the ledger that it had there.
    """
    name = re.sub(r"\W", "_", request.node.name)[:26]
    path = tmp_path_factory.mktemp(f"{name}{next(_places)}", numbered=False)
    yield path
    if _FAILED not in request.node.stash:
        shutil.rmtree(path, ignore_errors=True)

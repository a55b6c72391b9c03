"""The units, read by systemd."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.deploy.tools import run

SYSTEMD = Path(__file__).parents[2] / "deploy/systemd"
README = SYSTEMD.parent / "README.md"
INSTALLED = ("/usr/local/bin/acp-proxy", "%h/.local/bin/acp-proxy")


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """As they would stand in /etc/systemd of a machine that has acp-proxy: in `system` and `user`."""
    ours = str(Path(sys.executable).parent / "acp-proxy").replace(" ", r"\x20")  # as systemd takes it
    for whose, found in {"system": SYSTEMD.glob("acp-proxy-*"), "user": SYSTEMD.glob("user/*")}.items():
        (tmp_path / whose).mkdir()
        for path in found:
            text = re.sub("|".join(map(re.escape, INSTALLED)), lambda _: ours, path.read_text(encoding="utf-8"))
            (tmp_path / whose / path.name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.needs("systemd-analyze")
@pytest.mark.parametrize("whose", ["system", "user"])
def test_systemd_takes_the_units(units: Path, whose: str) -> None:
    found = [str(path) for path in (units / whose).iterdir()]
    assert found
    assert analyze("verify", f"--{whose}", "--recursive-errors=no", *found) == ""


@pytest.mark.needs("systemd-analyze")
@pytest.mark.parametrize(
    ("unit", "exposure"),
    [("acp-proxy-serve.service", 15), ("acp-proxy-hub.service", 15), ("acp-proxy-metrics.service", 40)],
)
def test_a_unit_is_locked_up(units: Path, unit: str, exposure: int) -> None:
    analyze("security", "--offline=yes", f"--threshold={exposure}", str(units / "system" / unit))


def test_units_of_different_users_share_no_directory_of_state() -> None:
    """systemd would give it to whichever starts, and take it from the other that runs."""
    found = [said("StateDirectory", path) for path in SYSTEMD.glob("*.service")]
    assert len(found) == 3
    assert len({*map(tuple, found)}) == 3


def test_the_directory_for_node_exporter_is_made_for_whom_the_unit_runs_as() -> None:
    """Debian's package has it belong to root."""
    unit = SYSTEMD / "acp-proxy-metrics.service"
    (user,), (writable,) = said("User", unit), said("ReadWritePaths", unit)
    assert f"+/usr/bin/install -d -o {user} -m 755 {writable}" in said("ExecStartPre", unit)


def test_a_call_that_is_not_allowed_is_an_error_and_not_the_end() -> None:
    """A package that is updated may try one of which it can do without."""
    for unit in SYSTEMD.glob("*.service"):
        assert said("SystemCallFilter", unit)
        assert said("SystemCallErrorNumber", unit) == ["EPERM"]


@pytest.mark.parametrize("unit", ["acp-proxy-serve.service", "user/acp-proxy-serve.service"])
def test_serve_is_started_when_it_answers_however_long_that_takes_and_anew_when_it_hangs(unit: str) -> None:
    """A ledger of an older version is brought up to date before."""
    assert said("Type", SYSTEMD / unit) == ["notify"]
    assert said("TimeoutStartSec", SYSTEMD / unit) == ["infinity"]
    assert said("WatchdogSec", SYSTEMD / unit)
    assert said("Restart", SYSTEMD / unit) == ["on-failure"]


def test_a_second_ledger_has_nothing_of_the_first() -> None:
    (drop_in,) = re.findall(r"^```ini\n(.*?)^```$", README.read_text(encoding="utf-8"), re.M | re.S)
    unit = (SYSTEMD / "acp-proxy-serve.service").read_text(encoding="utf-8")
    of_the_first = re.findall(r"^(?!Exec)(\w+)=(?:.*/)?acp-proxy\b", unit, re.M)
    assert sorted(of_the_first) == ["Environment", "EnvironmentFile", "LoadCredential", "StateDirectory"]
    for key in of_the_first:
        *emptied, value = re.findall(rf"^{key}=(.*)$", drop_in, re.M)
        assert "acp-proxy-two" in value
        assert emptied == ([] if key == "Environment" else [""])  # of names in an environment the last counts


def said(key: str, unit: Path) -> list[str]:
    return re.findall(rf"^{key}=(.+)$", unit.read_text(encoding="utf-8"), re.M)


def analyze(*arguments: str) -> str:
    """What systemd says when it is content."""
    environ = {**os.environ, "XDG_RUNTIME_DIR": "/run"}  # has to be named, and need not be the user's
    status, says = run("systemd-analyze", "--no-pager", *arguments, environ=environ)
    assert status == 0, says
    return says

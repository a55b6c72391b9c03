"""The units, read by systemd."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.deploy.tools import run

SYSTEMD = Path(__file__).parents[2] / "deploy/systemd"
INSTALLED = "/usr/local/bin/acp-proxy"


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """As they would stand in /etc/systemd/system of a machine that has acp-proxy."""
    ours = Path(sys.executable).parent / "acp-proxy"
    for path in SYSTEMD.iterdir():
        (tmp_path / path.name).write_text(path.read_text().replace(INSTALLED, str(ours)))
    return tmp_path


@pytest.mark.real
def test_systemd_takes_the_units(units: Path) -> None:
    assert analyze("verify", "--recursive-errors=no", *map(str, units.iterdir())) == ""


@pytest.mark.real
@pytest.mark.parametrize(("unit", "exposure"), [("acp-proxy-serve.service", 15), ("acp-proxy-metrics.service", 40)])
def test_a_unit_is_locked_up(units: Path, unit: str, exposure: int) -> None:
    analyze("security", "--offline=yes", f"--threshold={exposure}", str(units / unit))


def test_units_of_different_users_share_no_directory_of_state() -> None:
    """systemd would give it to whichever starts, and take it from the other that runs."""
    found = [said("StateDirectory", path) for path in SYSTEMD.glob("*.service")]
    assert len(found) == 2
    assert len({*map(tuple, found)}) == 2


def test_the_directory_for_node_exporter_is_made_for_whom_the_unit_runs_as() -> None:
    """Debian's package has it belong to root."""
    unit = SYSTEMD / "acp-proxy-metrics.service"
    (user,), (writable,) = said("User", unit), said("ReadWritePaths", unit)
    assert f"+/usr/bin/install -d -o {user} -m 755 {writable}" in said("ExecStartPre", unit)


def said(key: str, unit: Path) -> list[str]:
    return re.findall(rf"^{key}=(.+)$", unit.read_text(encoding="utf-8"), re.MULTILINE)


def analyze(*arguments: str) -> str:
    """What systemd says when it is content."""
    status, says = run("systemd-analyze", "--no-pager", *arguments)
    assert status == 0, says
    return says

"""The units, read by systemd."""

from __future__ import annotations

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


def analyze(*arguments: str) -> str:
    """What systemd says when it is content."""
    status, says = run("systemd-analyze", "--no-pager", *arguments)
    assert status == 0, says
    return says

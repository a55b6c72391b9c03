"""A machine for each test, on which acp-proxy is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.setup.machine import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    program = tmp_path / "bin/acp-proxy"
    program.parent.mkdir()
    program.touch(mode=0o755)
    return Machine(tmp_path)

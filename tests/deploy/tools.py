"""Programs that read what is in deploy/: those of the dependency group `deploy`, and the system's."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_SECONDS = 60


def run(program: str | Path, *arguments: str | Path, environ: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Its status, and what it says on stdout and stderr. Raises AssertionError when it is not installed."""
    found = shutil.which(program, path=str(Path(sys.executable).parent)) or shutil.which(program)
    assert found, f"{program} is not installed; scripts/test and .ci/run install it"
    command = [found, *map(str, arguments)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=_SECONDS, check=False)
    return done.returncode, done.stdout + done.stderr

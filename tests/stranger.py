"""A clone and an environment as somebody has them who has never heard of acp-proxy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def copy_of_the_repository(target: Path) -> Path:
    """The files that git knows, with what is not committed yet: an uncommitted mistake is to be found, too."""
    files = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True).split("\0")
    for name in filter(None, files):
        if (source := ROOT / name).is_file():
            copy = target / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(source.read_bytes())
            copy.chmod(source.stat().st_mode)
    return target


def bare(home: Path, *, path: str = "") -> dict[str, str]:
    """Nothing but HOME and PATH, and what this machine's pip needs to find packages."""
    home.mkdir(exist_ok=True)
    packages = {name: value for name, value in os.environ.items() if name.startswith("PIP_") and "INDEX" in name}
    return {"HOME": str(home), "PATH": path or f"{Path(sys.base_prefix) / 'bin'}:/usr/bin:/bin", **packages}

"""File systems of any size, and directories that nobody can write to, not even root."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def make_writable(directory: Path) -> None:
    """What `read_only_directory` made read-only."""
    if os.geteuid() != 0:
        directory.chmod(0o700)
    else:
        subprocess.run(["mount", "-o", "remount,rw", str(directory)], check=True)


@contextmanager
def mounted(directory: Path, options: str) -> Iterator[None]:
    """A file system in memory there meanwhile; skips the test where that is not allowed."""
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(directory)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount")
    try:
        yield
    finally:
        subprocess.run(["umount", str(directory)], check=True)

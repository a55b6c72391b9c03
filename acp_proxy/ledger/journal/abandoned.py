"""Journals in a directory, and whether their processes still live. Reads none of them: `recovery.py` does."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_ABANDONED = 60.0  # seconds after which a file that was never finished is not going to be


def any_abandoned(directories: Iterable[Path]) -> bool:
    """Whether there is something to take over."""
    return any(_is_free(path) for directory in directories for path in journals_in(directory))


def journals_in(directory: Path) -> list[Path]:
    """The journals of a directory; removes what a process left before its journal was complete."""
    try:
        found = sorted(directory.iterdir())
    except OSError:
        return []
    for unfinished in (path for path in found if path.suffix == ".new"):
        with suppress(OSError):
            if time.time() - unfinished.stat().st_mtime > _ABANDONED:
                unfinished.unlink()
    return [path for path in found if path.suffix == ".journal"]


@contextmanager
def taken(path: Path) -> Iterator[BinaryIO | None]:
    """The file, locked, when its owner is dead; else None."""
    try:
        file = path.open("r+b")
    except OSError:
        yield None
        return
    with file:
        yield file if _lock(file) else None


def _is_free(path: Path) -> bool:
    with taken(path) as file:
        return file is not None


def _lock(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return os.fstat(file.fileno()).st_nlink > 0  # else another process has just recovered it

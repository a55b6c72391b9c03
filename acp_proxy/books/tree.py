"""The files below a directory, in the same order each time. Links are not followed, for they may lead out of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def directories(root: Path) -> Iterator[Path]:
    """Those in `root`, by name."""
    try:
        with os.scandir(root) as entries:
            names = sorted(entry.name for entry in entries if _is_directory(entry))
    except OSError:
        return
    yield from (root / name for name in names)


def below(root: Path, suffix: str) -> Iterator[Path]:
    """Files before directories, each by name. A directory that cannot be read has none.

    What a link names inside of `root` is found where it really is; `root` itself may be a link.
    """
    try:
        with os.scandir(root) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    yield from (root / entry.name for entry in found if entry.name.endswith(suffix) and _is_file(entry))
    for entry in found:
        if _is_directory(entry):
            yield from below(root / entry.name, suffix)


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file(follow_symlinks=False)
    except OSError:
        return False


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def roots(*candidates: Path) -> Iterator[Path]:
    """Each directory once, whichever names lead to it."""
    seen: set[Path] = set()
    for candidate in candidates:
        try:
            real = candidate.resolve()
        except (OSError, RuntimeError):  # RuntimeError: a loop of links, before Python 3.13
            continue
        if real not in seen:
            seen.add(real)
            yield candidate

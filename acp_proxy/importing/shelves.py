"""Whose books there are, and how a file becomes calls. It is opened only for reading, and only if it is this user's."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.books import (
    Call,
    NotUnderstood,
    claude,
    codex,
    copilot,
    databases,
    gemini,
    goose,
    kilo,
    kimi,
    opencode,
    opencode_files,
    pi,
    qwen,
)

Found = Call | NotUnderstood
Environ = Mapping[str, str]
_LONGEST = 64 * 1024 * 1024  # bytes of a line that is read in one piece


class BookUnreadableError(Exception):
    """One sentence that says why, without content of the file."""


class Shelf(Struct, frozen=True):
    """All books of one agent."""

    agent: str  # as rows and the command line call it
    files: Callable[[Path, Environ], Iterator[Path]]
    read: Callable[[Path], Iterator[Found]]


def _lines(read: Callable[[Iterable[bytes]], Iterator[Found]]) -> Callable[[Path], Iterator[Found]]:
    def of_file(path: Path) -> Iterator[Found]:
        with os.fdopen(_opened(path), "rb", buffering=1 << 20) as file:
            yield from read(iter(lambda: file.readline(_LONGEST), b""))

    return of_file


def _opened(path: Path) -> int:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise BookUnreadableError(f"it cannot be opened: {type(error).__name__}") from error
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
        return descriptor
    os.close(descriptor)
    wrong = "it belongs to another user" if stat.S_ISREG(status.st_mode) else "it is not a plain file"
    raise BookUnreadableError(wrong)


def _gemini(path: Path) -> Iterator[Found]:
    parent = gemini.parent(path)
    for found in _lines(gemini.read)(path):
        yield replace(found, parent=parent, kind="subagent") if parent and isinstance(found, Call) else found


def _kimi(path: Path) -> Iterator[Found]:
    yield from _lines(partial(kimi.read, session=kimi.session(path)))(path)


def _database(read: Callable[[sqlite3.Connection], Iterator[Found]]) -> Callable[[Path], Iterator[Found]]:
    def of_file(path: Path) -> Iterator[Found]:
        try:
            with databases.reading(path, path.parent) as connection:
                found = list(read(connection))  # counts only once the block has ended
        except databases.DatabaseUnreadableError as error:
            raise BookUnreadableError(str(error)) from error
        yield from found

    return of_file


def _opencode(home: Path, environ: Environ) -> Iterator[Path]:
    yield from opencode.files(home, environ)
    yield from opencode_files.files(home, environ)


def _opencode_calls(path: Path) -> Iterator[Found]:
    if path.suffix != ".json":
        yield from _database(opencode.read)(path)
        return
    yield from opencode_files.read_messages(_content(path), map(_content, opencode_files.messages(path)))


def _content(path: Path) -> bytes:
    with os.fdopen(_opened(path), "rb") as file:
        return file.read(_LONGEST)


SHELVES: Mapping[str, Shelf] = {
    shelf.agent: shelf
    for shelf in (
        Shelf("claude-code", claude.files, _lines(claude.read)),
        Shelf("codex", codex.files, _lines(codex.read)),
        Shelf("gemini-cli", gemini.files, _gemini),
        Shelf("qwen-code", qwen.files, _lines(qwen.read)),
        Shelf("opencode", _opencode, _opencode_calls),
        Shelf("kilo", kilo.files, _database(kilo.read)),
        Shelf("goose", goose.files, _database(goose.read)),
        Shelf("copilot", copilot.files, _lines(copilot.read)),
        Shelf("kimi", kimi.files, _kimi),
        Shelf("pi", pi.files, _lines(pi.read)),
    )
}

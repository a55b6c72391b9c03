"""Whose books there are, and how a file becomes calls. It is opened only for reading, and only if it is this user's."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, Protocol

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.books import (
    Call,
    NotUnderstood,
    claude,
    cline,
    codex,
    copilot,
    databases,
    gemini,
    goose,
    kilo,
    kimi,
    openclaw,
    opencode,
    opencode_files,
    pi,
    qwen,
)

Found = Call | NotUnderstood
Environ = Mapping[str, str]
_LONGEST = 64 * 1024 * 1024  # bytes of a line that is read in one piece
_MOST = 16 * 1024 * 1024  # bytes of one file that are read where only a session's last turns are asked for


class BookUnreadableError(Exception):
    """One sentence that says why, without content of the file."""


class Read(Protocol):
    """The calls in a book; with a `session` those of it and of its subagents, and perhaps others.

    Then of a file that `is_long` only its beginning and its end is read.
    """

    def __call__(self, path: Path, session: str | None = None) -> Iterator[Found]: ...


class Shelf(Struct, frozen=True):
    """All books of one agent."""

    agent: str  # as rows and the command line call it
    files: Callable[[Path, Environ], Iterator[Path]]
    read: Read
    is_of: Callable[[Path, str], bool] = lambda path, session: session in str(path)  # whether it has a session's calls


def is_long(path: Path) -> bool:
    try:
        return path.stat().st_size > _MOST
    except OSError:
        return False


def _lines(read: Callable[[Iterable[bytes]], Iterator[Found]]) -> Read:
    def of_file(path: Path, session: str | None = None) -> Iterator[Found]:
        with os.fdopen(_opened(path), "rb", buffering=1 << 20) as file:
            yield from read(_ends_of(file) if session else iter(lambda: file.readline(_LONGEST), b""))

    return of_file


def last_lines(path: Path) -> Iterator[bytes]:
    """The first line of a file of lines, and those that were written last. Raises BookUnreadableError."""
    with os.fdopen(_opened(path), "rb", buffering=1 << 20) as file:
        yield from _ends_of(file)


def _ends_of(file: BinaryIO) -> Iterator[bytes]:
    """The first line, which says whose file it is, and what was written last."""
    yield file.readline(_MOST)
    size = file.seek(0, os.SEEK_END)
    if size > _MOST:
        file.seek(size - _MOST)
        file.readline()  # the rest of one
    else:
        file.seek(0)
        file.readline()
    yield from file


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


def _gemini(path: Path, session: str | None = None) -> Iterator[Found]:
    parent = gemini.parent(path)
    for found in _lines(gemini.read)(path, session):
        yield replace(found, parent=parent, kind="subagent") if parent and isinstance(found, Call) else found


def _is_of_gemini(path: Path, session: str) -> bool:
    """Files of main sessions have its first eight characters in their names."""
    return path.stem.endswith(f"-{session[:8]}") or gemini.parent(path) == session


def _is_of_codex(path: Path, session: str) -> bool:
    """Its own file, or one that was begun later, as those of its subagents are: ids are in the order of time."""
    return path.stem[-len(session) :] >= session


def _kimi(path: Path, session: str | None = None) -> Iterator[Found]:
    yield from _lines(partial(kimi.read, session=kimi.session(path)))(path, session)


def _database(read: Callable[[sqlite3.Connection, str | None], Iterator[Found]]) -> Read:
    def of_file(path: Path, session: str | None = None) -> Iterator[Found]:
        try:
            with databases.reading(path, path.parent) as connection:
                found = list(read(connection, session))  # counts only once the block has ended
        except databases.DatabaseUnreadableError as error:
            raise BookUnreadableError(str(error)) from error
        yield from found

    return of_file


def _is_any(*_: object) -> bool:
    """A database has all sessions."""
    return True


def _opencode(home: Path, environ: Environ) -> Iterator[Path]:
    yield from opencode.files(home, environ)
    yield from opencode_files.files(home, environ)


def _opencode_calls(path: Path, session: str | None = None) -> Iterator[Found]:
    if path.suffix != ".json":
        yield from _database(opencode.read)(path, session)
        return
    yield from opencode_files.read_messages(_content(path), map(_content, opencode_files.messages(path)))


def _cline(path: Path, session: str | None = None) -> Iterator[Found]:  # noqa: ARG001  (a file is not long)
    about = b""
    with suppress(BookUnreadableError):  # it tells the directory alone
        about = _content(cline.about(path))
    yield from cline.read(_content(path), about)


def _is_of_opencode(path: Path, session: str) -> bool:
    return path.suffix != ".json" or path.stem == session


def _content(path: Path) -> bytes:
    with os.fdopen(_opened(path), "rb") as file:
        return file.read(_LONGEST)


SHELVES: Mapping[str, Shelf] = {
    shelf.agent: shelf
    for shelf in (
        Shelf("claude-code", claude.files, _lines(claude.read)),
        Shelf("codex", codex.files, _lines(codex.read), _is_of_codex),
        Shelf("gemini-cli", gemini.files, _gemini, _is_of_gemini),
        Shelf("qwen-code", qwen.files, _lines(qwen.read)),
        Shelf("opencode", _opencode, _opencode_calls, _is_of_opencode),
        Shelf("kilo", kilo.files, _database(kilo.read), _is_any),
        Shelf("goose", goose.files, _database(goose.read), _is_any),
        Shelf("cline", cline.files, _cline),
        Shelf("copilot", copilot.files, _lines(copilot.read)),
        Shelf("kimi", kimi.files, _kimi),
        Shelf("openclaw", openclaw.files, _database(openclaw.read), _is_any),
        Shelf("pi", pi.files, _lines(pi.read)),
    )
}

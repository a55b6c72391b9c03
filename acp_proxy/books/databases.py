"""Opens an agent's SQLite database so that the agent never notices: read-only, no wait for a lock, no file made.

A reader is used inside the `with` block, and what it yielded counts only once the block has ended without an error.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

_MAGIC = b"SQLite format 3\x00"
_HEADER = 100  # bytes; https://www.sqlite.org/fileformat.html
_READ_VERSION = 19  # its byte is 2 in WAL mode
_SHARED_FIRST, _SHARED_SIZE = 0x40000002, 510  # the bytes that each reader locks, `SHARED_FIRST` in SQLite's os.h
_PATIENCE = 0.1  # seconds; a lock that is held longer is a reason to come again
# The second comes of what SQLite says of a schema that is damaged, with its names in it.
_ERRORS = (sqlite3.Error, UnicodeDecodeError)

State = tuple[int, int, int, int]


class DatabaseUnreadableError(Exception):
    """One sentence that says why; nothing of the database's content. Where it is busy, a later try may succeed."""


@contextmanager
def reading(path: Path, root: Path) -> Iterator[sqlite3.Connection]:
    """One snapshot of the database at `path`, which lies under `root` and belongs to this user.

    Raises DatabaseUnreadableError, also for what goes wrong inside the block with the database itself.
    """
    real = _within(path, root)
    with _held(real) as file:
        in_wal_mode = _wal_mode(file)
        log = _state(_beside(real, "-wal"))
        in_log = in_wal_mode and log is not None and log[-1] > 0
        if in_log and _state(_beside(real, "-shm")) is None:
            raise DatabaseUnreadableError("its -wal file has no -shm file: readable once the agent has opened it again")
        # Without a log, SQLite would make one for a mere reader, unless the file is said to be immutable. An agent
        # that starts meanwhile makes it untrue: then the block ends with an error.
        immutable = in_wal_mode and not in_log
        before = (_state(real), log)
        try:
            with closing(_connect(real, "immutable=1" if immutable else "mode=ro&readonly_shm=1")) as connection:
                yield connection
        except _ERRORS as error:
            raise DatabaseUnreadableError(_reason(error)) from error
        if immutable and before != (_state(real), _state(_beside(real, "-wal"))):
            raise DatabaseUnreadableError("the agent wrote to it meanwhile")


def missing(connection: sqlite3.Connection, wanted: Mapping[str, Sequence[str]]) -> str | None:
    """The first table or column that is wanted and not there, as words."""
    for table, columns in wanted.items():
        found = {name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}
        if not found:
            return f"table {table}"
        if absent := [column for column in columns if column not in found]:
            return f"column {absent[0]} of table {table}"
    return None


def _within(path: Path, root: Path) -> Path:
    """Where the file really is. It and what SQLite keeps beside it are plain files of this user."""
    try:
        real = path.resolve(strict=True)
        if not real.is_relative_to(root.resolve(strict=True)):
            raise DatabaseUnreadableError("it is a link that leads elsewhere")
        _own(real.lstat())
        for end in ("-wal", "-shm", "-journal"):
            with suppress(FileNotFoundError):
                _own(_beside(real, end).lstat())
    except FileNotFoundError as error:
        raise DatabaseUnreadableError("it is gone") from error
    except (OSError, RuntimeError) as error:  # RuntimeError: a link to itself, before Python 3.13
        raise DatabaseUnreadableError(f"it cannot be looked at: {type(error).__name__}") from error
    return real


def _own(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise DatabaseUnreadableError("it is not a plain file")
    if status.st_uid != os.geteuid():
        raise DatabaseUnreadableError("it belongs to another user")


@contextmanager
def _held(path: Path) -> Iterator[int]:
    """The file, locked as each of SQLite's readers locks it: the agent's end cannot take its log away meanwhile.

    Closed after SQLite has closed its own: the first close of a file by a process ends all of its locks.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise DatabaseUnreadableError(f"it cannot be opened: {type(error).__name__}") from error
    try:
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, _SHARED_SIZE, _SHARED_FIRST)
        except (BlockingIOError, PermissionError) as error:
            raise DatabaseUnreadableError("it is busy") from error
        except OSError as error:  # as where a file system has no locks
            raise DatabaseUnreadableError(f"it cannot be locked: {type(error).__name__}") from error
        yield file
    finally:
        os.close(file)


def _wal_mode(file: int) -> bool:
    header = os.pread(file, _HEADER, 0)
    if not header:
        raise DatabaseUnreadableError("it is empty")
    if len(header) < _HEADER or not header.startswith(_MAGIC):
        raise DatabaseUnreadableError("it is not an SQLite database")
    return header[_READ_VERSION] == 2


def _state(path: Path) -> State | None:
    """What differs once a file was written to; its last number is the size."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def _beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def _connect(path: Path, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{quote(str(path))}?{how}", timeout=_PATIENCE, isolation_level=None, uri=True)
    try:
        connection.text_factory = _text
        connection.execute("BEGIN")
        [(tables,)] = connection.execute(
            "SELECT count(*) FROM sqlite_master"
        )  # the snapshot begins with the first read
        if not tables:  # as while the agent makes it
            raise DatabaseUnreadableError("it is empty")
    except (*_ERRORS, DatabaseUnreadableError):
        connection.close()
        raise
    return connection


def _reason(error: Exception) -> str:
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return "it is busy"
    return f"SQLite cannot read it: {name or type(error).__name__}"


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")

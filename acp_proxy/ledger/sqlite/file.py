"""A ledger's file: created private, opened in WAL, set aside when damaged; and SQLite's errors as the ledger's.

Holds no SQL of rows. A file is never deleted.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from errno import EISDIR
from pathlib import Path
from typing import TypeVar

from acp_proxy.ledger import LedgerError, LedgerUnavailableError, RowRefusedError
from acp_proxy.ledger.places import foreign_file_system, private_directory, sqlite_url
from acp_proxy.ledger.sqlite.version import APPLICATION_ID, invalid_table, is_up_to_date

T = TypeVar("T")

BUSY_TIMEOUT = 0.001  # SQLite's own wait sleeps in growing steps, which is unfair to those who waited long
# Copying the log back waits for the disk: one transaction in so many does it, by chance and after its commit, so that
# no other writer waits. SQLite's own checkpoint, at so many pages, is within the commit. One in 500 left 20 MB
# at once, and with 50 processes some of them waited up to 56 ms in place of 23.
CHECKPOINT_ONE_IN, CHECKPOINT_AFTER = 100, 20_000
# Who writes is mostly a relay, which has its ledger open all day and reads a few pages a turn. With the 2,000 KiB of
# SQLite it kept 1 MB from when it opened a session of 3,000 turns; no command got slower with these.
CACHE = 512  # KiB
RETRY_BETWEEN = (0.0002, 0.004)  # seconds, drawn anew each time: all that wait have nearly the same chance
# How much longer the longest wait gets each time, and at most. A try costs processor time that the owner of the lock
# may need: without this 50 processes on two busy processors tried 48 times for each transaction, and took seconds.
RETRY_GROWTH, RETRY_GROWN = 1.5, 16.0

# In a path as a URI. What the standard library has for this takes a millisecond to import.
_ESCAPES = str.maketrans({"%": "%25", "?": "%3F", "#": "%23"})
_LEAST_LIBRARY = (3, 37)  # STRICT tables
_MARK = slice(68, 72)  # of a file's header: the application id (https://www.sqlite.org/fileformat.html)
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_NO_ACCESS = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM})
_PASSING = _BUSY | _NO_ACCESS | {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM}
# What the library raises for a value of a wrong type differs between versions of Python.
_VALUE_ERRORS = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.InterfaceError, sqlite3.ProgrammingError)


Identity = tuple[int, int]  # device and inode


class LedgerDamagedError(LedgerUnavailableError):
    """The file is no sound database (any more). `file` is which one, where that is known."""

    file: Identity | None = None


def connect(
    path: Path, patience: float, *, make: bool = True, synchronous: bool = False
) -> tuple[sqlite3.Connection, Identity | None]:
    """A connection in autocommit mode to the ledger at `path`, made and migrated when needed, and to which file.

    Without `make` it is to an empty ledger in memory, and to no file, where there is none. Raises LedgerError.
    """
    refuse_old_library(sqlite3.sqlite_version_info)
    if kind := foreign_file_system(path):
        wanted = "expected a path on a local disk, or a ledger on PostgreSQL"
        raise LedgerError(
            f"ledger {path}: on {kind}, not known as a local file system: SQLite's locks may not hold there: {wanted}"
        )
    if not make and is_missing(path):
        return empty(), None
    with translated(path):
        private_directory(path.parent)
        # A file that is set aside meanwhile would be read with the log of the one that takes its place.
        with _directory_lock(path.parent, fcntl.LOCK_SH, patience):
            _create(path)
            file = identity(path)
            try:
                with translated(path):
                    connection = _connect(path, patience, CACHE if make else None)
                    if synchronous:
                        connection.execute("PRAGMA synchronous = FULL")
                    return connection, file
            except LedgerDamagedError as error:
                error.file = file
                raise


def is_missing(path: Path) -> bool:
    """False where that cannot be told: opening it says what is in the way."""
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def missing(path: Path, journals: Iterable[Path]) -> str:
    """The error for a missing ledger; None if a dead process has left rows, which will create it."""
    if not is_missing(path):
        return ""
    from acp_proxy.ledger.journal.recovery import is_owed

    owed = is_owed(journals, sqlite_url(path))
    return "" if owed else f"there is no ledger at {path}: expected one that `acp-proxy run` has made"


def refuse_old_library(version: tuple[int, ...]) -> None:
    """Which one Python has is the system's choice, and some have a new Python with an old one."""
    if version < _LEAST_LIBRARY:
        has, wanted = (".".join(map(str, each)) for each in (version, _LEAST_LIBRARY))
        raise LedgerError(f"ledger: this Python has SQLite {has}, and {wanted} or newer is needed")


def _connect(path: Path, patience: float, cache: int | None) -> sqlite3.Connection:
    # Not made here where it has been moved away by now: SQLite would delete the log that it left.
    uri = f"file://{str(path.absolute()).translate(_ESCAPES)}?mode=rw"
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT, isolation_level=None)
    try:
        _use_wal(connection, patience)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_AFTER}")
        if not patiently(lambda: is_up_to_date(connection), patience):
            from acp_proxy.ledger.sqlite.schema import migrate  # imports all that writes, and most openers only look

            migrate(connection, lambda begin: patiently(lambda: connection.execute(begin), patience))
        if strange := patiently(lambda: invalid_table(connection), patience):
            raise LedgerError(f"another program has changed this file: its table {strange} is not as acp-proxy made it")
        if cache is not None:
            connection.execute(f"PRAGMA cache_size = -{cache}")
    except BaseException:
        connection.close()
        raise
    return connection


def empty() -> sqlite3.Connection:
    """A ledger in memory, without any row."""
    from acp_proxy.ledger.sqlite.schema import migrate

    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection, connection.execute)
    return connection


def now_and_then_checkpoint(connection: sqlite3.Connection) -> None:
    """Nothing is lost when it fails: what was committed is in the log."""
    if _drawn(0, CHECKPOINT_ONE_IN) < 1:
        with suppress(sqlite3.Error):
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def _create(path: Path) -> None:
    if _has_left_log(path):
        raise LedgerUnavailableError("it was moved away while it was opened")
    # Never opened when it is there: closing any descriptor of it would drop the locks that another connection of this
    # process holds (https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled).
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        if path.is_dir():  # SQLite would only say that it cannot be opened
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR)) from None


def _use_wal(connection: sqlite3.Connection, patience: float) -> None:
    mode = patiently(lambda: connection.execute("PRAGMA journal_mode").fetchone()[0], patience)
    if mode != "wal":
        patiently(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchall(), patience)


def patiently(call: Callable[[], T], patience: float) -> T:
    """The result of `call`, retried for at most `patience` seconds while others lock the database."""
    deadline = time.monotonic() + patience
    shortest, longest = RETRY_BETWEEN
    grown = 1.0
    while True:
        try:
            return call()
        except sqlite3.OperationalError as error:
            if _code(error) not in _BUSY or time.monotonic() >= deadline:
                raise
        grown = min(grown * RETRY_GROWTH, RETRY_GROWN)
        time.sleep(_drawn(shortest, longest * grown))


def _drawn(least: float, most: float) -> float:
    """By chance. To import `random` takes 2 ms, and most commands never wait."""
    return least + (most - least) * int.from_bytes(os.urandom(3)) / 2**24


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raises what SQLite and the system raise as a LedgerError that names the file, in one line."""
    try:
        yield
    except LedgerError as error:
        if not str(error).startswith("ledger "):
            error.args = (f"ledger {path}: {error}",)
        raise
    except (*_VALUE_ERRORS, OverflowError, UnicodeEncodeError) as error:
        raise RowRefusedError(f"ledger {path}: a value that does not fit its column ({error})") from error
    except sqlite3.Error as error:
        raise _kind(error)(f"ledger {path}: {_why(error, path)}") from error
    except OSError as error:
        raise LedgerUnavailableError(f"ledger {path}: {error.strerror}") from error


def _kind(error: sqlite3.Error) -> type[LedgerError]:
    code = _code(error)
    if code in _DAMAGED:
        return LedgerDamagedError
    return LedgerUnavailableError if code in _PASSING else LedgerError


def _why(error: sqlite3.Error, path: Path) -> str:
    """SQLite says of a file that it cannot open or write no more than that."""
    if _code(error) in _NO_ACCESS:
        with suppress(OSError):
            if os.statvfs(path.parent).f_flag & os.ST_RDONLY:
                return "on a read-only file system, and who reads it writes beside it: a copy elsewhere can be read"
            if not (os.access(path, os.R_OK | os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK)):
                return f"no permission to write it, or in its directory, which who reads it needs as well ({error})"
    return str(error)


def _code(error: sqlite3.Error) -> int:
    """The primary result code; the extended ones have it in their low byte."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def identity(path: Path) -> Identity | None:
    """An identity that shows whether the file at `path` is still the one that was opened."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def was_ledger(path: Path) -> bool:
    """Whether a damaged file was one: by the mark in its header, or by the queue that writers leave beside it.

    True where it cannot be looked at. Whatever locks this process has on it are dropped: it is of no use any more.
    """
    try:
        with path.open("rb") as file:
            header = file.read(_MARK.stop)
    except OSError:
        return True
    return header[_MARK] == APPLICATION_ID.to_bytes(4, "big") or queue_of(path).exists()


def queue_of(path: Path) -> Path:
    """The file beside a ledger's on which writers queue (`fair_lock.py`)."""
    return path.with_name(f"{path.name}-queue")


def set_aside(path: Path, damaged: Identity | None, patience: float) -> Path | None:
    """Move the damaged file and its log to `NAME.corrupt-TIME`, unless another process was first: then None."""
    with translated(path), _directory_lock(path.parent, fcntl.LOCK_EX, patience):
        if damaged is None or identity(path) != damaged:
            return None
        return _moved(path, "corrupt")


def set_log_aside(path: Path, patience: float) -> Path | None:
    """Move what a file left beside it that was moved away alone to `NAME.left-TIME-wal`; None where there is no such.

    SQLite would delete it with the first write, and rows are in it that are in no file.
    """
    if not _has_left_log(path):
        return None
    with translated(path), _directory_lock(path.parent, fcntl.LOCK_EX, patience):
        return _log_of(_moved(path, "left")) if _has_left_log(path) else None


def _has_left_log(path: Path) -> bool:
    return is_missing(path) and _log_of(path).exists()


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _moved(path: Path, why: str) -> Path:
    """The file, as far as it is there, and what is beside it have another name now: this one, and what follows it."""
    aside = path.with_name(f"{path.name}.{why}-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}")
    for suffix in ("-wal", "-shm", ""):
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    return aside


@contextmanager
def _directory_lock(directory: Path, kind: int, patience: float) -> Iterator[None]:
    """Shared while a file in it is opened, exclusive while one is set aside; leaves nothing behind."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    deadline = time.monotonic() + patience
    try:
        while True:
            try:
                fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise
            time.sleep(_drawn(*RETRY_BETWEEN))
        yield
    finally:
        os.close(descriptor)

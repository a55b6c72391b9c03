"""What a ledger has acknowledged, kept in case it goes back: by a failover, or because a backup is restored.

One file for each process that writes at the same time; the next process takes over the file of one that has ended, and
the name under which the ledger knows it. Bounded in size and age. Nothing here knows SQL.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO
from zlib import crc32

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core.windows import DAY
from acp_proxy.ledger import Row
from acp_proxy.ledger.budgets import Grant
from acp_proxy.ledger.places import foreign_file_system, private_directory
from acp_proxy.system.decoding import msgpack_decoder

SMALLEST = 4 * 1024 * 1024  # bytes: some 5,000 rows; a file that is smaller is left as it is
LARGEST = 64 * 1024 * 1024  # half of it is given up at a time
LONGEST = 8 * DAY  # that it is of use: a backup is mostly younger
_MAGIC = b"acpkept1"  # the last character is the format's version
_HEAD = struct.Struct("<8sQQII")  # magic, number of the last write, and of the last one given up; length and CRC-32
_RECORD = struct.Struct("<II")  # length and CRC-32 of what follows
_encode = msgspec.msgpack.Encoder().encode


class Write(Struct, frozen=True):
    """Something that was written: a row, a hold's release (organisation, turn), a grant, or a row for another one.

    Writes of one transaction have one number. Numbers grow, and are Unix ns unless the clock was set back.
    """

    number: int
    row: Row | None = None
    released: tuple[str, str] | None = None
    grant: Grant | None = None
    corrected: tuple[Row, Row] | None = None  # what it was, and what it is


class Writer(Struct, frozen=True):
    """Whose writes a file has: by `id` the ledger knows it, among those of an organisation."""

    ledger: str  # URL
    identity: str  # of the ledger, whatever its address
    organisation: str
    id: str
    user: str = ""  # by a hub's token, which sends rows as those of nobody else

    @property
    def key(self) -> tuple[str, str]:
        return self.organisation, self.id


class Kept:
    """A file of writes, locked while this process has it. Raises OSError; use `take` and `left` to get one."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        data = os.pread(descriptor, _HEAD.size, 0)
        magic, last, given_up, length, crc = _HEAD.unpack(data)
        text = os.pread(descriptor, length, _HEAD.size)
        if magic != _MAGIC or crc32(text) != crc:
            raise OSError(0, "not of this version")
        self.last, self.given_up = int(last), int(given_up)
        self.writer = msgpack_decoder(Writer).decode(text)
        self._start = _HEAD.size + length
        self._end: int | None = None  # found when something is written
        self._needed = 0  # bytes that were left when it was shortened last

    def number(self) -> int:
        """Of the next write: more than any that was tried before, also by a process that is gone."""
        return max(self.last + 1, time.time_ns())

    def add(self, number: int, writes: Sequence[Write]) -> None:
        """What was acknowledged now. Only then it counts as the last."""
        data = b"".join(map(_framed, writes))
        if self._end is None:
            self._end = self._start + sum(map(len, self._records()))
        if self._end + len(data) > min(LARGEST, max(SMALLEST, 2 * self._needed)):
            self._shorten(LARGEST // 2)
            self._needed = self._end
        os.pwrite(self._descriptor, data, self._end)
        self._end += len(data)
        self.last = number
        self._put_head()

    def since(self, number: int) -> list[Write]:
        """Writes after that one, as they came; those whose acknowledgement was not noted any more are in a journal."""
        writes = map(_write, self._records())
        return [each for each in writes if each is not None and number < each.number <= self.last]

    def tail(self) -> list[Write]:
        """The writes since the last one that had rows, with that one; all where none had."""
        tail, number = list[Write](), 0
        for write in map(_write, self._from_the_end()):
            if write is None or write.number > self.last:
                continue
            if write.number < number:
                break
            if write.row is not None:
                number = write.number
            tail.append(write)
        return tail[::-1]

    def begin_anew(self, writer: Writer) -> None:
        """For another ledger, or under another name."""
        self.last = 0
        self._replace(writer, b"", given_up=0)

    def remove(self) -> None:
        with suppress(OSError):
            self.path.unlink()

    def close(self) -> None:
        os.close(self._descriptor)

    def _shorten(self, size: int) -> None:
        """Give up the oldest: those that are of no use any more, and more until the rest takes no more than `size`."""
        kept, given_up, oldest = list[bytes](), self.given_up, time.time_ns() - LONGEST
        for record in reversed(self._records()):
            write = _write(record)
            size -= len(record)
            if write is not None and size >= 0 and write.number >= oldest:
                kept.append(record)
            elif write is not None:
                given_up = max(given_up, write.number)
        self._replace(self.writer, b"".join(reversed(kept)), given_up=given_up)

    def _replace(self, writer: Writer, data: bytes, *, given_up: int) -> None:
        unfinished = self.path.with_suffix(".new")
        descriptor = _made(unfinished, writer, self.last, given_up, data)
        unfinished.rename(self.path)
        os.close(self._descriptor)
        self._descriptor, self.writer, self.given_up = descriptor, writer, given_up
        self._start = len(_head(writer, 0, 0))
        self._end = self._start + len(data)

    def _put_head(self) -> None:
        os.pwrite(self._descriptor, _head(self.writer, self.last, self.given_up), 0)

    def _records(self) -> list[bytes]:
        return list(self._read())

    def _from_the_end(self) -> Iterator[bytes]:
        """They are never in memory together."""
        ends = array("Q", accumulate(map(len, self._read()), initial=self._start))
        for number in range(len(ends) - 1, 0, -1):
            yield os.pread(self._descriptor, ends[number] - ends[number - 1], ends[number - 1])

    def _read(self) -> Iterator[bytes]:
        with open(self._descriptor, "rb", closefd=False) as file:
            file.seek(self._start)
            yield from _records(file)


def take(directory: Path, writer: Writer) -> Kept:
    """A file that no other process has: one that is left of this ledger and organisation, else a new one."""
    for found in _free(directory):
        if replace(found.writer, id=writer.id) == writer:
            return found
        found.close()
    if kind := foreign_file_system(directory.resolve()):
        raise OSError(0, f"on {kind}, not known as a local file system")
    private_directory(directory)
    path = directory / f"{writer.id}.kept"
    unfinished = path.with_suffix(".new")
    descriptor = _made(unfinished, writer, 0, 0, b"")
    unfinished.rename(path)
    return Kept(path, descriptor)


@contextmanager
def left(directories: Iterable[Path], ledger: str) -> Iterator[list[Kept]]:
    """Files of this ledger that no process has, in which something may be of use. Others of no use are removed."""
    found = list[Kept]()
    try:
        for kept in (kept for directory in directories for kept in _free(directory)):
            if kept.writer.ledger == ledger and kept.last > time.time_ns() - LONGEST:
                found.append(kept)
                continue
            if kept.last < time.time_ns() - LONGEST:
                kept.remove()
            kept.close()
        yield found
    finally:
        for kept in found:
            kept.close()


def _free(directory: Path) -> Iterator[Kept]:
    for path in sorted(directory.glob("*.kept")):
        with suppress(OSError, struct.error, msgspec.MsgspecError):
            descriptor = os.open(path, os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(descriptor).st_nlink == 0:
                    raise OSError(0, "replaced meanwhile")
                kept = Kept(path, descriptor)
            except BaseException:
                os.close(descriptor)
                raise
            yield kept


def _made(path: Path, writer: Writer, last: int, given_up: int, data: bytes) -> int:
    """A locked file, which is complete before it gets its name."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.pwrite(descriptor, _head(writer, last, given_up) + data, 0)
    except BaseException:
        os.close(descriptor)
        path.unlink()
        raise
    return descriptor


def _head(writer: Writer, last: int, given_up: int) -> bytes:
    text = _encode(writer)
    return _HEAD.pack(_MAGIC, last, given_up, len(text), crc32(text)) + text


def _framed(write: Write) -> bytes:
    data = _encode(write)
    return _RECORD.pack(len(data), crc32(data)) + data


def _records(file: BinaryIO) -> Iterator[bytes]:
    """Whole ones, framed as they are, up to the first that is torn."""
    while len(head := file.read(_RECORD.size)) == _RECORD.size:
        length, crc = _RECORD.unpack(head)
        if not 0 < length <= LARGEST or len(data := file.read(length)) < length or crc32(data) != crc:
            return
        yield head + data


def _write(record: bytes) -> Write | None:
    """None for one of another version."""
    with suppress(msgspec.MsgspecError, UnicodeDecodeError):
        return msgpack_decoder(Write).decode(record[_RECORD.size :])
    return None

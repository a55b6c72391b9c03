"""Rows that the ledger does not have yet, in a memory-mapped file that survives a `kill -9` of the whole group.

One file per process, locked as long as its owner lives; `recovery.py` takes over the files of the dead. Nothing is
synced to disk: the page cache outlives the process, and a row must not wait for a disk.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from errno import EINVAL, ENOSYS, EOPNOTSUPP, EPERM
from heapq import heappop, heappush
from mmap import mmap
from pathlib import Path

from acp_proxy.ledger import Row, Warn
from acp_proxy.ledger.journal.records import commit, encode, end_at, head, replace_done, room, tick_off
from acp_proxy.ledger.owners import Owner
from acp_proxy.ledger.places import canonical_url, foreign_file_system, journal_name, private_directory

FIRST_SIZE = 256 * 1024  # a few hundred rows
LARGEST_SIZE = 32 * FIRST_SIZE  # ten thousand; doubled again and again it is met
_NOT_HERE = (EINVAL, ENOSYS, EOPNOTSUPP, EPERM)  # file systems without posix_fallocate, and sandboxes


class Journal:
    """Written on the relay's path, ticked off by the ledger's worker. Without a file it keeps nothing."""

    def __init__(self, file: _File | None = None) -> None:
        self.path = file.path if file else None
        self._file = file
        self._lock = threading.Lock()
        self._tail = file.start if file else 0
        self._open = 0  # rows that are not done
        self._vacant: dict[int, list[int]] = {}  # heaps of where others are, by the room that they take

    def write(self, row: Row) -> int | None:
        """Keep a row, in about 5 µs; where it is, for `done`, or None when it is not kept. Never raises."""
        return self._write(row, LARGEST_SIZE, is_open=False)

    def write_open(self, row: Row, instead: int | None = None) -> int | None:
        """Keep what is known so far of a turn that goes on, in place of what was kept at `instead`; where it is now.

        Should the process die, that is what is booked. It takes at most half of the file, so that rows find space.
        """
        slot = self._write(row, LARGEST_SIZE // 2, is_open=True)
        if slot is None:
            return instead
        if instead is not None:
            self.done(instead)
        return slot

    def _write(self, row: Row, most: int, *, is_open: bool) -> int | None:
        try:
            data = encode(row)
        except (OverflowError, UnicodeEncodeError):  # the ledger will refuse it, too, and say so
            return None
        size = room(data)
        with self._lock:
            file, vacant = self._file, self._vacant.get(size)
            if file is None:
                return None
            if vacant and vacant[0] + size < most:
                slot = heappop(vacant)
                replace_done(file.map, slot, data, is_open=is_open)
            else:
                slot, end = self._tail, self._tail + size + 1
                if end > most or (end > len(file.map) and not file.grow(end)):
                    return None
                commit(file.map, slot, data, is_open=is_open)
                self._tail += size
            self._open += 1
        return slot

    def done(self, slot: int) -> None:
        """The ledger has the row; once for each slot. When it has all of them the file starts over.

        Until then others take its place: while one turn or another runs there is always a row that is not done.
        """
        with self._lock:
            if self._file is None:
                return
            size = tick_off(self._file.map, slot)
            self._open -= 1
            if self._open:
                heappush(self._vacant.setdefault(size, []), slot)
            else:
                self._vacant.clear()
                self._tail = self._file.start
                end_at(self._file.map, self._tail)

    def close(self) -> None:
        """Give the file up: removed when all is done, else left to the next process that opens the ledger."""
        with self._lock:
            if self._file is None:
                return
            if not self._open:
                self._file.remove()
            self._file.close()
            self._file = None


def open_journal(directories: Iterable[Path], url: str, warn: Warn) -> Journal:
    """A journal for rows of the ledger at `url` in the first directory that can hold one.

    Where none can it warns, and the journal keeps nothing. Raises LedgerError for a bad URL.
    """
    ledger = canonical_url(url)  # however it is spelt, recovery must recognise it
    reasons = []
    for directory in directories:
        try:
            return Journal(_File(directory, ledger))
        except OSError as error:
            reasons.append(f"{directory}: {error.strerror}")
    warn("journal.none", effect="rows may be lost when the proxy is killed", reasons="; ".join(reasons))
    return Journal()


class _File:
    """The locked, pre-allocated, mapped file behind a journal. Raises OSError where it cannot be made."""

    def __init__(self, directory: Path, ledger: str) -> None:
        if kind := foreign_file_system(directory.resolve()):
            raise OSError(0, f"on {kind}, not known as a local file system")
        private_directory(directory)
        self.path = directory / f"{journal_name(Owner.this(directory))}-{os.urandom(8).hex()}.journal"
        self.start = len(head(ledger))
        # Under another name until it is locked, so that it is not taken for a dead process's. Python closes descriptors
        # on exec: an agent that inherited this one would hold the lock.
        unfinished = self.path.with_suffix(".new")
        self._descriptor = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _allocate(self._descriptor, 0, FIRST_SIZE)
            os.pwrite(self._descriptor, head(ledger), 0)
            self.map = mmap(self._descriptor, 0)
            unfinished.rename(self.path)
        except OSError:
            unfinished.unlink(missing_ok=True)
            os.close(self._descriptor)
            raise

    def grow(self, size: int) -> bool:
        """Make room up to `size`, which is no more than the largest, by doubling it; whether it has that now."""
        while size > len(self.map):
            larger = 2 * len(self.map)
            try:
                _allocate(self._descriptor, len(self.map), larger)
                grown = mmap(self._descriptor, larger)
            except OSError:
                return False
            self.map.close()
            self.map = grown
        return True

    def remove(self) -> None:
        with suppress(OSError):
            self.path.unlink()

    def close(self) -> None:
        self.map.close()
        os.close(self._descriptor)


def _allocate(descriptor: int, old: int, size: int) -> None:
    """Blocks for every page up to `size`: writing to a mapped page that the disk has no room for is a SIGBUS."""
    if hasattr(os, "posix_fallocate"):  # macOS has none
        try:
            os.posix_fallocate(descriptor, old, size - old)
        except OSError as error:
            if error.errno not in _NOT_HERE:
                raise
        else:
            return
    while old < size:  # what has room for a part takes that part
        old += os.pwrite(descriptor, bytes(size - old), old)

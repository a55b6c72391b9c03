"""A fair queue for the writers of one SQLite file: the kernel wakes the one that has waited longest, and none polls.

SQLite waits for its lock by polling. With 50 writers on two processors polling took more time than the transactions.
A process that does not use this queue is not kept out: SQLite's own lock decides.
"""

from __future__ import annotations

import fcntl
import os
from _thread import allocate_lock, start_new_thread
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class FairLock:
    """A lock on a file of its own, which the system takes from a process that dies. For one thread at a time.

    A writer that got no turn within `patience` seconds, or has no thread to wait in, continues without one.
    """

    def __init__(self, path: Path, patience: float) -> None:
        self._patience = patience
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._queued: _Queued | None = None  # keeps its place when patience runs out

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """Whether no other writer that uses this lock is inside."""
        entered = self._enter()
        try:
            yield entered
        finally:
            if entered:
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        if self._queued is None or not self._queued.leave():
            os.close(self._descriptor)

    def _enter(self) -> bool:
        if self._queued is None or not self._queued.want():
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                try:
                    self._queued = _Queued(self._descriptor)
                except RuntimeError:  # no thread can be started any more
                    return False
            else:
                return True
        entered = self._queued.comes_within(self._patience)
        if entered:
            self._queued = None
        return entered


class _Queued:
    """A thread that waits in the system's queue, for flock has no timeout: it keeps its place when patience runs out.

    From the kernel's wake to the waiting writer is one step more, during which all others wait.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._admission = allocate_lock()
        self._coming = allocate_lock()
        self._coming.acquire()
        self._wanted = True
        self._came = self._passed_on = self._closing = False
        start_new_thread(self._wait, ())

    def want(self) -> bool:
        """Whether its turn is still to come."""
        with self._admission:
            self._wanted = not self._passed_on
            return self._wanted

    def comes_within(self, patience: float) -> bool:
        if self._coming.acquire(timeout=patience):
            return True
        with self._admission:
            self._wanted = False
            return self._came  # at the last moment

    def leave(self) -> bool:
        """Whether the descriptor will be closed when the turn comes."""
        with self._admission:
            self._closing = not self._passed_on
            return self._closing

    def _wait(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        with self._admission:
            if self._wanted:
                self._came = True
                self._coming.release()
                return
            self._passed_on = True
            if self._closing:
                os.close(self._descriptor)
            else:
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)

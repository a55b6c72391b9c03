"""Writers of one SQLite file, one after the other: the system wakes whoever waited longest, and nobody tries in vain.

SQLite lets those who wait try again and again. With 50 writers on two processors these tries took more time than the
transactions. A process that does not come through here is not kept out: SQLite's own lock is what counts.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Turnstile:
    """A lock on a file of its own, which the system takes from a process that dies. For one thread at a time.

    Whoever got no turn within `patience` seconds goes on without one.
    """

    def __init__(self, path: Path, patience: float) -> None:
        self._patience = patience
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._state = threading.Condition()
        self._queued = False  # a thread waits in the system's queue, and keeps its place when patience runs out
        self._wanted = False
        self._entered = False
        self._closed = False

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """Whether nobody else is in, of those who come through here."""
        entered = self._enter()
        try:
            yield entered
        finally:
            if entered:
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        with self._state:
            if not self._queued:  # else when its turn comes
                os.close(self._descriptor)
            self._closed = True

    def _enter(self) -> bool:
        with self._state:
            if not self._queued:
                try:
                    fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    threading.Thread(target=self._wait, name="acp-proxy turnstile", daemon=True).start()
                    self._queued = True
                else:
                    return True
            self._entered, self._wanted = False, True
            self._state.wait_for(lambda: self._entered, self._patience)
            self._wanted = False
            return self._entered

    def _wait(self) -> None:
        # flock has no timeout, so that a thread has to do it.
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        with self._state:
            self._queued = False
            self._entered = self._wanted
            if self._entered:
                self._state.notify()
            elif self._closed:
                os.close(self._descriptor)
            else:
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)

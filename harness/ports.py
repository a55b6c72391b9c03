"""Ports of loopback that nobody else has before whoever asked for one listens there.

A port that the system has given and got back it gives to the next who asks: to another test's server, to any
connection, even to one from that port to itself. These lie below those that Linux gives, and each process has some of
its own, for which it holds a lock.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import socket
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_EACH = 100
_BLOCKS = range(15_000, 32_000, _EACH)


def free_port() -> int:
    """One on which nobody listens."""
    for port in itertools.islice(_own(), _EACH):
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise AssertionError("all ports of this process are taken")


@cache
def _own() -> Iterator[int]:
    """Those of this process, again and again: from the one after that which was given last."""
    directory = Path(tempfile.gettempdir(), f"acp-proxy-ports-{os.getuid()}")
    directory.mkdir(mode=0o700, exist_ok=True)
    for first in _BLOCKS:
        lock = os.open(directory / str(first), os.O_CREAT | os.O_RDWR, 0o600)  # open until the process ends
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
        else:
            return itertools.cycle(range(first, first + _EACH))
    raise AssertionError("all ports are claimed by other processes")

"""Which process holds something, and whether it still lives: only on its own host can that be told."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from msgspec import Struct


class Owner(Struct, frozen=True):
    """A process: `started` tells it from a later one with the same id."""

    host: str
    pid: int
    started: str

    @classmethod
    def this(cls) -> Owner:
        return cls(this_host(), os.getpid(), _started(os.getpid()) or "")

    @property
    def is_gone(self) -> bool:
        """True only where it is certain: for a process of another host it is not."""
        return self.host == this_host() and _started(self.pid) != self.started


def this_host() -> str:
    """Containers may share a name, and have processes of their own: their namespace is part of it."""
    with suppress(OSError):
        return f"{os.uname().nodename} {Path('/proc/self/ns/pid').readlink()}"
    return os.uname().nodename


def _started(pid: int) -> str | None:
    """When a process began, as text to compare; None when there is none, or it has ended and nobody has asked how."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None if Path("/proc/self/stat").exists() else _asked_ps(pid)
    state, *fields = stat.rpartition(") ")[2].split()  # the name before it may hold anything
    # The main thread ends first: while another one is still in a transaction, it holds the journal and the ledger.
    return None if state in "ZX" and int(fields[16]) <= 1 else fields[18]


def _asked_ps(pid: int) -> str | None:
    """On systems without /proc."""
    import subprocess

    found = subprocess.run(
        ["ps", "-o", "state=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.split(maxsplit=1)
    return found[1].strip() if len(found) == 2 and not found[0].startswith("Z") else None

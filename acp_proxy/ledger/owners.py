"""The process that owns a hold, and whether it is alive. Only a process of the same user on the same host can find that
out, and only one with the same journal directory knows what the owner left.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from acp_proxy.core.digest import digest


class Owner(Struct, frozen=True):
    """A process: `started` tells it from a later one with the same id."""

    host: str  # of `this_host`, or with the directory of its journal, of `hosts_of`
    pid: int
    started: str

    @classmethod
    def this(cls, journals: Path | None = None) -> Owner:
        """`journals` is the directory of its journal, where it has one."""
        return cls(_host_with(journals) if journals else this_host(), os.getpid(), _started(os.getpid()) or "")

    @property
    def is_gone(self) -> bool:
        """True only where it is certain: of another host's process it is not, nor of one that the system hides."""
        if not f"{self.host} ".startswith(f"{this_host()} "):
            return False
        started = _started(self.pid)
        return started is None or ("" not in (started, self.started) and started != self.started)


def hosts_of(journals: Iterable[Path]) -> list[str]:
    """The hosts whose dead processes may be booked by a process that searches these directories for journals.

    Other journals are in other directories: those of another user, or of a process with another state directory.
    Booking a dead turn without its journal would book a guess in place of the row that waits there.
    """
    return [this_host(), *map(_host_with, journals)]


def _host_with(journals: Path) -> str:
    return f"{this_host()} {digest(os.fsencode(journals.resolve()), 8)}"


def this_host() -> str:
    """Its name, the namespace of processes, for containers may share a name, and the user."""
    host = os.uname().nodename
    with suppress(OSError):
        host += f" {Path('/proc/self/ns/pid').readlink()}"
    return f"{host} {os.getuid()}"


def _started(pid: int) -> str | None:
    """When a process began, as text to compare; "" where that cannot be told.

    None when there is none, or it has ended and was not waited for.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        if not _exists(pid):
            return None
        return "" if Path("/proc/self/stat").exists() else _asked_ps(pid)  # another user's, which `hidepid` hides
    state, *fields = stat.rpartition(") ")[2].split()  # the name before it may hold anything
    # The main thread ends first: while another one is still in a transaction, it holds the journal and the ledger.
    return None if state in "ZX" and int(fields[16]) <= 1 else fields[18]


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # another user's
        pass
    return pid > 0  # others are groups


def _asked_ps(pid: int) -> str | None:
    """On systems without /proc: macOS, and sandboxes, where ps is of no use or not there."""
    import subprocess

    # It tells times in the zone and the language of who asks, and they need not be those of who compares.
    environ = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    ask = ["/bin/ps", "-o", "state=", "-o", "lstart=", "-p", str(pid)]
    try:
        told = subprocess.run(ask, capture_output=True, text=True, check=False, env=environ).stdout
    except OSError:
        return ""
    state, _, started = told.strip().partition(" ")
    return None if state.startswith("Z") else started.strip()

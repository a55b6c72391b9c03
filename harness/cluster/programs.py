"""Programs of a cluster: where they are, started as somebody who may run them, and ended by their ids."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from harness.postgres import as_somebody

NEEDED = ("etcd", "patroni", "haproxy", "pgbouncer")
_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"  # Debian's servers are not on every PATH
_PYTHON = "/usr/bin/python3"  # Patroni is of Debian's Python, and another one may come first on the PATH


def program(name: str) -> str:
    """Raises AssertionError where it is not installed."""
    found = shutil.which(name, path=_PATH)
    assert found, f"{name} is not installed: apt install etcd-server patroni haproxy pgbouncer"
    return found


class Program:
    """One process, which may start others; what it says goes to a file."""

    def __init__(self, command: Sequence[str | Path], log: Path) -> None:
        self.log = log
        self._command = [*as_somebody(), *map(str, command)]
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def of_patroni(cls, settings: Path, log: Path) -> Program:
        return cls([_PYTHON, program("patroni"), settings], log)

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        # Python programs of the system must not find the modules of a virtual environment.
        environ = {"PATH": _PATH, "LC_ALL": "C", "HOME": str(self.log.parent)}
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environ, cwd=self.log.parent
            )

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def said(self) -> str:
        """The end of what it said."""
        return self.log.read_text(errors="replace")[-3000:] if self.log.exists() else ""


def descendants(pid: int) -> list[int]:
    """A process and all that it and they have started; empty where it is gone."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(each for child in children for each in descendants(int(child)))]


def signal_all(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)

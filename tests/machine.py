"""The installed command, as it is run in a home directory of its own."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from acp_proxy.core.entry import SessionState
from acp_proxy.ledger import open_ledger
from harness.rows import NOON, line, row

COMMAND = [sys.executable, "-m", "acp_proxy"]


def run(environ: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command to its end, with nothing to read."""
    return subprocess.run(
        [*COMMAND, *arguments],
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding=environ.get("PYTHONIOENCODING", "utf-8"),
        timeout=60,
    )


@dataclass
class Machine:
    """A home directory of its own, and the command run in it."""

    home: Path

    @property
    def url(self) -> str:
        return f"sqlite:///{self.home}/.local/state/acp-proxy/ledger.db"

    @property
    def environ(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": os.environ["PATH"], "TZ": "UTC", "USER": "alice"}

    def fill(self, count: int = 1) -> None:
        ledger = open_ledger(self.url, journals=())
        titled = SessionState(title="Fix the tests")
        ledger.append(
            [row(line("claude-sonnet-5", "0.045989"), at=NOON + number, state=titled) for number in range(count)]
        )
        ledger.close()

    def run(self, *arguments: str, environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return run({**self.environ, **(environ or {})}, *arguments)

    def answer(self, *arguments: str, environ: Mapping[str, str] | None = None) -> str:
        """What a run that must succeed writes to stdout."""
        done = self.run(*arguments, environ=environ)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def complaint(self, *arguments: str, environ: Mapping[str, str] | None = None) -> str:
        """The one line of a run that must fail."""
        done = self.run(*arguments, environ=environ)
        assert (done.returncode, done.stdout) == (2, "")
        (only,) = done.stderr.splitlines()
        return only


def in_terminal(machine: Machine, width: int, *arguments: str, **environ: str) -> str:
    """What the command writes to a terminal of so many columns."""
    ours, its = pty.openpty()
    try:
        environment = {**machine.environ, "COLUMNS": str(width), "TERM": "xterm-256color", **environ}
        subprocess.run(
            [*COMMAND, *arguments], env=environment, stdin=subprocess.DEVNULL, stdout=its, check=True, timeout=60
        )
        return os.read(ours, 1 << 20).decode()
    finally:
        os.close(ours)
        os.close(its)

"""Real processes that use the ledger: `python -m tests.ledger.processes WHAT ARGUMENT…`, and how tests start them.

A process says `ready` on stdout when it stands at the point that its test is about, and waits for a line on stdin.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.journal.writer import open_journal
from acp_proxy.ledger.worker import LedgerWorker
from harness.rows import line, row
from tests.ledger.warned import Warnings

ROOT = Path(__file__).parents[2]
_PATIENCE = 60.0  # seconds: on a busy machine those that come at once wait long for each other


class Process:
    """A process that has said `ready`."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "tests.ledger.processes", *arguments]
        self._popen = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self._popen.pid

    def until_ready(self) -> None:
        assert self._popen.stdout
        assert self._popen.stdout.readline() == "ready\n"

    def go_on(self) -> None:
        assert self._popen.stdin
        self._popen.stdin.write("\n")
        self._popen.stdin.flush()

    def wait(self) -> int:
        """Its status. Raises TimeoutExpired for one that waits longer than its patience; nothing of it is left."""
        try:
            return self._popen.wait(2 * _PATIENCE)
        finally:
            self._popen.kill()
            self._popen.wait()
            self._close()

    def kill(self) -> None:
        self._popen.kill()
        self.wait()

    def _close(self) -> None:
        assert self._popen.stdin
        assert self._popen.stdout
        self._popen.stdin.close()
        self._popen.stdout.close()


def _stand() -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()


def _first_open(url: str) -> None:
    _stand()
    open_ledger(url, journals=(), patience=_PATIENCE).close()


def _append(url: str, name: str, count: int) -> None:
    ledger = open_ledger(url, journals=())
    _stand()
    for number in range(count):
        ledger.append([row(id=f"{name}-{number}")])
    ledger.close()


def _journal(url: str, directory: Path, count: int) -> None:
    """Writes rows to a journal, ticks the first one off, and stands."""
    journal = open_journal([directory], url, Warnings())
    slots = [journal.write(row(id=f"row-{number:03}")) for number in range(count)]
    assert slots[0] is not None
    journal.done(slots[0])
    _stand()


def _work(url: str, home: str, count: int) -> None:
    """Gives rows to a worker, and stands as soon as it has them."""
    worker = LedgerWorker.at(url, {"HOME": home}, Warnings())
    for number in range(count):
        worker.append(row(id=f"row-{number:03}"))
    _stand()


def _keep_open(url: str, home: str) -> None:
    """Knows more and more of one turn, and has ended another."""
    worker = LedgerWorker.at(url, {"HOME": home}, Warnings())
    for cost in ("0.01", "0.02", "0.03"):
        worker.keep_open(row(line(cost=cost), id="open"))
    worker.keep_open(row(id="whole"))
    worker.append(row(id="whole"))
    _stand()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["first_open", url]:
            _first_open(url)
        case ["append", url, name, count]:
            _append(url, name, int(count))
        case ["journal", url, directory, count]:
            _journal(url, Path(directory), int(count))
        case ["keep_open", url, home]:
            _keep_open(url, home)
        case ["work", url, home, count]:
            _work(url, home, int(count))

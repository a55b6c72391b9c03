"""The agent's process: its exit status, and the end of it and of all it started.

Never signals a process group: the agent is in ours, and perhaps in the editor's. What made a session of its own, as
daemons do, is left alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType

from msgspec import Struct

PIDFD_OPEN: Callable[[int], int] | None = getattr(os, "pidfd_open", None)  # Linux
UNKNOWN = 255  # exit status of an agent that was reaped elsewhere, or by the system: SIGCHLD is ignored
POLL = 0.02  # seconds between looks at a tree that is ending
UNCLAIMED = 1.0  # seconds after which a dead child is an orphan that only we will reap


class Process(Struct, frozen=True):
    """A row of the process table. `started` tells apart two uses of one pid."""

    pid: int
    parent: int
    session: int
    started: int
    dead: bool  # a zombie


class AgentProcess:
    """Made on the running loop. `status` is None until the agent exited: its own, 128 + a signal's number, or UNKNOWN.

    `adopts`: orphans of the agent's tree become our children (Linux's subreaper), and are reaped here.
    """

    def __init__(
        self,
        pid: int,
        *,
        exited: Callable[[], object],
        adopts: bool = False,
        pidfd_open: Callable[[int], int] | None = PIDFD_OPEN,
    ) -> None:
        self.status: int | None = None
        self._loop = asyncio.get_running_loop()
        self._pid = pid
        self._adopts = adopts
        self._exited = exited
        self._signalled: dict[int, Process] = {}
        self._sweep: asyncio.TimerHandle | None = None
        if adopts:
            signal.signal(signal.SIGCHLD, self._child_died)
        self._watch(pidfd_open)

    def signal_tree(self, number: int) -> None:
        """Signals the agent, if it has not exited, and every descendant in its session."""
        table = process_table()
        roots = [process.pid for process in self._survivors(table)]
        if self.status is None:
            roots.append(self._pid)
            if self._pid not in table:  # a sandbox that shows no processes: of the agent alone we know
                table[self._pid] = Process(self._pid, os.getpid(), _session(self._pid), 0, dead=False)
        if self._adopts:
            roots += [process.pid for process in table.values() if process.parent == os.getpid()]
        session = os.getsid(0)
        for process in descendants(table, roots):
            if process.session != session or process.dead or (process.pid == self._pid and self.status is not None):
                continue
            self._signalled[process.pid] = process
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, number)

    async def gone(self, within: float) -> bool:
        """Whether the agent and all that was signalled ended within so many seconds."""
        deadline = self._loop.time() + within
        while not self.is_gone():
            if self._loop.time() >= deadline:
                return False
            await asyncio.sleep(POLL)
        return True

    def is_gone(self) -> bool:
        return self.status is not None and not self._survivors(process_table(self._signalled))

    def close(self) -> None:
        if self._sweep:
            self._sweep.cancel()
        if self._adopts:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def _survivors(self, table: dict[int, Process]) -> list[Process]:
        return [
            process
            for pid, known in self._signalled.items()
            if (process := table.get(pid)) and process.started == known.started and not process.dead
        ]

    def _watch(self, pidfd_open: Callable[[int], int] | None) -> None:
        if pidfd_open:
            with contextlib.suppress(OSError):  # a kernel before 5.3, or a sandbox
                self._pidfd = pidfd_open(self._pid)
                self._loop.add_reader(self._pidfd, self._readable)
                return
        threading.Thread(target=self._wait, name="agent-exit", daemon=True).start()

    def _readable(self) -> None:
        status = _wait_for(self._pid, os.WNOHANG)
        if status is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._end(status)

    def _wait(self) -> None:
        status = _wait_for(self._pid, 0)
        with contextlib.suppress(RuntimeError):  # the loop is over
            self._loop.call_soon_threadsafe(self._end, status)

    def _end(self, status: int | None) -> None:
        self.status = status
        self._exited()

    def _child_died(self, _number: int, _frame: FrameType | None) -> None:
        self._loop.call_soon_threadsafe(self._sweep_later)

    def _sweep_later(self) -> None:
        if not self._sweep:
            self._sweep = self._loop.call_later(UNCLAIMED, self._reap_orphans)

    def _reap_orphans(self) -> None:
        """Children of our own are waited for by the code that started them; the agent's pidfd waits for it."""
        self._sweep = None
        for process in process_table().values():
            if process.dead and process.parent == os.getpid() and process.pid != self._pid:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(process.pid, os.WNOHANG)


def _wait_for(pid: int, options: int) -> int | None:
    """The exit status of a child, None while it runs."""
    try:
        ended, status = os.waitpid(pid, options)
    except ChildProcessError:
        return UNKNOWN
    if not ended:
        return None
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def descendants(table: dict[int, Process], roots: Iterable[int]) -> list[Process]:
    """The roots that exist and all below them, parents first."""
    children: dict[int, list[Process]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process)
    found = {pid: table[pid] for pid in roots if pid in table}
    queue = list(found)
    for pid in queue:
        for child in children.get(pid, ()):
            if child.pid not in found:
                found[child.pid] = child
                queue.append(child.pid)
    return list(found.values())


def process_table(pids: Iterable[int] | None = None) -> dict[int, Process]:
    """All processes, or those of `pids` that exist."""
    if sys.platform == "linux":
        found = _all_pids() if pids is None else pids
        return {pid: process for pid in found if (process := _process(pid))}
    else:  # noqa: RET505  what a type checker for another system leaves out
        return table_of_ps(None if pids is None else set(pids))


def _all_pids() -> list[int]:
    try:
        return [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]
    except OSError:
        return []


def _process(pid: int) -> Process | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = text[text.rindex(b")") + 2 :].split()  # the name before may hold anything; proc_pid_stat(5)
    return Process(pid, int(fields[1]), int(fields[3]), int(fields[19]), fields[0] in b"ZX")


def table_of_ps(pids: set[int] | None) -> dict[int, Process]:
    """`process_table` where there is no /proc, as on macOS. Empty where ps cannot be started."""
    if pids is not None and not pids:
        return {}
    which = ["-A"] if pids is None else ["-p", ",".join(map(str, pids))]
    ask = ["/bin/ps", *which, "-o", "pid=", "-o", "ppid=", "-o", "stat="]  # POSIX: what follows `=` is all a heading
    try:
        import subprocess  # a relay on Linux never needs it

        listing = subprocess.run(ask, capture_output=True, check=False, text=True).stdout
    except OSError:
        return {}
    table = {}
    for line in listing.splitlines():
        pid, parent, state = line.split()[:3]
        table[int(pid)] = Process(int(pid), int(parent), _session(int(pid)), 0, state.startswith("Z"))
    return table


def _session(pid: int) -> int:
    """0 for a process that is gone or of which that is not told: it is in no session of ours."""
    try:
        return os.getsid(pid)
    except OSError:
        return 0

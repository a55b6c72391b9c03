"""Jobs for a ledger, and the thread that runs them in order and retries until they succeed.

The relay's thread calls `hand` and `stop`, and counts what it gave; everything else is the worker's.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from msgspec import Struct

from acp_proxy.core.entry import Origin, SessionState
from acp_proxy.ledger import LedgerError, LedgerForbiddenError, LedgerUnavailableError, Row, RowRefusedError, Warn
from acp_proxy.ledger.journal.recovery import append_all
from acp_proxy.ledger.journal.writer import Journal

if TYPE_CHECKING:
    from acp_proxy.ledger.budgets import BudgetLedger

MOST_UNKEPT = 10_000  # rows that wait in memory only: some 20 MB
_SHORTEST_DELAY, _LONGEST_DELAY = 0.05, 5.0  # seconds between two tries
# Seconds without anything to do. Editors stay open for days, and a server has a process for each connection; a new one
# costs the next prompt some milliseconds.
_IDLE = 60.0
# Seconds until it is asked whether what was written is where a failover keeps it, doubled each time; and how often.
_FIRST_LOOK, _LOOKS = 1.0, 5


class Append(Struct, frozen=True):
    """A row to append."""

    row: Row
    slot: int | None  # where the journal has it


class Note(Struct, frozen=True):
    """A session's title, as of `at` (Unix ns). None: it has none any more."""

    origin: Origin
    session: str
    title: str | None
    at: int


class Ask(Struct, frozen=True):
    """A query for a session's state; `reply` is called in the worker's thread."""

    origin: Origin
    session: str
    reply: Callable[[SessionState | None], None]


class Do(Struct, frozen=True):
    """`failed` is None for what is tried again until it succeeds."""

    job: Callable[[BudgetLedger], object]
    failed: Callable[[LedgerError], None] | None
    anyway: bool = False  # tried also when what is before it cannot be done now
    until: float = 0.0  # by `time.monotonic`: before then it has not failed, if only the ledger is out of reach

    def waits(self, error: LedgerError) -> bool:
        """Whether the job is retried after this error."""
        return isinstance(error, LedgerUnavailableError) and time.monotonic() + _SHORTEST_DELAY < self.until


class Stop(Struct, frozen=True):
    """The end, by `deadline` (of `time.monotonic`) whatever is left."""

    deadline: float


Job = Append | Note | Ask | Do


class Backlog:
    """Rows that wait. What is given is counted by the relay's thread alone, what is settled by the worker's."""

    def __init__(self) -> None:
        self.given = self.settled = 0
        self.unkept_given = self.unkept_settled = 0  # of these, those that no journal keeps
        self.dropped = 0  # rows that came when too many of those waited

    @property
    def pending(self) -> int:
        return self.given - self.settled

    @property
    def unkept(self) -> int:
        return self.unkept_given - self.unkept_settled

    @property
    def is_full(self) -> bool:
        return self.unkept >= MOST_UNKEPT


class LedgerThread:
    """Starts with the first jobs. It opens the ledger by `open`, and closes it in the end.

    Each kind of trouble is told to `warn` once. `at_first` is done once, after what the ledger was opened for.
    """

    def __init__(
        self,
        open: Callable[[], BudgetLedger],
        journal: Journal,
        backlog: Backlog,
        warn: Warn,
        at_first: Callable[[BudgetLedger], object] | None,
    ) -> None:
        self._open = open
        self._journal = journal
        self._backlog = backlog
        self._warn = warn
        self._at_first = at_first
        self._queue: SimpleQueue[Sequence[Job] | Stop] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._ledger: BudgetLedger | None = None
        self._jobs: deque[Job] = deque()
        self._deadline: float | None = None  # set when it is to end
        self._told: set[tuple[str, str]] = set()
        self._looks = 0  # that are left
        self.opening = True  # until the ledger was opened for the first time, or could not be

    def hand(self, jobs: Sequence[Job]) -> None:
        """To be done after what was handed before. What is asked fails at once where no thread can be started."""
        self._queue.put(jobs)
        if self._thread is None and (error := self._start()):
            self._queue.get_nowait()
            for job in jobs:
                if isinstance(job, Do) and job.failed:
                    job.failed(error)
                else:
                    self._jobs.append(job)

    def stop(self, timeout: float) -> None:
        """Returns when all is done, or after `timeout` seconds."""
        if self._thread is None and not self._jobs:
            return
        if self._thread is None:
            self._start()
        self._queue.put(Stop(time.monotonic() + timeout))
        if self._thread:
            self._thread.join(timeout)
        else:  # the relay has given up on this thread
            self._run()

    def _start(self) -> LedgerError | None:
        """What is in the way, if anything is: then whatever is handed next tries again."""
        thread = threading.Thread(target=self._run, name="acp-proxy ledger", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            self.opening = False
            self._tell_once("ledger.unavailable", str(error), pending=self._backlog.pending)
            return LedgerUnavailableError(str(error))
        self._thread = thread
        return None

    def _run(self) -> None:
        delay = 0.0
        while self._deadline is None or (self._jobs and time.monotonic() < self._deadline):
            self._collect(delay)
            try:
                self._work()
                delay = 0.0
            except RowRefusedError as error:  # it will never do, and others wait behind it
                self._skip(str(error))
            except LedgerForbiddenError as error:  # what is asked after it may be allowed
                delay = 0.0 if self._refuses(error) else self._waits(error, delay)
            except LedgerError as error:
                delay = self._waits(error, delay)
            except MemoryError:  # as SQLite's own is raised, too
                delay = self._waits(LedgerUnavailableError("no memory is left"), delay)
            except Exception as error:  # the one boundary: a job that cannot be done must not end the thread
                self._skip(f"{type(error).__name__}: {error}")
            if self._backlog.dropped:
                self._tell_once("ledger.rows_dropped", "too many rows wait in memory", most=MOST_UNKEPT)
        if self._backlog.dropped:
            self._warn("ledger.rows_dropped", rows=self._backlog.dropped)
        if self._ledger:
            self._ledger.close()

    def _refuses(self, error: LedgerForbiddenError) -> bool:
        """Whether what came first is a question: that is answered by the error, and the ledger goes on."""
        first = self._jobs[0]
        if self._ledger is None or not (isinstance(first, Do) and first.failed):
            return False
        self._tell_once("ledger.forbidden", str(error))
        self._jobs.popleft()
        first.failed(error)
        return True

    def _waits(self, error: LedgerError, delay: float) -> float:
        """How long until the next try, after one before which it was so long."""
        self.opening = False
        self._tell_once("ledger.unavailable", str(error), pending=self._backlog.pending)
        hurries = self._give_up(error) or self._deadline is not None
        return _SHORTEST_DELAY if hurries else min(2 * delay or _SHORTEST_DELAY, _LONGEST_DELAY)

    def _collect(self, delay: float) -> None:
        """Wait for something to do, or until the next try is due; then take all that is there."""
        with suppress(Empty):
            self._take(self._next(delay))
            while True:
                self._take(self._queue.get_nowait())

    def _next(self, delay: float) -> Sequence[Job] | Stop:
        if self._ledger and not self._jobs:
            with suppress(Empty):
                return self._idle(self._ledger)
            self._ledger.rest()
        return self._queue.get(timeout=delay if self._jobs else None)

    def _idle(self, ledger: BudgetLedger) -> Sequence[Job] | Stop:
        """What comes next. Raises Empty after a while without anything; meanwhile makes sure of what was written."""
        left = _IDLE
        while self._looks:
            pause = _FIRST_LOOK * 2 ** (_LOOKS - self._looks)
            with suppress(Empty):
                return self._queue.get(timeout=pause)
            left -= pause
            self._looks -= 1
            with suppress(LedgerError):
                self._looks *= not ledger.is_sure()
        return self._queue.get(timeout=max(left, 0.0))

    def _take(self, item: Sequence[Job] | Stop) -> None:
        if isinstance(item, Stop):
            self._deadline = self._deadline or item.deadline
        else:
            self._jobs.extend(item)

    def _work(self) -> None:
        while self._jobs:
            if self._ledger is None:
                self._ledger = self._open()
                self.opening = False
                if self._at_first:
                    self._jobs.append(Do(self._at_first, None))
            self._looks = _LOOKS * self._ledger.fails_over
            match self._jobs[0]:
                case Append():
                    self._append_leading(self._ledger)
                    continue
                case Note(origin, session, title, at):
                    self._ledger.note_session(origin, session, title, at)
                case Ask(origin, session, reply):
                    reply(self._ledger.state_of(origin, session))
                case Do(job):
                    job(self._ledger)
            self._jobs.popleft()

    def _give_up(self, error: LedgerError) -> bool:
        """What is asked has failed, unless there is time; what is tried anyway comes before what could not be done.

        Whether somebody still waits.
        """
        first, asked = self._jobs[0], [job for job in self._jobs if isinstance(job, Do) and job.failed]
        over = [job for job in asked if not job.waits(error)]
        for job in over:
            self._jobs.remove(job)
            if job.anyway and job is not first:
                self._jobs.appendleft(job)
            elif job.failed:
                job.failed(error)
        return len(over) < len(asked)

    def _skip(self, why: str) -> None:
        """Drop a job that can never succeed; refused rows are dropped elsewhere, one by one."""
        self._tell_once("ledger.failed", why)
        job = self._jobs.popleft()
        if isinstance(job, Do) and job.failed:
            job.failed(LedgerError("the ledger failed"))

    def _append_leading(self, ledger: BudgetLedger) -> None:
        """The rows before the next other job, together."""
        leading: list[Append] = []
        for job in self._jobs:
            if not isinstance(job, Append):
                break
            leading.append(job)
        if self._journal.path and any(job.slot is None for job in leading):
            self._tell_once("journal.full", "rows are only in memory", pending=self._backlog.pending)
        append_all(ledger, [job.row for job in leading], self._warn, in_order=True)
        for job in leading:
            self._jobs.popleft()
            self._backlog.settled += 1
            if job.slot is None:
                self._backlog.unkept_settled += 1
            else:
                self._journal.done(job.slot)

    def has_told(self, event: str) -> bool:
        return any(event == told for told, _ in self._told)

    def _tell_once(self, event: str, error: str, **fields: object) -> None:
        if (event, error) not in self._told:
            self._told.add((event, error))
            self._warn(event, error=error, **fields)

"""The thread that talks to the ledger, so that the relay never does: rows go in, states of sessions come back.

It opens the ledger when there is first something to do. While the ledger is out of reach it keeps everything, in
order, and tries again; the relay is neither stopped nor slowed.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from msgspec import Struct

from acp_proxy.core.entry import Origin, SessionState
from acp_proxy.ledger import LedgerError, Row, RowRefusedError, Warn, open_ledger
from acp_proxy.ledger.journal import Journal, open_journal
from acp_proxy.ledger.places import journal_directories
from acp_proxy.ledger.recovery import append_all

if TYPE_CHECKING:
    from acp_proxy.ledger.budgets import BudgetLedger

_PATIENCE = 1.0  # seconds that one try waits for other writers
_GATHER = 0.02  # seconds that a row waits for others
_REST = 0.5  # seconds that the next one waits for others, counted from there: ten rows at once cost three times one
_SHORTEST_DELAY, _LONGEST_DELAY = 0.05, 5.0  # seconds between two tries
_MOST_UNKEPT = 10_000  # rows that wait in memory only: some 20 MB


class _Append(Struct, frozen=True):
    row: Row
    slot: int | None


class _Note(Struct, frozen=True):
    origin: Origin
    session: str
    title: str
    at: int


class _Ask(Struct, frozen=True):
    origin: Origin
    session: str
    reply: Callable[[SessionState | None], None]


class _Do(Struct, frozen=True):
    """`failed` is None for what is tried again until it succeeds."""

    job: Callable[[BudgetLedger], object]
    failed: Callable[[LedgerError], None] | None
    anyway: bool = False  # tried also when what is before it cannot be done now


class _Stop(Struct, frozen=True):
    deadline: float


_Job = _Append | _Note | _Ask | _Do
Later = Callable[[float, Callable[[], object]], object]


class LedgerWorker:
    """Called from the relay's thread. `open` makes the ledger, in the worker's thread; `warn` is called there, too.

    Each kind of trouble is told once. `at_first` is done with the ledger once, after what it was opened for. With
    `later` (seconds, function), which calls in the relay's thread, rows that are safe in the journal gather there for a
    moment: waking this thread takes the time of a turn's last line, and more for each row than for many at once.
    """

    def __init__(
        self,
        open: Callable[[], BudgetLedger],
        journal: Journal,
        warn: Warn,
        at_first: Callable[[BudgetLedger], object] | None = None,
        later: Later | None = None,
    ) -> None:
        self._open = open
        self._journal = journal
        self._warn = warn
        self._at_first = at_first
        self._later = later
        self._gathered: list[_Job] = []
        self._gathering = False
        self._rests_until = 0.0
        self._handing_over = threading.Lock()  # the end comes in a thread of its own
        self._queue: SimpleQueue[Sequence[_Job] | _Stop] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._ledger: BudgetLedger | None = None
        self._jobs: deque[_Job] = deque()
        self._deadline: float | None = None  # set when it is to end
        self._told: set[tuple[str, str]] = set()
        self._given = 0  # rows; counted by the relay's thread
        self._settled = 0  # rows; counted by the worker's
        self._unkept = [0, 0]  # rows that no journal keeps: given, counted by the relay's thread; and settled
        self._open_turns: dict[str, int] = {}  # where the journal has them
        self.opening = True  # until the ledger was opened for the first time, or could not be
        self.dropped = 0  # rows that came when too many of those waited

    @classmethod
    def at(
        cls,
        url: str,
        environ: Mapping[str, str],
        warn: Warn,
        at_first: Callable[[BudgetLedger], object] | None = None,
        later: Later | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> LedgerWorker:
        """For the ledger at `url`, with a journal where the platform keeps state. Raises LedgerError for a bad URL.

        `clock` is that of `open_ledger`.
        """
        directories = journal_directories(environ)
        journal = open_journal(directories, url, warn)
        opened = partial(open_ledger, url, patience=_PATIENCE, warn=warn, journals=directories, clock=clock)
        return cls(opened, journal, warn, at_first, later)

    @property
    def pending(self) -> int:
        """Rows that the ledger does not have yet."""
        return self._given - self._settled

    def append(self, row: Row) -> None:
        """Keep a row: when this returns it is in the journal, and soon in the ledger.

        Where there is no journal, or it is full, so many wait in memory; those beyond are dropped and counted.
        """
        slot = self._journal.write(row)
        unfinished = self._open_turns.pop(row.entry.id, None)
        if unfinished is not None and slot is not None:
            self._journal.done(unfinished)
        if slot is None:
            if self._unkept[0] - self._unkept[1] >= _MOST_UNKEPT:
                self.dropped += 1
                return
            self._unkept[0] += 1
        self._given += 1
        if slot is None or self._later is None:
            self._put(_Append(row, slot))
        else:
            self._gathered.append(_Append(row, slot))
            self._gather(self._later)

    def keep_open(self, row: Row) -> None:
        """Keep what is known so far of a turn that goes on: booked if this process dies before `append`."""
        slot = self._journal.write_open(row, self._open_turns.get(row.entry.id))
        if slot is not None:
            self._open_turns[row.entry.id] = slot

    def note_session(self, origin: Origin, session: str, title: str, at: int) -> None:
        """Keep a session's title."""
        self._put(_Note(origin, session, title, at))

    def state_of(self, origin: Origin, session: str, reply: Callable[[SessionState | None], None]) -> None:
        """Ask what is known of a session; `reply` is called in the worker's thread, after rows given before are in."""
        self._put(_Ask(origin, session, reply))

    def do(self, job: Callable[[BudgetLedger], object]) -> None:
        """Do something with the ledger, in the worker's thread, after what was given before; again until it succeeds.

        A job may be done twice.
        """
        self._put(_Do(job, None))

    def ask(
        self, job: Callable[[BudgetLedger], object], failed: Callable[[LedgerError], None], *, anyway: bool = False
    ) -> None:
        """The same, but tried once: `failed` is called in the worker's thread when the ledger is out of reach.

        With `anyway` it is also tried when what was given before cannot be done now.
        """
        self._put(_Do(job, failed, anyway))

    def close(self, timeout: float) -> int:
        """Write what is left, for at most `timeout` seconds. The rows that the journal keeps for the next start."""
        self._hand_over()
        if self._thread:
            self._queue.put(_Stop(time.monotonic() + timeout))
            self._thread.join(timeout)
        self._journal.close()
        return self.pending

    def _put(self, job: _Job) -> None:
        self._gathered.append(job)
        self._hand_over()

    def _gather(self, later: Later) -> None:
        if not self._gathering:
            self._gathering = True
            later(max(_GATHER, self._rests_until - time.monotonic()), self._gathered_long_enough)

    def _gathered_long_enough(self) -> None:
        self._gathering = False
        self._rests_until = time.monotonic() + _REST
        self._hand_over()

    def _hand_over(self) -> None:
        with self._handing_over:
            gathered, self._gathered = self._gathered, []
        if not gathered:
            return
        self._queue.put(gathered)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="acp-proxy ledger", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        delay = 0.0
        while self._deadline is None or (self._jobs and time.monotonic() < self._deadline):
            self._collect(delay)
            try:
                self._work()
                delay = 0.0
            except RowRefusedError as error:  # it will never do, and others wait behind it
                self._skip(str(error))
            except LedgerError as error:
                self.opening = False
                self._tell_once("ledger.unavailable", str(error), pending=self.pending)
                self._give_up(error)
                longer = min(2 * delay or _SHORTEST_DELAY, _LONGEST_DELAY)
                delay = longer if self._deadline is None else _SHORTEST_DELAY
            except Exception as error:  # the one boundary: a job that cannot be done must not end the thread
                self._skip(f"{type(error).__name__}: {error}")
            if self.dropped:
                self._tell_once("ledger.rows_dropped", "too many rows wait in memory", most=_MOST_UNKEPT)
        if self.dropped:
            self._warn("ledger.rows_dropped", rows=self.dropped)
        if self._ledger:
            self._ledger.close()

    def _collect(self, delay: float) -> None:
        """Wait for something to do, or until the next try is due; then take all that is there."""
        with suppress(Empty):
            self._take(self._queue.get(timeout=delay if self._jobs else None))
            while True:
                self._take(self._queue.get_nowait())

    def _take(self, item: Sequence[_Job] | _Stop) -> None:
        if isinstance(item, _Stop):
            self._deadline = self._deadline or item.deadline
        else:
            self._jobs.extend(item)

    def _work(self) -> None:
        while self._jobs:
            if self._ledger is None:
                self._ledger = self._open()
                self.opening = False
                if self._at_first:
                    self._jobs.append(_Do(self._at_first, None))
            match self._jobs[0]:
                case _Append():
                    self._append_leading(self._ledger)
                    continue
                case _Note(origin, session, title, at):
                    self._ledger.note_session(origin, session, title, at)
                case _Ask(origin, session, reply):
                    reply(self._ledger.state_of(origin, session))
                case _Do(job):
                    job(self._ledger)
            self._jobs.popleft()

    def _give_up(self, error: LedgerError) -> None:
        """Nobody waits for what is tried only once; what is tried anyway comes before what could not be done."""
        first, asked = self._jobs[0], [job for job in self._jobs if isinstance(job, _Do) and job.failed]
        for job in asked:
            self._jobs.remove(job)
            if job.anyway and job is not first:
                self._jobs.appendleft(job)
            elif job.failed:
                job.failed(error)

    def _skip(self, why: str) -> None:
        """Leave out a job that will never be done; rows that are refused are left out elsewhere, one by one."""
        self._tell_once("ledger.failed", why)
        job = self._jobs.popleft()
        if isinstance(job, _Do) and job.failed:
            job.failed(LedgerError("the ledger failed"))

    def _append_leading(self, ledger: BudgetLedger) -> None:
        """The rows before the next other job, together."""
        leading: list[_Append] = []
        for job in self._jobs:
            if not isinstance(job, _Append):
                break
            leading.append(job)
        if self._journal.path and any(job.slot is None for job in leading):
            self._tell_once("journal.full", "rows are only in memory", pending=self.pending)
        append_all(ledger, [job.row for job in leading], self._warn, in_order=True)
        for job in leading:
            self._jobs.popleft()
            self._settled += 1
            if job.slot is None:
                self._unkept[1] += 1
            else:
                self._journal.done(job.slot)

    def _tell_once(self, event: str, error: str, **fields: object) -> None:
        if (event, error) not in self._told:
            self._told.add((event, error))
            self._warn(event, error=error, **fields)

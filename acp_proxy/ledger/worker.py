"""The relay's asynchronous interface to a ledger, for which it never waits: rows go in, session states come back.

Another thread (`jobs`) opens the ledger when there is first something to do. While it is out of reach everything is
kept, in order, and tried again; the relay is neither stopped nor slowed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from acp_proxy.core.entry import Origin, SessionState
from acp_proxy.ledger import LedgerError, Row, Warn, open_ledger
from acp_proxy.ledger.jobs import Append, Ask, Backlog, Do, Job, LedgerThread, Note
from acp_proxy.ledger.journal.writer import Journal, open_journal
from acp_proxy.ledger.owners import Owner
from acp_proxy.ledger.places import journal_directories

if TYPE_CHECKING:
    from acp_proxy.ledger.budgets import BudgetLedger

_PATIENCE = 1.0  # seconds that one try waits for other writers
_GATHER = 0.02  # seconds that a row waits for others
_REST = 0.5  # seconds that the next one waits for others, counted from there: ten rows at once cost three times one

Later = Callable[[float, Callable[[], object]], object]


class LedgerWorker:
    """Called from the relay's thread. `open` makes the ledger, in the worker's thread; `warn` is called there, too.

    Each kind of trouble is told once. `at_first` is done with the ledger once, after what it was opened for. With
    `later` (seconds, function), which calls in the relay's thread, rows that are safe in the journal gather there for a
    moment: waking the other takes the time of a turn's last line, and more for each row than for many at once.
    """

    def __init__(
        self,
        open: Callable[[], BudgetLedger],
        journal: Journal,
        warn: Warn,
        at_first: Callable[[BudgetLedger], object] | None = None,
        later: Later | None = None,
    ) -> None:
        self._journal = journal
        self._warn = warn
        self._backlog = Backlog()
        self._thread = LedgerThread(open, journal, self._backlog, warn, at_first)
        self._later = later
        self._gathered: list[Job] = []
        self._gathering = False
        self._rests_until = 0.0
        self._handing_over = threading.Lock()  # the end comes in a thread of its own
        self._open_turns: dict[str, int] = {}  # where the journal has them

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
    def owner(self) -> Owner:
        """This process, as who finds its turns must know it should it die."""
        return Owner.this(self._journal.path and self._journal.path.parent)

    @property
    def opening(self) -> bool:
        """Until the ledger was opened for the first time, or could not be."""
        return self._thread.opening

    @property
    def pending(self) -> int:
        """Rows that the ledger does not have yet."""
        return self._backlog.pending

    @property
    def dropped(self) -> int:
        """Rows that came when too many waited in memory only."""
        return self._backlog.dropped

    def append(self, row: Row) -> None:
        """Keep a row: when this returns it is in the journal, and soon in the ledger.

        Where there is no journal, or it is full, so many wait in memory; those beyond are dropped and counted.
        """
        slot = self._journal.write(row)
        unfinished = self._open_turns.pop(row.entry.id, None)
        if slot is None:
            slot = unfinished  # at least what was known of it, until the ledger has the row
        elif unfinished is not None:
            self._journal.done(unfinished)
        if slot is None:
            if self._backlog.is_full:
                self._backlog.dropped += 1
                return
            self._backlog.unkept_given += 1
        self._backlog.given += 1
        if slot is None or self._later is None:
            self._put(Append(row, slot))
        else:
            self._gathered.append(Append(row, slot))
            self._gather(self._later)

    def keep_open(self, row: Row) -> None:
        """Keep what is known so far of a turn that goes on: booked if this process dies before `append`."""
        slot = self._journal.write_open(row, self._open_turns.get(row.entry.id))
        if slot is not None:
            self._open_turns[row.entry.id] = slot

    def note_session(self, origin: Origin, session: str, title: str | None, at: int) -> None:
        """Keep a session's title; None: it has none any more."""
        self._put(Note(origin, session, title, at))

    def state_of(self, origin: Origin, session: str, reply: Callable[[SessionState | None], None]) -> None:
        """Ask what is known of a session; `reply` is called in the worker's thread, after rows given before are in."""
        self._put(Ask(origin, session, reply))

    def open(self) -> None:
        """Open the ledger, so that no turn is the first to need it."""
        if self._thread.opening:
            self.do(_look)

    def do(self, job: Callable[[BudgetLedger], object]) -> None:
        """Do something with the ledger, in the worker's thread, after what was given before; again until it succeeds.

        A job may be done twice.
        """
        self._put(Do(job, None))

    def ask(
        self,
        job: Callable[[BudgetLedger], object],
        failed: Callable[[LedgerError], None],
        *,
        anyway: bool = False,
        within: float = 0.0,
    ) -> None:
        """The same, but tried once, or for `within` seconds while the ledger is out of reach.

        Then `failed` is called in the worker's thread. With `anyway` it is also tried when what was given before cannot
        be done now.
        """
        self._put(Do(job, failed, anyway, time.monotonic() + within))

    def close(self, timeout: float) -> int:
        """Write what is left, for at most `timeout` seconds; how many rows there was no time for, which is told."""
        self._hand_over()
        self._thread.stop(timeout)
        self._journal.close()
        return self.tell_left()

    def tell_left(self) -> int:
        """Warn of rows that the ledger does not have, as who ends does; how many these are."""
        left, lost = self._backlog.pending, self._backlog.unkept
        if left > lost and not self._thread.has_told("ledger.unavailable"):  # which says how many wait
            self._warn("ledger.rows_left", rows=left - lost, effect="the next command that opens the ledger books them")
        if lost:
            self._warn("ledger.rows_lost", rows=lost, error="no journal had room for them, and the ledger no time")
        return left

    def _put(self, job: Job) -> None:
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
        if gathered:
            self._thread.hand(gathered)


def _look(ledger: BudgetLedger) -> None:
    """All that is to be done is to have opened it."""

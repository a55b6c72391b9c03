"""The ledger: one row per turn. `Ledger` is what every backend offers; `open_ledger` picks one by URL.

Read-only callers use a `LedgerReader`, from `open_reader`, which imports no code that writes.
The interface blocks, and is called from one thread (`ledger/worker.py` on the relay's side, the main thread of a
command). Rows are appended; one is changed only by `Ledger.correct`, which keeps what it was.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from acp_proxy.core.entry import Entry, Origin, SessionState
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.ledger.owners import Owner

if TYPE_CHECKING:
    from acp_proxy.ledger.budgets import BudgetLedger, BudgetReader
    from acp_proxy.ledger.sql_reader import SqlReader


class LedgerError(Exception):
    """The ledger cannot be used; the text is one line for the user and never holds a password."""


class NoLedgerError(LedgerError):
    """The database has no ledger, and the caller does not create one."""


class LedgerUnavailableError(LedgerError):
    """The ledger is busy, locked, full, read-only or unreachable: the same call may succeed later."""


class LedgerReadOnlyError(LedgerUnavailableError):
    """The ledger can be read but accepts no writes now: a standby."""


class LedgerForbiddenError(LedgerError):
    """The database role lacks a permission, such as a read-only role; another role may have it."""


class LedgerChangedError(LedgerError):
    """What was to be changed is another one by now; nothing was done."""


class RowRefusedError(LedgerError):
    """A row has a value that no ledger can store, such as a number beyond 64 bits; other rows are not affected."""


class Row(Struct, frozen=True):
    """An entry with its dimensions. `state` is the session after it, for the process that continues the session.

    `process` names the proxy's run, if a budget counts by it, and `lease` what a hub had lent, if the turn was admitted
    by that alone; neither is read back.
    """

    origin: Origin
    entry: Entry
    state: SessionState | None = None
    process: str | None = None
    lease: str | None = None


class OpenTurn(Struct, frozen=True):
    """A turn that is about to begin. If its owner dies, the turn is booked with these values."""

    id: str  # the UUIDv7 of hold, journal and row
    origin: Origin
    session: str
    started_at: int  # Unix ns
    owner: Owner
    model: str | None = None
    process: str | None = None  # as `Row.process`


class SessionInfo(Struct, frozen=True):
    """The state of a session after its last row, which the ledger keeps in addition to rows; None is unknown."""

    origin: Origin
    session: str
    title: str | None
    started_at: int  # Unix ns, of the row that began first
    ended_at: int  # Unix ns, of the row that ended last
    context_used: int | None  # tokens
    context_size: int | None


class TurnTimes(Struct, frozen=True):
    """When a row's work began and ended, Unix ns. `session` is as the ledger keeps it."""

    session: str
    kind: str
    started_at: int
    ended_at: int
    usage_source: str


class Context(Struct, frozen=True):
    """A session's context after one row; None is unknown."""

    at: int  # Unix ns, the row's start
    kind: str
    used: int | None  # tokens
    size: int | None


class Query(Struct, frozen=True):
    """Which rows: a half-open interval of start times (Unix ns), and values that a dimension must have.

    A dimension is a field of `Origin` ("organisation", "user", "team", "project", "host", "agent",
    "agent_version", "client"), "session", "kind", "usage_source", "cost_source", "model" or "title". All are compared
    for equality, None with what has no value, but the title, where part of it is enough and case is ignored. With
    "model" only the lines of that model are read: what others used in the same turn is not part of the answer. "seen"
    is the rows of one user and of some teams, as `seen` writes them.
    """

    since: int | None = None
    until: int | None = None
    where: tuple[tuple[str, str | None], ...] = ()

    @classmethod
    def of_session(cls, session: SessionInfo) -> Query:
        """All rows of one session. Five values identify it: agents, users and machines may use the same session ids."""
        origin = session.origin
        return cls(
            where=(
                ("organisation", origin.organisation),
                ("user", origin.user),
                ("host", origin.host),
                ("agent", origin.agent),
                ("session", session.session),
            )
        )


class Sums(Struct, frozen=True):
    """The sums of one group of rows. The counts are rows of every kind, except `turns`."""

    key: tuple[str | int | None, ...]  # the values of the dimensions that were asked for, in that order
    rows: int
    turns: int  # rows of kind "turn"
    usage: Usage
    costs: tuple[Money, ...]  # of what has a price
    unpriced: int  # rows with tokens whose price is unknown
    partial: int  # rows whose usage is a lower bound
    estimated: int  # rows whose usage or cost is an estimate
    without_usage: int  # rows without any reported usage
    cost_at_least: int  # rows whose cost is missing or a lower bound, as `Entry.cost_at_least` says
    started_at: int  # the earliest, in Unix ns
    ended_at: int  # the latest
    not_billed: tuple[Money, ...] = ()  # of `costs` what was used under a plan: list prices


class LedgerReader(Protocol):
    """The read-only interface: reads as `Ledger` does, and imports no code that writes.

    All methods raise LedgerError, iterators also during iteration, and ValueError for an unknown dimension.
    """

    url: str  # without credentials

    def rows(self, query: Query) -> Iterator[Row]:
        """Matching rows by start time, then id, without `state` and `process`. About 20 µs a row on SQLite.

        To add many up use `summed`.
        """

    def existing(self, organisation: str, ids: Iterable[str]) -> set[str]:
        """Those ids for which the organisation has a row."""

    def turn_times(self, organisation: str, user: str, *, without_client: str) -> Iterator[TurnTimes]:
        """The start and end of the user's rows, except those of this client. About 2 µs a row."""

    def costliest(self, query: Query, currencies: Sequence[str], most: int) -> list[Row]:
        """At most so many of these: first what cost most in the first of the currencies, and what has no cost in it
        by the next; then by tokens, then by id. About 2 µs a row that matches, on SQLite.
        """

    def summed(self, query: Query, by: Sequence[str]) -> list[Sums]:
        """Matching rows added up by dimensions, in no order; those of `Query`, "currency", "quarter_hour" and "day".

        A quarter hour is the number of 900 s since 1970 of a row's start (int), a day that of days of UTC. "day+4" are
        days that begin four quarter hours earlier, as those of Paris in winter, "day-20" such as begin later; their
        `started_at` and `ended_at` may be those of a day beside them.
        By "model" a turn counts once for each of its models, by "currency" with its first. An empty `by` is one group,
        or none without rows.
        """

    def sessions(self, query: Query) -> Iterator[SessionInfo]:
        """Sessions with at least one matching row, by their start."""

    def session_sums(self, query: Query) -> Iterator[tuple[SessionInfo, Sums]]:
        """The same with the sums of their matching rows, in no order, in batches. The sums have no key."""

    def costliest_sessions(
        self, query: Query, currencies: Sequence[str], most: int
    ) -> tuple[list[tuple[SessionInfo, Sums]], int]:
        """At most so many of these, and how many there are. In the order of `costliest`, but at last by their key."""

    def close(self) -> None: ...


class Ledger(LedgerReader, Protocol):
    """The interface for reading and writing. All methods raise LedgerError."""

    def append(self, rows: Sequence[Row], *, in_order: bool = False) -> int:
        """Append rows and upsert their sessions in one transaction; how many were new.

        A row whose id exists already is skipped.
        A session stands as after its row that ended last, or with `in_order`, in the order in which they are handed in
        over, after the last of these rows, whatever a clock that was set says of it.
        Raises RowRefusedError for a row that can never be stored, and then stores none of the rows.
        """

    def correct(self, before: Row, after: Row, now: int) -> bool:
        """Put a row in the place of the one with its id, as `rows` gave that; whether it was still as it was `before`.

        They differ in their lines, sources and details alone. Sums and budgets then are as if it had been booked like
        that; `now` (Unix ns) is kept with what it was.
        """

    def state_of(self, origin: Origin, session: str) -> SessionState | None:
        """The state of a session, with its costs summed over all its rows; None without rows."""

    def note_session(self, origin: Origin, session: str, title: str | None, at: int) -> None:
        """Store a title as of `at` (Unix ns), or its removal.

        Does nothing for a session without rows, or if a later title is stored.
        """

    def check(self) -> str:
        """One line on version and size, for `doctor`. Raises LedgerError if the ledger is not writable."""


Tell = Callable[[str], object]  # what takes a line for the user


class Warn(Protocol):
    """Reports a problem that does not stop the caller: a dotted event name, and its fields."""

    def __call__(self, event: str, **fields: object) -> None: ...


def log_warning(event: str, **fields: object) -> None:
    """Logs with the standard library, which writes to stderr unless configured otherwise."""
    import logging

    details = " ".join(f"{name}={value}" for name, value in fields.items())
    logging.getLogger("acp_proxy.ledger").warning("acp-proxy: %s %s", event, details)


def open_ledger(
    url: str,
    *,
    patience: float = 5.0,
    warn: Warn = log_warning,
    journals: Sequence[Path] | None = None,
    clock: Callable[[], int] = time.time_ns,
    must_exist: bool = False,
) -> BudgetLedger:
    """Open the ledger at `url`, or create it, and book what dead processes left in journals and as holds.

    With `must_exist` a missing ledger raises NoLedgerError, unless a dead process left rows for it.

    `patience` bounds in seconds how long a call waits for other writers. `journals` are the directories to look for
    journals in, by default the two of `places.journal_directories`. `clock` is this machine's Unix time in
    nanoseconds: by it holds are found that were abandoned, and it is compared with that of a server, which all that
    holds goes by. Raises LedgerError.
    """
    # Imported here: a relay reads the values above long before its worker wants a database.
    from acp_proxy.ledger.backends import backend_at

    directories = _journal_directories() if journals is None else journals
    ledger = backend_at(url, clock)(patience=patience, warn=warn, journals=directories, must_exist=must_exist)
    try:
        _settle_dead(ledger, warn, clock)
    except BaseException:
        ledger.close()
        raise
    return ledger


def open_or_make(url: str, tell: Tell | None) -> BudgetLedger:
    """`open_ledger`; `tell`, if given, is called first if the ledger does not exist."""
    if tell is not None:
        try:
            return open_ledger(url, must_exist=True)
        except NoLedgerError as error:
            tell(str(error))
    return open_ledger(url)


def open_reader(
    url: str, *, tell: Tell | None = None, warn: Warn = log_warning, journals: Sequence[Path] | None = None
) -> BudgetReader:
    """`open_ledger` for read-only callers: creates no file and no tables; a missing ledger has no rows.

    On PostgreSQL, or with a hub, this is a writable ledger: its imports take little time compared to connecting.
    """
    from acp_proxy.ledger.places import canonical_url, is_shared, sqlite_path

    if is_shared(url):
        try:
            return open_ledger(url, warn=warn, journals=journals, must_exist=True)
        except NoLedgerError as error:
            from acp_proxy.ledger.sqlite.reader import EmptyReader

            if tell is not None:
                tell(str(error))
            return EmptyReader(canonical_url(url))
    from acp_proxy.ledger.sqlite.reader import SqliteReader

    directories = _journal_directories() if journals is None else journals
    if tell is not None:
        from acp_proxy.ledger.sqlite.file import missing

        if told := missing(sqlite_path(url), directories):
            tell(told)
    reader = SqliteReader(sqlite_path(url), warn=warn, journals=directories, written_at=url)
    _settle_dead(reader, warn, time.time_ns)
    return reader


def _settle_dead(ledger: BudgetLedger | SqlReader, warn: Warn, clock: Callable[[], int]) -> None:
    try:
        ledger.settle_dead(clock())
    except (LedgerReadOnlyError, LedgerForbiddenError):
        pass  # who writes will find them
    except LedgerUnavailableError as error:  # it may still be read, and the journals stay
        warn("journal.not_recovered", error=str(error))


def _journal_directories() -> Sequence[Path]:
    from acp_proxy.ledger.places import journal_directories

    return journal_directories(os.environ)

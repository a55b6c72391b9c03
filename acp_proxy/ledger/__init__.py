"""The ledger: one row per turn. `Ledger` is what every backend offers; `open_ledger` picks one by URL.

Who only looks takes a `LedgerReader`, from `open_reader`: opening that imports nothing that writes.
The interface blocks, and is called from one thread (`ledger/worker.py` on the relay's side, the main thread of a
command). Rows are appended, never changed.
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
    """There is none in this database, and who asked makes none."""


class LedgerUnavailableError(LedgerError):
    """Busy, locked, full, read-only or out of reach: the same call may succeed later."""


class LedgerReadOnlyError(LedgerUnavailableError):
    """It can be read, and takes no writes now: a standby of a database."""


class LedgerForbiddenError(LedgerError):
    """This role of a database may not do that; another may, as where it was given nothing but to read."""


class RowRefusedError(LedgerError):
    """A row holds what no ledger can keep, such as a number beyond 64 bits; other rows are not concerned."""


class Row(Struct, frozen=True):
    """An entry with its dimensions. `state` is the session after it, for the process that continues the session.

    `process` names the run of the proxy that made it, where a budget counts by that; it is not read back.
    """

    origin: Origin
    entry: Entry
    state: SessionState | None = None
    process: str | None = None


class OpenTurn(Struct, frozen=True):
    """A turn that is about to begin. Should its owner die, it is booked with what is known of it here."""

    id: str  # the UUIDv7 of hold, journal and row
    origin: Origin
    session: str
    started_at: int  # Unix ns
    owner: Owner
    model: str | None = None
    process: str | None = None  # as `Row.process`


class SessionInfo(Struct, frozen=True):
    """What the ledger keeps of a session beside its rows, as it stands after the last one; None is not known."""

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


class Context(Struct, frozen=True):
    """How full a session's context was after one row: None where that is not known."""

    at: int  # Unix ns, the row's start
    kind: str
    used: int | None  # tokens
    size: int | None


class Query(Struct, frozen=True):
    """Which rows: a half-open interval of start times (Unix ns), and values that a dimension must have.

    A dimension is a field of `Origin` ("organisation", "user", "team", "project", "host", "agent",
    "agent_version", "client"), "session", "kind", "usage_source", "cost_source", "model" or "title". All are compared
    for equality, None with what has no value, but the title, where part of it is enough and case is ignored. With
    "model" only the lines of that model are read: what others used in the same turn is not part of the answer.
    """

    since: int | None = None
    until: int | None = None
    where: tuple[tuple[str, str | None], ...] = ()

    @classmethod
    def of_session(cls, session: SessionInfo) -> Query:
        """All rows of one session. It is known by all five: agents reuse their ids, and so do two users or machines."""
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
    """What the rows of one group add up to; the counts are rows of every kind, but for `turns`."""

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


class LedgerReader(Protocol):
    """Who only looks: reads as `Ledger` does, and imports nothing that writes.

    All raise LedgerError, iterators also while they are read, and ValueError for a dimension that there is not.
    """

    url: str  # without credentials

    def rows(self, query: Query) -> Iterator[Row]:
        """Matching rows by start time, then id, without `state` and `process`. About 20 µs a row on SQLite.

        To add many up use `summed`.
        """

    def existing(self, organisation: str, ids: Iterable[str]) -> set[str]:
        """The ids that a row of the organisation has."""

    def turn_times(self, organisation: str, user: str, *, without_client: str) -> Iterator[TurnTimes]:
        """When the user's rows began and ended, but those that came through this client. About 2 µs a row."""

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
        """The same with what their matching rows add up to, in no order, some at a time. The sums have no key."""

    def costliest_sessions(
        self, query: Query, currencies: Sequence[str], most: int
    ) -> tuple[list[tuple[SessionInfo, Sums]], int]:
        """At most so many of these, and how many there are. In the order of `costliest`, but at last by their key."""

    def close(self) -> None: ...


class Ledger(LedgerReader, Protocol):
    """What takes rows. All raise LedgerError."""

    def append(self, rows: Sequence[Row], *, in_order: bool = False) -> int:
        """Append rows and upsert their sessions in one transaction; how many were new.

        One whose id is there already is skipped.
        A session stands as after its row that ended last, or with `in_order`, in the order in which they are handed in
        over, after the last of these rows, whatever a clock that was set says of it.
        Raises RowRefusedError for what will never do, and then keeps none of the rows.
        """

    def state_of(self, origin: Origin, session: str) -> SessionState | None:
        """What is known of a session, its costs summed over all its rows; None when there is no row."""

    def note_session(self, origin: Origin, session: str, title: str | None, at: int) -> None:
        """Keep a title as of `at` (Unix ns), or that there is none any more.

        Does nothing for a session without rows, or when a later title is kept.
        """

    def check(self) -> str:
        """One line on version and size, for `doctor`. Raises LedgerError when it cannot be written."""


Tell = Callable[[str], object]  # what takes a line for the user


class Warn(Protocol):
    """Where trouble that does not stop the caller is told: a dotted event name and what belongs to it."""

    def __call__(self, event: str, **fields: object) -> None: ...


def log_warning(event: str, **fields: object) -> None:
    """To the standard library's log, which writes to stderr where nothing else was set up."""
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
    """The ledger at `url`, made when it is not there, with what dead processes left in journals and as holds.

    With `must_exist` one that is not there is a NoLedgerError, unless a dead process left rows for it.

    `patience` bounds in seconds how long a call waits for other writers. `journals` are the directories to look for
    journals in, by default the two of `places.journal_directories`. `clock` is this machine's Unix time in
    nanoseconds: by it holds are found that were abandoned, and it is compared with that of a server, which all that
    holds goes by. Raises LedgerError.
    """
    # Imported here: a relay reads the values above long before its worker wants a database.
    from acp_proxy.ledger.backends import backend_at

    directories = _journal_directories() if journals is None else journals
    ledger = backend_at(url, clock)(patience=patience, warn=warn, journals=directories, must_exist=must_exist)
    _settle_dead(ledger, warn, clock)
    return ledger


def open_or_make(url: str, tell: Tell | None) -> BudgetLedger:
    """`open_ledger`; where `tell` is given, it is told first that there was none."""
    if tell is not None:
        try:
            return open_ledger(url, must_exist=True)
        except NoLedgerError as error:
            tell(str(error))
    return open_ledger(url)


def open_reader(
    url: str, *, tell: Tell | None = None, warn: Warn = log_warning, journals: Sequence[Path] | None = None
) -> BudgetReader:
    """`open_ledger` for who only looks: it makes no file and no tables, and a ledger that is not there has no rows.

    On PostgreSQL it is a ledger that could write: to connect takes so long that its imports do not count.
    """
    from acp_proxy.ledger.places import canonical_url, is_postgres, sqlite_path

    if is_postgres(url):
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


def _settle_dead(ledger: SqlReader, warn: Warn, clock: Callable[[], int]) -> None:
    try:
        ledger.settle_dead(clock())
    except (LedgerReadOnlyError, LedgerForbiddenError):
        pass  # who writes will find them
    except LedgerUnavailableError as error:  # it may still be read, and the journals stay
        warn("journal.not_recovered", error=str(error))


def _journal_directories() -> Sequence[Path]:
    from acp_proxy.ledger.places import journal_directories

    return journal_directories(os.environ)

"""The ledger: one row per turn. `Ledger` is what every backend offers; `open_ledger` picks one by URL.

The interface blocks, and is called from one thread (`ledger/worker.py` on the relay's side, the main thread of a
command). Rows are appended, never changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from acp_proxy.core.entry import Entry, Origin, SessionState


class LedgerError(Exception):
    """The ledger cannot be used; the text is one line for the user and never holds a password."""


class LedgerUnavailable(LedgerError):
    """Busy, locked, full, read-only or out of reach: the same call may succeed later."""


@dataclass(frozen=True, slots=True)
class Row:
    """An entry with its dimensions. `state` is the session after it, for whoever continues the session."""

    origin: Origin
    entry: Entry
    state: SessionState | None = None


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """What the ledger keeps of a session beside its rows."""

    origin: Origin
    session: str
    title: str | None
    started_at: int
    ended_at: int
    context_used: int | None
    context_size: int | None


@dataclass(frozen=True, slots=True)
class Query:
    """Which rows: a half-open interval of start times (Unix ns), and values that a dimension must have."""

    since: int | None = None
    until: int | None = None
    where: tuple[tuple[str, str], ...] = ()  # (dimension of Origin | "model" | "kind" | "title" | "session", value)


class Ledger(Protocol):
    url: str  # without credentials

    def append(self, rows: Sequence[Row]) -> None:
        """Append rows and upsert their sessions in one transaction. A row whose id is there already is skipped."""

    def state_of(self, origin: Origin, session: str) -> SessionState | None:
        """What is known of a session, its costs summed over all its rows; None when there is no row."""

    def note_session(self, origin: Origin, session: str, title: str | None, at: int) -> None:
        """Keep a title. Does nothing for a session without rows; rows carry the title from then on."""

    def rows(self, query: Query) -> Iterator[Row]:
        """Matching rows by start time, then id."""

    def sessions(self, query: Query) -> Iterator[SessionInfo]:
        """Sessions with at least one matching row."""

    def check(self) -> str:
        """One line on version and size, for `doctor`. Raises LedgerError."""

    def close(self) -> None: ...

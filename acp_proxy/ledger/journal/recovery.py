"""Takes over the journals of processes that are gone: their rows go to the ledger, their files go away.

A journal whose owner lives is locked and left alone; so is one for another ledger.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from acp_proxy.ledger import Row, RowRefusedError, Warn
from acp_proxy.ledger.journal.abandoned import journals_in, taken
from acp_proxy.ledger.journal.records import Contents, read_journal

if TYPE_CHECKING:
    from acp_proxy.ledger.budgets import BudgetLedger

_BATCH = 256  # rows a transaction: 20 ms, so that others' turns come in between


class FoundJournal(Struct, frozen=True):
    """A journal as `doctor` sees it."""

    path: Path
    alive: bool  # its owner is
    contents: Contents | None  # of a dead owner's; None when it cannot be read


class Appends(Protocol):
    """What rows are appended to, as by `Ledger.append`."""

    def append(self, rows: Sequence[Row], *, in_order: bool = False) -> int: ...


def recover(ledger: BudgetLedger, directories: Iterable[Path], warn: Warn) -> int:
    """Append what dead processes left for `ledger`; how many rows those were, ones that it had already among them.

    Raises LedgerUnavailableError, and then leaves the journal as it is.
    """
    return sum(_recover_one(ledger, path, warn) for directory in directories for path in journals_in(directory))


def journals_found(directories: Iterable[Path]) -> list[FoundJournal]:
    """The journals that are there, of any process. Changes nothing."""
    found = []
    for path in (path for directory in directories for path in journals_in(directory)):
        with taken(path) as file:
            found.append(FoundJournal(path, file is None, read_journal(file.read()) if file else None))
    return found


def is_owed(directories: Iterable[Path], url: str) -> bool:
    """Whether a dead process has left anything for the ledger at `url`."""
    return any(
        journal.contents is not None and journal.contents.ledger == url for journal in journals_found(directories)
    )


def pending(directories: Iterable[Path], url: str) -> int:
    """How many rows journals have for the ledger at `url` that are not in it yet, of any process."""
    waiting = 0
    for path in (path for directory in directories for path in journals_in(directory)):
        with suppress(OSError):  # it may be done by now
            contents = read_journal(path.read_bytes())
            if contents and contents.ledger == url:
                waiting += len(contents.rows)
    return waiting


def append_all(ledger: Appends, rows: Sequence[Row], warn: Warn, *, in_order: bool = False) -> int:
    """Append rows in batches; how many were new.

    One that the ledger refuses is reported and dropped, for it would bar all after it.
    """
    new = 0
    for start in range(0, len(rows), _BATCH):
        batch = rows[start : start + _BATCH]
        try:
            new += ledger.append(batch, in_order=in_order)
        except RowRefusedError:
            new += sum(_append_one(ledger, row, warn, in_order=in_order) for row in batch)
    return new


def _append_one(ledger: Appends, row: Row, warn: Warn, *, in_order: bool) -> int:
    try:
        return ledger.append([row], in_order=in_order)
    except RowRefusedError as error:
        warn("ledger.row_refused", id=row.entry.id, agent=row.origin.agent, error=str(error))
        return 0


def _recover_one(ledger: BudgetLedger, path: Path, warn: Warn) -> int:
    with taken(path) as file:
        if file is None:
            return 0
        contents = read_journal(file.read())
        if contents is None:
            warn("journal.unknown", path=str(path))
            return 0
        if contents.ledger != ledger.url:
            return 0
        append_all(ledger, contents.rows, warn)
        # What a turn held is booked up to when it was last held for: of its session an earlier row would say nothing.
        for row in sorted(contents.open, key=_is_known, reverse=True):
            _end(ledger, row, warn)
        if contents.torn:
            warn("journal.torn", path=str(path), skipped=contents.torn, recovered=len(contents.rows))
        _dispose(path, contents, warn)
    return len(contents.rows) + len(contents.open)


def _end(ledger: BudgetLedger, row: Row, warn: Warn) -> None:
    """Book a turn that its process did not live to end: at what was known of it, else at what it held."""
    origin, from_zero = row.origin, row.state is not None and row.state.from_zero
    if _is_known(row) or not ledger.book_held(origin.organisation, row.entry.id, time.time_ns(), from_zero=from_zero):
        append_all(ledger, [row], warn)


def _is_known(row: Row) -> bool:
    return bool(row.entry.usage.total or row.entry.costs)


def _dispose(path: Path, contents: Contents, warn: Warn) -> None:
    with suppress(OSError):
        if contents.unreadable:
            aside = path.rename(path.with_suffix(".unreadable"))
            warn("journal.unreadable", rows=contents.unreadable, moved_to=str(aside))
        else:
            path.unlink()

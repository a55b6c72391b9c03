"""Copies a ledger into another one: its rows with how their sessions stand, and what budgets keep beside rows.

What the other one has stays as it is: a copy can be made again, and those of many ledgers become one. What passes with
the moment is not copied: turns that run, notices, and what relays count.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core.entry import Origin, SessionState
from acp_proxy.ledger import LedgerError, Query, Row, Warn, log_warning
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.journal.recovery import append_all

_AT_ONCE = 256  # rows that are appended together
_SESSIONS = 10_000  # of which it is remembered how they stand


class Copied(Struct, frozen=True):
    """How many rows and grants were new to the target, and how many rows were read."""

    rows: int
    grants: int
    read: int


def copy(source: BudgetLedger, target: BudgetLedger, *, titles: bool, warn: Warn = log_warning) -> Copied:
    """Without `titles` none of a session goes along. Raises LedgerError; what was copied by then stays."""
    if source.url == target.url:
        raise LedgerError(f"ledger {source.url}: cannot be copied into itself")
    rows, new, read = _rows(source, titles=titles), 0, 0
    while some := list(islice(rows, _AT_ONCE)):
        new += append_all(target, some, warn)
        read += len(some)
    copied = {table: target.beside.add(table, found) for table, found in source.beside.all()}
    return Copied(new, copied["granted"], read)


def _rows(source: BudgetLedger, *, titles: bool) -> Iterator[Row]:
    """In the order of time, each with its session as it stands now: whichever row comes last, that is what is kept."""
    known: dict[tuple[Origin, str], tuple[int, SessionState | None]] = {}  # with when the last row ended by then

    def state(row: Row) -> SessionState | None:
        session = row.origin, row.entry.session
        if session not in known or row.entry.ended_at > known[session][0]:  # it may come while others are copied
            if len(known) >= _SESSIONS:
                known.clear()
            info, found = source.recent.session(*session), source.state_of(*session)
            found = found if found is None or titles else replace(found, title=None)
            known[session] = (info.ended_at if info else 0, found)
        return known[session][1]

    return (replace(row, state=state(row)) for row in source.rows(Query()))

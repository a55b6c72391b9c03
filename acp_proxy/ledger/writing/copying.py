"""Copies a ledger into another one: its rows with how their sessions stand, and what budgets keep beside rows.

What the other one has stays as it is, but for rows that were corrected here since: a copy can be made again, and those
of many ledgers become one. What passes with the moment is not copied: turns that run, notices, and what relays count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core.entry import Origin, SessionState
from acp_proxy.ledger import LedgerError, Query, Row, Warn, corrections, log_warning
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
    target.takes_over()
    rows, new, read = _rows(source, titles=titles), 0, 0
    while some := list(islice(rows, _AT_ONCE)):
        new += append_all(target, some, warn)
        read += len(some)
    copied = dict[str, int]()
    for table, found in source.beside.all():
        if table == "correction":
            _correct(source, target, found)
        copied[table] = target.beside.add(table, found)
    return Copied(new, copied["granted"], read)


def _correct(source: BudgetLedger, target: BudgetLedger, found: Iterable[Sequence[Any]]) -> None:
    """Rows that an earlier copy brought as they were before, and that are still so there."""
    by_turn: dict[tuple[str, str], list[Sequence[Any]]] = {}
    for each in found:
        by_turn.setdefault(corrections.turn_of(each), []).append(each)
    for organisation in {organisation for organisation, _ in by_turn}:
        turns = (turn for one, turn in by_turn if one == organisation)
        while ids := list(islice(turns, _AT_ONCE)):
            theirs = {row.entry.id: row for row in target.recent.some(organisation, ids)}
            for row in source.recent.some(organisation, ids):
                before, made = theirs.get(row.entry.id), by_turn[organisation, row.entry.id]
                if before is not None and any(corrections.is_of(each, before.entry) for each in made):
                    target.correct(before, row, max(map(corrections.made_at, made)))


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

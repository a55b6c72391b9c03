"""Completes the relayed turns of one session at a time: its rows beside its book, and the rows that follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.books import Call
from acp_proxy.books.agents import family
from acp_proxy.config import Config
from acp_proxy.config.applied import profiles_of
from acp_proxy.core.agents.lookup import profile_of
from acp_proxy.core.entry import IMPORT
from acp_proxy.core.pricing import Pricer
from acp_proxy.core.session_ids import booked
from acp_proxy.importing.completing import Book, completed, is_incomplete
from acp_proxy.importing.rows import FROM_BOOK, id_of
from acp_proxy.importing.shelves import BookUnreadableError, Shelf, is_long
from acp_proxy.ledger import LedgerReader, Query, Row

Completed = tuple[Row, Row]  # before, and after
Correct = Callable[[Row, Row, int], bool]  # as `Ledger.correct`


class Completer(Struct, frozen=True):
    """Of one user. Rows of turns that ended after `until` (Unix ns) are left as they are: books may not be written."""

    config: Config
    pricer: Pricer
    ledger: LedgerReader
    until: int
    now: int

    def complete(self, shelf: Shelf, session: str, paths: Iterable[Path], *, correct: Correct) -> list[Completed]:
        """What was corrected. Raises LedgerError."""
        rows = self._rows(session, shelf.agent)
        if not any(is_incomplete(row.entry) and row.entry.ended_at <= self.until for row in rows):
            return []
        calls, since = _calls(shelf, session, paths)
        if not calls:
            return []
        ids = {id_of(call, shelf.agent): call.id for call in calls}
        known = self.ledger.existing(self.config.identity.organisation, ids)
        book = Book(
            shelf.agent,
            calls,
            {ids[each] for each in known},
            since,
            tells_cost=any(_has_cost_told(row) for row in rows),
            may_tell_cost=self._may_tell_cost(rows[-1]),
        )
        found = completed(rows, book, self.pricer, self.until)
        return [(before, after) for before, after in found if correct(before, after, self.now)]

    def _rows(self, session: str, agent: str) -> list[Row]:
        who = self.config.identity
        where = (("organisation", who.organisation), ("user", who.user), ("session", booked(session)))
        rows = self.ledger.rows(Query(where=where))
        return [row for row in rows if row.origin.client != IMPORT and family(row.origin.agent) == agent]

    def _may_tell_cost(self, row: Row) -> bool:
        profile = profile_of(row.origin.agent, row.origin.agent_version, profiles_of(self.config))
        return profile.cost.counter not in ("none", "unknown")


def only_say(*_: object) -> bool:
    """In place of a correction, for who wants to know what would be corrected."""
    return True


def _has_cost_told(row: Row) -> bool:
    return row.entry.cost_source == "agent" and not row.entry.detail.startswith(FROM_BOOK)


def _calls(shelf: Shelf, session: str, paths: Iterable[Path]) -> tuple[Sequence[Call], int]:
    """The calls of a session and its subagents, each once, and since when (Unix ns) these are all.

    None where a book cannot be read at this moment, or has what is not understood: that may be one of them.
    """
    calls, since = dict[str, Call](), 0
    try:
        for path in paths:
            first = None
            for call in shelf.read(path, session):
                if not isinstance(call, Call):
                    return [], 0
                first = call.at if first is None else min(first, call.at)
                known = calls.get(call.id)
                if known is None or call.usage.total > known.usage.total:
                    calls[call.id] = call if known is None else replace(call, at=min(call.at, known.at))
            if first is not None and is_long(path):
                since = max(since, first)
    except BookUnreadableError:
        return [], 0
    return [_booked(call) for call in calls.values()], since


def _booked(call: Call) -> Call:
    """With ids of sessions as rows have them."""
    session, parent = booked(call.session), call.parent and booked(call.parent)
    return call if (session, parent) == (call.session, call.parent) else replace(call, session=session, parent=parent)

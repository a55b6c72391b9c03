"""What relays have metered: for each session the spans of time in which its calls are in the ledger, or will be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from acp_proxy.core.entry import IMPORT
from acp_proxy.core.session_ids import booked
from acp_proxy.importing.turns import AFTER
from acp_proxy.ledger import LedgerReader, Row, TurnTimes
from acp_proxy.ledger.journal.abandoned import journals_in
from acp_proxy.ledger.journal.records import read_journal
from acp_proxy.text.times import SECOND

_BEFORE = 1 * SECOND  # an agent's times are those of its writing, and rounded
_FOREVER = 2**63 - 1


class Span(NamedTuple):
    """Of one turn; `is_booked` once the ledger has its row."""

    start: int
    end: int
    is_booked: bool = True


class Relayed:
    """Asked for one call at a time. `incomplete` are sessions, as they are booked, with a turn known in part."""

    def __init__(self, spans: dict[str, list[Span]], incomplete: AbstractSet[str]) -> None:
        self._spans = spans
        self._parents: dict[str, str] = {}
        self.incomplete = incomplete

    def note_parent(self, session: str, parent: str) -> None:
        """A subagent's calls are metered with its parent's turn; a fork has copies of its parent's calls."""
        self._parents[session] = parent

    def cover(self, session: str, at: int) -> Span | None:
        """The turn of this session, or of one that it came from, that ran then."""
        seen = set[str]()
        while session not in seen:
            for span in self._spans.get(booked(session), ()):
                if span.start <= at <= span.end:
                    return span
            seen.add(session)
            session = self._parents.get(session, session)
        return None


def relayed(ledger: LedgerReader, journals: Sequence[Path], organisation: str, user: str) -> Relayed:
    """By the user's rows, and by what relays that run have in their journals. Raises LedgerError."""
    by_session: dict[str, list[TurnTimes]] = {}
    incomplete = set[str]()
    for times in ledger.turn_times(organisation, user, without_client=IMPORT):
        by_session.setdefault(times.session, []).append(times)
        if times.kind == "turn" and times.usage_source != "agent":
            incomplete.add(times.session)
    spans = {session: list(_spans(rows)) for session, rows in by_session.items()}
    for row, is_open in _in_journals(journals, ledger.url):
        end = _FOREVER if is_open else row.entry.ended_at + AFTER
        spans.setdefault(booked(row.entry.session), []).append(
            Span(row.entry.started_at - _BEFORE, end, is_booked=False)
        )
    return Relayed(spans, incomplete)


def _spans(rows: Iterable[TurnTimes]) -> Iterator[Span]:
    """A row that is no turn has what was used since the row before it."""
    before: int | None = None
    for row in sorted(rows, key=lambda each: (each.ended_at, each.started_at)):
        start = row.started_at if before is None or row.kind == "turn" else before
        yield Span(start - _BEFORE, row.ended_at + AFTER)
        before = row.ended_at


def _in_journals(directories: Iterable[Path], url: str) -> Iterator[tuple[Row, bool]]:
    """Rows on their way to this ledger, and those of turns that run."""
    for path in (path for directory in directories for path in journals_in(directory)):
        contents = None
        with suppress(OSError):
            contents = read_journal(path.read_bytes())
        if contents is not None and contents.ledger == url:
            yield from ((row, False) for row in contents.rows)
            yield from ((row, True) for row in contents.open)

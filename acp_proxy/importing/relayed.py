"""What relays have metered: for each session the spans of time in which its calls are in the ledger, or will be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from acp_proxy.core.entry import IMPORT
from acp_proxy.core.session_ids import booked
from acp_proxy.ledger import LedgerReader, Row, TurnTimes
from acp_proxy.ledger.journal.abandoned import journals_in
from acp_proxy.ledger.journal.records import read_journal
from acp_proxy.text.times import SECOND

_BEFORE, _AFTER = 1 * SECOND, 5 * SECOND  # an agent's times are those of its writing, and rounded
_FOREVER = 2**63 - 1

Span = tuple[int, int]


class Relayed:
    """Asked for one call at a time."""

    def __init__(self, spans: dict[str, list[Span]]) -> None:
        self._spans = spans
        self._parents: dict[str, str] = {}

    def note_parent(self, session: str, parent: str) -> None:
        """A subagent's calls are metered with its parent's turn; a fork has copies of its parent's calls."""
        self._parents[session] = parent

    def covers(self, session: str, at: int) -> bool:
        """Whether a turn of this session, or of one that it came from, ran then."""
        seen = set[str]()
        while session not in seen:
            if any(start <= at <= end for start, end in self._spans.get(booked(session), ())):
                return True
            seen.add(session)
            session = self._parents.get(session, session)
        return False


def relayed(ledger: LedgerReader, journals: Sequence[Path], organisation: str, user: str) -> Relayed:
    """By the user's rows, and by what relays that run have in their journals. Raises LedgerError."""
    by_session: dict[str, list[TurnTimes]] = {}
    for times in ledger.turn_times(organisation, user, without_client=IMPORT):
        by_session.setdefault(times.session, []).append(times)
    spans = {session: list(_spans(rows)) for session, rows in by_session.items()}
    for row, is_open in _in_journals(journals, ledger.url):
        end = _FOREVER if is_open else row.entry.ended_at + _AFTER
        spans.setdefault(booked(row.entry.session), []).append((row.entry.started_at - _BEFORE, end))
    return Relayed(spans)


def _spans(rows: Iterable[TurnTimes]) -> Iterator[Span]:
    """A row that is no turn has what was used since the row before it."""
    before: int | None = None
    for row in sorted(rows, key=lambda each: (each.ended_at, each.started_at)):
        start = row.started_at if before is None or row.kind == "turn" else before
        yield start - _BEFORE, row.ended_at + _AFTER
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

"""What rows make of their sessions: a session stands as after its row that ended last.

Many calls of one session are imported together: these become one statement, which says what they would say one after
the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from acp_proxy.core.entry import Entry, SessionState
from acp_proxy.core.session_ids import booked
from acp_proxy.ledger import Row
from acp_proxy.ledger.columns import OF_SESSION, key_values
from acp_proxy.ledger.statements import Run, Statement

# What a row does not know of its session does not replace what an earlier one knew.
_UPSERT = f"""
INSERT INTO session VALUES ({", ".join("?" * 22)})
ON CONFLICT (org_id, user_id, host, agent, session) DO UPDATE SET
    team = excluded.team,
    project = excluded.project,
    agent_version = excluded.agent_version,
    client = excluded.client,
    title = CASE WHEN excluded.title IS NULL OR excluded.titled_at < session.titled_at
        THEN session.title ELSE excluded.title END,
    title_folded = CASE WHEN excluded.title IS NULL OR excluded.titled_at < session.titled_at
        THEN session.title_folded ELSE excluded.title_folded END,
    titled_at = CASE WHEN excluded.title IS NULL OR excluded.titled_at < session.titled_at
        THEN session.titled_at ELSE excluded.titled_at END,
    model = coalesce(excluded.model, session.model),
    context_estimated = CASE WHEN excluded.context_used IS NULL
        THEN session.context_estimated ELSE excluded.context_estimated END,
    context_used = coalesce(excluded.context_used, session.context_used),
    context_size = coalesce(excluded.context_size, session.context_size),
    agent_cost_nano = coalesce(excluded.agent_cost_nano, session.agent_cost_nano),
    agent_cost_currency = coalesce(excluded.agent_cost_currency, session.agent_cost_currency),
    counters = coalesce(excluded.counters, session.counters),
    started_at = CASE WHEN excluded.started_at < session.started_at
        THEN excluded.started_at ELSE session.started_at END,
    ended_at = CASE WHEN excluded.ended_at < session.ended_at THEN session.ended_at ELSE excluded.ended_at END,
    later_rows = session.later_rows + 1 + excluded.later_rows
{{condition}}
RETURNING later_rows
"""
_IN_ORDER = _UPSERT.format(condition="")
# A row may come late, from a journal: then only the session's beginning is news.
_BY_TIME = _UPSERT.format(condition="WHERE excluded.ended_at >= session.ended_at")
_TOGETHER = _UPSERT.format(condition="WHERE excluded.started_at >= session.ended_at")  # none of them comes late
_BEGIN = f"UPDATE session SET started_at = ? WHERE {OF_SESSION} AND started_at > ?"


class Chapter(Struct, frozen=True):
    """Rows of one session that are written together."""

    rows: Sequence[Row]
    together: Statement
    alone: str  # the SQL of a single row

    def one_by_one(self) -> list[Statement]:
        return [(self.alone, _values(row)) for row in self.rows]


def chapters(rows: Iterable[Row], *, in_order: bool) -> list[Chapter]:
    """`in_order` as in `Ledger.append`."""
    alone = _IN_ORDER if in_order else _BY_TIME
    moments: dict[tuple[str, ...], list[Row]] = {}
    found: list[Chapter] = []
    for row in rows:
        if in_order or row.state is not None or row.entry.started_at != row.entry.ended_at:
            found.append(Chapter((row,), (alone, _values(row)), alone))
        else:
            moments.setdefault(key_values(row.origin, booked(row.entry.session)), []).append(row)
    for some in moments.values():
        some.sort(key=lambda row: row.entry.ended_at)
        together = (_TOGETHER, _values_together(some)) if len(some) > 1 else (alone, _values(some[0]))
        found.append(Chapter(some, together, alone))
    return found


def begin_sessions(run: Run, some: Iterable[Chapter], later_rows: Iterable[Sequence[tuple[Any, ...]]]) -> list[Row]:
    """Rows that are the first of their session, by what the statements of these chapters found."""
    first = []
    for chapter, found in zip(some, later_rows, strict=True):
        if not found:
            _come_late(run, chapter)
        elif found[0][0] == len(chapter.rows) - 1:
            first.append(chapter.rows[0])
    return first


def _come_late(run: Run, chapter: Chapter) -> None:
    """Of several not all need be late."""
    for row, (sql, values) in zip(chapter.rows, chapter.one_by_one(), strict=True):
        if len(chapter.rows) == 1 or not run(sql, values):
            started_at = row.entry.started_at
            run(_BEGIN, (started_at, *key_values(row.origin, booked(row.entry.session)), started_at))


def _values(row: Row) -> tuple[object, ...]:
    return _all_values(row, row.state or _state_after(row.entry), row.entry.started_at)


def _values_together(rows: Sequence[Row]) -> tuple[object, ...]:
    """Of rows in their order, none of which knows more of its session than its entry."""
    last = rows[-1]
    state = SessionState(
        context_used=_last_known(row.entry.context_used for row in reversed(rows)),
        context_size=_last_known(row.entry.context_size for row in reversed(rows)),
        model=_last_known(row.entry.model for row in reversed(rows)),
    )
    return _all_values(last, state, rows[0].entry.started_at, len(rows) - 1)


def _last_known(backwards: Iterator[Any]) -> Any:
    return next((each for each in backwards if each is not None), None)


def _all_values(row: Row, state: SessionState, started_at: int, later_rows: int = 0) -> tuple[object, ...]:
    origin, entry = row.origin, row.entry
    return (
        *key_values(origin, booked(entry.session)),
        origin.team,
        origin.project,
        origin.agent_version,
        origin.client,
        state.title,
        0 if state.title is None else entry.ended_at if state.titled_at is None else state.titled_at,
        state.model,
        state.context_used,
        state.context_size,
        int(state.context_estimated),
        *_agent_cost_values(state),
        msgspec.json.encode(state.counters).decode() if state.counters else None,
        started_at,
        entry.ended_at,
        None if state.title is None else state.title.casefold(),
        later_rows,
    )


def _agent_cost_values(state: SessionState) -> tuple[int | None, str | None]:
    """One that is still at 0 has no currency."""
    if state.agent_cost is not None:
        return state.agent_cost.nano, state.agent_cost.currency
    return (0, "") if state.from_zero else (None, None)


def _state_after(entry: Entry) -> SessionState:
    return SessionState(context_used=entry.context_used, context_size=entry.context_size, model=entry.model)

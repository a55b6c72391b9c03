"""Writing rows of a ledger in SQL: a turn with its lines, its session, what it adds to the totals, and its holds' end.

Everything runs within the caller's transaction. The SQL is what SQLite and PostgreSQL have in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from acp_proxy.core.entry import COST_TOLD, Entry, Origin, SessionState, UsageLine
from acp_proxy.core.money import NANO, Money, currency_code, summed
from acp_proxy.core.session_ids import booked
from acp_proxy.core.usage import Counters, Usage
from acp_proxy.ledger import Row
from acp_proxy.ledger.columns import OF_SESSION, key_values
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.reading.rows import money
from acp_proxy.ledger.statements import Run, Statement, insertions
from acp_proxy.system.decoding import json_decoder

# What a row does not know of its session does not replace what an earlier one knew.
_UPSERT_SESSION = f"""
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
    later_rows = session.later_rows + 1
{{condition}}
RETURNING later_rows
"""
_IN_ORDER = _UPSERT_SESSION.format(condition="")
# A row may come late, from a journal: then only the session's beginning is news.
_BY_TIME = _UPSERT_SESSION.format(condition="WHERE excluded.ended_at >= session.ended_at")
_BEGIN_SESSION = f"UPDATE session SET started_at = ? WHERE {OF_SESSION} AND started_at > ?"
NOTE_TITLE = f"UPDATE session SET title = ?, title_folded = ?, titled_at = ? WHERE {OF_SESSION} AND titled_at <= ?"
STATE = f"""
SELECT context_used, context_size, context_estimated, agent_cost_nano, agent_cost_currency, counters, model, title
FROM session WHERE {OF_SESSION}
"""
_UNLESS_THERE = " ON CONFLICT DO NOTHING RETURNING org_id, id"
_PRESUMED = "t.id > told.turn"
_COSTS = f"""
SELECT
    l.currency, sum(l.cost_nano / {NANO}), sum(l.cost_nano % {NANO}),
    sum(CASE WHEN {_PRESUMED} THEN l.cost_nano / {NANO} END), sum(CASE WHEN {_PRESUMED} THEN l.cost_nano % {NANO} END)
FROM (
    SELECT coalesce(max(id), '') AS turn FROM turn {{by_session}}
    WHERE {OF_SESSION} AND (cost_source IN ('agent', 'computed') OR replace(detail, '{COST_TOLD}', '') <> detail)
        AND EXISTS (SELECT 1 FROM line p WHERE p.org_id = turn.org_id AND p.turn = turn.id AND p.cost_nano IS NOT NULL)
) told
CROSS JOIN turn t {{by_session}} CROSS JOIN line l
WHERE t.org_id = ? AND t.user_id = ? AND t.host = ? AND t.agent = ? AND t.session = ?
    AND l.org_id = t.org_id AND l.turn = t.id AND l.cost_nano IS NOT NULL AND l.currency IS NOT NULL
GROUP BY l.currency ORDER BY min(t.id), min(l.position)
"""


class Prepared(Struct, frozen=True):
    """Rows as their tables take them: made before the transaction, for others wait while that goes on."""

    rows: Sequence[Row]
    turns: Sequence[Statement]
    lines: Sequence[Statement]
    sessions: Sequence[Statement]  # one a row

    @classmethod
    def of(cls, rows: Sequence[Row], *, in_order: bool) -> Prepared:
        """`in_order` as in `Ledger.append`."""
        turns = insertions("turn", [_turn_values(row) for row in rows], _UNLESS_THERE)
        # Where the turn is there its lines are, too: who learns of that only afterwards takes all back.
        lines = insertions("line", [values for row in rows for values in line_values(row)], " ON CONFLICT DO NOTHING")
        upsert = _IN_ORDER if in_order else _BY_TIME
        return cls(rows, turns, lines, [(upsert, _session_values(row)) for row in rows])

    @property
    def all_new(self) -> list[Statement]:
        """`turns`, which fail where one is there."""
        return [(sql.removesuffix(_UNLESS_THERE), values) for sql, values in self.turns]

    def new(self, turns: Iterable[tuple[object, ...]]) -> list[Row]:
        """Rows whose turn could be inserted; of several with one id the first."""
        inserted, rows = set(turns), list[Row]()
        for row in self.rows:
            key = (row.origin.organisation, row.entry.id)
            if key in inserted:
                inserted.remove(key)
                rows.append(row)
        return rows


def begin_sessions(run: Run, rows: Iterable[Row], later_rows: Iterable[Sequence[tuple[Any, ...]]]) -> list[Row]:
    """Those that are the first of their session, by what the statements of `Prepared.sessions` found."""
    first = []
    for row, found in zip(rows, later_rows, strict=True):
        if not found:  # it came late
            started_at = row.entry.started_at
            run(_BEGIN_SESSION, (started_at, *key_values(row.origin, booked(row.entry.session)), started_at))
        elif found[0][0] == 0:
            first.append(row)
    return first


def title_values(origin: Origin, session: str, title: str | None, at: int) -> tuple[object, ...]:
    return (title, None if title is None else title.casefold(), at, *key_values(origin, booked(session)), at)


def _turn_values(row: Row) -> tuple[object, ...]:
    origin, entry = row.origin, row.entry
    return (
        origin.organisation,
        entry.id,
        origin.user,
        origin.host,
        origin.agent,
        booked(entry.session),
        entry.kind,
        entry.started_at,
        entry.ended_at,
        entry.stop_reason,
        origin.team,
        origin.project,
        origin.agent_version,
        origin.client,
        entry.usage_source,
        entry.cost_source,
        int(entry.unpriced),
        entry.detail,
        entry.message_id,
        entry.context_used,
        entry.context_size,
        row.process,
        origin.billing,
    )


def line_values(row: Row) -> Iterator[tuple[object, ...]]:
    for position, line in enumerate(row.entry.lines or (UsageLine(None, Usage()),)):
        usage, cost = line.usage, line.cost
        yield (
            row.origin.organisation,
            row.entry.id,
            position,
            line.model,
            usage.input,
            usage.cached_read,
            usage.cached_write,
            usage.output,
            usage.thought,
            cost.nano if cost else None,
            cost.currency if cost else None,
            line.price_row,
        )


def _session_values(row: Row) -> tuple[object, ...]:
    origin, entry = row.origin, row.entry
    state = row.state or _state_after(entry)
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
        entry.started_at,
        entry.ended_at,
        None if state.title is None else state.title.casefold(),
        0,
    )


def _agent_cost_values(state: SessionState) -> tuple[int | None, str | None]:
    """One that is still at 0 has no currency."""
    if state.agent_cost is not None:
        return state.agent_cost.nano, state.agent_cost.currency
    return (0, "") if state.from_zero else (None, None)


def _state_after(entry: Entry) -> SessionState:
    return SessionState(context_used=entry.context_used, context_size=entry.context_size, model=entry.model)


def costs_of(dialect: Dialect, key: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The cost of a session: a query, and its values.

    By currency: the units and nano-units of all turns; and those of turns whose cost is an estimate or what they held,
    if no later one has the agent's own cost, or a price in its place.
    """
    return _COSTS.format(by_session=dialect.by_session), (*key, *key)


def state_of(found: tuple[Any, ...], costs: list[tuple[Any, ...]]) -> SessionState:
    """From what `STATE` and `costs_of` found."""
    used, size, estimated, nano, currency, counters, model, title = found
    return SessionState(
        context_used=used,
        context_size=size,
        context_estimated=bool(estimated),
        costs=_amounts([(currency, units, nano) for currency, units, nano, _, _ in costs]),
        presumed=_amounts([(currency, units, nano) for currency, _, _, units, nano in costs if units is not None]),
        agent_cost=money(nano, currency_code(currency)) if currency else None,
        counters=_counters(counters),
        model=model,
        title=title,
        from_zero=currency == "",
    )


def _amounts(sums: Iterable[tuple[str, int, int]]) -> tuple[Money, ...]:
    """One per currency, whatever its spelling: rows of earlier versions have that of the agent."""
    return summed(Money(int(units) * NANO + int(nano), currency_code(currency)) for currency, units, nano in sums)


def _counters(text: str | None) -> Counters | None:
    """None also for what cannot be decoded: then it is not known where they stood."""
    try:
        return None if text is None else json_decoder(Counters).decode(text)
    except msgspec.MsgspecError:
        return None

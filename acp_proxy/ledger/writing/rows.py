"""Writing rows of a ledger in SQL: a turn with its lines, its session, what it adds to the totals, and its holds' end.

Everything runs within the caller's transaction. The SQL is what SQLite and PostgreSQL have in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from acp_proxy.core.entry import COST_TOLD, Origin, SessionState, UsageLine
from acp_proxy.core.money import NANO, Money, currency_code, summed
from acp_proxy.core.session_ids import booked
from acp_proxy.core.usage import Counters, Usage
from acp_proxy.ledger import Row
from acp_proxy.ledger.columns import OF_SESSION, key_values
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.reading.rows import money
from acp_proxy.ledger.statements import Statement, insertions
from acp_proxy.ledger.writing.sessions import Chapter, chapters
from acp_proxy.system.decoding import json_decoder

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
    sessions: Sequence[Chapter]

    @classmethod
    def of(cls, rows: Sequence[Row], *, in_order: bool) -> Prepared:
        """`in_order` as in `Ledger.append`."""
        by_key = sorted(rows, key=lambda row: (row.origin.organisation, row.entry.id))  # near each other in the tables
        turns = insertions("turn", [_turn_values(row) for row in by_key], _UNLESS_THERE)
        # Where the turn is there its lines are, too: who learns of that only afterwards takes all back.
        lines = insertions("line", [values for row in by_key for values in line_values(row)], " ON CONFLICT DO NOTHING")
        return cls(rows, turns, lines, chapters(rows, in_order=in_order))

    @property
    def all_new(self) -> list[Statement]:
        """`turns`, which fail where one is there."""
        return [(sql.removesuffix(_UNLESS_THERE), values) for sql, values in self.turns]

    def new(self, turns: Iterable[tuple[object, ...]]) -> list[Row]:
        """Rows whose turn could be inserted; of several with one id the first."""
        inserted = set(turns)
        rows: list[Row] = []
        for row in self.rows:
            key = (row.origin.organisation, row.entry.id)
            if key in inserted:
                inserted.remove(key)
                rows.append(row)
        return rows


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

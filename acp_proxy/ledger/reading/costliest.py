"""The rows that cost most, found in SQL, so that no others are read. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import nsmallest

from acp_proxy.ledger import Query, Row
from acp_proxy.ledger.columns import organisations, where_of
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.reading.by_session import inside, parts_of_sessions, turns_of_sessions
from acp_proxy.ledger.reading.rows import CHUNK, read_by_ids
from acp_proxy.ledger.statements import Read

_TOKENS = "sum(l.input) + sum(l.cached_read) + sum(l.cached_write) + sum(l.output) + sum(l.thought)"
# PostgreSQL knows how many rows are between two times, but not between two pairs: it would read all lines each time.
_BETWEEN = "AND t.started_at >= ? AND t.started_at <= ?"

_Place = tuple[tuple[tuple[bool, int], ...], str, str]  # by cost and tokens, the most first; then its id; whose it is
_Span = tuple[int, str, int, str]  # after such a start and id, up to such ones


def read_costliest(read: Read, query: Query, currencies: Sequence[str], most: int, dialect: Dialect) -> list[Row]:
    """As `LedgerReader.costliest` says."""
    everywhere = organisations(read, query)
    found = (place for each in everywhere for place in _places(read, each, query, currencies, most, dialect))
    places = nsmallest(most, found)
    rows = dict[tuple[str, str], Row]()
    for organisation in everywhere:
        ids = [turn for _, turn, whose in places if whose == organisation]
        rows |= {(organisation, row.entry.id): row for row in read_by_ids(read, organisation, ids, query)}
    # All but what somebody has taken away meanwhile.
    return [rows[whose, turn] for _, turn, whose in places if (whose, turn) in rows]


def _places(
    read: Read, organisation: str, query: Query, currencies: Sequence[str], most: int, dialect: Dialect
) -> Iterator[_Place]:
    """Of each so many rows those that cost most."""
    conditions, values = where_of(inside(query, organisation), dialect)
    if any(dimension == "title" for dimension, _ in query.where):  # most sessions have another one
        turns, some = turns_of_sessions(query, dialect)
        parts = ((*among, organisation) for among, _ in parts_of_sessions(read, organisation, query, dialect))
    else:
        turns, some = "turn t", f"AND (t.started_at, t.id) > (?, ?) AND (t.started_at, t.id) <= (?, ?) {_BETWEEN}"
        spans = _spans(read, organisation, query, dialect)
        parts = ((organisation, *span, span[0], span[2]) for span in spans)
    amounts = [*("sum(CASE WHEN l.currency = ? THEN l.cost_nano END)" for _ in currencies), _TOKENS]
    sql = f"""
        SELECT t.id, {", ".join(amounts)} FROM {turns} CROSS JOIN line l
        WHERE t.org_id = ? {some} {conditions} AND l.org_id = t.org_id AND l.turn = t.id
        GROUP BY t.started_at, t.id
        ORDER BY {", ".join(f"{number} DESC NULLS LAST" for number, _ in enumerate(amounts, 2))}, t.id LIMIT ?
    """
    for part in parts:
        for turn, *sums in read(sql, (*currencies, *part, *values, most)):
            yield tuple((amount is None, -(amount or 0)) for amount in sums), turn, organisation


def _spans(read: Read, organisation: str, query: Query, dialect: Dialect) -> Iterator[_Span]:
    """One after the other, in which all rows are that began when the query says."""
    times, values = where_of(Query(query.since, query.until), dialect)
    sql = f"""
        SELECT t.started_at, t.id FROM turn t WHERE t.org_id = ? AND (t.started_at, t.id) > (?, ?) {times}
        ORDER BY t.started_at, t.id LIMIT 1 OFFSET {CHUNK - 1}
    """
    start = (-(2**63) if query.since is None else query.since, "")
    while found := read(sql, (organisation, *start, *values)):
        end = (found[0][0], found[0][1])
        yield (*start, *end)
        start = end
    yield (*start, 2**63 - 1, "")

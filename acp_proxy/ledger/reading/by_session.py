"""Sessions, and what the rows of each add up to, however many there are: some at a time, in the order of keys.

Writes nothing. A session's rows are found by their index; one of which no row can match is passed over before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import nsmallest
from typing import Any, cast

from msgspec.structs import replace

from acp_proxy.core.money import NANO
from acp_proxy.core.windows import DAY
from acp_proxy.ledger import Query, SessionInfo, Sums
from acp_proxy.ledger.columns import (
    LINES,
    OF_SESSIONS,
    SESSION,
    SESSION_KEY,
    organisations,
    session_info,
    title_of,
    where_of,
)
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.session_keys import key_of
from acp_proxy.ledger.statements import Read
from acp_proxy.ledger.sums.reading import read_sums_of_turns

_AT_ONCE = 500
_KEY = "user_id, host, agent, session"
_BY = ("user", "host", "agent", "session")
_BETWEEN = f"AND ({_KEY}) > (?, ?, ?, ?) AND ({_KEY}) <= (?, ?, ?, ?)"
_COUNTS = ("sum(l.input)", "sum(l.cached_read)", "sum(l.cached_write)", "sum(l.output)", "sum(l.thought)")

_Key = tuple[str, str, str, str]
_Place = tuple[tuple[tuple[bool, int], ...], str, str, _Key]  # by cost and tokens, the most first; whose it is


def read_sessions(read: Read, query: Query, dialect: Dialect) -> Iterator[SessionInfo]:
    """Those with at least one matching row, by their start."""
    conditions, values = where_of(query, dialect)
    keys = ", ".join(f"t.{column}" for column in SESSION_KEY.split(", "))
    sql = f"""
        SELECT {SESSION} FROM session WHERE ({SESSION_KEY}) IN (
            SELECT {keys} FROM turn t {LINES if "l." in conditions else ""} WHERE t.org_id = ? {conditions}
        )
    """
    found = [row for organisation in organisations(read, query) for row in read(sql, (organisation, *values))]
    return iter(sorted(map(session_info, found), key=lambda session: (session.started_at, session.session)))


def read_session_sums(read: Read, query: Query, dialect: Dialect) -> Iterator[tuple[SessionInfo, Sums]]:
    """As `LedgerReader.session_sums` says."""
    for organisation in organisations(read, query):
        wanted = inside(query, organisation)
        turns = turns_of_sessions(query, dialect)
        for among, found in parts_of_sessions(read, organisation, query, dialect):
            sessions: dict[tuple[object, ...], SessionInfo] = {_key(one): one for one in found}
            for sums in read_sums_of_turns(read, wanted, _BY, dialect, turns, among):
                if session := sessions.get(sums.key):  # else it is newer than what was read before
                    yield session, replace(sums, key=())


def read_costliest_sessions(
    read: Read, query: Query, currencies: Sequence[str], most: int, dialect: Dialect
) -> tuple[list[tuple[SessionInfo, Sums]], int]:
    """As `LedgerReader.costliest_sessions` says. Of all sessions only what decides is added up."""
    everywhere = organisations(read, query)
    count = 0

    def places() -> Iterator[_Place]:
        nonlocal count
        for organisation in everywhere:
            for place in _places(read, inside(query, organisation), organisation, query, currencies, dialect):
                count += 1
                yield place

    best = nsmallest(most, places())
    found = dict[tuple[str, _Key], tuple[SessionInfo, Sums]]()
    for organisation in everywhere:
        keys = [key for _, _, whose, key in best if whose == organisation]
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            among = (organisation, *(part for key in some for part in key))
            these = f" AND ({_KEY}) IN (VALUES {', '.join(['(?, ?, ?, ?)'] * len(some))})"
            sessions = map(session_info, read(f"SELECT {SESSION} FROM session s WHERE org_id = ? {these}", among))
            infos = {_key(one): one for one in sessions}
            turns = _turns_of(these, dialect)
            for sums in read_sums_of_turns(read, inside(query, organisation), _BY, dialect, turns, among):
                key = cast("_Key", sums.key)
                found[organisation, key] = infos[key], replace(sums, key=())
    # All but what somebody has given another user meanwhile.
    return [found[whose, key] for _, _, whose, key in best if (whose, key) in found], count


def _places(
    read: Read, wanted: Query, organisation: str, query: Query, currencies: Sequence[str], dialect: Dialect
) -> Iterator[_Place]:
    """Of each session that has such rows."""
    such, such_values = where_of(wanted, dialect)
    turns, theirs = turns_of_sessions(query, dialect)
    of_currency = "CASE WHEN l.currency = ? THEN l.cost_nano {} END"
    amounts = [f"sum({of_currency.format(part)})" for _ in currencies for part in (f"/ {NANO}", f"% {NANO}")]
    sql = f"""
        SELECT t.user_id, t.host, t.agent, t.session, {", ".join([*amounts, *_COUNTS])}
        FROM {turns} CROSS JOIN line l
        WHERE t.org_id = ? {theirs} {such} AND l.org_id = t.org_id AND l.turn = t.id
        GROUP BY t.user_id, t.host, t.agent, t.session
    """
    asked = [currency for currency in currencies for _ in range(2)]
    for among, _ in parts_of_sessions(read, organisation, query, dialect):
        for each in read(sql, (*asked, *among, organisation, *such_values)):
            key, sums, tokens = each[:4], each[4 : 4 + len(asked)], sum(each[4 + len(asked) :])
            costs = (
                None if units is None else units * NANO + nano for units, nano in zip(*[iter(sums)] * 2, strict=True)
            )
            amount = tuple((cost is None, -(cost or 0)) for cost in (*costs, tokens))
            yield amount, key_of(organisation, *key), organisation, key


def parts_of_sessions(
    read: Read, organisation: str, query: Query, dialect: Dialect
) -> Iterator[tuple[tuple[Any, ...], list[SessionInfo]]]:
    """All sessions that may have such rows, some at a time: the values of `turns_of_sessions`, and what is known."""
    conditions, values = _conditions(query, dialect)
    sql = f"""
        SELECT {SESSION} FROM session s WHERE org_id = ? AND ({_KEY}) > (?, ?, ?, ?) {conditions}
        ORDER BY {_KEY} LIMIT {_AT_ONCE}
    """
    last: _Key = ("", "", "", "")
    while found := [session_info(each) for each in read(sql, (organisation, *last, *values))]:
        before, last = last, _key(found[-1])
        yield (organisation, *before, *last, *values), found


def turns_of_sessions(query: Query, dialect: Dialect) -> tuple[str, str]:
    """SQL for the turns, called t, of some of these sessions, and for a further condition."""
    return _turns_of(_BETWEEN + _conditions(query, dialect)[0], dialect)


def _turns_of(sessions: str, dialect: Dialect) -> tuple[str, str]:
    """SQL for the turns of such sessions of an organisation, and for a further condition."""
    chosen = f"(SELECT {_KEY} FROM session s WHERE org_id = ? {sessions}) s"
    return f"{chosen} CROSS JOIN turn t {dialect.by_session}", OF_SESSIONS


def inside(query: Query, organisation: str) -> Query:
    """What a row of such a session must be, beside its title."""
    where = ((name, value) for name, value in query.where if name not in ("title", "organisation"))
    return Query(query.since, query.until, (*where, ("organisation", organisation)))


def _conditions(query: Query, dialect: Dialect) -> tuple[str, list[Any]]:
    """On sessions that may have such rows."""
    sql, values = "", list[Any]()
    if query.since is not None:
        sql += " AND s.ended_at >= ?"
        # No clock is set back further in a turn, which then ends before it began.
        values.append(max(query.since - DAY, -(2**63)))
    if query.until is not None:
        sql += " AND s.started_at < ?"
        values.append(query.until)
    title, titles = title_of(query, dialect)
    return sql + title, [*values, *titles]


def _key(session: SessionInfo) -> _Key:
    return session.origin.user, session.origin.host, session.origin.agent, session.session

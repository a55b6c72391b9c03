"""Sessions, and what the rows of each add up to, however many there are: some at a time, in the order of keys.

Writes nothing. A session's rows are found by their index; one of which no row can match is passed over before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from acp_proxy.core.windows import DAY
from acp_proxy.ledger import Query, SessionInfo, Sums
from acp_proxy.ledger.columns import LINES, SESSION, SESSION_KEY, organisations, session_info, where_of
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.statements import Read
from acp_proxy.ledger.sums.reading import read_sums_of_turns

_AT_ONCE = 500
_KEY = "user_id, host, agent, session"
_BY = ("user", "host", "agent", "session")
# An expression, lest SQLite look for users between the first and the last one, and not for a session.
_THEIRS = "AND t.user_id = s.user_id || '' AND t.host = s.host AND t.agent = s.agent AND t.session = s.session"


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
    conditions, values = _conditions(query, dialect)
    some = f"""
        SELECT {SESSION} FROM session s WHERE org_id = ? AND ({_KEY}) > (?, ?, ?, ?) {conditions}
        ORDER BY {_KEY} LIMIT {_AT_ONCE}
    """
    turns = f"""
        (
            SELECT {_KEY} FROM session s
            WHERE org_id = ? AND ({_KEY}) > (?, ?, ?, ?) AND ({_KEY}) <= (?, ?, ?, ?) {conditions}
        ) s
        CROSS JOIN turn t {dialect.by_session}
    """
    for organisation in organisations(read, query):
        inside = (*((name, value) for name, value in query.where if name not in ("title", "organisation")),)
        wanted = Query(query.since, query.until, (*inside, ("organisation", organisation)))
        last = ("", "", "", "")
        while found := read(some, (organisation, *last, *values)):
            sessions: dict[tuple[object, ...], SessionInfo] = {_key(one): one for one in map(session_info, found)}
            before, last = last, _key(session_info(found[-1]))
            among = (organisation, *before, *last, *values)
            for sums in read_sums_of_turns(read, wanted, _BY, dialect, (turns, _THEIRS), among):
                if session := sessions.get(sums.key):  # else it is newer than what was read before
                    yield session, replace(sums, key=())


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
    for dimension, value in query.where:
        if dimension == "title":
            sql += " AND s.title IS NULL" if value is None else f" AND {dialect.in_title}"
            values += [] if value is None else [value.casefold()]
    return sql, values


def _key(session: SessionInfo) -> tuple[str, str, str, str]:
    return session.origin.user, session.origin.host, session.origin.agent, session.session

"""Queries in SQL: dimensions as columns, conditions, and the keys of sessions.

Each organisation is read separately, because it leads every index. The SQL works on both SQLite and PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from acp_proxy.core.entry import Origin
from acp_proxy.ledger import Query, SessionInfo
from acp_proxy.ledger.dialects import Dialect, same
from acp_proxy.ledger.statements import Read

COLUMNS = {
    "organisation": "t.org_id",
    "user": "t.user_id",
    "team": "t.team",
    "project": "t.project",
    "host": "t.host",
    "agent": "t.agent",
    "agent_version": "t.agent_version",
    "client": "t.client",
    "billing": "t.billing",
    "session": "t.session",
    "kind": "t.kind",
    "usage_source": "t.usage_source",
    "cost_source": "t.cost_source",
    "model": "l.model",
    "currency": "l.currency",
}
# Whether not all tokens of a turn are known, and whether not all of its cost is; for the name that a turn has in SQL.
SEEN = "seen"
USAGE_UNTOLD = "{0}.usage_source IN ('partial', 'none')"
COST_UNTOLD = f"{USAGE_UNTOLD} AND {{0}}.cost_source NOT IN ('agent', 'parent')"
SESSION_KEY = "org_id, user_id, host, agent, session"
OF_SESSION = " AND ".join(f"{column} = ?" for column in SESSION_KEY.split(", "))
_ITS_SESSION = " AND ".join(f"s.{column} = t.{column}" for column in SESSION_KEY.split(", "))
# An expression, so that SQLite looks for the session and not for users between the first and the last one.
OF_SESSIONS = "AND t.user_id = s.user_id || '' AND t.host = s.host AND t.agent = s.agent AND t.session = s.session"
SESSION = """
org_id, user_id, team, project, host, agent, agent_version, client,
    session, title, started_at, ended_at, context_used, context_size
"""
LINES = "JOIN line l ON l.org_id = t.org_id AND l.turn = t.id"
LINE_TOKENS = "l.input + l.cached_read + l.cached_write + l.output + l.thought"
# Whether a line has tokens whose price is unknown; those of a "parent" are in what another row costs.
UNPRICED_LINE = f"l.cost_nano IS NULL AND t.cost_source <> 'parent' AND {LINE_TOKENS} > 0"

# A line of a model that another line of its turn has already, for a cost in another currency. Few turns have any.
REPEATED = """
(l.position > 0 AND EXISTS (
    SELECT 1 FROM line e WHERE e.org_id = l.org_id AND e.turn = l.turn AND e.position < l.position
        AND (e.model = l.model OR (e.model IS NULL AND l.model IS NULL))
))
"""


def key_values(origin: Origin, session: str) -> tuple[str, str, str, str, str]:
    """The values of the columns `SESSION_KEY`, in the order of `OF_SESSION`."""
    return origin.organisation, origin.user, origin.host, origin.agent, session


def session_info(found: tuple[Any, ...]) -> SessionInfo:
    """From the columns `SESSION`."""
    return SessionInfo(Origin(*found[:8]), *found[8:])


def organisations(read: Read, query: Query) -> list[str]:
    """The organisations to read: the requested one, else all; each is one step in an index."""
    wanted = {value for dimension, value in query.where if dimension == "organisation"}
    if wanted:
        return [value for value in wanted if value is not None and len(wanted) == 1]
    found: list[str] = []
    next_after = "SELECT org_id FROM turn WHERE org_id > ? ORDER BY org_id LIMIT 1"
    first = read("SELECT org_id FROM turn ORDER BY org_id LIMIT 1", ())
    while first:
        found.append(first[0][0])
        first = read(next_after, (found[-1],))
    return found


def where_of(query: Query, dialect: Dialect, *, model: bool = True, of_some: bool = False) -> tuple[str, list[Any]]:
    """SQL that follows a WHERE, and its values. Raises ValueError for a dimension that there is not.

    With `of_some` it is one of many statements that each read some rows: it looks at their sessions, not at all.
    """
    sql, values = "", list[Any]()
    for bound, operator in ((query.since, ">="), (query.until, "<")):
        if bound is not None:
            sql += f" AND t.started_at {operator} ?"
            values.append(bound)
    for dimension, value in query.where:
        if dimension == "title":
            title = "s.title IS NULL" if value is None else dialect.in_title
            if of_some:
                sql += f" AND EXISTS (SELECT 1 FROM session s WHERE {_ITS_SESSION} AND {title})"
            else:
                sessions = f"SELECT {SESSION_KEY} FROM session s WHERE {title}"
                sql += f" AND (t.org_id, t.user_id, t.host, t.agent, t.session) IN ({sessions})"
            values += [] if value is None else [value.casefold()]
        elif dimension == SEEN:
            condition, seen_values = of_seen(value, COLUMNS)
            sql += f" AND {condition}"
            values += seen_values
        elif dimension not in COLUMNS:
            raise ValueError(f"no dimension of the ledger: {dimension!r}")
        elif model or dimension != "model":
            sql += f" AND {same(COLUMNS[dimension], value)}"
            values += [] if value is None else [value]
    return sql, values


def seen(user: str, teams: Sequence[str]) -> tuple[str, str]:
    """The condition of a `Query` that rows are of this user, or of one of these teams."""
    import orjson  # of a hub alone

    return SEEN, orjson.dumps([user, *teams]).decode()


def of_seen(value: str | None, columns: Mapping[str, str]) -> tuple[str, list[str]]:
    """The same as SQL, and its values. Raises ValueError for what `seen` has not written."""
    import orjson

    found = orjson.loads(value or "")
    if not (isinstance(found, list) and found and all(isinstance(each, str) for each in found)):
        raise ValueError("seen: expected a user and teams")
    teams = f" OR {columns['team']} IN ({', '.join('?' * (len(found) - 1))})" if len(found) > 1 else ""
    return f"({columns['user']} = ?{teams})", found


def title_of(query: Query, dialect: Dialect) -> tuple[str, list[Any]]:
    """The condition on the title of a session, called s: SQL that follows a WHERE, and its values."""
    titles = [value for dimension, value in query.where if dimension == "title"]
    sql = "".join(" AND s.title IS NULL" if title is None else f" AND {dialect.in_title}" for title in titles)
    return sql, [title.casefold() for title in titles if title is not None]

"""Reading what changes from moment to moment, for who looks every few seconds: the last sessions, running turns, and
in which days rows were added. Each is a few steps in an index, however old the ledger is. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from acp_proxy.core.entry import Origin
from acp_proxy.ledger import SessionInfo
from acp_proxy.ledger.budgets import OpenTurn
from acp_proxy.ledger.dialects import Dialect
from acp_proxy.ledger.holding import OPEN_TURNS, open_turn
from acp_proxy.ledger.reading import Read
from acp_proxy.ledger.totals import LEVELS
from acp_proxy.ledger.writing import session_key

DAY = 96  # quarter hours
FOUR_WEEKS = 28 * DAY

_ORDER = ("ended_at", "user_id", "host", "agent", "session")
_FIELDS = """
org_id, user_id, team, project, host, agent, agent_version, client,
    session, title, started_at, ended_at, context_used, context_size
"""


class Recent:
    """Of a ledger that is open; in its thread, and raising what it raises."""

    def __init__(self, read: Read, dialect: Dialect) -> None:
        self._read = read
        self._dialect = dialect

    def sessions(
        self, organisation: str, most: int, before: SessionInfo | None = None, title: str | None = None
    ) -> list[SessionInfo]:
        """The last ones by the end of their last row, or those that come `before` one; `title` as in `Query`."""
        conditions, values = "", list[Any]()
        if before is not None:
            conditions += f" AND ({', '.join(_ORDER)}) < ({', '.join('?' * len(_ORDER))})"
            origin = before.origin
            values += [before.ended_at, origin.user, origin.host, origin.agent, before.session]
        if title is not None:
            conditions += f" AND {self._dialect.in_title}"
            values.append(title.casefold())
        order = ", ".join(f"{column} DESC" for column in _ORDER)
        sql = f"SELECT {_FIELDS} FROM session s WHERE org_id = ? {conditions} ORDER BY {order} LIMIT ?"
        return [_session(found) for found in self._read(sql, (organisation, *values, most))]

    def session(self, origin: Origin, session: str) -> SessionInfo | None:
        key = "org_id = ? AND user_id = ? AND host = ? AND agent = ? AND session = ?"
        found = self._read(f"SELECT {_FIELDS} FROM session WHERE {key}", session_key(origin, session))
        return _session(found[0]) if found else None

    def open_turns(self, organisation: str, at: int) -> list[OpenTurn]:
        """Those that a budget holds for at a time (Unix ns), the oldest first."""
        sql = f"{OPEN_TURNS} WHERE org_id = ? AND expires_at > ? ORDER BY started_at, turn"
        return [open_turn(found)[0] for found in self._read(sql, (organisation, at))]

    def rows_by_four_weeks(self, organisation: str) -> Mapping[int, int]:
        """How many rows began in each four weeks since 1970."""
        sql = "SELECT bucket, sum(row_count) FROM total WHERE org_id = ? AND level = ? GROUP BY bucket"
        return _counts(self._read(sql, (organisation, LEVELS.index(FOUR_WEEKS))))

    def rows_by_day(self, organisation: str, four_weeks: int) -> Mapping[int, int]:
        """The same for the days (UTC) since 1970 that are in such four weeks."""
        sql = """
            SELECT t.bucket, sum(t.row_count) FROM series s CROSS JOIN total t
            WHERE s.org_id = ? AND t.org_id = s.org_id AND t.level = ? AND t.series = s.id
                AND t.bucket >= ? AND t.bucket < ?
            GROUP BY t.bucket
        """
        first = four_weeks * FOUR_WEEKS // DAY
        return _counts(self._read(sql, (organisation, LEVELS.index(DAY), first, first + FOUR_WEEKS // DAY)))


def _session(found: tuple[Any, ...]) -> SessionInfo:
    return SessionInfo(Origin(*found[:8]), *found[8:])


def _counts(found: list[tuple[Any, ...]]) -> Mapping[int, int]:
    return {bucket: int(rows) for bucket, rows in found}

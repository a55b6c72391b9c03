"""Reading what changes from moment to moment, for who looks every few seconds: the last sessions, running turns, and
in which days rows were added. Each is a few steps in an index, however old the ledger is. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from acp_proxy.core.entry import Origin
from acp_proxy.ledger import Context, OpenTurn, Query, Row, SessionInfo
from acp_proxy.ledger.columns import (
    LINES,
    OF_SESSION,
    SEEN,
    SESSION,
    SESSION_KEY,
    key_values,
    of_seen,
    organisations,
    session_info,
)
from acp_proxy.ledger.dialects import Dialect, same
from acp_proxy.ledger.open_turns import open_turn, open_turns
from acp_proxy.ledger.reading.rows import read_contexts, read_last_rows, read_last_turn, read_some
from acp_proxy.ledger.session_keys import beginning_with
from acp_proxy.ledger.statements import Read
from acp_proxy.ledger.sums.buckets import A_DAY, DAY_LEVEL, EVER, FOUR_WEEKS, LEVELS, QUARTER_HOUR, WHOLE

_LOOKED_AT = 20  # sessions at a time

_ANY = Query()
_OF_SESSION = {"agent": "s.agent", "user": "s.user_id", "team": "s.team", "project": "s.project"}
_ORDER = ("ended_at", "user_id", "host", "agent", "session")
_ONE = f"SELECT {SESSION} FROM session WHERE {OF_SESSION}"
# Of any row, whatever its session.
_LAST_END = f"""
SELECT max(t.last_at) FROM series s CROSS JOIN total t
WHERE s.org_id = ? AND s.user_id = ? AND t.org_id = s.org_id AND t.level = {WHOLE} AND t.series = s.id
"""


class Recent:
    """Of a ledger that is open; in its thread, and raising what it raises."""

    def __init__(self, read: Read, dialect: Dialect) -> None:
        self._read = read
        self._dialect = dialect

    def sessions(
        self,
        organisation: str,
        most: int,
        before: SessionInfo | None = None,
        find: str | None = None,
        ended: tuple[int | None, int | None] = (None, None),
        query: Query = _ANY,
    ) -> list[SessionInfo]:
        """The last ones by the end of their last row, or those that come `before` one. `ended` is from when to when.

        `find` is a part of their title, user or project, in any case; of users and projects only ASCII has cases.
        With a `query` they are those that may have such rows: that began before its end and ended after its start, of
        its agent, user, team and project as the session has them now, and with a row of its model.
        """
        conditions, values = "", list[Any]()
        if before is not None:
            conditions += f" AND ({', '.join(_ORDER)}) < ({', '.join('?' * len(_ORDER))})"
            origin = before.origin
            values += [before.ended_at, origin.user, origin.host, origin.agent, before.session]
        for bound, operator in zip(ended, (">=", "<="), strict=True):
            if bound is not None:
                conditions += f" AND ended_at {operator} ?"
                values.append(bound)
        if find is not None:
            folded, typed = ("s.title_folded", "lower(s.user_id)", "lower(s.project)"), ("s.user_id", "s.project")
            conditions += f" AND ({' OR '.join(map(self._dialect.holds.format, folded + typed))})"
            values += [find.casefold()] * len(folded) + [find] * len(typed)
        for condition, condition_values in self._conditions(query):
            conditions += f" AND {condition}"
            values += condition_values
        order = ", ".join(f"{column} DESC" for column in _ORDER)
        sql = f"SELECT {SESSION} FROM session s WHERE org_id = ? {conditions} ORDER BY {order} LIMIT ?"
        return [session_info(found) for found in self._read(sql, (organisation, *values, most))]

    def _conditions(self, query: Query) -> Iterator[tuple[str, list[Any]]]:
        """On a session, called s, that may have such rows: SQL and its values."""
        if query.since is not None:
            yield "s.ended_at >= ?", [query.since]
        if query.until is not None:
            yield "s.started_at < ?", [query.until]
        for dimension, value in query.where:
            if dimension == "model":
                of_session = " AND ".join(f"t.{column} = s.{column}" for column in SESSION_KEY.split(", "))
                turns = f"turn t {self._dialect.by_session} {LINES}"
                yield (
                    f"EXISTS (SELECT 1 FROM {turns} WHERE {of_session} AND {same('l.model', value)})",
                    [] if value is None else [value],
                )
            elif dimension == SEEN:
                yield of_seen(value, _OF_SESSION)
            elif dimension not in _OF_SESSION:
                raise ValueError(f"no dimension of a session: {dimension!r}")
            else:
                # An expression: an index that has a user's sessions in no order of time would have all of them sorted.
                yield same(f"{_OF_SESSION[dimension]} || ''", value), [] if value is None else [value]

    def session(self, origin: Origin, session: str) -> SessionInfo | None:
        found = self._read(_ONE, key_values(origin, session))
        return session_info(found[0]) if found else None

    def named(self, session: str) -> Iterator[SessionInfo]:
        """Those of an agent's id, of whomever: a step for each user, host and agent, unless each step is a journey."""
        if self._dialect.remote:
            sql = f"SELECT {SESSION} FROM session WHERE session = ? ORDER BY {SESSION_KEY}"
            yield from map(session_info, self._read(sql, (session,)))
            return
        for owner in self._owners():
            yield from map(session_info, self._read(_ONE, (*owner, session)))

    def keyed(self, beginning: str) -> Iterator[SessionInfo]:
        """Those whose key in reports begins so."""
        for organisation in organisations(self._read, Query()):
            for user, host, agent, session in self._read(*beginning_with(organisation, beginning)):
                origin = Origin(organisation, user, None, None, host, agent, None, None)
                if found := self.session(origin, session):
                    yield found

    def agents(self) -> list[tuple[str, str | None, int]]:
        """Each agent in the versions that its sessions had last, and when a row of these ended last (Unix ns)."""
        return self._read("SELECT agent, agent_version, max(ended_at) FROM session GROUP BY 1, 2", ())

    def _owners(self) -> Iterator[tuple[str, str, str, str]]:
        """Organisations, users, hosts and agents that have sessions, each found by a step in an index."""
        columns = "org_id, user_id, host, agent"
        following = f"SELECT {columns} FROM session WHERE ({columns}) > (?, ?, ?, ?) ORDER BY {columns} LIMIT 1"
        last = ("", "", "", "")
        while found := self._read(following, last):
            last = found[0]
            yield last

    def last_turn(self, organisation: str, user: str) -> Row | None:
        """The user's turn that began last. Of a team's sessions those that ended later, all of others, are not read."""
        if not self._read("SELECT 1 FROM session WHERE org_id = ? AND user_id = ? LIMIT 1", (organisation, user)):
            return None
        ended: tuple[int | None, int | None] = (None, self._read(_LAST_END, (organisation, user))[0][0])
        last: Row | None = None
        before: SessionInfo | None = None
        # The first one alone: who has few of a team's sessions would have all of them looked through for more.
        whose = Query(where=(("user", user),))
        while some := self.sessions(organisation, 1 if last is None else _LOOKED_AT, before, None, ended, whose):
            for session in some:
                turn = read_last_turn(self._read, session, self._dialect)
                if turn and (last is None or turn.entry.started_at > last.entry.started_at):
                    last = turn
            before = some[-1]
            if last is not None:  # one that ended before this began has none that began later
                ended = (last.entry.started_at, None)
        return last

    def rows(self, session: SessionInfo, most: int) -> list[Row]:
        """The last ones of a session, of whatever kind, in the order of time."""
        return read_last_rows(self._read, session, most, self._dialect)

    def some(self, organisation: str, ids: Sequence[str]) -> list[Row]:
        """The rows with these ids, by time."""
        return read_some(self._read, organisation, ids) if ids else []

    def contexts(self, session: SessionInfo) -> Iterator[Context]:
        """After each row of a session."""
        return read_contexts(self._read, session, self._dialect)

    def open_turns(self, organisation: str, at: int) -> list[OpenTurn]:
        """Those that a budget holds for at a time (Unix ns), the oldest first."""
        where = "org_id = ? AND expires_at > ? ORDER BY started_at, turn"
        return [open_turn(found)[0] for found in self._read(*open_turns(self._dialect, where, (organisation, at)))]

    def rows_by_four_weeks(self, organisation: str) -> Mapping[int, int]:
        """How many rows began in each four weeks since 1970, and how often one of these was corrected."""
        sql = "SELECT bucket, sum(row_count) FROM total WHERE org_id = ? AND level = ? GROUP BY bucket"
        found = self._read(sql, (organisation, LEVELS.index(FOUR_WEEKS)))
        return _counts([*found, *self._corrected(organisation, FOUR_WEEKS, 0, EVER // QUARTER_HOUR)])

    def rows_by_day(self, organisation: str, four_weeks: int) -> Mapping[int, int]:
        """The same for the days (UTC) since 1970 that are in such four weeks."""
        sql = """
            SELECT t.bucket, sum(t.row_count) FROM series s CROSS JOIN total t
            WHERE s.org_id = ? AND t.org_id = s.org_id AND t.level = ? AND t.series = s.id
                AND t.bucket >= ? AND t.bucket < ?
            GROUP BY t.bucket
        """
        first = four_weeks * FOUR_WEEKS // A_DAY
        days = first, first + FOUR_WEEKS // A_DAY
        found = self._read(sql, (organisation, DAY_LEVEL, *days))
        return _counts([*found, *self._corrected(organisation, A_DAY, *(day * A_DAY for day in days))])

    def _corrected(self, organisation: str, size: int, first: int, end: int) -> list[tuple[Any, ...]]:
        """Corrections of rows by when these began, in buckets of `size`, from the quarter hour `first` to `end`."""
        sql = f"""
            SELECT t.started_at / {size * QUARTER_HOUR}, count(*) FROM correction t
            WHERE t.org_id = ? AND t.started_at >= ? AND t.started_at < ? GROUP BY 1
        """
        return self._read(sql, (organisation, first * QUARTER_HOUR, end * QUARTER_HOUR))


def _counts(found: list[tuple[Any, ...]]) -> Mapping[int, int]:
    counts: dict[int, int] = {}
    for bucket, rows in found:
        counts[bucket] = counts.get(bucket, 0) + int(rows)
    return counts

"""The last sessions and what they cost, and one of them turn by turn."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Set
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from acp_proxy.core.entry import Origin, Work
from acp_proxy.ledger import Query, Row, SessionInfo
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.session_keys import KEY_LENGTH
from acp_proxy.report import Line, line_of, session_key, sums_of_all, turn_line
from acp_proxy.report.context import Point, context_of, points, thinned
from acp_proxy.report.formats import described, figures
from acp_proxy.serve.questions import BadQuestionError
from acp_proxy.serve.session_order import Wanted, ranked
from acp_proxy.system.decoding import json_decoder
from acp_proxy.text.times import SECOND, milliseconds

ACTIVE = 300 * SECOND  # after its last turn, if its agent still runs
MOST_TURNS = 1000  # that one session is shown with, the latest
MOST_POINTS = 500  # of the plot of a longer one's context, from its first row on

_MOST_KNOWN = 10_000
_MOST_RANKED = 100  # lists

_Time = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]  # as a ledger's column holds it
_decode_cursor = json_decoder(tuple[_Time, str, str, str, str]).decode  # end, user, host, agent, session


class States(Struct, frozen=True):
    """The keys of sessions in which a turn runs, and of those whose agent still does."""

    running: Set[str] = frozenset()
    attended: Set[str] = frozenset()


class RecentSessions:
    """The sessions of one organisation. Runs in the ledger's thread; raises what the ledger raises."""

    def __init__(self, ledger: BudgetLedger, organisation: str) -> None:
        self._ledger = ledger
        self._organisation = organisation
        self._known: dict[str, SessionInfo] = {}  # by key; those that were shown
        self._totals: dict[tuple[str, Query], Line | None] = {}  # by key, of such rows
        self._ranked: dict[Wanted, tuple[list[SessionInfo], bool]] = {}
        self._version = ""  # of the ledger when they were added up

    def page(self, wanted: Wanted, now: int, states: States, version: str) -> dict[str, Any]:
        """The figures are of rows in the range, as those of a report. `version` is another one when rows were added.

        Raises BadQuestionError.
        """
        if version != self._version or len(self._totals) >= _MOST_KNOWN:
            self._version, self._totals, self._ranked = version, {}, {}
        if wanted.sort == "last":
            shown, more = self._latest(wanted)
        elif wanted.before is not None:
            raise BadQuestionError("before: only for sessions that are sorted by last")
        else:
            shown, more = self._ranked.get(wanted) or self._rank(wanted)
        described = [self._described(session, wanted, now, states) for session in shown]
        return {
            "sessions": [each for each in described if each is not None],
            "more": more,
            "next": _cursor(shown[-1]) if more and wanted.sort == "last" else None,
        }

    def _latest(self, wanted: Wanted) -> tuple[list[SessionInfo], bool]:
        """And whether there are more."""
        cursor = None if wanted.before is None else self._session_at(wanted.before)
        recent = self._ledger.recent
        found = recent.sessions(self._organisation, wanted.most + 1, cursor, wanted.find, query=wanted.rows)
        return found[: wanted.most], len(found) > wanted.most

    def _rank(self, wanted: Wanted) -> tuple[list[SessionInfo], bool]:
        """The same in another order, for which all sessions of the range are looked at."""
        if len(self._ranked) >= _MOST_RANKED:
            self._ranked.clear()
        query = replace(wanted.rows, where=(("organisation", self._organisation), *wanted.rows.where))
        self._ranked[wanted] = ranked(self._ledger, query, wanted)
        return self._ranked[wanted]

    def one(self, key: str) -> dict[str, Any]:
        """Raises BadQuestionError where there is none of this key."""
        session = self._find(key)
        turns = self._ledger.recent.rows(session, MOST_TURNS)
        sums = sums_of_all(self._ledger, Query.of_session(session))
        total = line_of(key, sums)
        omitted = max(0, sums.rows - len(turns)) if sums else 0
        after = points(context_of(row.entry) for row in turns)
        work = self._ledger.exports.work(self._organisation, [row.entry.id for row in turns])
        return {
            "key": key,
            **_about(session),
            "total": {**figures(total), "at_least": total.cost_at_least > 0},
            "turns": [_turn(row, point, work.get(row.entry.id)) for row, point in zip(turns, after, strict=True)],
            "omitted": omitted,
            "context": self._context(session) if omitted else None,
        }

    def _context(self, session: SessionInfo) -> dict[str, Any]:
        found, each = thinned(points(self._ledger.recent.contexts(session)), MOST_POINTS)
        return {"rows_each": each, "points": [_point(point) for point in found]}

    def _described(self, session: SessionInfo, wanted: Wanted, now: int, states: States) -> dict[str, Any] | None:
        """None for one that began before the range and ended after it, and has no row in it."""
        key = self._remembered(session)
        total = self._added_up(key, session, wanted)
        if total is None:
            return None
        return {
            "key": key,
            **_about(session),
            **figures(total),
            "at_least": total.cost_at_least > 0,
            "active": key in states.attended and now - session.ended_at < ACTIVE,
            "running": key in states.running,
        }

    def _added_up(self, key: str, session: SessionInfo, wanted: Wanted) -> Line | None:
        """Its rows of those that are wanted, None where there are none."""
        rows = wanted.rows
        if (key, rows) not in self._totals:
            of_session = replace(rows, where=(*Query.of_session(session).where, *rows.where))
            sums = sums_of_all(self._ledger, of_session)
            self._totals[key, rows] = None if sums is None else line_of(key, sums)
        return self._totals[key, rows]

    def _remembered(self, session: SessionInfo) -> str:
        key = session_key(session.origin, session.session)
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[key] = session
        return key

    def _find(self, key: str) -> SessionInfo:
        known = self._known.get(key)
        found = known and self._ledger.recent.session(known.origin, known.session)
        if found:
            return found
        for session in self._ledger.recent.keyed(key) if len(key) == KEY_LENGTH else ():
            if session.origin.organisation == self._organisation:
                self._remembered(session)
                return session
        raise BadQuestionError("no session of this key", 404)

    def _session_at(self, cursor: str) -> SessionInfo:
        try:
            ended_at, user, host, agent, session = _decode_cursor(urlsafe_b64decode(cursor))
        except ValueError as error:
            raise BadQuestionError("before: expected what an earlier answer called next") from error
        origin = Origin(self._organisation, user, None, None, host, agent, None, None)
        return SessionInfo(origin, session, None, 0, ended_at, None, None)


def _cursor(session: SessionInfo) -> str:
    origin = session.origin
    parts = (session.ended_at, origin.user, origin.host, origin.agent, session.session)
    return urlsafe_b64encode(msgspec.json.encode(parts)).decode()


def _about(session: SessionInfo) -> dict[str, Any]:
    origin = session.origin
    return {
        "session": session.session,
        "agent": origin.agent,
        "title": session.title,
        "project": origin.project,
        "team": origin.team,
        "user": origin.user,
        "started_at": milliseconds(session.started_at),
        "ended_at": milliseconds(session.ended_at),
        "context_used": session.context_used,
        "context_size": session.context_size,
    }


def _point(point: Point) -> dict[str, Any]:
    at, used, size = milliseconds(point.at), point.used, point.size
    return {"started_at": at, "context_used": used, "context_size": size, "compacted": point.compacted}


def _turn(row: Row, after: Point, work: Work | None) -> dict[str, Any]:
    turn = turn_line(row)
    about = {"at_least": turn.cost_at_least > 0, "compacted": after.compacted}
    return {**described(turn), **about, "work": None if work is None else _work(work)}


def _work(work: Work) -> dict[str, Any]:
    """Times in milliseconds."""
    calls = [{"kind": each.kind, "count": each.count, "failed": each.failed, "took": each.took} for each in work.sums]
    return {"tools": work.busy, "waited": work.waited, "calls": calls}

"""Answers from rows and sessions. Each role gets what is theirs: `claims` narrows every question."""

from __future__ import annotations

from collections.abc import Iterable

from acp_proxy.hub.api.desk import Desk, reads, streams, writes
from acp_proxy.hub.api.problems import RefusedError
from acp_proxy.ledger import Context, OpenTurn, Row, SessionInfo, Sums, TurnTimes
from acp_proxy.ledger.hub import questions, wire
from acp_proxy.ledger.hub.questions import Costliest, CostliestSessions, FoundRow, FoundSession, Named, Wanted
from acp_proxy.ledger.hub.wire import Nothing, State

_MOST = 10_000  # of anything in one answer
_MOST_NAMED = 200  # sessions


def rows(desk: Desk, asked: Wanted) -> Iterable[Row]:
    return desk.ledger.rows(desk.claims.query(asked.query))


def existing(desk: Desk, asked: questions.Ids) -> list[str]:
    if len(asked.ids) > _MOST:
        raise RefusedError(413, f"expected at most {_MOST} ids")
    organisation = desk.claims.organisation(asked.organisation)
    found = desk.ledger.existing(organisation, asked.ids)
    users = desk.ledger.users_of(organisation, sorted(found))
    return [each for each, user in users.items() if each in found and desk.claims.sees_user(user)]


def turn_times(desk: Desk, asked: questions.UsersTurns) -> Iterable[TurnTimes]:
    user = desk.claims.own(asked.user) or asked.user
    return desk.ledger.turn_times(
        desk.claims.organisation(asked.organisation), user, without_client=asked.without_client
    )


def costliest(desk: Desk, asked: Costliest) -> list[Row]:
    return desk.ledger.costliest(desk.claims.query(asked.query), asked.currencies, min(asked.most, _MOST))


def summed(desk: Desk, asked: questions.SummedBy) -> list[Sums]:
    return desk.ledger.summed(desk.claims.query(asked.query), asked.by)


def sessions(desk: Desk, asked: Wanted) -> Iterable[SessionInfo]:
    return desk.ledger.sessions(desk.claims.query(asked.query))


def session_sums(desk: Desk, asked: Wanted) -> Iterable[tuple[SessionInfo, Sums]]:
    return desk.ledger.session_sums(desk.claims.query(asked.query))


def costliest_sessions(desk: Desk, asked: Costliest) -> CostliestSessions:
    query = desk.claims.query(asked.query)
    return CostliestSessions(*desk.ledger.costliest_sessions(query, asked.currencies, min(asked.most, _MOST)))


def note_title(desk: Desk, asked: wire.Titled) -> Nothing:
    desk.ledger.note_session(desk.claims.origin(asked.origin), asked.session, asked.title, asked.at)
    return Nothing()


def state(desk: Desk, asked: wire.OfSession) -> State:
    return State(desk.ledger.state_of(desk.claims.origin(asked.origin), asked.session))


def recent_sessions(desk: Desk, asked: questions.RecentSessions) -> list[SessionInfo]:
    query = desk.claims.query(asked.query)
    where = tuple((name, value) for name, value in query.where if name != "organisation")
    return desk.ledger.recent.sessions(
        desk.claims.organisation(asked.organisation),
        min(asked.most, _MOST),
        asked.before,
        asked.find,
        asked.ended,
        type(query)(query.since, query.until, where),
    )


def session(desk: Desk, asked: questions.SessionOf) -> FoundSession:
    found = desk.ledger.recent.session(desk.claims.session_of(asked.origin), asked.session)
    return FoundSession(found if found and desk.claims.sees(found.origin) else None)


def named(desk: Desk, asked: Named) -> list[SessionInfo]:
    return _seen(desk, desk.ledger.recent.named(asked.name))


def keyed(desk: Desk, asked: Named) -> list[SessionInfo]:
    return _seen(desk, desk.ledger.recent.keyed(asked.name))


def last_turn(desk: Desk, asked: questions.OfUser) -> FoundRow:
    user = desk.claims.own(asked.user) or asked.user
    return FoundRow(desk.ledger.recent.last_turn(desk.claims.organisation(asked.organisation), user))


def last_rows(desk: Desk, asked: questions.LastRows) -> list[Row]:
    return desk.ledger.recent.rows(_seen_session(desk, asked.session), min(asked.most, _MOST))


def contexts(desk: Desk, asked: questions.OneSession) -> Iterable[Context]:
    return desk.ledger.recent.contexts(_seen_session(desk, asked.session))


def open_turns(desk: Desk, asked: questions.At) -> list[OpenTurn]:
    found = desk.ledger.recent.open_turns(desk.claims.organisation(asked.organisation), asked.at)
    return [turn for turn in found if desk.claims.sees(turn.origin)]


def _seen(desk: Desk, found: Iterable[SessionInfo]) -> list[SessionInfo]:
    seen = []
    for each in found:
        if desk.claims.sees(each.origin):
            seen.append(each)
        if len(seen) >= _MOST_NAMED:
            break
    return seen


def _seen_session(desk: Desk, asked: SessionInfo) -> SessionInfo:
    """As the ledger has it. Raises RefusedError for one that is not there for who asks."""
    found = desk.ledger.recent.session(desk.claims.session_of(asked.origin), asked.session)
    if found is None or not desk.claims.sees(found.origin):
        raise RefusedError(403, "no session of yours")
    return found


ANSWERS = [
    streams(questions.ROWS, rows),
    reads(questions.EXISTING, existing),
    streams(questions.TURN_TIMES, turn_times),
    reads(questions.COSTLIEST, costliest),
    reads(questions.SUMMED, summed),
    streams(questions.SESSIONS, sessions),
    streams(questions.SESSION_SUMS, session_sums),
    reads(questions.COSTLIEST_SESSIONS, costliest_sessions),
    writes(wire.NOTE_TITLE, note_title),
    reads(wire.STATE, state),
    reads(questions.RECENT_SESSIONS, recent_sessions),
    reads(questions.SESSION, session),
    reads(questions.NAMED, named),
    reads(questions.KEYED, keyed),
    reads(questions.LAST_TURN, last_turn),
    reads(questions.LAST_ROWS, last_rows),
    streams(questions.CONTEXTS, contexts),
    reads(questions.OPEN_TURNS, open_turns),
]

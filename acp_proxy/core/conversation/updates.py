"""Reads `session/update`: events, and counts of updates that are only text."""

from __future__ import annotations

from collections.abc import Sequence

from acp_proxy.core import acp
from acp_proxy.core.acp import Update
from acp_proxy.core.conversation.lifecycle import Lifecycle
from acp_proxy.core.conversation.sessions import Session, Sessions
from acp_proxy.core.conversation.turns import SessionCounts
from acp_proxy.core.events import ChildSessionSeen, Compacted, EarlierReport, Event, UpdateSeen, UsageReported


class Updates:
    """The updates of one connection."""

    def __init__(self, sessions: Sessions, turns: Lifecycle) -> None:
        self._sessions = sessions
        self._turns = turns

    def events(self, update: Update, at: int, size: int) -> list[Event]:
        """In order; `size` is the length of the update's line in bytes."""
        session = self._sessions.named(update.session)
        if update.kind != acp.STATE_UPDATE and not self._sessions.replays(session):  # a state is no work
            _count(session.counted, update, size, at)
        if update.kind == acp.USAGE_UPDATE:  # most of what is read
            return [self._usage(update, session, at)]
        match update.kind:
            case acp.STATE_UPDATE:
                return self._turns.state(session, update.fields, at)
            case acp.SUBAGENT_UPDATE:
                events = self._subagent(session, update, at)
            case acp.COMPACTION_UPDATE:
                events = self._compaction(update, session, at)
            case acp.INFO_UPDATE:
                info = acp.info_after(session.info, update.fields, self._turns.version)
                cleared = acp.clears_title(update.fields)
                events = session.rename(info, at, titled=cleared or acp.tells_title(update.fields), cleared=cleared)
            case acp.CONFIG_UPDATE:
                events = session.choose(acp.model_of(update.fields), at)
            case _:
                events = []
        if update.meta or acp.has_tool_output(update.fields):
            events.append(self._seen(update, session, at))
        return events

    def usage_reported(self, name: str, size: int, reports: Sequence[tuple[int, bytes | None]], at: int) -> list[Event]:
        """`events` of so many `usage_update`s: `used`, and the JSON of `cost`, of each; `size` of all of them."""
        session = self._sessions.named(name)
        replayed = self._sessions.replays(session)
        if not replayed:
            session.counted.count(acp.USAGE_UPDATE, 0, len(reports))
        if session.child is None:
            session.counted.reported = session.counted.now()
        each = [EarlierReport(used, None if cost is None else acp.cost_in(cost)) for used, cost in reports]
        last = each[-1]
        # Between turns each may be a row of its own. A cost that a later report lacks still stands: it is told apart.
        if session.current is None or (last.cost is None and any(one.cost is not None for one in each)):
            return [_reported(session, one, size, at, replayed=replayed) for one in each]
        return [_reported(session, last, size, at, tuple(each[:-1]))]

    def _usage(self, update: Update, session: Session, at: int) -> Event:
        if session.child is None:
            session.counted.reported = session.counted.now()
        used, size = acp.context_of(update.fields)
        return UsageReported(
            at,
            session.root.id,
            session.current,
            used,
            size,
            acp.cost_of(update.fields),
            cost_cleared=self._turns.version >= 2 and acp.cost_is_null(update.fields),
            meta=update.meta,
            child=session.child,
            replayed=self._sessions.replays(session),
        )

    def _compaction(self, update: Update, session: Session, at: int) -> list[Event]:
        if self._sessions.replays(session):
            return []
        return [Compacted(at, session.root.id, session.current, status=acp.compaction_status(update.fields))]

    def _seen(self, update: Update, session: Session, at: int) -> UpdateSeen:
        return UpdateSeen(
            at,
            session.root.id,
            session.current,
            update.kind,
            update.meta,
            update.fields,
            replayed=self._sessions.replays(session),
            child=session.child,
        )

    def _subagent(self, parent: Session, update: Update, at: int) -> list[Event]:
        name, state = acp.subagent_of(update.fields)
        if name is None:
            return []
        events: list[Event] = []
        child = self._sessions.get(name)
        if child is None or not (child is parent.root or child.child or child.opened or child.busy):
            child = self._sessions.add_child(name, parent.root)
            events.append(ChildSessionSeen(at, parent.root.id, name))
        return events + self._turns.state(child, state, at)


def _reported(
    session: Session,
    told: EarlierReport,
    size: int,
    at: int,
    earlier: tuple[EarlierReport, ...] = (),
    *,
    replayed: bool = False,
) -> UsageReported:
    return UsageReported(
        at,
        session.root.id,
        session.current,
        told.used,
        size,
        told.cost,
        child=session.child,
        earlier=earlier,
        replayed=replayed,
    )


def _count(counted: SessionCounts, update: Update, size: int, at: int) -> None:
    if update.kind in acp.TOOL_UPDATES:
        call = acp.tool_call_of(update.fields)
        if call is not None and not counted.knows_tool(call) and acp.is_record(update.fields):
            counted.count(update.kind, 0)  # box-agent tells figures so, of tool calls that there are not
        else:
            if call is not None:
                fields = update.fields
                counted.tools.saw(call, fields.get("kind"), fields.get("status"), at, known=counted.knows_tool(call))
            counted.count_tool(update.kind, call, *acp.tool_chars(update.fields, size))
    else:
        counted.count(update.kind, acp.update_chars(update), message=update.fields.get("messageId"))

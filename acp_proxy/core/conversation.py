"""The conversation between a client and an agent: messages in, events out. Pure: no clock, no I/O, no text kept.

It pairs responses with requests, follows sessions and turns of ACP v1 and v2, and tallies the rest. What an agent's
numbers mean is not its business (`core/meter.py`). It takes any message without raising.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from acp_proxy.core import acp
from acp_proxy.core.acp import Ending, Hello, Update
from acp_proxy.core.events import (
    ChildSessionSeen,
    Compacted,
    ConnectionClosed,
    Event,
    Initialized,
    ModelSelected,
    Opening,
    PermissionAnswered,
    PermissionRequested,
    SessionClosed,
    SessionInfoChanged,
    SessionOpened,
    SessionRequested,
    Side,
    Turn,
    UpdateSeen,
    UsageReported,
)
from acp_proxy.core.jsonrpc import Message, Notification, Pairing, Request, Response
from acp_proxy.core.sessions import Session
from acp_proxy.core.turns import OpenTurn


def _never(_: Response) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class _Asked:
    """An open request: what its response means, and whether that response will end a turn."""

    answered: Callable[[Response, int], list[Event]]
    ends: Callable[[Response], bool] = _never


class Conversation:
    """One connection. Times are Unix ns and come with each message."""

    def __init__(self, new_id: Callable[[int], str]) -> None:
        """`new_id` makes a UUIDv7 for a turn that starts at the given time."""
        self._new_id = new_id
        self._version = 1
        self._asked: Pairing[_Asked] = Pairing()
        self._sessions: dict[str, Session] = {}
        self._forks = 0  # open requests: until they are answered, a session not heard of before may be a fork's history

    def receive(self, sender: Side, message: Message, at: int, size: int) -> list[Event]:
        """The events of one message, in order. `size` is the length of its line in bytes."""
        match message:
            case Response():
                asked = self._asked.take(sender, message.id)
                return [] if asked is None else asked.answered(message, at)
            case Request() if sender is Side.CLIENT:
                return self._requested(message, at)
            case Request(method=acp.REQUEST_PERMISSION):
                return self._permission_requested(message, at)
            case Notification(method=acp.SESSION_UPDATE) if sender is Side.AGENT:
                update = acp.update_of(message)
                return [] if update is None else self._updated(update, at, size)
        return []

    def ends_turn(self, sender: Side, message: Message) -> bool:
        """Whether `receive` would end a turn. Changes nothing."""
        if sender is Side.CLIENT:
            return False
        match message:
            case Response():
                asked = self._asked.peek(sender, message.id)
                return asked is not None and asked.ends(message)
            case Notification(method=acp.SESSION_UPDATE):
                name = acp.idle_session(message)
                session = self._sessions.get(name) if name is not None else None
                return session is not None and session.run is not None
        return False

    def awaits(self, sender: Side, id: Any) -> bool:
        """Whether a response with this id from this side answers a request that is followed."""
        return self._asked.peek(sender, id) is not None

    def tally(self, session: str | None, update: str, chars: int) -> None:
        """Count an agent's update of which nothing matters but its kind and its characters."""
        known = self._sessions.get(session) if session is not None else None
        if known is not None and not known.replays and (turn := known.current) is not None:
            turn.count(update, chars)

    def close(self, side: Side, at: int) -> list[Event]:
        """One side is gone: every open turn ends, and late responses answer nothing any more."""
        ending = Ending("crashed" if side is Side.AGENT else "disconnected")
        events: list[Event] = []
        for session in self._sessions.values():
            for turn in [*session.turns, *session.waiting]:
                events += session.end(turn, at, ending)
            session.run, session.active = None, False
        self._asked.clear()
        return [*events, ConnectionClosed(at, side)]

    # -- what a client asks for, and what the answers mean

    def _requested(self, request: Request, at: int) -> list[Event]:
        name = acp.session_of(request)
        match request.method:
            case acp.INITIALIZE:
                self._ask(request, partial(self._initialized, acp.hello(request.params)))
            case acp.LIST:
                self._ask(request, self._listed)
            case method if (how := acp.OPENINGS.get(method)) is not None:
                return self._opening(request, how, name, at)
            case _ if name is None:
                return []
            case acp.PROMPT:
                return self._prompted(request, name, at)
            case acp.SET_MODEL:
                self._ask(request, partial(self._model_set, name, acp.wanted_model(request.params)))
            case acp.SET_CONFIG_OPTION:
                self._ask(request, partial(self._model_set, name, None))
            case acp.CLOSE | acp.DELETE:
                deleted = request.method == acp.DELETE
                self._ask(request, partial(self._closed, name, deleted), partial(self._closing_ends, name))
        return []

    def _ask(
        self,
        request: Request,
        answered: Callable[[Response, int], list[Event]],
        ends: Callable[[Response], bool] = _never,
    ) -> None:
        self._asked.add(Side.AGENT, request.id, _Asked(answered, ends))

    def _initialized(self, client: Hello, response: Response, at: int) -> list[Event]:
        if response.error is not None:
            return []
        agent = acp.hello(response.result)
        self._version = agent.version or client.version or 1
        return [Initialized(at, self._version, client.who, agent.who, self._version >= 2 or client.notices)]

    def _opening(self, request: Request, how: Opening, name: str | None, at: int) -> list[Event]:
        cwd = acp.text(request.params.get("cwd"))
        if how == "new":
            self._ask(request, partial(self._opened, how, None, cwd))
            return []
        if name is None:
            return []
        if how == "fork":
            self._forks += 1
        else:
            self._session(name).replays += 1
        self._ask(request, partial(self._opened, how, name, cwd))
        return [SessionRequested(at, how, name)]

    def _opened(self, how: Opening, asked: str | None, cwd: str | None, response: Response, at: int) -> list[Event]:
        parent = asked if how == "fork" else None
        name = asked if how in ("load", "resume") else acp.opened_session(response.result)
        self._forks -= how == "fork"
        if name is None:
            return []
        session = self._session(name)
        if how in ("load", "resume"):
            session.replays = max(0, session.replays - 1)
        if response.error is not None:
            return []
        session.opened = True
        session.model = acp.model_of(response.result) or session.model
        opened = SessionOpened(at, how, name, parent, cwd, session.model)
        return [opened, *(self._running(session, at) if session.active else ())]

    def _model_set(self, name: str, wanted: str | None, response: Response, at: int) -> list[Event]:
        if response.error is not None:
            return []
        return self._select(self._session(name), wanted or acp.model_of(response.result), at)

    def _listed(self, response: Response, at: int) -> list[Event]:
        events: list[Event] = []
        for name, entry in acp.listed_sessions(response.result):
            session = self._sessions.get(name)
            if session is None or session.child is not None:
                continue
            info = acp.info_after(session.info, entry, self._version)
            if info != session.info:
                events.append(self._rename(session, info, at))
        return events

    def _closed(self, name: str, deleted: bool, response: Response, at: int) -> list[Event]:
        if response.error is not None:
            return []
        events: list[Event] = []
        for session, turn in list(self._abandoned(name)):
            events += session.end(turn, at, Ending(acp.CANCELLED))
        root = self._sessions.get(name)
        if root is not None and not root.busy:
            self._sessions = {key: kept for key, kept in self._sessions.items() if kept.root is not root}
        return [*events, SessionClosed(at, name, deleted)]

    def _closing_ends(self, name: str, response: Response) -> bool:
        return response.error is None and next(self._abandoned(name), None) is not None

    def _abandoned(self, name: str) -> Iterator[tuple[Session, OpenTurn]]:
        """Turns of v2 that nothing will end once their session is closed; v1's prompts are still answered."""
        for session in self._sessions.values():
            if session.root.id == name:
                yield from ((session, turn) for turn in session.waiting if turn.accepted)
                if session.run is not None:
                    yield session, session.run

    # -- turns

    def _prompted(self, request: Request, name: str, at: int) -> list[Event]:
        session = self._session(name)
        chars = acp.prompt_chars(request.params)
        turn = OpenTurn(Turn(self._new_id(at), session.root.id, "turn", at, chars, acp.message_id(request.params)))
        self._ask(request, partial(self._prompt_answered, session, turn), partial(self._prompt_ends, session, turn))
        if self._version >= 2:
            session.waiting.append(turn)
            return []
        return [session.start(turn, at)]

    def _prompt_answered(self, session: Session, turn: OpenTurn, response: Response, at: int) -> list[Event]:
        ending = self._ending(session, turn, response)
        if ending is not None:
            return session.end(turn, at, ending)
        if response.error is not None:
            if turn in session.waiting:
                session.waiting.remove(turn)
            return []
        turn.accept(acp.message_id(acp.mapping(response.result)))
        if session.run is None and turn in session.root.turns:
            session.run = turn
        return []

    def _prompt_ends(self, session: Session, turn: OpenTurn, response: Response) -> bool:
        return self._ending(session, turn, response) is not None

    def _ending(self, session: Session, turn: OpenTurn, response: Response) -> Ending | None:
        """How the response to its prompt ends a turn, None when it does not. What the response says decides, not
        the version alone: v1's has a stop reason, v2's accepts the prompt, and a run goes on until it is idle."""
        failed, result = response.error is not None, response.result
        if turn in session.waiting or session.run is turn:
            if failed:
                return Ending(acp.FAILED) if session.run is None else None
            return acp.ending(result) if acp.ends(result) else None
        if turn not in session.root.turns:
            return None
        if failed:
            return Ending(acp.FAILED)
        if acp.accepts(result):
            return None if session.run is None else Ending(acp.ENDED)
        return acp.ending(result)

    def _state(self, session: Session, fields: dict[str, Any], at: int) -> list[Event]:
        """v2: a snapshot of whether a session works. Only a change of it means something."""
        state = acp.state_of(fields)
        if state in acp.WORKING:
            return self._running(session, at)
        if state != acp.IDLE:
            return []
        was_active, session.active = session.active, False
        if session.run is not None:
            ended = session.end(session.run, at, acp.ending(fields))
            session.drop_absorbed()
            return ended
        if was_active and session.child is not None:
            return [self._seen(Update(session.id, acp.STATE_UPDATE, fields, acp.meta_of(fields)), session, at)]
        return []

    def _running(self, session: Session, at: int) -> list[Event]:
        if session.run is not None:
            return []
        if session.replays or (session.child is not None and not session.waiting):
            session.active = True
            return []
        if self._version < 2 and session.current is not None:
            return []  # the response to its prompt ends that turn
        session.active = False
        turn = session.take_prompt() or OpenTurn(Turn(self._new_id(at), session.root.id, "autonomous", at))
        session.run = turn
        return [session.start(turn, at)]

    # -- what an agent tells

    def _updated(self, update: Update, at: int, size: int) -> list[Event]:
        session = self._session(update.session)
        if not self._replayed(session):
            self._count(session.current, update, size)
        match update.kind:
            case acp.USAGE_UPDATE:
                return [self._usage(update, session, at)]
            case acp.STATE_UPDATE:
                return self._state(session, update.fields, at)
            case acp.SUBAGENT_UPDATE:
                events = self._subagent(session, update, at)
            case acp.COMPACTION_UPDATE:
                status = acp.text(update.fields.get("status"))
                events = [Compacted(at, session.root.id, self._turn(session), status=status)]
            case acp.INFO_UPDATE if session.child is None:
                events = [self._rename(session, acp.info_after(session.info, update.fields, self._version), at)]
            case acp.CONFIG_UPDATE if session.child is None:
                events = self._select(session, acp.model_of(update.fields), at)
            case _:
                events = []
        if update.meta or acp.has_tool_output(update.fields):
            events.append(self._seen(update, session, at))
        return events

    def _count(self, turn: OpenTurn | None, update: Update, size: int) -> None:
        if turn is None:
            return
        if update.kind in acp.TOOL_UPDATES:
            turn.count_tool(update.kind, acp.tool_call_of(update.fields), *acp.tool_chars(update.fields, size))
        else:
            turn.count(update.kind, acp.update_chars(update))

    def _usage(self, update: Update, session: Session, at: int) -> Event:
        if session.child is None and (turn := session.current) is not None:
            turn.reported()
        fields = update.fields
        return UsageReported(
            at,
            session.root.id,
            self._turn(session),
            acp.count(fields.get("used")),
            acp.count(fields.get("size")),
            acp.cost_of(fields),
            cost_cleared=self._version >= 2 and acp.cost_is_null(fields),
            meta=update.meta,
            child=session.child,
        )

    def _seen(self, update: Update, session: Session, at: int) -> UpdateSeen:
        return UpdateSeen(
            at,
            session.root.id,
            self._turn(session),
            update.kind,
            update.meta,
            update.fields,
            replayed=self._replayed(session),
            child=session.child,
        )

    def _subagent(self, parent: Session, update: Update, at: int) -> list[Event]:
        name, state = acp.subagent_of(update.fields)
        if name is None or name == parent.root.id:
            return []
        events: list[Event] = []
        child = self._sessions.get(name)
        if child is None or not (child.opened or child.busy or child.child):
            child = self._sessions[name] = Session(name, parent.root)
            events.append(ChildSessionSeen(at, parent.root.id, name))
        return events + self._state(child, state, at)

    def _permission_requested(self, request: Request, at: int) -> list[Event]:
        name = acp.session_of(request)
        if name is None:
            return []
        session = self._session(name)
        call = acp.permitted_tool_call(request.params)
        if call is not None and (turn := session.current) is not None:
            turn.saw_tool(call)
        answered = partial(self._permission_answered, session.root.id)
        self._asked.add(Side.CLIENT, request.id, _Asked(answered))
        return [PermissionRequested(at, session.root.id, request.id)]

    def _permission_answered(self, name: str, response: Response, at: int) -> list[Event]:
        return [PermissionAnswered(at, name, response.id, acp.permission_outcome(response.result))]

    # -- sessions

    def _session(self, name: str) -> Session:
        """Agents name a session before the response that opens it, so the first word of it makes it known."""
        session = self._sessions.get(name)
        if session is None:
            session = self._sessions[name] = Session(name)
        return session

    def _turn(self, session: Session) -> Turn | None:
        current = session.current
        return None if current is None else current.turn

    def _replayed(self, session: Session) -> bool:
        if session.replays:
            return True
        return self._forks > 0 and not (session.opened or session.child or session.busy)

    def _select(self, session: Session, model: str | None, at: int) -> list[Event]:
        if model is None or model == session.model:
            return []
        session.model = model
        return [ModelSelected(at, session.id, model)]

    def _rename(self, session: Session, info: acp.Info, at: int) -> SessionInfoChanged:
        session.info = info
        return SessionInfoChanged(at, session.id, info.title, info.updated_at, info.meta)

"""The conversation between a client and an agent: messages in, events out. Pure: no clock, no I/O, no text kept.

Pairs responses with requests, follows sessions and turns of ACP v1 and v2, and counts the rest. `core/meter`
interprets an agent's numbers. Accepts any message without raising.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from acp_proxy.core import acp
from acp_proxy.core.acp import Ending, Hello
from acp_proxy.core.conversation.lifecycle import Lifecycle
from acp_proxy.core.conversation.sessions import Session, Sessions
from acp_proxy.core.conversation.turns import Elapsed, OpenTurn
from acp_proxy.core.conversation.updates import Updates
from acp_proxy.core.events import (
    ConnectionClosed,
    Event,
    Initialized,
    Opening,
    PermissionAnswered,
    PermissionRequested,
    SessionClosed,
    SessionOpened,
    SessionRequested,
    Side,
)
from acp_proxy.core.jsonrpc import (
    Message,
    Notification,
    Pairing,
    Request,
    Response,
    is_number_or_text,
    is_plain,
    number_in,
)


def _nothing(_: Response, _at: int) -> list[Event]:
    return []


def _opening_ends(session: Session, before: Sequence[OpenTurn], response: Response) -> bool:
    return response.error is None and any(turn in session.turns for turn in before)


class _Asked(Struct, frozen=True):
    """An open request: what its response means, and whether that response will end a turn of its session."""

    answered: Callable[[Response, int], list[Event]]
    ends: Callable[[Response], bool] | None = None
    session: str | None = None


class Conversation:
    """One connection. Times are Unix ns and come with each message."""

    def __init__(self, new_id: Callable[[int], str], elapsed: Elapsed | None = None) -> None:
        """`new_id` makes a UUIDv7 for a turn that starts at the given time; `elapsed` tells how long a turn takes."""
        self._turns = Lifecycle(new_id, elapsed)
        self._asked: Pairing[_Asked] = Pairing()
        self.awaits: Callable[[Side, Any], bool] = self._awaits
        """Whether a response with this id from this side answers a request that is followed."""
        self._sessions = Sessions()
        self._updates = Updates(self._sessions, self._turns)
        self._over = False
        self._follows_all = False
        self._unfollowed: set[Any] = set()  # ids of the client's open requests that mean nothing else to us

    def follow_all(self) -> None:
        """Track a client's requests until they are answered: no answer may be taken for a prompt's with the same id."""
        self._follows_all = True
        self.awaits = self._awaits_or_forgets

    def passes(self, id: Any) -> bool:
        """Note a request of the client's that means nothing but that it is open; or a notification, without an id.

        False, and nothing is noted, where its id is odd or another's: then `receive` is to be told of it.
        """
        if id is None:
            return True
        if not is_plain(id) or self._asked.has(Side.AGENT, id):
            return False
        self._unfollowed.add(id)
        return True

    def is_open(self, id: Any) -> bool:
        """Whether a request of the client's with this id is not answered yet, where all are followed."""
        return self._asked.has(Side.AGENT, id) or (is_number_or_text(id) and id in self._unfollowed)

    def _awaits(self, sender: Side, id: Any) -> bool:
        return self._asked.has(sender, id) or (type(id) is str and self._asked.answered(sender, id) is not None)

    def _awaits_or_forgets(self, sender: Side, id: Any) -> bool:
        if self._awaits(sender, id):
            return True
        if sender is Side.AGENT and is_number_or_text(id):
            self._unfollowed.discard(id)
            if type(id) is str:
                self._unfollowed.discard(number_in(id))
        return False

    def ends_turn(self, id: Any) -> bool:
        """Whether an answer of the agent with this id may end a turn."""
        asked = self._asked.peek(Side.AGENT, id)
        return asked is not None and asked.ends is not None

    def receive(self, sender: Side, message: Message, at: int, size: int, admitted: str | None = None) -> list[Event]:
        """The events of one message, in order. `size` is the length of its line in bytes.

        `admitted` is the id of the turn that a prompt begins, where one was made for it before.
        """
        match message:
            case Response():
                asked = self._asked.take(sender, message.id) if self.awaits(sender, message.id) else None
                return [] if asked is None else asked.answered(message, at)
            case Request() if sender is Side.CLIENT:
                events = self._requested(message, at, admitted)
                if self._follows_all and not (self._over or self._asked.has(Side.AGENT, message.id)):
                    self._ask(message, _nothing)
                return events
            case Request(method=acp.REQUEST_PERMISSION):
                return self._permission_requested(message, at)
            case Notification(method=acp.SESSION_UPDATE) | Request(method=acp.SESSION_UPDATE) if sender is Side.AGENT:
                update = acp.update_of(message)
                return [] if update is None else self._updates.events(update, at, size)
        return []

    def ending(self, sender: Side, message: Message) -> str | None:
        """The session of which `receive` would end a turn, if any. Changes nothing.

        The refusal of a whole batch is not told: who needs to know admits prompts, and no batch that has one is
        forwarded then.
        """
        if sender is Side.CLIENT:
            return None
        match message:
            case Response():
                asked = self._asked.answered(sender, message.id)
                return asked.session if asked is not None and asked.ends and asked.ends(message) else None
            case Notification(method=acp.SESSION_UPDATE) | Request(method=acp.SESSION_UPDATE):
                name = acp.idle_session(message)
                session = self._sessions.get(name) if name is not None else None
                return name if session is not None and session.run is not None else None
        return None

    def root_of(self, session: str) -> str:
        """The session itself, or for a subagent's session the one that the user sees."""
        known = self._sessions.get(session)
        return session if known is None else known.root.id

    def tally(self, session: str | None, update: str, chars: int, updates: int = 1, message: Any = None) -> None:
        """Count an agent's updates of one kind of which nothing matters but that, their characters and message."""
        known = self._sessions.get(session) if session is not None else None
        if known is not None and not known.replays:
            known.counted.count(update, chars, updates, message)

    def usage_reported(
        self, session: str, size: int, reports: Sequence[tuple[int, bytes | None]], at: int
    ) -> list[Event]:
        """The events of an agent's `usage_update`s of which nothing matters but these figures.

        Of each, `used` and the JSON of `cost`; `size` is the same in all of them.
        """
        return self._updates.usage_reported(session, size, reports, at)

    def close(self, side: Side, at: int) -> list[Event]:
        """One side is gone: every open turn ends, late responses answer nothing any more, and no turn begins."""
        ending = Ending("crashed" if side is Side.AGENT else "disconnected")
        events: list[Event] = []
        for session in self._sessions:
            for turn in [*session.turns, *session.waiting]:
                events += session.end(turn, at, ending)
            session.run, session.active = None, False
        self._asked.clear()
        self._over = True
        return [*events, ConnectionClosed(at, side)]

    # -- what a client asks for, and what the answers mean

    def _requested(self, request: Request, at: int, admitted: str | None) -> list[Event]:
        name = acp.session_of(request)
        match request.method:
            case _ if self._over:  # said to an agent that has ended its side, and that reads nothing any more
                return []
            case method if method in acp.INITIALIZES:
                self._ask(request, partial(self._initialized, acp.hello(request.params)))
            case acp.LIST:
                self._ask(request, self._listed)
            case method if (how := acp.opening(method, request.params)) is not None:
                return self._opening(request, how, name, at)
            case _ if name is None:
                return []
            case acp.PROMPT:
                session = self._sessions.named(name)
                turn, events = self._turns.prompted(session, request.params, at, admitted)
                answered = partial(self._prompt_answered, session, turn)
                self._ask(request, answered, partial(self._turns.ends, session, turn), name)
                return events
            case acp.SET_MODEL:
                self._ask(request, partial(self._model_set, name, acp.wanted_model(request.params)))
            case acp.SET_CONFIG_OPTION:
                self._ask(request, partial(self._model_set, name, None))
            case acp.SET_TITLE:
                self._ask(request, partial(self._titled, name))
            case acp.CLOSE | acp.ARCHIVE | acp.DELETE:
                deleted = request.method == acp.DELETE
                self._ask(request, partial(self._closed, name, deleted), partial(self._closing_ends, name), name)
        return []

    def _ask(
        self,
        request: Request,
        answered: Callable[[Response, int], list[Event]],
        ends: Callable[[Response], bool] | None = None,
        session: str | None = None,
    ) -> None:
        self._asked.add(Side.AGENT, request.id, _Asked(answered, ends, session))

    def _initialized(self, client: Hello, response: Response, at: int) -> list[Event]:
        if response.error is not None:
            return []
        agent = acp.hello(response.result)
        self._turns.version = agent.version or client.version or 1
        notices = self._turns.version >= 2 or client.notices
        return [Initialized(at, self._turns.version, client.who, agent.who, notices, client.forms)]

    def _prompt_answered(self, session: Session, turn: OpenTurn, response: Response, at: int) -> list[Event]:
        if turn in session.root.left:
            events = session.root.answered_late(turn, response, at)
        else:
            events = self._turns.answered(session, turn, response, at)
        return [*events, *self._let_go(session.root, at)]

    def _opening(self, request: Request, how: Opening, name: str | None, at: int) -> list[Event]:
        cwd = acp.cwd_of(request.params)
        if how == "new":
            self._ask(request, partial(self._opened, how, None, cwd))
            return []
        if name is None:
            return []
        if how == "fork":
            self._sessions.forks += 1
            self._ask(request, partial(self._opened, how, name, cwd))
            return [SessionRequested(at, how, name)]
        session = self._sessions.named(name)
        closed = self._closed_before(session, at)
        session.replays += 1
        before = session.prompts
        answered = partial(self._opened_again, session, before, partial(self._opened, how, name, cwd))
        self._ask(request, answered, partial(_opening_ends, session, before), name)
        return [*closed, SessionRequested(at, how, name)]

    def _opened_again(
        self,
        session: Session,
        before: Sequence[OpenTurn],
        opened: Callable[[Response, int], list[Event]],
        response: Response,
        at: int,
    ) -> list[Event]:
        """What the agent takes up anew it works on no more: of v1's prompts `before` that none need be answered.

        In v2 the state that comes with it tells what runs.
        """
        ended = session.leave(before, at) if response.error is None else []
        return [*ended, *opened(response, at)]

    def _opened(self, how: Opening, asked: str | None, cwd: str | None, response: Response, at: int) -> list[Event]:
        parent = asked if how == "fork" else None
        name = asked if how in ("load", "resume") else acp.opened_session(response.result)
        self._sessions.forks -= how == "fork"
        if name is None:
            return []
        session = self._sessions.named(name)
        if how in ("load", "resume"):
            session.replays = max(0, session.replays - 1)
        if response.error is not None:
            return []
        session.opened = True
        session.model = acp.model_of(response.result) or session.model
        closed, opened = self._closed_before(session, at), SessionOpened(at, how, name, parent, cwd, session.model)
        return [*closed, opened, *(self._turns.running(session, at) if session.active else ())]

    def _model_set(self, name: str, wanted: str | None, response: Response, at: int) -> list[Event]:
        if response.error is not None:
            return []
        asked = wanted is not None
        return self._sessions.named(name).choose(wanted or acp.model_of(response.result), at, asked=asked)

    def _listed(self, response: Response, at: int) -> list[Event]:
        events: list[Event] = []
        for name, entry in acp.listed_sessions(response.result):
            events += self._called(name, entry, at)
        return events

    def _titled(self, name: str, response: Response, at: int) -> list[Event]:
        return self._called(name, acp.titled(response.result), at)

    def _called(self, name: str, fields: dict[str, Any], at: int) -> list[Event]:
        session = self._sessions.get(name)
        if session is None:
            return []
        info = acp.info_after(session.info, fields, self._turns.version)
        return [] if info == session.info else session.rename(info, at, titled=acp.tells_title(fields))

    def _closed(self, name: str, deleted: bool, response: Response, at: int) -> list[Event]:
        if not acp.is_gone(response.error):
            return []
        session = self._sessions.named(name)
        ended = list(session.leave_all(at))
        session.closed = deleted or session.closed is True
        return [*ended, *self._let_go(session, at)]

    def _let_go(self, session: Session, at: int) -> list[Event]:
        """Of a session that was closed, once its prompts are answered: agents of v1 do so all the same, if late."""
        if session.closed is None or session.busy or session.left:
            return []
        self._sessions.drop(session)
        return self._closed_before(session, at)

    def _closed_before(self, session: Session, at: int) -> list[Event]:
        """Of a session that begins again: it was closed, even if earlier turns still run."""
        deleted, session.closed = session.closed, None
        return [] if deleted is None else [SessionClosed(at, session.id, deleted)]

    def _closing_ends(self, name: str, response: Response) -> bool:
        session = self._sessions.get(name)
        return session is not None and acp.is_gone(response.error) and session.works

    def batched(self, messages: Sequence[Message]) -> None:
        """The client sent these as one array: an agent that takes none answers with one error, of no id."""
        ids = [message.id for message in messages if isinstance(message, Request)]
        if ids:
            self._asked.add(Side.AGENT, None, _Asked(partial(self._batch_refused, ids)))

    def _batch_refused(self, ids: Sequence[Any], response: Response, at: int) -> list[Event]:
        if response.error is None:
            return []
        refusals = [Response(asked, None, response.error) for asked in ids]
        return [each for refusal in refusals for each in self.receive(Side.AGENT, refusal, at, 0)]

    # -- what an agent asks for

    def _permission_requested(self, request: Request, at: int) -> list[Event]:
        name = acp.session_of(request)
        if name is None:
            return []
        session = self._sessions.named(name)
        call = acp.permitted_tool_call(request.params)
        if call is not None:
            session.counted.tools.saw(call, None, None, at, known=session.counted.knows_tool(call))
            session.counted.saw_tool(call)
        session.counted.tools.asked(at)
        answered = partial(self._permission_answered, session.root.id, request.id)
        self._asked.add(Side.CLIENT, request.id, _Asked(answered))
        return [PermissionRequested(at, session.root.id, request.id)]

    def _permission_answered(self, name: str, id: Any, response: Response, at: int) -> list[Event]:
        self._sessions.named(name).counted.tools.answered(at)
        return [PermissionAnswered(at, name, id, acp.permission_outcome(response.result))]

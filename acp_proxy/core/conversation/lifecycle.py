"""When turns start and end. v1: from a prompt to its response. v2: from running to idle, with or without a prompt.

What a message says decides, not the negotiated version alone: released agents mix the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from acp_proxy.core import acp
from acp_proxy.core.acp import Ending
from acp_proxy.core.conversation.sessions import Session
from acp_proxy.core.conversation.turns import Elapsed, OpenTurn
from acp_proxy.core.events import Event, Turn, UpdateSeen
from acp_proxy.core.jsonrpc import Response
from acp_proxy.core.stop_reasons import CANCELLED, ENDED, FAILED


class Lifecycle:
    """The turns of one connection. They are kept by their sessions."""

    def __init__(self, new_id: Callable[[int], str], elapsed: Elapsed | None = None) -> None:
        self._new_id = new_id
        self._elapsed = elapsed
        self.version = 1  # of the protocol, as negotiated

    def prompted(
        self, session: Session, params: dict[str, Any], at: int, admitted: str | None = None
    ) -> tuple[OpenTurn, list[Event]]:
        """A prompt, under the id that it was `admitted` with. In v2 its turn starts only when the session runs."""
        chars = acp.prompt_chars(params)
        named = admitted or self._new_id(at)
        parent = acp.trace_parent(acp.meta_of(params))
        asked = Turn(named, session.root.id, "turn", at, chars, acp.message_id(params), parent)
        turn = OpenTurn(asked, self._elapsed)
        if self.version >= 2:
            session.waiting.append(turn)
            return turn, []
        return turn, [session.start(turn, at)]

    def answered(self, session: Session, turn: OpenTurn, response: Response, at: int) -> list[Event]:
        """The response to a prompt."""
        if self.ends(session, turn, response):
            return session.end(turn, at, _ending(response))
        if response.error is not None:
            return session.forget(turn, at)  # refused while other work runs: that goes on
        turn.accept(acp.message_id(acp.mapping(response.result)))
        if session.run is None and turn in session.root.turns:
            session.run = turn
        return []

    def ends(self, session: Session, turn: OpenTurn, response: Response) -> bool:
        """Whether the response to its prompt ends a turn. Changes nothing."""
        failed, result = response.error is not None, response.result
        if turn in session.waiting or session.run is turn:
            return session.run is None if failed else acp.ends(result)
        if turn not in session.root.turns:
            return False
        if not failed and acp.accepts(result):  # v2's answer, though v1 was negotiated: the next idle ends the turn
            return session.run is not None
        return True

    def state(self, session: Session, fields: dict[str, Any], at: int) -> list[Event]:
        """A snapshot of whether a session works. Only a change of it means something."""
        state = acp.state_of(fields)
        if state in acp.WORKING:
            return self.running(session, at)
        return self._idle(session, fields, at) if state == acp.IDLE else []

    def running(self, session: Session, at: int) -> list[Event]:
        if session.run is not None:
            return []
        if session.replayed or (session.child is not None and not session.waiting):
            session.active = True
            return []
        if self.version < 2 and session.current is not None:
            return []  # the response to its prompt ends that turn
        session.active = False
        turn = session.take_prompt()
        if turn is None:
            turn = OpenTurn(Turn(self._new_id(at), session.root.id, "autonomous", at), self._elapsed)
        session.run = turn
        return [session.start(turn, at)]

    def _idle(self, session: Session, fields: dict[str, Any], at: int) -> list[Event]:
        was_active, session.active = session.active, False
        if session.run is not None:
            return [*session.end(session.run, at, acp.ending(fields)), *session.drop_absorbed(at)]
        if not was_active or session.child is None:
            return []
        # A subagent's work is no turn of its own; what it used may stand here, and only here.
        meta = acp.meta_of(fields)
        seen = UpdateSeen(at, session.root.id, session.current, acp.STATE_UPDATE, meta, fields, child=session.child)
        return [] if session.replayed else [seen]


def _ending(response: Response) -> Ending:
    if response.error is not None:
        withdrawn = response.error.get("code") == acp.REQUEST_CANCELLED
        return Ending(CANCELLED if withdrawn else FAILED)
    return Ending(ENDED) if acp.accepts(response.result) else acp.ending(response.result)

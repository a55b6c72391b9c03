"""Says what each side says to a `Conversation`, as lines, and gives back the events."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any, TypeVar

from acp_proxy.core.conversation import Conversation
from acp_proxy.core.events import Event, Side, TurnEnded, TurnStarted
from acp_proxy.core.jsonrpc import Response, parse

T = TypeVar("T")
AGENT, CLIENT = Side.AGENT, Side.CLIENT


class Talk:
    """A connection. Time is the number of the line; turns are called t1, t2, …"""

    def __init__(self, version: int | None = None, elapsed: Callable[[], int] | None = None) -> None:
        numbers = itertools.count(1)
        self.conversation = Conversation(lambda at: f"t{next(numbers)}", elapsed)
        self.at = 0
        self.events: list[Event] = []
        self._id = 1000
        if version is not None:
            self.call("initialize", {"protocolVersion": version}, {"protocolVersion": version})

    def line(self, sender: Side, line: bytes) -> list[Event]:
        message = parse(line)
        if message is None:
            return []
        self.at += 1
        ends = self.conversation.ending(sender, message) is not None
        awaited = not isinstance(message, Response) or self.conversation.awaits(sender, message.id)
        events = self.conversation.receive(sender, message, self.at, len(line))
        assert ends == any(isinstance(event, TurnEnded) for event in events), line
        assert awaited or not events, line
        self.events += events
        return events

    def say(self, sender: Side, **message: Any) -> list[Event]:
        return self.line(sender, json.dumps(message).encode())

    def ask(self, method: str, params: Any, id: Any) -> list[Event]:
        """A request of the client."""
        return self.say(CLIENT, id=id, method=method, params=params)

    def answer(self, id: Any, result: Any) -> list[Event]:
        """A result of the agent."""
        return self.say(AGENT, id=id, result=result)

    def fail(self, id: Any, code: int = -32603) -> list[Event]:
        return self.say(AGENT, id=id, error={"code": code, "message": "no"})

    def call(self, method: str, params: Any, result: Any) -> list[Event]:
        """A request of the client and its result."""
        self._id += 1
        return self.ask(method, params, self._id) + self.answer(self._id, result)

    def open(self, session: str = "s", **result: Any) -> list[Event]:
        return self.call("session/new", {"cwd": "/w"}, {"sessionId": session, **result})

    def prompt(self, id: Any, session: str = "s", text: str = "hi") -> list[Event]:
        return self.ask("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]}, id)

    def update(self, kind: str, /, session: str = "s", **fields: Any) -> list[Event]:
        update = {"sessionUpdate": kind, **fields}
        return self.say(AGENT, method="session/update", params={"sessionId": session, "update": update})

    def state(self, state: str, session: str = "s", **fields: Any) -> list[Event]:
        return self.update("state_update", session, state=state, **fields)

    def close(self, side: Side) -> list[Event]:
        events = self.conversation.close(side, self.at)
        self.events += events
        return events

    @property
    def turns(self) -> list[tuple[str, str]]:
        """Turns that ended, with their stop reasons."""
        return [(event.turn.id, event.stop_reason) for event in self.events if isinstance(event, TurnEnded)]

    @property
    def started(self) -> list[str]:
        return [event.turn.id for event in self.events if isinstance(event, TurnStarted)]


def the(kind: type[T], events: list[Event]) -> T:
    """The only event of a kind."""
    (found,) = [event for event in events if isinstance(event, kind)]
    return found

"""Requests of our own to the client. What it answers is consumed: neither the agent nor the meter ever hears of it.

Loaded once somebody is asked. Ids are of 128 random bits that are told the client alone, so none is an id of the
agent's: it can neither answer one nor use one up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from acp_proxy.core import acp
from acp_proxy.core.acp.names import CANCEL
from acp_proxy.core.acp.questions import withdrawal_line
from acp_proxy.core.jsonrpc import Message, Notification, Request, Response, id_key

_ENDS = frozenset({CANCEL, acp.CLOSE, acp.ARCHIVE, acp.DELETE})  # what is asked for in the session that they name

Line = Callable[[str], bytes]
"""Makes the line of a question that has this id, without its newline."""


class Question(Struct, eq=False):
    """`answer` is None if none will come, and cancelled if the client takes back what it is asked about."""

    id: str
    line: bytes
    session: str | None
    about: tuple[str, Any]  # the key of the request's id
    answer: asyncio.Future[Response | None]
    told: bool = False
    waited_for: bool = True


class Questions:
    """Of one connection. `token` is random, and never told the agent; `insert` writes a line to the client."""

    def __init__(self, token: str, insert: Callable[[bytes], None]) -> None:
        self._begin = f"acp-proxy-{token}-"
        self._insert = insert
        self._asked = 0
        self._open: dict[str, Question] = {}

    def prepare(self, about: Request, line: Line) -> Question:
        """A question about a request of the client's, which from now on may take it back."""
        self._asked += 1
        name = f"{self._begin}{self._asked}"
        answer: asyncio.Future[Response | None] = asyncio.get_running_loop().create_future()
        question = Question(name, line(name), acp.session_of(about), id_key(about.id), answer)
        self._open[name] = question
        return question

    def tell(self, question: Question) -> None:
        if not question.answer.done():
            question.told = True
            self._insert(question.line)

    def owns(self, id: Any) -> bool:
        """Whether a response with this id answers a question, also one that was answered before."""
        return type(id) is str and id.startswith(self._begin)

    def takes(self, message: Message) -> bool:
        """Whether a client's message goes no further. Ends the questions about what it takes back."""
        match message:
            case Response(id=id) if self.owns(id):
                found = self._open.pop(id, None)
                if found is not None and not found.answer.done():
                    found.answer.set_result(message)
                return True
            case Notification(acp.CANCEL_REQUEST, {"requestId": about}):
                self._take_back(lambda each: each.about == id_key(about))
            case Request(method=method) | Notification(method=method) if method in _ENDS:
                session = acp.session_of(message)
                self._take_back(lambda each: each.session == session)
            case _:
                pass
        return False

    def decided(self, about: Request) -> None:
        """The request is answered: it can be taken back no more, though the client may still answer."""
        for each in self._open.values():
            each.waited_for = each.waited_for and each.about != id_key(about.id)

    def _take_back(self, which: Callable[[Question], bool]) -> None:
        for each in [each for each in self._open.values() if each.waited_for and which(each)]:
            del self._open[each.id]
            each.answer.cancel()
            if each.told:
                self._insert(withdrawal_line(each.id))

    def end(self) -> None:
        """A side is gone: what is open gets no answer any more."""
        opened, self._open = self._open, {}
        for each in opened.values():
            if not each.answer.done():
                each.answer.set_result(None)

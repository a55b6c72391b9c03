"""Requests that wait until every interceptor has admitted them, and the later lines of their sessions behind them.

A cancellation of a waiting request waits, too: an agent must not receive it before the request.
Only clients' requests wait, each for at most the timeout; the rest of the connection continues meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from math import inf
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core import acp
from acp_proxy.core.events import Side
from acp_proxy.core.jsonrpc import Message, Notification, Request, are_alike, id_key, may_round
from acp_proxy.dispatch.accounting import FAULTS, Accounting, ends_this_task
from acp_proxy.interceptor import Admitted, Interceptor, Refusal


class Decided(Struct, frozen=True):
    """The result for a request that waited. `behind` are its session's later lines, to be routed again."""

    request: Request
    line: bytes
    verdict: Refusal | Admitted | None
    behind: tuple[bytes, ...]


class Admission:
    """`decided` is called in the event loop. `timeout` in seconds bounds each interceptor's say."""

    def __init__(self, accounting: Accounting, decided: Callable[[Decided], None], timeout: float) -> None:
        self._accounting = accounting
        self._decided = decided
        self._timeout = timeout
        self._behind: dict[str | None, deque[bytes]] = {}  # by session
        self._waiting: dict[Any, deque[bytes]] = {}  # the same by the keys of all requests that wait
        self._tasks: set[asyncio.Task[None]] = set()
        self._enforcers = [(each, self._methods_of(each)) for each in accounting.interceptors]
        self.methods = frozenset[str]().union(*(methods for _, methods in self._enforcers))
        self.held = 0  # bytes

    def delays(self, session: str | None) -> bool:
        """Whether lines of this session wait, behind a request that does."""
        return session in self._behind

    def wanted(self, message: Message) -> bool:
        """Whether a client's message waits: to be admitted, or behind one of its session that does."""
        if not isinstance(message, Request | Notification) or not (self._behind or self.methods):
            return False
        if self._queue(message) is not None:
            return True
        return isinstance(message, Request) and message.method in self.methods

    def keeps(self, id: Any) -> bool:
        """Whether a request with this id waits, or with one that peers may take for the same."""
        key = id_key(id)
        return key in self._waiting or (may_round(id) and any(are_alike(key, other) for other in self._waiting))

    def hold(self, message: Message, line: bytes) -> None:
        """Take a line that is `wanted`."""
        queue = self._queue(message)
        self.held += len(line)
        if queue is not None:
            queue.append(line)
        elif isinstance(message, Request):
            session = acp.session_of(message)
            queue = self._behind[session] = deque()
            task = asyncio.ensure_future(self._decide(session, message, line))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        if isinstance(message, Request) and queue is not None:
            self._waiting[id_key(message.id)] = queue

    def _queue(self, message: Message) -> deque[bytes] | None:
        """The queue behind the request that a message must wait for; None if it waits for none."""
        match message:
            case Notification(acp.CANCEL_REQUEST, {"requestId": asked}):
                return self._waiting.get(id_key(asked))
            case _:
                return self._behind.get(acp.session_of(message))

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _decide(self, session: str | None, request: Request, line: bytes) -> None:
        verdict = await self._verdict(request)
        queue = self._behind.pop(session)
        self._waiting = {key: other for key, other in self._waiting.items() if other is not queue}
        behind = tuple(queue)
        self.held -= len(line) + sum(map(len, behind))
        self._decided(Decided(request, line, verdict, behind))

    def _methods_of(self, interceptor: Interceptor) -> frozenset[str]:
        """The methods that the interceptor admits; none if its `request_methods` are invalid."""
        try:
            methods: object = interceptor.request_methods
            if isinstance(methods, str):  # a set of its letters, and no method is one
                raise TypeError("str")
            return frozenset(interceptor.request_methods)
        except Exception as error:  # a faulty enforcer must not lock people out of their editor
            self._accounting.failed(interceptor, error)
            return frozenset()

    async def _verdict(self, request: Request) -> Refusal | Admitted | None:
        admitted: Admitted | None = None
        for interceptor, methods in self._enforcers:
            if request.method not in methods:
                continue
            try:
                async with asyncio.timeout(self._within(interceptor)):
                    verdict = _sound(await interceptor.admit(Side.CLIENT, request))
            except FAULTS as error:  # as above
                if ends_this_task(error):
                    raise
                self._accounting.failed(interceptor, error)
                continue
            if isinstance(verdict, Refusal):
                return verdict
            if verdict is not None:  # of ids the last counts, and all that is to be done is done
                before = admitted.effects if admitted else ()
                admitted = replace(verdict, effects=(*before, *verdict.effects))
        return admitted

    def _within(self, interceptor: Interceptor) -> float | None:
        seconds = interceptor.admit_timeout or self._timeout
        return None if seconds == inf else seconds


def _sound(verdict: Refusal | Admitted | None) -> Refusal | Admitted | None:
    """The verdict. Raises TypeError for what cannot be carried out as a whole: others' code may return anything."""
    match verdict:
        case None:
            return None
        case Refusal():
            acp.answer_to(b"", verdict.result, verdict.error)
        case Admitted(turn=str()):
            pass
        case _:
            raise TypeError(type(verdict).__name__)
    return replace(verdict, effects=tuple(verdict.effects))

"""Requests that wait until every interceptor has admitted them, and the later lines of their sessions behind them.

A cancellation of a waiting request waits, too: an agent must not receive it before the request. Once it is known that
a request will not go, nothing waits behind it any more, though its answer may still take a while.
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


class _Waits(Struct):
    """A request, and the later lines of its session."""

    session: str | None
    line: bytes
    behind: deque[bytes]


class Admission:
    """`decided` is called in the event loop. `timeout` in seconds bounds each interceptor's say."""

    def __init__(self, accounting: Accounting, decided: Callable[[Decided], None], timeout: float) -> None:
        self._accounting = accounting
        self._decided = decided
        self._timeout = timeout
        self._first: dict[str | None, _Waits] = {}  # by session
        self._waiting: dict[Any, _Waits] = {}  # the same by the keys of all requests that wait
        self._answerless: set[Any] = set()  # keys of requests that will not go
        self._tasks: set[asyncio.Task[None]] = set()
        self._enforcers = [(each, self._methods_of(each)) for each in accounting.interceptors]
        self.methods = frozenset[str]().union(*(methods for _, methods in self._enforcers))
        self.held = 0  # bytes
        self._no_weight = 0  # bytes of these that are of requests which will not go

    def delays(self, session: str | None) -> bool:
        """Whether lines of this session wait, behind a request that does."""
        return session in self._first

    def wanted(self, message: Message) -> bool:
        """Whether a client's message waits: to be admitted, or behind one of its session that does."""
        if not isinstance(message, Request | Notification) or not (self._first or self.methods):
            return False
        if self._before(message) is not None:
            return True
        return isinstance(message, Request) and message.method in self.methods

    def keeps(self, id: Any) -> bool:
        """Whether a request with this id waits, or with one that peers may take for the same."""
        key = id_key(id)
        if key in self._waiting or key in self._answerless:
            return True
        return may_round(id) and any(are_alike(key, other) for other in (*self._waiting, *self._answerless))

    def hold(self, message: Message, line: bytes) -> None:
        """Take a line that is `wanted`."""
        waits = self._before(message)
        self.held += len(line)
        if waits is not None:
            waits.behind.append(line)
        elif isinstance(message, Request):
            session = acp.session_of(message)
            waits = self._first[session] = _Waits(session, line, deque())
            task = asyncio.ensure_future(self._decide(waits, message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        if isinstance(message, Request) and waits is not None:
            self._waiting[id_key(message.id)] = waits

    def _before(self, message: Message) -> _Waits | None:
        """What a message must wait for; None if it waits for nothing."""
        match message:
            case Notification(acp.CANCEL_REQUEST, {"requestId": asked}):
                return self._waiting.get(id_key(asked))
            case _:
                return self._first.get(acp.session_of(message))

    def will_not_go(self, request: Request) -> tuple[bytes, ...]:
        """The lines behind a request that waits first of its session, and is to be refused: they are to be routed."""
        key = id_key(request.id)
        waits = self._waiting.get(key)
        if waits is None or key in self._answerless:
            return ()
        self._answerless.add(key)
        self._no_weight += len(waits.line)
        return self._let_go(waits)

    def _let_go(self, waits: _Waits) -> tuple[bytes, ...]:
        """The lines behind it, unless they have been let go before."""
        if self._first.get(waits.session) is not waits:
            return ()
        del self._first[waits.session]
        self._waiting = {key: other for key, other in self._waiting.items() if other is not waits}
        self.held -= sum(map(len, waits.behind))
        return tuple(waits.behind)

    @property
    def weight(self) -> int:
        """Bytes that wait to be sent to the agent: with too many of them the client is not read."""
        return self.held - self._no_weight

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _decide(self, waits: _Waits, request: Request) -> None:
        verdict = await self._verdict(request)
        behind = self._let_go(waits)
        self.held -= len(waits.line)
        key = id_key(request.id)
        if key in self._answerless:
            self._answerless.remove(key)
            self._no_weight -= len(waits.line)
        self._decided(Decided(request, waits.line, verdict, behind))

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

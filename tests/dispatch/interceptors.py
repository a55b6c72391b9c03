"""Interceptors for tests of what is forwarded when."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from acp_proxy.core.effects import Effect, Send
from acp_proxy.core.events import Event, Side
from acp_proxy.core.jsonrpc import Request
from acp_proxy.interceptor import Admitted, Interceptor, Refusal

OWN = b'{"own":1}'
USED = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}


class Notes(Interceptor):
    """Keeps what it is told, whole."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def on_event(self, event: Event) -> Iterable[Effect]:
        self.events.append(event)
        return ()


class Speaks(Interceptor):
    """Says a word on every event of a type."""

    def __init__(self, *types: type) -> None:
        self._types = types
        self.seen: list[Event] = []

    def on_event(self, event: Event) -> Iterable[Effect]:
        self.seen.append(event)
        return [Send(Side.CLIENT, OWN)] if isinstance(event, self._types) else []


class Gate(Interceptor):
    """Lets a prompt wait until told what to do with it."""

    request_methods = frozenset({"session/prompt"})

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.verdict: asyncio.Future[Refusal | Admitted | None] = asyncio.get_running_loop().create_future()

    async def admit(self, sender: Side, request: Request) -> Refusal | Admitted | None:
        self.asked.append(request)
        return await self.verdict


async def settled() -> None:
    """Everything that can run has run."""
    for _ in range(10):
        await asyncio.sleep(0)

"""A connection without processes: what each side says goes in, what the other side gets comes out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from acp_proxy.catalog import Catalog
from acp_proxy.core.conversation import Conversation
from acp_proxy.core.events import Side
from acp_proxy.core.meter import Meter
from acp_proxy.core.traffic import Traffic
from acp_proxy.dispatch import Dispatcher
from acp_proxy.dispatch.accounting import Later
from acp_proxy.interceptor import Interceptor

SESSION = "sess-1"


class Wire:
    """Takes what is written to one side."""

    def __init__(self) -> None:
        self.data = b""
        self.held_back = self.owed = 0
        self.written = asyncio.Event()

    def write(self, data: bytes) -> None:
        self.data += data
        self.written.set()

    insert = write

    def owe(self, size: int) -> None:
        self.owed = size

    def hold_back(self, size: int) -> None:
        self.held_back = size

    @property
    def messages(self) -> list[Any]:
        return [json.loads(line) for line in self.data.splitlines()]


class Ends:
    """A client and an agent with a dispatcher between them. The clock ticks a millisecond a look."""

    def __init__(
        self,
        interceptors: Sequence[Interceptor] = (),
        *,
        admission_timeout: float = 5.0,
        later: Later | None = None,
        aliases: Mapping[str, str] | None = None,
        clock: Callable[[], int] | None = None,
        estimate: bool = True,
    ) -> None:
        ticks = count(1_800_000_000_000_000_000, 1_000_000)
        ids: Iterator[int] = count(1)
        self.log: list[tuple[str, str, dict[str, Any]]] = []
        self.client, self.agent = Wire(), Wire()
        self.traffic = Traffic()
        self.dispatcher = Dispatcher(
            Conversation(lambda _: f"turn-{next(ids)}"),
            Meter(Catalog(aliases=aliases), lambda _: f"extra-{next(ids)}", aliases=aliases, estimate=estimate),
            interceptors,
            clock=clock or (lambda: next(ticks)),
            log=lambda level, event, **fields: self.log.append((level, event, fields)),
            later=later,
            admission_timeout=admission_timeout,
            traffic=self.traffic,
        )
        self.dispatcher.attach(self.client, self.agent)

    def client_says(self, *messages: Any) -> None:
        self.dispatcher.lines(Side.CLIENT, encoded(*messages))

    def agent_says(self, *messages: Any) -> None:
        self.dispatcher.lines(Side.AGENT, encoded(*messages))

    def open_session(
        self,
        agent: str = "gemini-cli",
        version: str = "0.61.0",
        model: str | None = "gemini-3.8-flash",
        protocol: int = 1,
    ) -> None:
        info = {1: "agentInfo", 2: "info"}[protocol]
        self.client_says(request(0, "initialize", protocolVersion=protocol))
        self.agent_says(answer(0, protocolVersion=protocol, **{info: {"name": agent, "version": version}}))
        self.client_says(request(1, "session/new", cwd="/tmp", mcpServers=[]))
        self.agent_says(answer(1, sessionId=SESSION, models={"currentModelId": model} if model else None))
        self.client.data = self.agent.data = b""
        self.agent.written.clear()


def encoded(*messages: Any) -> bytes:
    return b"".join(m if isinstance(m, bytes) else json.dumps(m).encode() + b"\n" for m in messages)


def request(id: Any, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def answer(id: Any, **result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": result}


def prompt(id: Any, text: str = "hello", session: str = SESSION) -> dict[str, Any]:
    return request(id, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])


def update(kind: str, session: str = SESSION, **fields: Any) -> dict[str, Any]:
    params = {"sessionId": session, "update": {"sessionUpdate": kind, **fields}}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def chunk(text: str = "hi", session: str = SESSION) -> dict[str, Any]:
    return update("agent_message_chunk", session, content={"type": "text", "text": text})

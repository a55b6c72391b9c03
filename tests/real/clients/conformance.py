"""Plays through what the protocol's conformance kit asks of an agent, and keeps what came of it.

The kit (acp-tck) is in no package registry; this is written anew from a part of its published requirements, whose
names `judging` uses. Nothing is judged here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LINE_LIMIT = 1 << 26
SECONDS = 30
UNSUPPORTED = 65535
NOWHERE = "/nowhere/that/anyone/works"
EXTRAS = {
    "image": {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
    "audio": {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
    "embeddedContext": {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "a"}},
}


@dataclass(frozen=True, slots=True)
class Subject:
    """An agent, and how to make it work for a while."""

    command: Sequence[str]
    environment: Mapping[str, str]
    directory: Path
    version: int
    long_prompt: str
    sign_in: str | None = None
    patience: float = 2.0  # seconds that the kit gives an agent to leave when its input is closed


@dataclass(slots=True)
class Record:
    answers: dict[str, Any] = field(default_factory=dict)  # a step -> the whole message; {} when the agent ended
    during: dict[str, list[Any]] = field(default_factory=dict)  # a step -> what else came until its answer
    lines: list[bytes] = field(default_factory=list)
    ids: list[tuple[Any, Any]] = field(default_factory=list)  # as sent, as answered
    statuses: list[int | None] = field(default_factory=list)  # None: it had not left in time

    def result(self, step: str) -> Any:
        return self.answers.get(step, {}).get("result")

    def updates(self, step: str) -> list[Any]:
        return [said["params"] for said in self.during.get(step, ()) if said.get("method") == "session/update"]


async def record(subject: Subject) -> Record:
    """Four processes of the agent: one that is used, one asked for a version that there is not, one that is cancelled
    in mid-turn, one that gets what is not a message."""
    kept = Record()
    async with _started(subject, kept) as peer:
        await _used(peer, subject, kept)
    async with _started(subject, kept) as peer:
        await peer.call("unsupported", "initialize", _introduction(subject.version) | {"protocolVersion": UNSUPPORTED})
    async with _started(subject, kept) as peer:
        await _cancelled(peer, subject, kept)
    async with _started(subject, kept) as peer:
        await _annoyed(peer, subject)
    return kept


async def _used(peer: Peer, subject: Subject, kept: Record) -> None:
    where = {"cwd": str(subject.directory), "mcpServers": []}
    await peer.call("initialize", "initialize", _introduction(subject.version))
    session = await _opened(peer, subject, kept)
    await peer.call("new again", "session/new", where, id="a string")
    link = {"type": "resource_link", "name": "notes", "uri": "file:///notes.txt"}
    await peer.prompt("prompt", session, [link])
    await peer.prompt("prompt with _meta", session, meta={"x.test/y": [1]})
    for name, block in EXTRAS.items():
        if _can(kept, name):
            await peer.prompt(name, session, [block])
    await _set(peer, session, kept)
    await peer.call("list", "session/list", {})
    await peer.call("list elsewhere", "session/list", {"cwd": NOWHERE})
    await peer.call("load", "session/load", {"sessionId": session, **where})
    await peer.call("resume", "session/resume", {"sessionId": session, **where})
    await peer.call("fork", "session/fork", {"sessionId": session, **where})
    await peer.call("elsewhere", "session/new", where | {"additionalDirectories": [str(subject.directory.parent)]})
    await peer.call("unknown method", "no/such/method", {})
    await peer.call("custom method", "_x.test/method", {"a": 1})
    peer.send({"method": "_x.test/told", "params": {}})
    peer.send({"method": "$/x.test", "params": {}})
    await peer.call("after notifications", "_x.test/fence", {})
    prompt = [{"type": "text", "text": "hello"}]
    await peer.call("unknown session", "session/prompt", {"sessionId": "no-such-session", "prompt": prompt})
    await peer.call("close", "session/close", {"sessionId": session})
    await peer.call("delete", "session/delete", {"sessionId": session})
    await peer.call("delete again", "session/delete", {"sessionId": session})


async def _set(peer: Peer, session: str, kept: Record) -> None:
    opened = kept.result("new") or {}
    match opened:
        case {"modes": {"currentModeId": mode}}:
            await peer.call("mode", "session/set_mode", {"sessionId": session, "modeId": mode})
    match opened:
        case {"configOptions": [{"currentValue": value} as option, *_]}:
            params = {"sessionId": session, "configId": option.get("configId", option.get("id")), "value": value}
            await peer.call("option", "session/set_config_option", params)


async def _cancelled(peer: Peer, subject: Subject, kept: Record) -> None:
    await peer.call("cancel: initialize", "initialize", _introduction(subject.version))
    session = await _opened(peer, subject, kept, "cancel: new")
    turn = asyncio.create_task(peer.prompt("cancelled", session, text=subject.long_prompt))
    await peer.works()
    peer.send({"method": "session/cancel", "params": {"sessionId": session, "_meta": {"x.test/why": 1}}})
    await turn
    await peer.call("after cancelled", "_x.test/fence", {})


async def _annoyed(peer: Peer, subject: Subject) -> None:
    await peer.call("annoyed: initialize", "initialize", _introduction(subject.version))
    for step, line in {
        "not JSON": b"this is not JSON",
        "half a batch": b'[{"jsonrpc": "2.0", "id": 7, "method": ',
        "not a request": b'{"jsonrpc": "2.0", "id": 8}',
        "empty batch": b"[]",
        "batch of notifications": b'[{"jsonrpc": "2.0", "method": "_x.test/told", "params": {}}]',
        "batch": b'[{"jsonrpc": "2.0", "id": 9, "method": "_x.test/a", "params": {}}, 1]',
    }.items():
        peer.raw(line)
        await peer.call(step, "_x.test/fence", {})


async def _opened(peer: Peer, subject: Subject, kept: Record, step: str = "new") -> str:
    where = {"cwd": str(subject.directory), "mcpServers": []}
    await peer.call(step, "session/new", where)
    if kept.answers[step].get("error", {}).get("code") == -32000 and subject.sign_in:
        method = "authenticate" if subject.version == 1 else "auth/login"
        await peer.call("sign in", method, {"methodId": subject.sign_in})
        await peer.call(step, "session/new", where)
    return str((kept.result(step) or {}).get("sessionId"))


def _introduction(version: int) -> dict[str, Any]:
    me = {"name": "conformance", "version": "1"}
    if version == 1:
        return {"protocolVersion": 1, "clientInfo": me, "clientCapabilities": {}}
    return {"protocolVersion": version, "info": me, "capabilities": {}}


def _can(kept: Record, name: str) -> bool:
    match kept.result("initialize"):
        case {"agentCapabilities": {"promptCapabilities": dict(can)}} | {
            "capabilities": {"session": {"prompt": dict(can)}}
        }:
            return can.get(name) not in (None, False)
    return False


@contextlib.asynccontextmanager
async def _started(subject: Subject, kept: Record) -> AsyncIterator[Peer]:
    process = await asyncio.create_subprocess_exec(
        *subject.command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=subject.environment,
        cwd=subject.directory,
        limit=LINE_LIMIT,
        start_new_session=True,
    )
    peer = Peer(process, kept, subject.version)
    try:
        yield peer
        kept.statuses.append(await peer.leave(subject.patience))
    finally:
        if process.returncode is None:
            process.terminate()  # not a kill, which would leave behind what the agent has started
            await process.wait()


class Peer:
    """The client's end. It allows what it is asked for, and has no methods to offer."""

    def __init__(self, process: asyncio.subprocess.Process, kept: Record, version: int) -> None:
        self._process, self._kept, self._version = process, kept, version
        self._next = 0
        self._heard: list[Any] = []
        self._more = asyncio.Condition()
        self._ended = False
        self._reader = asyncio.create_task(self._read())

    async def call(self, step: str, method: str, params: dict[str, Any], id: Any = None) -> Any:
        """The answer, which is also kept as that of `step`; {} when the agent has ended or says nothing."""
        self._next += 1
        number = self._next if id is None else id
        start = len(self._heard)
        self.send({"id": number, "method": method, "params": params})
        answer = await self._first(start, lambda said: "method" not in said and said.get("id") == number)
        if answer:
            self._kept.ids.append((number, answer["id"]))
        self._keep(step, start, answer)
        return answer

    async def prompt(
        self, step: str, session: str, blocks: Sequence[Any] = (), *, text: str = "hello", meta: Any = None
    ) -> None:
        """A turn to its end: the answer, in version 2 the idle state after it."""
        start = len(self._heard)
        params = {"sessionId": session, "prompt": [{"type": "text", "text": text}, *blocks]}
        answer = await self.call(step, "session/prompt", params | ({"_meta": meta} if meta else {}))
        if self._version == 2 and "result" in answer:
            await self._first(start, _is_idle)
            self._keep(step, start, answer)

    async def works(self) -> None:
        """Until the first word of an answer: other updates may still be those of a session that was just opened."""
        await self._first(len(self._heard), _is_word)

    def send(self, message: dict[str, Any]) -> None:
        self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def raw(self, line: bytes) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(ConnectionError):
                self._process.stdin.write(line + b"\n")

    async def leave(self, patience: float) -> int | None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        with contextlib.suppress(TimeoutError):
            return await asyncio.wait_for(self._process.wait(), patience)
        return None

    def _keep(self, step: str, start: int, answer: Any) -> None:
        self._kept.answers[step] = answer
        self._kept.during[step] = [said for said in self._heard[start:] if said is not answer]

    async def _first(self, start: int, wanted: Any) -> Any:
        async with self._more:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SECONDS):
                    while not (found := [said for said in self._heard[start:] if wanted(said)]) and not self._ended:
                        await self._more.wait()
                    return found[0] if found else {}
        return {}

    async def _read(self) -> None:
        while self._process.stdout is not None and (line := await self._process.stdout.readline()):
            self._kept.lines.append(line)
            await self._hear(line)
        async with self._more:
            self._ended = True
            self._more.notify_all()

    async def _hear(self, line: bytes) -> None:
        try:
            said = json.loads(line)
        except ValueError:
            return
        async with self._more:
            self._heard.append(said if isinstance(said, dict) else {"batch": said})
            self._more.notify_all()
        match said:
            case {"method": "session/request_permission", "id": id, "params": {"options": [{"optionId": option}, *_]}}:
                self.send({"id": id, "result": {"outcome": {"outcome": "selected", "optionId": option}}})
            case {"method": str(method), "id": id}:
                self.send({"id": id, "error": {"code": -32601, "message": f"Method not found: {method}"}})


def _is_idle(said: Any) -> bool:
    match said:
        case {"params": {"update": {"sessionUpdate": "state_update", "state": "idle", "stopReason": _}}}:
            return True
    return False


def _is_word(said: Any) -> bool:
    match said:
        case {"params": {"update": {"sessionUpdate": "agent_message_chunk"}}}:
            return True
    return False

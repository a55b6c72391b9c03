"""A small ACP client, protocol versions 1 and 2: prompts, allows what the agent asks for, cancels, counts."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

LINE_LIMIT = 1 << 28
ANSWER_SECONDS = 120


class AgentError(Exception):
    """The agent answered with an error, or not at all."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error.get('code')}: {error.get('message')}")
        self.code = error.get("code")


class Client:
    def __init__(self, process: asyncio.subprocess.Process, version: int) -> None:
        self._version = version
        self._process = process
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._idle = asyncio.Event()
        self._quiet = asyncio.Event()
        self._heard = 0
        self.usage_updates = 0  # all of them
        self.added = 0  # those of acp-proxy
        self._reader = asyncio.create_task(self._read())

    async def initialize(self) -> None:
        me = {"name": "real-agents", "version": "1"}
        if self._version == 2:
            params = {"protocolVersion": 2, "info": me, "capabilities": {}}
        else:
            params = {"protocolVersion": 1, "clientInfo": me, "clientCapabilities": {}}
        answer = await self.call("initialize", params)
        if answer["protocolVersion"] != self._version:
            raise AgentError({"code": 0, "message": f"speaks version {answer['protocolVersion']}"})

    async def session(self, directory: Path, sign_in: str | None, mode: str | None) -> str:
        params = {"cwd": str(directory), "mcpServers": []}
        try:
            answer = await self.call("session/new", params)
        except AgentError as error:
            if error.code != -32000 or sign_in is None:
                raise
            await self.call("authenticate", {"methodId": sign_in})
            answer = await self.call("session/new", params)
        session = str(answer["sessionId"])
        if mode is not None:
            with contextlib.suppress(AgentError):
                await self.call("session/set_mode", {"sessionId": session, "modeId": mode})
        await self.quiet()
        return session

    async def prompt(self, session: str, text: str, cancel_after: float | None = None) -> None:
        """One turn, to its end and until late updates are in."""
        self._idle.clear()
        turn = asyncio.create_task(self._turn(session, text))
        if cancel_after is not None:
            await asyncio.sleep(cancel_after)
            self._send({"method": "session/cancel", "params": {"sessionId": session}})
        with contextlib.suppress(AgentError):  # an error ends a turn too
            await turn
        await self.quiet()

    async def _turn(self, session: str, text: str) -> None:
        prompt = [{"type": "text", "text": text}]
        await self.call("session/prompt", {"sessionId": session, "prompt": prompt})
        if self._version == 2:
            await asyncio.wait_for(self._idle.wait(), ANSWER_SECONDS)

    async def quiet(self) -> None:
        """Until the agent has said nothing for 0.7 s, at most 10 s."""
        for _ in range(14):
            heard = self._heard
            await asyncio.sleep(0.7)
            if heard == self._heard:
                return

    async def call(self, method: str, params: dict[str, Any]) -> Any:
        number = len(self._answers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        self._send({"id": number, "method": method, "params": params})
        try:
            return await asyncio.wait_for(self._answers[number], ANSWER_SECONDS)
        except TimeoutError:
            raise AgentError({"code": 0, "message": f"no answer to {method}"}) from None

    async def close(self) -> int:
        """Closes the agent's stdin; returns its exit status."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            return await asyncio.wait_for(self._process.wait(), 15)
        finally:
            self._reader.cancel()

    def _send(self, message: dict[str, Any]) -> None:
        if self._process.stdin is not None:
            self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def _read(self) -> None:
        while self._process.stdout is not None and (line := await self._process.stdout.readline()):
            self._heard += 1
            with contextlib.suppress(ValueError):
                self._hear(json.loads(line))
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(AgentError({"code": 0, "message": "the agent has ended"}))

    def _hear(self, message: Any) -> None:
        match message:
            case {"method": "session/request_permission", "id": id, "params": {"options": [first, *_] as options}}:
                chosen = next((option for option in options if option.get("kind") == "allow_once"), first)
                outcome = {"outcome": "selected", "optionId": chosen["optionId"]}
                self._send({"id": id, "result": {"outcome": outcome}})
            case {"method": str(method), "id": id}:
                self._send({"id": id, "error": {"code": -32601, "message": f"Method not found: {method}"}})
            case {"method": "session/update", "params": {"update": update}}:
                self._update(update)
            case {"id": int(id), "error": error} if not self._answers[id].done():
                self._answers[id].set_exception(AgentError(error))
            case {"id": int(id)} if not self._answers[id].done():
                self._answers[id].set_result(message.get("result"))

    def _update(self, update: dict[str, Any]) -> None:
        match update:
            case {"sessionUpdate": "usage_update"}:
                self.usage_updates += 1
                self.added += "acp-proxy" in (update.get("_meta") or {})
            case {"sessionUpdate": "state_update", "state": "idle"}:
                self._idle.set()

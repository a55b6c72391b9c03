"""A session with a released agent by a client made with the official SDK: every message that it got, as lines."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import acp
from acp import schema
from acp.client.connection import ClientSideConnection

from tests.real.clients.sdk_client import EverythingClient, Talk, refused, talk

SECONDS_FOR_A_TITLE = 5
ANY_ORDER = ("available_commands_update", "session_info_update", "config_option_update")  # sent when they are known


class TitledClient(EverythingClient):
    """Knows when the session has a title that a model gave it."""

    def __init__(self, prompts: tuple[str, ...]) -> None:
        super().__init__()
        self.titled = asyncio.Event()
        self._prompts = prompts  # which some agents take for a title at first

    async def session_update(self, session_id: str, update: Any, **params: Any) -> None:
        await super().session_update(session_id, update, **params)
        match update:
            case schema.SessionInfoUpdate(title=str(title)) if title not in self._prompts:
                self.titled.set()


def session(
    command: list[str],
    environment: Mapping[str, str],
    directory: Path,
    sign_in: str | None,
    mode: str | None,
    *,
    says: tuple[str, str],
    waits: str,
) -> Talk:
    """Prompts of `says`, one more, `waits`, that is cancelled, and a method that no agent has."""

    async def play(agent: ClientSideConnection, client: TitledClient) -> None:
        can = schema.ClientCapabilities(fs=schema.FileSystemCapabilities(read_text_file=True, write_text_file=True))
        await agent.initialize(1, can, schema.Implementation(name="sdk-client", version="1"))
        if sign_in:
            await agent.authenticate(sign_in)
        opened = (await agent.new_session(str(directory), mcp_servers=[])).session_id
        if mode:
            await agent.set_session_mode(opened, mode)
        for text in says:
            await agent.prompt(opened, [acp.text_block(text)])
            with contextlib.suppress(TimeoutError):  # it is asked for beside the turn, and calls of models are numbered
                await asyncio.wait_for(client.titled.wait(), SECONDS_FOR_A_TITLE)
        client.working.clear()
        turn = asyncio.create_task(agent.prompt(opened, [acp.text_block(waits)]))
        await client.working.wait()
        await agent.cancel(opened)
        await turn
        await refused(agent.ext_method("unknown", {}))

    return asyncio.run(talk(command, environment, play, TitledClient(says)))


def lines(told: Talk) -> list[str]:
    """A line a message; a text that came in pieces is one line, and what has no place in a turn is at the end."""
    said: list[dict[str, Any]] = []
    aside = []
    for message in told.without_ours():
        match message:
            case {"params": {"update": {"sessionUpdate": kind}}} if kind in ANY_ORDER:
                aside.append(message)
            case {"params": {"update": {"content": {"text": str(text)}, "sessionUpdate": kind}}} if said and _is(
                said[-1], kind
            ):
                said[-1]["params"]["update"]["content"]["text"] += text
            case _:
                said.append(json.loads(json.dumps(message)))
    written = [json.dumps(message, ensure_ascii=False) for message in said]
    return [*written, *sorted(json.dumps(message, ensure_ascii=False) for message in aside), *map(_ended, told.status)]


def _is(message: dict[str, Any], kind: str) -> bool:
    match message:
        case {"params": {"update": {"sessionUpdate": same, "content": {"text": str()}}}}:
            return bool(same == kind)
    return False


def _ended(status: int | None) -> str:
    """As a shell says it, and so acp-proxy: 143 where the SDK sees that SIGTERM, its own, ended the agent."""
    return f"status {128 - status if status is not None and status < 0 else status}"

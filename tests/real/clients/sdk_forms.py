"""A client of the official SDK whose user fills in the forms of an agent, and asks for more by one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from acp import schema, text_block
from acp.client.connection import ClientSideConnection

from tests.real.clients.sdk_client import EverythingClient, Talk, talk


class FillsIn(EverythingClient):
    """Sends a form with what its user would write."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, Any]] = []

    async def create_elicitation(self, message: str, mode: Any, **params: Any) -> schema.AcceptElicitationResponse:
        self.asked.append((message, mode))
        return schema.AcceptElicitationResponse(action="accept", content={"amount": 2, "reason": "release night"})


async def four_prompts(
    command: list[str], environment: Mapping[str, str], client: FillsIn, *, after_the_third: Callable[[], None]
) -> Talk:
    """What was said in one session with four prompts."""

    async def play(connection: ClientSideConnection, client: FillsIn) -> None:
        forms = schema.ElicitationCapabilities(form=schema.ElicitationFormCapabilities())
        await connection.initialize(1, schema.ClientCapabilities(elicitation=forms))
        session = (await connection.new_session("/", mcp_servers=[])).session_id
        for then in (None, None, after_the_third, None):
            await connection.prompt(session, [text_block("go")])
            if then is not None:
                await asyncio.to_thread(then)

    return await talk(command, environment, play, client)

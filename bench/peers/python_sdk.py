"""A relay on the official Python SDK: an Agent to the editor, a Client to the agent, every message a pydantic model."""

import asyncio
import os
import sys
from typing import Any

from acp import run_agent, spawn_agent_process
from acp.interfaces import Agent, Client

LIMIT = 1 << 30


class TowardsEditor(Client):
    """What the agent sees."""

    editor: Any = None

    async def session_update(self, session_id, update, **more):
        await self.editor.session_update(session_id, update, **more)

    async def request_permission(self, **params):
        return await self.editor.request_permission(**params)

    async def ext_method(self, method, params):
        return await self.editor.ext_method(method, params)

    async def ext_notification(self, method, params):
        await self.editor.ext_notification(method, params)


class TowardsAgent(Agent):
    """What the editor sees."""

    def __init__(self, agent: Any, back: TowardsEditor) -> None:
        self.agent, self.back = agent, back

    def on_connect(self, conn):
        self.back.editor = conn

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **more):
        return await self.agent.initialize(protocol_version, client_capabilities, client_info, **more)

    async def new_session(self, cwd, additional_directories=None, mcp_servers=None, **more):
        return await self.agent.new_session(cwd=cwd, mcp_servers=mcp_servers or [], **more)

    async def set_session_mode(self, session_id, mode_id, **more):
        return await self.agent.set_session_mode(session_id=session_id, mode_id=mode_id, **more)

    async def prompt(self, session_id, prompt, **more):
        return await self.agent.prompt(session_id=session_id, prompt=prompt, **more)

    async def cancel(self, session_id, **more):
        await self.agent.cancel(session_id=session_id, **more)

    async def ext_method(self, method, params):
        return await self.agent.ext_method(method, params)

    async def ext_notification(self, method, params):
        await self.agent.ext_notification(method, params)


async def main() -> None:
    command = sys.argv[sys.argv.index("--") + 1 :]
    back = TowardsEditor()
    transport = {"limit": LIMIT, "stderr": None}
    async with spawn_agent_process(back, *command, env=os.environ, transport_kwargs=transport) as (agent, process):
        await run_agent(TowardsAgent(agent, back), stdio_buffer_limit_bytes=LIMIT)
        code = await process.wait()
    raise SystemExit(code)


asyncio.run(main())

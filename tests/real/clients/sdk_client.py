"""A client made with the official SDK that calls all that a client may call, and keeps what it got."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import acp
from acp import schema
from acp.client.connection import ClientSideConnection
from acp.connection import StreamDirection, StreamEvent
from acp.interfaces import Agent

LINE_LIMIT = 50 << 20
SECONDS = 120


@dataclass(frozen=True, slots=True)
class Talk:
    """What arrived at the client, as messages in their order, and how the agent's process ended."""

    got: list[dict[str, Any]] = field(default_factory=list)
    status: list[int | None] = field(default_factory=list)

    def without_ours(self) -> list[dict[str, Any]]:
        return [message for message in self.got if not ours(message)]

    def ours(self) -> list[dict[str, Any]]:
        return [message for message in self.got if ours(message)]


def ours(message: dict[str, Any]) -> bool:
    match message:
        case {"method": "session/update", "params": {"update": {"_meta": {"acp-proxy": _}}}}:
            return True
    return False


class EverythingClient:
    """Says yes to what an agent asks for. It has one file and one terminal, both without any effect."""

    def __init__(self) -> None:
        self.working = asyncio.Event()
        self._file = ""

    def on_connect(self, conn: Agent) -> None:
        """Nothing to keep: the test talks through its own connection."""

    async def session_update(self, session_id: str, update: Any, **params: Any) -> None:
        self.working.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[schema.PermissionOption], **params: Any
    ) -> schema.RequestPermissionResponse:
        chosen = {"outcome": "selected", "optionId": options[0].option_id}
        return schema.RequestPermissionResponse.model_validate({"outcome": chosen})

    async def write_text_file(self, session_id: str, path: str, content: str, **params: Any) -> None:
        self._file = content

    async def read_text_file(self, session_id: str, path: str, **params: Any) -> schema.ReadTextFileResponse:
        return schema.ReadTextFileResponse(content=self._file)

    async def create_terminal(self, session_id: str, command: str, **params: Any) -> schema.CreateTerminalResponse:
        return schema.CreateTerminalResponse(terminal_id="term-1")

    async def terminal_output(self, session_id: str, terminal_id: str, **params: Any) -> schema.TerminalOutputResponse:
        return schema.TerminalOutputResponse(output="out\x1b[0m", truncated=True)

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **params: Any
    ) -> schema.WaitForTerminalExitResponse:
        return schema.WaitForTerminalExitResponse(exit_code=0)

    async def kill_terminal(self, session_id: str, terminal_id: str, **params: Any) -> None:
        """It is not running."""

    async def release_terminal(self, session_id: str, terminal_id: str, **params: Any) -> None:
        """There is nothing to give back."""

    async def create_elicitation(self, message: str, mode: Any, **params: Any) -> schema.AcceptElicitationResponse:
        return schema.AcceptElicitationResponse(action="accept", content={"name": "Ada"})

    async def complete_elicitation(self, elicitation_id: str, **params: Any) -> None:
        """There is no form to close."""

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "unknown":
            raise acp.RequestError(-32601, "Not here", {"method": method})
        return {"echo": params}

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """The talk has it."""


Client = TypeVar("Client", bound=EverythingClient)


async def talk(
    command: list[str],
    environment: Mapping[str, str],
    play: Callable[[ClientSideConnection, Client], Awaitable[None]],
    client: Client,
) -> Talk:
    """Starts `command`, plays, and leaves as the SDK leaves an agent."""
    told = Talk()

    def observe(event: StreamEvent) -> None:
        if event.direction is StreamDirection.INCOMING:
            told.got.append(event.message)

    async with asyncio.timeout(SECONDS):
        spawned = acp.spawn_agent_process(
            cast(Any, client),  # its methods take as **params what the SDK's interface lists
            command[0],
            *command[1:],
            env=environment,
            transport_kwargs={"limit": LINE_LIMIT, "stderr": None, "shutdown_timeout": SECONDS},
            observers=[observe],
            use_unstable_protocol=True,
        )
        async with spawned as (agent, process):
            await play(agent, client)
        told.status.append(process.returncode)
    return told


async def everything(agent: ClientSideConnection, client: EverythingClient) -> None:
    """Each method of the SDK's client at least once; what agents answer is in the talk."""
    fs = schema.FileSystemCapabilities(read_text_file=True, write_text_file=True)
    can = schema.ClientCapabilities(fs=fs, terminal=True)
    me = schema.Implementation(name="everything-client", version="1")
    here = str(Path("/"))
    await agent.initialize(1, can, me, traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    await agent.authenticate("key")
    session = (await agent.new_session(here, mcp_servers=[])).session_id
    await agent.list_sessions(cwd=here, cursor="more")
    await agent.set_session_mode(session, "code")
    await agent.set_config_option("model", session, "claude-haiku-4-5")
    await agent.set_config_option("web", session, False)
    await agent.prompt(session, [acp.text_block("everything"), *_blocks()], origin="test")
    await agent.prompt(session, [acp.text_block("large")])
    for reason in ("end_turn", "max_tokens", "max_turn_requests", "refusal"):
        await agent.prompt(session, [acp.text_block(reason)])
    await refused(agent.prompt(session, [acp.text_block("fail")]))
    await _cancelled(agent, client, session)
    fork = (await agent.fork_session(session, here)).session_id
    await agent.prompt(fork, [acp.text_block("end_turn")])
    await agent.load_session(here, session)
    await agent.resume_session(session, here)
    await agent.ext_method("echo", {"deep": {"n": 2**53, "f": 0.1, "text": "☕\u2028\u0000"}})
    await agent.ext_notification("tell", {"c": None})
    await refused(agent.ext_method("unknown", {}))
    await agent.close_session(fork)
    await agent.ext_method("heard", {})


async def refused(call: Awaitable[Any]) -> None:
    """An error is the answer here; which one is in the talk."""
    try:
        await call
    except acp.RequestError:
        return
    raise AssertionError("this should have been refused")


async def _cancelled(agent: ClientSideConnection, client: EverythingClient, session: str) -> None:
    client.working.clear()
    turn = asyncio.create_task(agent.prompt(session, [acp.text_block("wait")]))
    await client.working.wait()
    await agent.cancel(session)
    await turn


def _blocks() -> list[Any]:
    return [
        acp.image_block("iVBORw0=", "image/png"),
        acp.audio_block("UklGRg==", "audio/wav"),
        acp.resource_link_block("notes", "file:///notes"),
        acp.resource_block(acp.embedded_text_resource("file:///a", "a\u2028b")),
    ]

"""An agent made with the official SDK that, in one turn, asks its client for all that an agent may ask a client for.

A prompt says what to do: `everything`, `wait` (until it is cancelled), `fail`, `large` (a chunk of 2 MB), or the reason
to stop with; anything else gets a short answer. What it heard itself it tells by the extension `heard`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import acp
from acp import schema
from acp.interfaces import Client
from pydantic import BaseModel

LARGE = 400_000
UPDATES: tuple[dict[str, Any], ...] = (
    {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "everything"}},
    {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "Hm – ☕\u2028"}},
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "I will."}, "messageId": "m-1"},
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": "iVBORw0=", "mimeType": "image/png"}},
    {"sessionUpdate": "plan", "entries": [{"content": "All of it", "priority": "high", "status": "in_progress"}]},
    {"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "p", "entries": []}},
    {"sessionUpdate": "plan_removed", "planId": "p"},
    {"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "x", "description": "Does x"}]},
    {"sessionUpdate": "current_mode_update", "currentModeId": "ask"},
    {"sessionUpdate": "session_info_update", "title": "All of it", "updatedAt": "2026-01-02T03:04:05Z"},
    {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Edit", "kind": "edit", "status": "pending"},
    {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "t",
        "status": "completed",
        "content": [{"type": "diff", "path": "/a", "oldText": "1", "newText": "2"}],
        "rawOutput": {"n": 1e30, "deep": [[[{}]]]},
    },
    {"sessionUpdate": "usage_update", "used": 1200, "size": 200_000},
)
FORM = {"sessionId": "s-1", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
USAGE = {"inputTokens": 1000, "cachedReadTokens": 200}
MODES = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]}


class EverythingAgent:
    def __init__(self) -> None:
        self._answered = 0  # prompts
        self._heard: list[Any] = []
        self._sessions = 0
        self._model = "claude-sonnet-5"
        self._cancelled = asyncio.Event()

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **params: Any) -> schema.InitializeResponse:
        self._note("initialize", protocol_version, params)
        session: dict[str, Any] = {"list": {}, "fork": {}, "resume": {}, "close": {}}
        prompt = {"image": True, "audio": True, "embeddedContext": True}
        answer = {
            "protocolVersion": 1,
            "agentInfo": {"name": "everything", "version": "1"},
            "agentCapabilities": {"loadSession": True, "promptCapabilities": prompt, "sessionCapabilities": session},
            "authMethods": [{"id": "key", "name": "A key"}],
        }
        return schema.InitializeResponse.model_validate(answer)

    async def authenticate(self, method_id: str, **params: Any) -> schema.AuthenticateResponse:
        self._note("authenticate", method_id, params)
        return schema.AuthenticateResponse()

    async def new_session(self, cwd: str, **params: Any) -> schema.NewSessionResponse:
        self._note("new_session", cwd, params)
        return schema.NewSessionResponse.model_validate(self._opened())

    async def load_session(self, cwd: str, session_id: str, **params: Any) -> schema.LoadSessionResponse:
        self._note("load_session", cwd, session_id, params)
        await self._update(session_id, UPDATES[2])
        return schema.LoadSessionResponse.model_validate({"modes": MODES, "configOptions": self._options()})

    async def fork_session(self, session_id: str, cwd: str, **params: Any) -> schema.ForkSessionResponse:
        self._note("fork_session", session_id, cwd, params)
        return schema.ForkSessionResponse.model_validate(self._opened())

    async def resume_session(self, session_id: str, cwd: str, **params: Any) -> schema.ResumeSessionResponse:
        self._note("resume_session", session_id, cwd, params)
        return schema.ResumeSessionResponse()

    async def close_session(self, session_id: str, **params: Any) -> schema.CloseSessionResponse:
        self._note("close_session", session_id, params)
        return schema.CloseSessionResponse()

    async def list_sessions(self, **params: Any) -> schema.ListSessionsResponse:
        self._note("list_sessions", params)
        sessions = [{"sessionId": "s-1", "cwd": "/", "title": "One"}]
        return schema.ListSessionsResponse.model_validate({"sessions": sessions, "nextCursor": "more"})

    async def set_session_mode(self, session_id: str, mode_id: str, **params: Any) -> schema.SetSessionModeResponse:
        self._note("set_session_mode", session_id, mode_id, params)
        return schema.SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **params: Any
    ) -> schema.SetSessionConfigOptionResponse:
        self._note("set_config_option", config_id, session_id, value, params)
        if config_id == "model":
            self._model = str(value)
        return schema.SetSessionConfigOptionResponse.model_validate({"configOptions": self._options()})

    async def prompt(self, session_id: str, prompt: list[Any], **params: Any) -> schema.PromptResponse:
        self._note("prompt", session_id, prompt, params)
        reason = await self._do(prompt[0].text, session_id)
        answered, self._answered = self._answered, self._answered + 1
        usage = {**USAGE, "totalTokens": 1300 - answered, "outputTokens": 100 - answered}  # by turn: they fall
        return schema.PromptResponse.model_validate({"stopReason": reason, "usage": usage})

    async def cancel(self, session_id: str, **params: Any) -> None:
        self._note("cancel", session_id, params)
        self._cancelled.set()

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._note("ext_method", method, params)
        if method == "unknown":
            raise acp.RequestError.method_not_found("_unknown")
        return {"heard": self._heard} if method == "heard" else {"echo": params}

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        self._note("ext_notification", method, params)

    async def _do(self, what: str, session: str) -> str:
        match what:
            case "everything":
                for update in UPDATES:
                    await self._update(session, update)
                await self._ask_for_everything(session)
                return "end_turn"
            case "wait":
                await self._update(session, UPDATES[2])
                await self._cancelled.wait()
                return "cancelled"
            case "fail":
                raise acp.RequestError(-32603, "It failed", {"details": "on purpose"})
            case "large":
                chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "é" * LARGE}}
                await self._update(session, chunk)
                return "end_turn"
            case "max_tokens" | "max_turn_requests" | "refusal":
                return what
        await self._update(session, UPDATES[2])
        return "end_turn"

    async def _ask_for_everything(self, session: str) -> None:
        client = self._client
        options = [schema.PermissionOption(option_id="yes", name="Yes", kind="allow_once")]
        call = schema.ToolCallUpdate(tool_call_id="t", title="Edit")
        self._note(await client.request_permission(session, call, options))
        self._note(await client.write_text_file(session, "/tmp/x", "text\r\n\tand \u0000"))
        self._note(await client.read_text_file(session, "/tmp/x", line=1, limit=2))
        terminal = await client.create_terminal(session, "sh", args=["-c", "true"], output_byte_limit=1 << 40)
        self._note(await client.terminal_output(session, terminal.terminal_id))
        self._note(await client.wait_for_terminal_exit(session, terminal.terminal_id))
        self._note(await client.kill_terminal(session, terminal.terminal_id))
        self._note(await client.release_terminal(session, terminal.terminal_id))
        mode = schema.ElicitationFormSessionMode.model_validate(FORM)
        self._note(await client.create_elicitation("Your name?", mode))
        await client.complete_elicitation("e-1")
        self._note(await client.ext_method("ask", {"a": [1, None, "☕"]}))
        await client.ext_notification("tell", {"b": True})
        try:
            await client.ext_method("unknown", {})
        except acp.RequestError as error:
            self._note("refused", error.code, str(error), error.data)

    async def _update(self, session: str, update: dict[str, Any]) -> None:
        said = schema.SessionNotification.model_validate({"sessionId": session, "update": update})
        await self._client.session_update(session, said.update)

    def _opened(self) -> dict[str, Any]:
        self._sessions += 1
        return {"sessionId": f"s-{self._sessions}", "modes": MODES, "configOptions": self._options()}

    def _options(self) -> list[dict[str, Any]]:
        models = [{"value": name, "name": name} for name in ("claude-sonnet-5", "claude-haiku-4-5")]
        model = {"id": "model", "name": "Model", "category": "model", "type": "select", "options": models}
        return [
            {**model, "currentValue": self._model},
            {"id": "web", "name": "Web", "type": "boolean", "currentValue": True},
        ]

    def _note(self, *heard: Any) -> None:
        self._heard.append([_plain(part) for part in heard])


def _plain(value: Any) -> Any:
    match value:
        case BaseModel():
            return value.model_dump(mode="json", by_alias=True, exclude_none=True)
        case dict():
            return {name: _plain(part) for name, part in value.items() if part is not None}
        case list():
            return [_plain(part) for part in value]
    return value


if __name__ == "__main__":
    agent: Any = EverythingAgent()  # its methods take as **params what the SDK's interface lists
    asyncio.run(acp.run_agent(agent, use_unstable_protocol=True))

"""Every method and type of ACP's first version passes as it is, and what is read of it is read right.

Messages are valid in today's schema, but for those that are said to be of then.
"""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.core.events import (
    Initialized,
    PermissionAnswered,
    PermissionRequested,
    SessionOpened,
    TurnEnded,
    UpdateSeen,
)
from tests.core.messages import is_valid
from tests.core.talk import AGENT, CLIENT, Talk, the
from tests.ends import Ends, answer, encoded, request

OF_THEN = ""  # no definition of today fits
TEXT: dict[str, Any] = {"type": "text", "text": "# Hello", "annotations": {"audience": ["user"], "priority": 1}}
CONTENT: dict[str, dict[str, Any]] = {
    "text": TEXT,
    "image": {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
    "audio": {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
    "resource_link": {"type": "resource_link", "uri": "file:///w/a.py", "name": "a.py", "mimeType": "text/x-python"}
    | {"title": "A", "description": "a file", "size": 12},
    "resource with text": {"type": "resource", "resource": {"uri": "file:///w/a", "text": "abc", "mimeType": "a/b"}},
    "resource with a blob": {"type": "resource", "resource": {"uri": "file:///w/a", "blob": "AAAA"}},
}
DIFF = {"type": "diff", "path": "/w/a.py", "oldText": None, "newText": "print()\n"}
ENVIRONMENT = [{"name": "TOKEN", "value": "x"}]
MCP = [{"name": "files", "command": "/bin/mcp", "args": ["--stdio"], "env": ENVIRONMENT}]
KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other")
STATUSES = ("pending", "in_progress", "completed", "failed")
STOP_REASONS = ("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled")
PERMISSIONS = ("allow_once", "allow_always", "reject_once", "reject_always")
FS = {"readTextFile": True, "writeTextFile": True}
TOOL_CALL: dict[str, Any] = {
    "toolCallId": "c",
    "title": "Edit",
    "kind": "edit",
    "status": "pending",
    "rawInput": {"path": "/w/a.py"},
}
TOOL_CALL |= {"content": [{"type": "content", "content": TEXT}, DIFF], "locations": [{"path": "/w/a.py", "line": 1}]}
CAPABILITIES = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
}
OPTIONS = [{"optionId": kind, "name": kind, "kind": kind} for kind in PERMISSIONS]
PLAN = [
    {"content": priority, "priority": priority, "status": status}
    for priority in ("high", "medium", "low")
    for status in STATUSES[:3]
]

FROM_CLIENT: dict[str, tuple[str, dict[str, Any]]] = {
    "initialize": ("InitializeRequest", {"protocolVersion": 1, "clientCapabilities": {"fs": FS}}),
    "authenticate": ("AuthenticateRequest", {"methodId": "key"}),
    "session/new": ("NewSessionRequest", {"cwd": "/w", "mcpServers": MCP}),
    "session/load": ("LoadSessionRequest", {"sessionId": "s", "cwd": "/w", "mcpServers": []}),
    "session/prompt": ("PromptRequest", {"sessionId": "s", "prompt": list(CONTENT.values())}),
}
FROM_AGENT: dict[str, tuple[str, dict[str, Any]]] = {
    "session/request_permission": (
        "RequestPermissionRequest",
        {"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": OPTIONS},
    ),
    "fs/read_text_file": ("ReadTextFileRequest", {"sessionId": "s", "path": "/w/a.py", "line": 1, "limit": 10}),
    "fs/write_text_file": ("WriteTextFileRequest", {"sessionId": "s", "path": "/w/a.py", "content": "é\n"}),
}
ANSWERS: dict[str, list[tuple[str, dict[str, Any] | None]]] = {
    "initialize": [
        (
            "InitializeResponse",
            {
                "protocolVersion": 1,
                "agentCapabilities": CAPABILITIES,
                "authMethods": [{"id": "key", "name": "Key", "description": None}],
            },
        )
    ],
    "authenticate": [("AuthenticateResponse", {}), (OF_THEN, None)],
    "session/new": [("NewSessionResponse", {"sessionId": "s"})],
    "session/load": [("LoadSessionResponse", {}), (OF_THEN, None)],
    "session/prompt": [("PromptResponse", {"stopReason": reason}) for reason in STOP_REASONS],
    "session/request_permission": [
        ("RequestPermissionResponse", {"outcome": {"outcome": "selected", "optionId": "allow_once"}}),
        ("RequestPermissionResponse", {"outcome": {"outcome": "cancelled"}}),
    ],
    "fs/read_text_file": [("ReadTextFileResponse", {"content": "abc\n"})],
    "fs/write_text_file": [("WriteTextFileResponse", {}), (OF_THEN, None)],
}
UPDATES: dict[str, dict[str, Any]] = {
    "plan": {"sessionUpdate": "plan", "entries": PLAN},
    **{f"a message: {name}": {"sessionUpdate": "agent_message_chunk", "content": CONTENT[name]} for name in CONTENT},
    "history": {"sessionUpdate": "user_message_chunk", "content": TEXT},
    **{f"a call: {kind}": {"sessionUpdate": "tool_call", **TOOL_CALL, "kind": kind} for kind in KINDS},
    **{
        f"a call that is {status}": {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": status}
        for status in STATUSES
    },
    "what a call gave": {"sessionUpdate": "tool_call_update", "toolCallId": "c", "rawOutput": {"lines": 3}},
}


@pytest.mark.parametrize("method", [*FROM_CLIENT, *FROM_AGENT])
def test_a_request_and_its_answers_pass_byte_for_byte(method: str) -> None:
    asked_by_client = method in FROM_CLIENT
    definition, params = (FROM_CLIENT if asked_by_client else FROM_AGENT)[method]
    assert is_valid(1, definition, params)
    for answered, result in ANSWERS[method]:
        assert answered == OF_THEN or is_valid(1, answered, result)
        ends = Ends()
        asks, answers = (ends.client_says, ends.agent_says) if asked_by_client else (ends.agent_says, ends.client_says)
        there, back = (ends.agent, ends.client) if asked_by_client else (ends.client, ends.agent)
        question, reply = request(0, method, **params), {"jsonrpc": "2.0", "id": 0, "result": result}
        asks(question)
        answers(reply)
        assert (there.data, back.data) == (encoded(question), encoded(reply))
        assert ends.dispatcher.failures == 0


@pytest.mark.parametrize("name", UPDATES)
def test_an_update_passes_byte_for_byte(name: str) -> None:
    params = {"sessionId": "s", "update": UPDATES[name]}
    assert is_valid(1, "SessionNotification", params)
    ends = Ends()
    ends.open_session()
    told = {"jsonrpc": "2.0", "method": "session/update", "params": params}
    ends.agent_says(told)
    assert ends.client.data == encoded(told)
    assert ends.dispatcher.failures == 0


def test_a_cancellation_passes_byte_for_byte_and_the_prompt_is_answered_cancelled() -> None:
    ends = Ends()
    ends.open_session()
    cancel = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}}
    assert is_valid(1, "CancelNotification", cancel["params"])
    asked, answered = request(2, "session/prompt", **_prompt()), answer(2, stopReason="cancelled")
    ends.client_says(asked, cancel)
    ends.agent_says(answered)
    assert (ends.agent.data, ends.client.data) == (encoded(asked, cancel), encoded(answered))


def test_what_is_negotiated_is_known() -> None:
    talk = Talk()
    (_, asked), ((_, answered),) = FROM_CLIENT["initialize"], ANSWERS["initialize"]
    assert the(Initialized, talk.call("initialize", asked, answered)).protocol_version == 1


def test_a_session_is_opened_by_new_and_by_a_load_that_is_answered_null() -> None:
    talk = Talk()
    made = the(SessionOpened, talk.call("session/new", FROM_CLIENT["session/new"][1], {"sessionId": "s"}))
    assert (made.session, made.how, made.cwd) == ("s", "new", "/w")
    loaded = the(SessionOpened, talk.call("session/load", FROM_CLIENT["session/load"][1] | {"sessionId": "old"}, None))
    assert (loaded.session, loaded.how) == ("old", "load")


@pytest.mark.parametrize("reason", STOP_REASONS)
def test_a_turn_ends_with_any_stop_reason(reason: str) -> None:
    talk = Talk(1)
    talk.ask("session/prompt", _prompt(), 1)
    assert the(TurnEnded, talk.answer(1, {"stopReason": reason})).stop_reason == reason


def test_all_calls_of_tools_are_counted_whatever_their_kind() -> None:
    talk = Talk(1)
    talk.ask("session/prompt", _prompt(), 1)
    for kind in KINDS:
        params = {"sessionId": "s", "update": UPDATES[f"a call: {kind}"] | {"toolCallId": kind}}
        talk.say(AGENT, method="session/update", params=params)
        talk.update("tool_call_update", toolCallId=kind, status="completed")
    assert the(TurnEnded, talk.answer(1, {"stopReason": "end_turn"})).tool_calls == len(KINDS)


@pytest.mark.parametrize("outcome", [{"outcome": "selected", "optionId": "allow_once"}, {"outcome": "cancelled"}])
def test_a_permission_is_known_with_its_outcome(outcome: dict[str, str]) -> None:
    talk = Talk(1)
    _, asked = FROM_AGENT["session/request_permission"]
    the(PermissionRequested, talk.say(AGENT, id=7, method="session/request_permission", params=asked))
    answered = talk.say(CLIENT, id=7, result={"outcome": outcome})
    assert the(PermissionAnswered, answered).outcome == outcome["outcome"]


def test_a_load_replays_messages_of_both_sides_as_history() -> None:
    talk = Talk(1)
    talk.ask("session/load", FROM_CLIENT["session/load"][1], 1)
    for said in ("user_message_chunk", "agent_message_chunk"):
        seen = the(UpdateSeen, talk.update(said, content=TEXT, _meta={"usage": {"inputTokens": 1}}))
        assert seen.replayed
    assert not [event for event in talk.answer(1, None) if isinstance(event, TurnEnded)]


def _prompt() -> dict[str, Any]:
    return FROM_CLIENT["session/prompt"][1]

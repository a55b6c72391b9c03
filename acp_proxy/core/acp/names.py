"""Methods, updates and states of the Agent Client Protocol that mean something here. All others pass unread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from acp_proxy.core.events import Opening
from acp_proxy.core.jsonrpc import BATCH

INITIALIZES = frozenset({"initialize", "proxy/initialize", "_proxy/initialize"})
"""The latter two to a proxy in a conductor's chain. All else its predecessor asks of it as of an agent."""
PROMPT = "session/prompt"
STEERING = "_session/steering"  # words into a turn that runs; to an agent that is idle they are a prompt
GOALS = frozenset({"_session/goal", "_codex/session/goal_control"})  # what an agent works at until it is reached
CANCEL = "session/cancel"
CANCEL_REQUEST = "$/cancel_request"
CLOSE = "session/close"
ARCHIVE = "session/archive"  # closes it, too
DELETE = "session/delete"
LIST = "session/list"
SET_MODEL = "session/set_model"
SET_TITLE = "session/set_title"
SET_CONFIG_OPTION = "session/set_config_option"
SESSION_UPDATE = "session/update"
REQUEST_PERMISSION = "session/request_permission"
USAGE_UPDATE = "usage_update"
STATE_UPDATE = "state_update"
INFO_UPDATE = "session_info_update"
CONFIG_UPDATE = "config_option_update"
COMPACTION_UPDATE = "compaction_update"
SUBAGENT_UPDATE = "subagent_update"
OPENINGS: Mapping[str, Opening] = {
    "session/new": "new",
    "session/load": "load",
    "session/resume": "resume",
    "session/fork": "fork",
}

CLIENT_METHODS = frozenset(
    {*INITIALIZES, PROMPT, CLOSE, ARCHIVE, DELETE, LIST, SET_MODEL, SET_TITLE, SET_CONFIG_OPTION, *OPENINGS, BATCH}
)
"""Methods of the client that are read; all others are relayed unread."""

AGENT_METHODS = frozenset({SESSION_UPDATE, REQUEST_PERMISSION, BATCH})
"""Methods of the agent that are read."""

OUTPUT_UPDATES = frozenset({"agent_message_chunk", "agent_message"})
THOUGHT_UPDATES = frozenset({"agent_thought_chunk", "agent_thought"})
TOOL_UPDATES = frozenset(
    {"tool_call", "tool_call_update", "tool_call_content_chunk", "terminal_update", "terminal_output_chunk"}
)
PLAIN_UPDATES = (
    OUTPUT_UPDATES
    | THOUGHT_UPDATES
    | (TOOL_UPDATES - {"tool_call", "tool_call_update"})  # whose ids are read: calls are told apart by them
    | {
        "user_message_chunk",
        "user_message",
        "plan",
        "plan_update",
        "plan_removed",
        "available_commands_update",
        "current_mode_update",
        "notice",
        "compaction_summary_chunk",
        "session_message",
        "session_message_chunk",
    }
)
"""Updates of which, when they carry no `_meta`, only the kind and the number of characters matter."""

UPDATES_AT_ONCE = frozenset({STATE_UPDATE, SUBAGENT_UPDATE})
"""Updates that begin or end a turn, or say whose later messages are: they are read when they pass."""

IDLE = "idle"
WORKING = frozenset({"running", "requires_action"})  # states of v2 in which a turn is open

PERMISSION_CANCELLED: Mapping[str, Mapping[str, str]] = {"outcome": {"outcome": "cancelled"}}

INVALID_REQUEST: Mapping[str, Any] = {
    "code": -32600,
    "message": "Invalid request: each has to be a line of its own, with an id of its own that is a text or an integer",
}
REQUEST_CANCELLED = -32800  # the error of a request that CANCEL_REQUEST has ended
NOT_FOUND = -32002  # the error of a request that names a session which is not there

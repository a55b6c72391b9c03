"""The names and shapes of the Agent Client Protocol, versions 1 and 2: readers of decoded JSON, writers of lines.

No other file knows a field of ACP. Readers never raise, and what is malformed counts as absent. Of agents' own
`_meta` only `quota` is read here, which three of them share; the rest is for `core/agents.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import msgspec
import orjson

from acp_proxy.core.events import Counters, Implementation, Meta, ModelCounters, Opening
from acp_proxy.core.jsonrpc import Message, Notification, Request, Response, parse
from acp_proxy.core.money import Money

INITIALIZE = "initialize"
PROMPT = "session/prompt"
CLOSE = "session/close"
DELETE = "session/delete"
LIST = "session/list"
SET_MODEL = "session/set_model"
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

CLIENT_METHODS = frozenset({INITIALIZE, PROMPT, CLOSE, DELETE, LIST, SET_MODEL, SET_CONFIG_OPTION, *OPENINGS})
"""What a client sends that is read; all other methods of its pass unread."""

AGENT_METHODS = frozenset({SESSION_UPDATE, REQUEST_PERMISSION})
"""What an agent sends that is read."""

OUTPUT_UPDATES = frozenset({"agent_message_chunk", "agent_message"})
THOUGHT_UPDATES = frozenset({"agent_thought_chunk", "agent_thought"})
TOOL_UPDATES = frozenset(
    {"tool_call", "tool_call_update", "tool_call_content_chunk", "terminal_update", "terminal_output_chunk"}
)
PLAIN_UPDATES = (
    OUTPUT_UPDATES
    | THOUGHT_UPDATES
    | (TOOL_UPDATES - {"tool_call_update"})  # whose id and `rawOutput` are read
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

IDLE = "idle"
WORKING = frozenset({"running", "requires_action"})  # states of v2 in which a turn is open

CANCELLED_PERMISSION = {"outcome": {"outcome": "cancelled"}}
"""The result of `session/request_permission` for a request that nobody will answer any more."""

ENDED = "end_turn"  # where an agent gives no reason
CANCELLED = "cancelled"
FAILED = "error"  # v2's reason, and ours for a JSON-RPC error

_MOST = 2**53  # no honest count is larger, and sums of what is below it fit a ledger's column
_DEEP = 32  # levels of `_meta` that are merged; below them an object is replaced
_LARGE = 1 << 18  # bytes of a line above which its parts are not measured one by one


@dataclass(frozen=True, slots=True)
class Hello:
    """`initialize`, one half: the request's or the response's."""

    version: int | None
    who: Implementation
    notices: bool


@dataclass(frozen=True, slots=True)
class Info:
    """What a session is called, as `session_info_update` and `session/list` tell it."""

    title: str | None = None
    updated_at: str | None = None
    meta: Meta = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Update:
    """A `session/update`. `kind` is the value of `sessionUpdate`, "" when there is none."""

    session: str
    kind: str
    fields: dict[str, Any]
    meta: Meta


@dataclass(frozen=True, slots=True)
class Ending:
    """What the last message of a turn says: the result of a prompt (v1), or an idle state (v2)."""

    stop_reason: str
    counters: Counters | None = None
    quota: Counters | None = None
    model_usage: tuple[ModelCounters, ...] = ()
    meta: Meta = field(default_factory=dict)


# -- reading: connection and sessions


def hello(fields: Any) -> Hello:
    """The params or the result of `initialize`, in the words of either version."""
    fields = mapping(fields)
    who = _first_object(fields, "clientInfo", "agentInfo", "info")
    capabilities = _first_object(fields, "clientCapabilities", "capabilities")
    version = fields.get("protocolVersion")
    return Hello(
        version if isinstance(version, int) and not isinstance(version, bool) else None,
        Implementation(text(who.get("name")), text(who.get("version"))),
        mapping(capabilities.get("session")).get("notices") not in (None, False),
    )


def session_of(message: Message) -> str | None:
    """The session that a request or a notification names."""
    return None if isinstance(message, Response) else text(message.params.get("sessionId"))


def opened_session(result: Any) -> str | None:
    """The id of a new session or of a fork."""
    return text(mapping(result).get("sessionId"))


def model_of(fields: Any) -> str | None:
    """A session's model: the first config option of category `model`, else `models.currentModelId`."""
    fields = mapping(fields)
    options = fields.get("configOptions")
    for option in options if isinstance(options, list) else ():
        if (
            isinstance(option, dict)
            and option.get("category") == "model"
            and (model := text(option.get("currentValue")))
        ):
            return model
    return text(mapping(fields.get("models")).get("currentModelId"))


def wanted_model(params: Mapping[str, Any]) -> str | None:
    """The model that a `session/set_model` asks for."""
    return text(params.get("modelId"))


def listed_sessions(result: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Id and fields of each entry of a `session/list` result."""
    entries = mapping(result).get("sessions")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and (session := text(entry.get("sessionId"))):
            yield session, entry


def permission_outcome(result: Any) -> str | None:
    """`selected` or `cancelled`."""
    return text(mapping(mapping(result).get("outcome")).get("outcome"))


def info_after(info: Info, fields: Mapping[str, Any], version: int) -> Info:
    """The state after a `session_info_update`: null clears, what is left out stays.

    `_meta` is patched key by key, a null clears its key; in v1 nested objects are patched too, v2 replaces them.
    """
    title, updated_at, patch = (fields.get(name, _ABSENT) for name in ("title", "updatedAt", "_meta"))
    meta = info.meta
    if patch is None:
        meta = {}
    elif isinstance(patch, dict):
        meta = _patched(meta, patch, 1 if version >= 2 else _DEEP)
    return Info(
        title if isinstance(title, str | None) else info.title,
        updated_at if isinstance(updated_at, str | None) else info.updated_at,
        meta,
    )


# -- reading: turns and updates


def update_of(message: Notification) -> Update | None:
    """The update of a `session/update`, or None when it names no session or is no object."""
    session, fields = text(message.params.get("sessionId")), message.params.get("update")
    if session is None or not isinstance(fields, dict):
        return None
    return Update(session, text(fields.get("sessionUpdate")) or "", fields, meta_of(fields) or meta_of(message.params))


def meta_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    return mapping(fields.get("_meta"))


def state_of(fields: Mapping[str, Any]) -> str:
    """The state of a v2 session, of a `state_update` or inside a `subagent_update`."""
    return text(fields.get("state")) or ""


def subagent_of(fields: Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """The child session that a `subagent_update` names, and its state as `state_update` would have it."""
    return text(fields.get("sessionId")), mapping(fields.get("state"))


def tool_call_of(fields: Mapping[str, Any]) -> str | None:
    """The id of the tool call that an update is about."""
    return text(fields.get("toolCallId"))


def idle_session(message: Notification) -> str | None:
    """The session of a `state_update` that says idle."""
    update = update_of(message)
    if update is None or update.kind != STATE_UPDATE or state_of(update.fields) != IDLE:
        return None
    return update.session


def message_id(fields: Mapping[str, Any]) -> str | None:
    """The id of the user's message, in a prompt's params or its result."""
    return text(fields.get("messageId")) or text(fields.get("userMessageId"))


def accepts(result: Any) -> bool:
    """Whether a prompt's result is v2's: the prompt is taken in, its turn goes on."""
    return "messageId" in mapping(result) and not ends(result)


def ends(result: Any) -> bool:
    """Whether a prompt's result gives a stop reason, as v1's do."""
    return text(mapping(result).get("stopReason")) is not None


def ending(fields: Any) -> Ending:
    """The end of a turn from a prompt's result or an idle state. Any reason is kept, none is `end_turn`."""
    fields = mapping(fields)
    meta = meta_of(fields)
    quota = mapping(meta.get("quota"))
    rows = quota.get("model_usage")
    return Ending(
        text(fields.get("stopReason")) or (FAILED if fields.get("error") else ENDED),
        counters(fields.get("usage")),
        counters(quota.get("token_count")),
        tuple(_model_rows(rows if isinstance(rows, list) else ())),
        meta,
    )


def cost_of(fields: Mapping[str, Any]) -> Money | None:
    """The cumulative cost of a `usage_update`."""
    cost = mapping(fields.get("cost"))
    amount, currency = cost.get("amount"), text(cost.get("currency"))
    if currency is None or isinstance(amount, bool) or not isinstance(amount, int | Decimal):
        return None
    try:
        money = Money.of(amount, currency)
    except ValueError:
        return None
    return money if money.nano >= 0 else None


def counters(value: Any) -> Counters | None:
    """Token counters under any of the names they go by; None when there are none."""
    if not isinstance(value, dict):
        return None
    found = Counters(
        input=_count_under(value, "inputTokens", "input_tokens"),
        output=_count_under(value, "outputTokens", "output_tokens"),
        total=_count_under(value, "totalTokens", "total_tokens"),
        thought=_count_under(
            value, "thoughtTokens", "thought_tokens", "reasoningOutputTokens", "reasoning_output_tokens"
        ),
        cached_read=_count_under(
            value, "cachedReadTokens", "cached_read_tokens", "cachedInputTokens", "cached_input_tokens"
        ),
        cached_write=_count_under(
            value, "cachedWriteTokens", "cached_write_tokens", "cacheWriteInputTokens", "cache_write_input_tokens"
        ),
    )
    return None if found == _NO_COUNTERS else found


def prompt_chars(params: Mapping[str, Any]) -> int:
    """Characters of text in a prompt's blocks."""
    return _text_length(params.get("prompt"))


def update_chars(update: Update) -> int:
    """Characters of text in a chunk or a message; tools are measured by `tool_chars`."""
    if update.kind in OUTPUT_UPDATES or update.kind in THOUGHT_UPDATES:
        return _text_length(update.fields.get("content"))
    return 0


def tool_chars(fields: Mapping[str, Any], size: int) -> tuple[int, int]:
    """Characters of JSON of a tool's input and of its output; of a large line, its `size` in bytes for both together.

    `rawOutput` and `content` mostly say the same: the first counts where there is one.
    """
    shown = next((fields[name] for name in ("rawOutput", "content", "output") if fields.get(name)), None)
    if size > _LARGE:
        return 0, size
    try:
        return _json_length(fields.get("rawInput")), _json_length(shown)
    except (ValueError, TypeError, RecursionError):  # half a surrogate pair somewhere, or nested very deep
        return 0, size


def permitted_tool_call(params: Mapping[str, Any]) -> str | None:
    """The id of the tool call that a `session/request_permission` is about; v2 has it in `subject`."""
    return tool_call_of(_first_object(params, "toolCall") or mapping(mapping(params.get("subject")).get("toolCall")))


def has_tool_output(fields: Mapping[str, Any]) -> bool:
    """Whether a tool's output is an object, in which some agents report what a subagent used."""
    return isinstance(fields.get("rawOutput"), dict)


def cost_is_null(fields: Mapping[str, Any]) -> bool:
    """Whether `cost` is there and null, which clears it in v2."""
    return "cost" in fields and fields["cost"] is None


def text(value: Any) -> str | None:
    """A string that is not empty."""
    return value if isinstance(value, str) and value else None


def count(value: Any) -> int | None:
    """A number of tokens."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST else None


def mapping(value: Any) -> dict[str, Any]:
    """An object, or an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def _patched(old: Any, patch: dict[str, Any], levels: int) -> dict[str, Any]:
    """A new object: events that carry the old one stay as they are."""
    merged = dict(mapping(old))
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif levels > 1 and isinstance(value, dict):
            merged[key] = _patched(merged.get(key), value, levels - 1)
        else:
            merged[key] = value
    return merged


def _first_object(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return next((value for name in names if isinstance(value := fields.get(name), dict)), {})


def _count_under(value: dict[str, Any], *names: str) -> int | None:
    return next((found for name in names if (found := count(value.get(name))) is not None), None)


def _model_rows(rows: Any) -> Iterator[ModelCounters]:
    for row in rows:
        if isinstance(row, dict) and (model := text(row.get("model"))):
            yield ModelCounters(model, counters(row.get("token_count")) or _NO_COUNTERS)


def _text_length(content: Any) -> int:
    """Of a block, or of a list of them: text, and text in embedded resources. Images count nothing."""
    if isinstance(content, list):
        return sum(_text_length(block) for block in content if isinstance(block, dict))
    block = mapping(content)
    said = block.get("text", mapping(block.get("resource")).get("text"))
    return len(said) if isinstance(said, str) else 0


def _json_length(value: Any) -> int:
    return len(msgspec.json.encode(value)) if value else 0


_NO_COUNTERS = Counters()
_ABSENT = object()


# -- writing: lines without their newline


def usage_update_line(
    session: str, used: int, size: int, cost: Money | None = None, meta: Mapping[str, Any] | None = None
) -> bytes:
    """A `usage_update`: context in tokens, and the session's cumulative cost as an exact JSON number."""
    update: dict[str, Any] = {"sessionUpdate": "usage_update", "used": used, "size": size}
    if cost is not None:
        update["cost"] = {"amount": orjson.Fragment(cost.text), "currency": cost.currency}
    if meta:
        update["_meta"] = dict(meta)
    return _update_line(session, update)


def message_line(session: str, text: str, message_id: str | None = None) -> bytes:
    """An `agent_message_chunk`. v2 wants a `message_id`."""
    update: dict[str, Any] = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    if message_id is not None:
        update["messageId"] = message_id
    return _update_line(session, update)


def notice_line(session: str, severity: str, title: str, description: str | None = None) -> bytes:
    """A `notice`, for clients that show them. `severity` is info, warning or error; `title` is not empty."""
    update = {"sessionUpdate": "notice", "severity": severity, "title": title}
    if description is not None:
        update["description"] = description
    return _update_line(session, update)


def response_line(id: Any, result: Any) -> bytes:
    """A response; `id` as it was decoded."""
    return orjson.dumps({"jsonrpc": "2.0", "id": _exact(id), "result": result})


def error_line(id: Any, code: int, message: str, data: Any = None) -> bytes:
    """An error response; `data` is left out when it is None."""
    error = {"code": code, "message": message}
    return orjson.dumps(
        {"jsonrpc": "2.0", "id": _exact(id), "error": error if data is None else error | {"data": data}}
    )


def answer_to(line: bytes, result: Any = None, error: Mapping[str, Any] | None = None) -> bytes:
    """A response to the request on `line`, with the id's own digits. `error` wins over `result`."""
    answer = {"error": dict(error)} if error is not None else {"result": result}
    return orjson.dumps({"jsonrpc": "2.0", "id": _id_on(line), **answer})


class _Id(msgspec.Struct):
    id: msgspec.Raw = msgspec.Raw(b"null")


_decode_id = msgspec.json.Decoder(_Id).decode


def _id_on(line: bytes) -> orjson.Fragment:
    try:
        return orjson.Fragment(bytes(_decode_id(line).id))
    except (msgspec.DecodeError, ValueError, RecursionError):
        message = parse(line)
        return _exact(message.id if isinstance(message, Request) else None)


def _update_line(session: str, update: dict[str, Any]) -> bytes:
    params = {"sessionId": _exact(session), "update": update}
    return orjson.dumps({"jsonrpc": "2.0", "method": SESSION_UPDATE, "params": params})


def _exact(value: Any) -> orjson.Fragment:
    """JSON of an id: integers of any size, and whatever a string holds."""
    return orjson.Fragment(str(value) if isinstance(value, Decimal) else json.dumps(value))

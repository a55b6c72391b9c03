"""Readers of decoded params and results: the peers, the session, the subject of an update."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from acp_proxy.core.acp.names import GOALS, IDLE, NOT_FOUND, OPENINGS, STATE_UPDATE, STEERING, SUBAGENT_UPDATE
from acp_proxy.core.acp.values import first_object, label, mapping, session_id, storable, text
from acp_proxy.core.events import Implementation, Meta, Opening
from acp_proxy.core.jsonrpc import Message, Notification, Request, Response

_DEEP = 32  # levels of `_meta` that are merged; below them an object is replaced
_ABSENT = object()
_LOWER_HEX = frozenset("0123456789abcdef")
_OF_A_TOOL = frozenset({"status", "title", "kind", "content", "rawInput", "locations"})


class Hello(Struct, frozen=True):
    """`initialize`, one half: the request's or the response's."""

    version: int | None
    who: Implementation
    notices: bool
    forms: bool  # whether the client shows forms that it is asked to


class Info(Struct, frozen=True):
    """A session's title, from `session_info_update` and `session/list`."""

    title: str | None = None
    updated_at: str | None = None
    meta: Meta = field(default_factory=dict)


class Update(Struct, frozen=True):
    """A `session/update`. `kind` is the value of `sessionUpdate`, "" when there is none."""

    session: str
    kind: str
    fields: dict[str, Any]
    meta: Meta


def hello(fields: Any) -> Hello:
    """The params or the result of `initialize`, in the words of either version."""
    fields = mapping(fields)
    who = first_object(fields, "clientInfo", "agentInfo", "info")
    capabilities = first_object(fields, "clientCapabilities", "capabilities")
    version = fields.get("protocolVersion")
    return Hello(
        version if isinstance(version, int) and not isinstance(version, bool) else None,
        Implementation(label(who.get("name")), label(who.get("version")), label(who.get("title"))),
        mapping(capabilities.get("session")).get("notices") not in (None, False),
        isinstance(mapping(capabilities.get("elicitation")).get("form"), dict),
    )


def session_of(message: Message) -> str | None:
    """The session that a request or a notification names."""
    return None if isinstance(message, Response) else session_id(message.params.get("sessionId"))


def may_name_session(params: Mapping[str, Any]) -> bool:
    """Whether params have a session's id by any spelling: without one no agent can do what it is asked.

    Agents on the SDK for Python read `session_id`, also in `_meta`.
    """
    return any(name.replace("_", "").casefold() == "sessionid" for name in (*params, *meta_of(params)))


def opening(method: str, params: Mapping[str, Any]) -> Opening | None:
    """How a client opens a session, if it does. v2 has one method for what are `load` and `resume` in v1."""
    how = OPENINGS.get(method)
    return "load" if how == "resume" and isinstance(params.get("replayFrom"), dict) else how


def is_gone(error: Mapping[str, Any] | None) -> bool:
    """Whether a session is closed or deleted by what the agent answers to that: one that it does not know is, too."""
    return error is None or error.get("code") == NOT_FOUND


def opened_session(result: Any) -> str | None:
    """The id of a new session or of a fork."""
    return session_id(mapping(result).get("sessionId"))


def sets_to_work(method: str, params: Mapping[str, Any]) -> bool:
    """Whether a request beside prompts has an agent call its model."""
    return method == STEERING or (method in GOALS and params.get("action") not in ("pause", "clear"))


def prompts_itself(params: Mapping[str, Any]) -> bool:
    """Whether a client that steers sends its words as a prompt where it is told that nothing runs."""
    return mapping(meta_of(params).get("steering")).get("idleBehavior") == "promptRequired"


def cwd_of(params: Mapping[str, Any]) -> str | None:
    """A session's working directory."""
    return text(params.get("cwd"))


def model_of(fields: Any) -> str | None:
    """A session's model: the config option of category `model`, else `models.currentModelId`.

    Agents that let their provider be chosen put it into that category, too, and first: then the one called `model`.
    That one needs no category, which is optional.
    """
    fields = mapping(fields)
    options = fields.get("configOptions")
    found: dict[Any, str] = {}
    for option in options if isinstance(options, list) else ():
        if not isinstance(option, dict):
            continue
        name = text(option.get("id") or option.get("configId"))  # v1, v2
        category = name if option.get("category") is None else option["category"]
        if category == "model" and (model := label(option.get("currentValue"))):
            found.setdefault(name, model)
    return (
        found.get("model")
        or next(iter(found.values()), None)
        or label(mapping(fields.get("models")).get("currentModelId"))
    )


def wanted_model(params: Mapping[str, Any]) -> str | None:
    """The model that a `session/set_model` asks for."""
    return label(params.get("modelId"))


def listed_sessions(result: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Id and fields of each entry of a `session/list` result."""
    entries = mapping(result).get("sessions")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and (session := session_id(entry.get("sessionId"))) is not None:
            yield session, entry


def titled(result: Any) -> dict[str, Any]:
    """The title in the result of a `session/set_title`, as the agent keeps it."""
    title = text(mapping(result).get("title"))
    return {} if title is None else {"title": title}


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
        _title(title) if isinstance(title, str | None) else info.title,
        updated_at if isinstance(updated_at, str | None) else info.updated_at,
        meta,
    )


def tells_title(fields: Mapping[str, Any]) -> bool:
    """Whether they say what a session is called; many updates tell only of other things."""
    return isinstance(fields.get("title"), str)


def clears_title(fields: Mapping[str, Any]) -> bool:
    """Whether a `session_info_update` says that there is no title, where an entry of a list only may leave it out."""
    return fields.get("title", _ABSENT) is None


def update_of(message: Notification | Request) -> Update | None:
    """The update of a `session/update`, or None when it names no session or is no object.

    Some libraries write all members of a message, and give a notification an id of null.
    """
    session, fields = session_id(message.params.get("sessionId")), message.params.get("update")
    if session is None or not isinstance(fields, dict):
        return None
    meta, around = meta_of(fields), meta_of(message.params)
    meta = around | meta if around else meta  # usage stands in either, a trace may in the other
    return Update(session, text(fields.get("sessionUpdate")) or "", fields, meta)


def meta_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    meta = fields.get("_meta")
    return meta if isinstance(meta, dict) else {}


def trace_parent(meta: Mapping[str, Any]) -> str | None:
    """The ids of the sender's trace and span, with "-" between them, of a `traceparent` by W3C's Trace Context."""
    version, trace, span, *_ = (*(text(meta.get("traceparent")) or "").split("-", 3), "", "", "")
    if (len(version), len(trace), len(span)) != (2, 32, 16) or not _LOWER_HEX.issuperset(f"{version}{trace}{span}"):
        return None
    return None if version == "ff" or not trace.strip("0") or not span.strip("0") else f"{trace}-{span}"


def ours_in(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The mark of an acp-proxy nearer to the agent, on figures and refusals that are not the agent's."""
    return mapping(meta.get("acp-proxy"))


def state_of(fields: Mapping[str, Any]) -> str:
    """The state of a v2 session, of a `state_update` or inside a `subagent_update`."""
    return text(fields.get("state")) or ""


def idle_session(message: Notification | Request) -> str | None:
    """The session that an update says is idle: its own, or a subagent's."""
    update = update_of(message)
    if update is None or update.kind not in (STATE_UPDATE, SUBAGENT_UPDATE):
        return None
    session, fields = (update.session, update.fields) if update.kind == STATE_UPDATE else subagent_of(update.fields)
    return session if state_of(fields) == IDLE else None


def subagent_of(fields: Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """The child session that a `subagent_update` names, and its state as `state_update` would have it."""
    return text(fields.get("sessionId")), mapping(fields.get("state"))


def compaction_status(fields: Mapping[str, Any]) -> str | None:
    """`in_progress`, `completed`, `failed`, `cancelled`, or whatever else a `compaction_update` says."""
    return text(fields.get("status"))


def tool_call_of(fields: Mapping[str, Any]) -> str | None:
    """The id of the tool call that an update is about."""
    return text(fields.get("toolCallId"))


def has_tool_output(fields: Mapping[str, Any]) -> bool:
    """Whether a tool's output is an object, in which some agents report what a subagent used."""
    return isinstance(fields.get("rawOutput"), dict)


def is_record(fields: Mapping[str, Any]) -> bool:
    """Whether what goes by as a tool's output is a record of some type, and nothing is told of a tool."""
    return "type" in mapping(fields.get("rawOutput")) and _OF_A_TOOL.isdisjoint(fields)


def message_id(fields: Mapping[str, Any]) -> str | None:
    """The id of the user's message, in a prompt's params or its result."""
    return label(fields.get("messageId")) or label(fields.get("userMessageId"))


def permitted_tool_call(params: Mapping[str, Any]) -> str | None:
    """The id of the tool call that a `session/request_permission` is about; v2 has it in `subject`."""
    return tool_call_of(first_object(params, "toolCall") or mapping(mapping(params.get("subject")).get("toolCall")))


def permission_outcome(result: Any) -> str | None:
    """`selected` or `cancelled`."""
    return text(mapping(mapping(result).get("outcome")).get("outcome"))


def _title(title: str | None) -> str | None:
    return None if title is None else storable(title)


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

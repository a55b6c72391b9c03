"""Writers of lines, without their newline. Everything written is valid in the unstable schema of v1 and of v2."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec
import orjson

from acp_proxy.core.acp.names import CANCEL, SESSION_UPDATE
from acp_proxy.core.jsonrpc import Request, parse
from acp_proxy.core.money import Money, decimal_text


def usage_update_line(
    session: str, used: int, size: int, cost: Money | None = None, meta: Mapping[str, Any] | None = None
) -> bytes:
    """A `usage_update`: context in tokens, and the session's cumulative cost as an exact JSON number."""
    update: dict[str, Any] = {"sessionUpdate": "usage_update", "used": used, "size": size}
    if cost is not None:
        update["cost"] = {"amount": orjson.Fragment(decimal_text(cost.nano)), "currency": cost.currency}
    if meta:
        update["_meta"] = dict(meta)
    return _update_line(session, update)


def message_line(session: str, text: str) -> bytes:
    """An `agent_message_chunk` of v1. v2 wants a message's id, and has notices and errors for what we say."""
    return _update_line(session, {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})


def notice_line(session: str, severity: str, title: str, description: str | None = None) -> bytes:
    """A `notice`, for clients that show them. `severity` is info, warning or error; `title` is not empty."""
    update = {"sessionUpdate": "notice", "severity": severity, "title": title}
    if description is not None:
        update["description"] = description
    return _update_line(session, update)


def cancel_line(session: str) -> bytes:
    """`session/cancel`, a notification to the agent."""
    return orjson.dumps({"jsonrpc": "2.0", "method": CANCEL, "params": {"sessionId": exact_json(session)}})


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
        return exact_json(message.id if isinstance(message, Request) else None)


def _update_line(session: str, update: dict[str, Any]) -> bytes:
    params = {"sessionId": session if session.isascii() else exact_json(session), "update": update}
    return orjson.dumps({"jsonrpc": "2.0", "method": SESSION_UPDATE, "params": params})


def exact_json(value: Any) -> orjson.Fragment:
    """JSON of an id: integers of any size, and whatever a string holds."""
    return orjson.Fragment(str(value) if isinstance(value, Decimal) else json.dumps(value))

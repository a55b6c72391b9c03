"""JSON-RPC 2.0 messages read off lines. Reading never raises: a line that is no message is None.

Only what is looked at is decoded; the line itself is what gets forwarded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class Request:
    id: Any  # as decoded: int, str or None; compare with `id_key`, never with ==, for 1 == 1.0 == True
    method: str
    params: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Notification:
    method: str
    params: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Response:
    id: Any
    result: Any = None  # None for an error, and for a null result
    error: dict[str, Any] | None = None


Message = Request | Notification | Response


def parse(line: bytes) -> Message | None:
    """The message of a line, or None for anything else: not JSON, an array, neither method nor id."""
    try:
        value = _decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return message_of(value)


def message_of(value: Any) -> Message | None:
    if not isinstance(value, dict):
        return None
    method = value.get("method")
    if isinstance(method, str):
        params = value.get("params")
        fields = params if isinstance(params, dict) else {}
        return Request(value["id"], method, fields) if "id" in value else Notification(method, fields)
    if method is None and "id" in value and ("result" in value or "error" in value):
        error = value.get("error")
        return Response(value["id"], value.get("result"), error if isinstance(error, dict) else ({} if "error" in value and "result" not in value else None))
    return None


def id_key(id: Any) -> tuple[str, Any]:
    """A dictionary key that keeps ids of different JSON types apart."""
    return (type(id).__name__, id if isinstance(id, str | int | float | None) else repr(id))

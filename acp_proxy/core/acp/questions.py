"""Requests of our own to the client, and what it answers: a form, or where it shows none a choice of two.

Loaded once somebody is asked. Lines are without their newline, and valid in the schemas of their versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from acp_proxy.core.acp.names import CANCEL_REQUEST, REQUEST_PERMISSION, SESSION_UPDATE
from acp_proxy.core.acp.values import mapping
from acp_proxy.core.acp.writing import exact_json
from acp_proxy.core.jsonrpc import Response

ELICITATION = "elicitation/create"
_YES, _NO = "ask", "not-now"


def form_line(id: str, session: str, message: str, title: str, fields: Mapping[str, Mapping[str, Any]]) -> bytes:
    """`elicitation/create`, in versions 1 and 2: all of these fields are to be filled in."""
    schema = {"type": "object", "title": title, "properties": fields, "required": list(fields)}
    return _line(
        ELICITATION,
        {"sessionId": exact_json(session), "mode": "form", "message": message, "requestedSchema": schema},
        id,
    )


def filled_in(response: Response) -> Mapping[str, Any] | None:
    """What the user sent; None where they declined, or where the answer is none."""
    result = mapping(response.result)
    return mapping(result.get("content")) if result.get("action") == "accept" else None


def choice_line(id: str, session: str, title: str, text: str, yes: str, no: str) -> bytes:
    """`session/request_permission` of version 1, for a tool call named like the request."""
    options = [
        {"optionId": _YES, "name": yes, "kind": "allow_once"},
        {"optionId": _NO, "name": no, "kind": "reject_once"},
    ]
    content = [{"type": "content", "content": {"type": "text", "text": text}}]
    call = {"toolCallId": id, "title": title, "kind": "other", "status": "pending", "content": content}
    return _line(REQUEST_PERMISSION, {"sessionId": exact_json(session), "toolCall": call, "options": options}, id)


def chosen(response: Response) -> bool:
    """Whether the first of the two was chosen."""
    outcome = mapping(mapping(response.result).get("outcome"))
    return outcome.get("outcome") == "selected" and outcome.get("optionId") == _YES


def call_over_line(id: str, session: str) -> bytes:
    """The end of a choice's tool call: without it clients go on showing that something runs."""
    update = {"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed"}
    return _line(SESSION_UPDATE, {"sessionId": exact_json(session), "update": update})


def withdrawal_line(id: str) -> bytes:
    """`$/cancel_request`: no answer is waited for any more."""
    return _line(CANCEL_REQUEST, {"requestId": id})


def _line(method: str, params: dict[str, Any], id: str | None = None) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", **({} if id is None else {"id": id}), "method": method, "params": params})

"""What differs from the hub's own API: where the key stands, how an error looks, and an id of each answer."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from acp_proxy.hub.api.desk import Answer, Dialect
from acp_proxy.hub.api.problems import TYPE
from acp_proxy.hub.store.secrets import new_id
from acp_proxy.ledger.hub.wire import Problem
from acp_proxy.system.decoding import json_decoder

_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    503: "api_error",
}


class Said(Struct, frozen=True):
    """`message` is one line."""

    type: str
    message: str


class Error(Struct, frozen=True):
    """An error of Anthropic's API."""

    error: Said
    request_id: str
    type: Literal["error"] = "error"


def answered(response: Response) -> Response:
    """The same, with an id; a problem as an error of theirs."""
    named = f"req_{new_id()}"
    if response.media_type == TYPE:
        problem = json_decoder(Problem).decode(bytes(response.body))
        said = Said(_KINDS.get(problem.status, "invalid_request_error"), problem.detail or problem.title)
        kept = {name: value for name, value in response.headers.items() if name == "retry-after"}
        body = msgspec.json.encode(Error(said, named))
        response = Response(body, problem.status, kept, media_type="application/json")
    response.headers["request-id"] = named
    return response


def in_dialect(answer: Answer) -> Answer:
    return replace(answer, dialect=_ANTHROPIC)


_ANTHROPIC = Dialect("x-api-key", answered, Error)

"""The OpenAPI 3.1 document of the API, made of the values that both ends decode."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from acp_proxy import __version__
from acp_proxy.hub.api.desk import Answer
from acp_proxy.ledger.hub.wire import NDJSON, Nothing, Problem

_PLACE = "#/components/schemas/{name}"
_ERRORS = {
    "400": "not what is expected",
    "401": "no valid token",
    "403": "not for this role, or not of this user",
    "409": "the id of another user's, or of what is decided already",
    "412": "what was to be changed is another one by now",
    "413": "too large",
    "415": "no JSON",
    "422": "a value that no ledger can keep",
    "429": "too many that wait",
    "500": "the ledger cannot be used",
    "503": "the ledger does not answer now",
}


def document(answers: Sequence[Answer]) -> dict[str, Any]:
    kinds = [kind for answer in answers for kind in (answer.call.asks, answer.call.answers)]
    schemas, components = msgspec.json.schema_components([*kinds, Problem], ref_template=_PLACE)
    paths: dict[str, Any] = {}
    for number, answer in enumerate(answers):
        asks, gives = schemas[2 * number : 2 * number + 2]
        paths.setdefault(answer.call.path, {})[answer.call.method.lower()] = _operation(answer, asks, gives)
    return {
        "openapi": "3.1.0",
        "info": {"title": "acp-proxy hub", "version": __version__},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {
                status: {"description": says, "content": {"application/problem+json": {"schema": schemas[-1]}}}
                for status, says in _ERRORS.items()
            },
        },
    }


def _operation(answer: Answer, asks: dict[str, Any], gives: dict[str, Any]) -> dict[str, Any]:
    call = answer.call
    described: dict[str, Any] = {
        "summary": call.says,
        "description": f"For the role {', '.join(answer.roles)}.",
        "responses": {status: {"$ref": f"#/components/responses/{status}"} for status in _ERRORS},
    }
    if call.answers is Nothing:
        described["responses"]["204"] = {"description": "done"}
    else:
        kind = NDJSON if call.streams else "application/json"
        says = "one a line, and an empty line at the end" if call.streams else "the answer"
        described["responses"]["200"] = {"description": says, "content": {kind: {"schema": gives}}}
    if call.asks is Nothing:
        return described
    if call.method == "DELETE":
        in_path = re.findall(r"{(\w+)}", call.path)
        described["parameters"] = [
            {
                "name": name,
                "in": "path" if name in in_path else "query",
                "required": name in in_path,
                "schema": {"type": "string"},
            }
            for name in call.asks.__struct_fields__
        ]
    else:
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": asks}}}
    return described

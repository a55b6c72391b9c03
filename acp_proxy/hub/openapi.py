"""The OpenAPI 3.1 document of the API, made of the values that both ends decode."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from acp_proxy import __version__
from acp_proxy.hub.api.desk import Answer
from acp_proxy.ledger.hub.wire import NDJSON, WITHOUT_BODY, Nothing, Problem

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
_OF_OTHERS = {"404": "none has this id"}  # that other APIs have


def document(answers: Sequence[Answer]) -> dict[str, Any]:
    kinds = [kind for answer in answers for kind in (answer.call.asks, answer.call.answers, _error(answer))]
    schemas, components = msgspec.json.schema_components([*kinds, Problem], ref_template=_PLACE)
    paths: dict[str, Any] = {}
    for number, answer in enumerate(answers):
        paths.setdefault(answer.call.path, {})[answer.call.method.lower()] = {
            **_asking(answer, schemas[3 * number]),
            "responses": _answers(answer, *schemas[3 * number + 1 : 3 * number + 3]),
        }
    keys = {answer.dialect.key for answer in answers if answer.dialect}
    return {
        "openapi": "3.1.0",
        "info": {"title": "acp-proxy hub", "version": __version__},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                **{key: {"type": "apiKey", "in": "header", "name": key} for key in sorted(keys)},
            },
            "responses": {
                status: {"description": says, "content": {"application/problem+json": {"schema": schemas[-1]}}}
                for status, says in _ERRORS.items()
            },
        },
    }


def _error(answer: Answer) -> type[Any]:
    return Problem if answer.dialect is None else answer.dialect.error


def _asking(answer: Answer, asks: dict[str, Any]) -> dict[str, Any]:
    call = answer.call
    described: dict[str, Any] = {
        "summary": call.says,
        "description": f"For the role {', '.join(answer.roles)}.",
    }
    if answer.dialect is not None:
        described["security"] = [{"token": []}, {answer.dialect.key: []}]
    if call.asks is Nothing:
        return described
    in_path = re.findall(r"{(\w+)}", call.path)
    fields = msgspec.structs.fields(call.asks)
    described["parameters"] = [
        _parameter(field, in_path) for field in fields if field.name in in_path or call.method in WITHOUT_BODY
    ]
    if call.method not in WITHOUT_BODY:
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": asks}}}
    return described


def _parameter(field: msgspec.structs.FieldInfo, in_path: list[str]) -> dict[str, Any]:
    name = field.encode_name
    schema: dict[str, Any] = {"type": "string"}
    if name.endswith("[]"):
        schema = {"type": "array", "items": schema}
    where = "path" if name in in_path else "query"
    return {"name": name, "in": where, "required": where == "path", "schema": schema}


def _answers(answer: Answer, gives: dict[str, Any], error: dict[str, Any]) -> dict[str, Any]:
    call, dialect = answer.call, answer.dialect
    if dialect is None:
        described: dict[str, Any] = {status: {"$ref": f"#/components/responses/{status}"} for status in _ERRORS}
    else:
        described = {status: _content(says, error) for status, says in sorted({**_ERRORS, **_OF_OTHERS}.items())}
    if call.answers is Nothing:
        described["204"] = {"description": "done"}
    else:
        says = "one a line, and an empty line at the end" if call.streams else "the answer"
        described["200"] = _content(says, gives, NDJSON if call.streams else "application/json")
    return described


def _content(says: str, schema: dict[str, Any], kind: str = "application/json") -> dict[str, Any]:
    return {"description": says, "content": {kind: {"schema": schema}}}

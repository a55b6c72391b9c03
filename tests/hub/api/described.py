"""An answer of the API beside what the OpenAPI document says of it."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jsonschema

from acp_proxy.ledger.hub.wire import NDJSON


def check_answer(document: Any, described: Any, body: bytes) -> None:
    """`described` is of the status that it had. Raises AssertionError, and ValidationError of jsonschema."""
    if "$ref" in described:
        described = document["components"]["responses"][described["$ref"].rpartition("/")[2]]
    if "content" not in described:
        assert body == b""
        return
    ((kind, content),) = described["content"].items()
    values = map(json.loads, filter(None, body.splitlines())) if kind == NDJSON else [json.loads(body)]
    validator = _validator(json.dumps({**content["schema"], "components": document["components"]}))
    for value in values:
        validator.validate(value)


@cache
def _validator(schema: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads(schema))

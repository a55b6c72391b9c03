"""Any JSON, and whether a message is valid ACP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
from hypothesis import strategies as st

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


SCHEMAS = {
    version: json.loads((Path(__file__).parents[1] / f"schema/acp-v{version}.schema.unstable.json").read_text())
    for version in (1, 2)
}


def is_valid(version: int, name: str, value: Any) -> bool:
    schema = {"$ref": f"#/$defs/{name}", "$defs": SCHEMAS[version]["$defs"]}
    return jsonschema.Draft202012Validator(schema).is_valid(value)

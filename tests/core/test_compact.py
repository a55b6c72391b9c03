"""Keys of the ledger stay what they were when the standard library wrote them."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st

from acp_proxy.core.compact import compact

texts = st.text(st.characters(), max_size=8)
keys = st.lists(st.none() | st.integers(-(2**63), 2**63 - 1) | texts | st.dictionaries(texts, texts | st.none()))


@given(keys)
@example(["\x7f/\"\\\b\f\n\r\t\0\x1f<>&'"])
@example(["é", "\ud800", "😀"])
def test_a_key_is_what_json_writes_without_spaces(value: list[object]) -> None:
    assert compact(value) == json.dumps(value, separators=(",", ":"))

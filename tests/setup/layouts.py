"""JSON in arbitrary layout: whitespace, comments and trailing commas wherever an editor allows them."""

from __future__ import annotations

import json
import re
from random import Random

from hypothesis import strategies as st

from acp_proxy.setup.jsonc import Array, Node, Object, Scalar

LAYOUTS = st.randoms(use_true_random=False)

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["/usr/bin/agent", "C:\\agent", 'say "hi"', "--acp", "--", "//", "/* no comment */", "~/agent", "run", "acp-proxy"]
)
SCALARS = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False, width=32) | WORDS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)

_COMMENTS = ["// why not\n", "/* a\n * b, ] } \n */", '// "x": 1,\n']
_GAPS = ["", "", "", "", " ", "\n", "\r\n", "\t", "\n    ", "/**/", *(f" {comment}  " for comment in _COMMENTS)]


def laid_out(value: object, layout: Random) -> str:
    """The value as text; the layout says what stands between."""
    match value:
        case dict():
            members = [f"{_text(key, layout)}{_gap(layout)}:{laid_out(each, layout)}" for key, each in value.items()]
            return _between("{", members, "}", layout)
        case list():
            return _between("[", [laid_out(each, layout) for each in value], "]", layout)
    return f"{_gap(layout)}{_text(value, layout)}{_gap(layout)}"


def comments(text: str) -> list[str]:
    """Those of a layout, in their order."""
    return re.findall("|".join(re.escape(comment.strip()) for comment in _COMMENTS), text)


def _between(opening: str, parts: list[str], closing: str, layout: Random) -> str:
    inside = ",".join(f"{_gap(layout)}{part}{_gap(layout)}" for part in parts)
    comma = layout.choice(["", "", ","]) if parts else ""
    return f"{_gap(layout)}{opening}{inside}{comma}{_gap(layout)}{closing}{_gap(layout)}"


def _gap(layout: Random) -> str:
    return layout.choice(_GAPS)


def _text(value: object, layout: Random) -> str:
    """With its characters escaped or not."""
    return json.dumps(value, ensure_ascii=layout.choice([True, False]))


def plain(node: Node) -> object:
    match node:
        case Object():
            return {member.key: plain(member.value) for member in node.members}
        case Array():
            return [plain(item) for item in node.items]
        case Scalar():
            return node.value
    raise AssertionError(node)

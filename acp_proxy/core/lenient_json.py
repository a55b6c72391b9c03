"""Invalid JSON that peers accept: a line that an agent reads and we do not would evade a budget. Never raises.

JavaScript and Rust trim every kind of blank, JavaScript takes bytes that are no text, half a surrogate pair and any
depth, Python guesses the encoding.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

_MOST_DIGITS = 4000  # Python makes no integer of more
_DEEPEST = 100  # nobody looks at what is nested deeper
_STRUCTURE = r'(?s:"(?:[^"\\]|\\.)*+"|[\[{]+|[\]}]+)'  # a text, or brackets in a row


def decode(line: bytes, blank: str, exact: Callable[[str], Decimal]) -> Any:
    """None for what no peer takes for JSON. `blank` is trimmed; `exact` makes what no `int` or text holds."""

    def whole(digits: str) -> int | Decimal:
        return int(digits) if len(digits) <= _MOST_DIGITS else exact(digits)

    line = line.strip()
    text = line.decode(json.detect_encoding(line), "replace").strip(blank)
    try:
        return json.loads(text, parse_float=exact, parse_int=whole)
    except ValueError:
        return None
    except RecursionError:
        pass
    try:
        return json.loads(_shallow(text), parse_float=exact, parse_int=whole)
    except (ValueError, RecursionError):
        return None


def _shallow(text: str) -> str:
    """JSON with null in place of what is nested too deep."""
    kept, start, depth = list[str](), 0, 0
    for token in re.finditer(_STRUCTURE, text):
        at, end = token.span()
        match text[at]:
            case "[" | "{":
                if depth < _DEEPEST <= depth + end - at:
                    kept += text[start : at + _DEEPEST - depth - 1], "null"
                depth += end - at
            case "]" | "}":
                if depth >= _DEEPEST:  # until it is less: the last one counts
                    start = at + depth - _DEEPEST + 1
                depth -= end - at
    return "".join((*kept, text[start:]))

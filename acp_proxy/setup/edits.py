"""Changes to a text by position, and what its layout is where something is put in. Pure; knows nothing of agents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

Edit = tuple[int, int, str]  # text[start:end] becomes the string


def edited(text: str, edits: Iterable[Edit]) -> str:
    """All at once; they do not overlap, and of those at one position the first given stands first."""
    in_order = sorted(edits, key=lambda edit: edit[:2])
    for start, end, new in reversed(in_order):
        text = text[:start] + new + text[end:]
    return text


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def quoted_list(values: Sequence[str]) -> str:
    return f"[{', '.join(map(quoted, values))}]"


def line_start(text: str, at: int) -> str:
    """The line break and indentation that end at a position, "" where something else stands before it."""
    before = text[:at]
    bare = before.rstrip(" \t")
    if not bare.endswith("\n"):
        return ""
    return ending_of(bare[-2:]) + before[len(bare) :]


def after_comma(text: str, at: int) -> str:
    """A comma, and what parts things from it where one stands at a position."""
    return f",{line_start(text, at) or ' '}"


def indent_of(text: str, at: int) -> str:
    """The indentation of the line at a position."""
    line = text[text.rfind("\n", 0, at) + 1 : at].lstrip("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def ending_of(text: str) -> str:
    """How its lines end."""
    return "\r\n" if "\r\n" in text else "\n"


def unit_of(text: str) -> str:
    """The indentation of one level."""
    found = re.search(r"^([ \t]+)\"", text, re.MULTILINE)
    return found[1] if found else "  "

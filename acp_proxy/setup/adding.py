"""Adds an agent behind acp-proxy to settings, with the objects around it that do not exist yet. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from acp_proxy.setup.agents import PROXY, RUN, CannotEditError, Shape, entries, inner, root
from acp_proxy.setup.edits import edited, ending_of, indent_of, quoted, quoted_list, unit_of
from acp_proxy.setup.jsonc import Array, Object, is_empty

_COMMENT = re.compile(r"[ \t]*(?://[^\r\n]*|/\*(?:(?!\*/)[^\r\n])*\*/(?=[ \t]*\r?\n))")


def added(text: str, shape: Shape, name: str, title: str, command: Sequence[str]) -> str:
    """The text with the agent after all others. Raises CannotEditError, also for one that is there."""
    if is_empty(text):
        separator = ending_of(text) if text.strip("\ufeff") and not text.endswith("\n") else ""
        text += f"{separator}{{}}{ending_of(text)}"
    if any(there == name for there, _ in entries(text, shape)):
        raise CannotEditError(f"{name} is there, but does not say what starts it")
    words = [PROXY, *RUN, *command]
    entry: dict[str, object] = dict(shape.extra or {})
    entry |= {"argv": words} if shape.argv else {"command": words[0], "args": words[1:]}
    if shape.more and name not in (shape.only or ()):
        return _in_list(text, root(text), shape.more, {"id": name, "displayName": title, **entry})
    return _in_object(text, root(text), shape.at, name, entry)


def _in_list(text: str, node: Object, key: str, entry: Mapping[str, object]) -> str:
    there = node.get(key)
    if there is None:
        return _append(text, node, f"{quoted(key)}: ", [entry])
    if not isinstance(there, Array):
        raise CannotEditError(f"expected {key} to be a list")
    return _append(text, there, "", entry)


def _in_object(text: str, node: Object, path: Sequence[str], name: str, entry: Mapping[str, object]) -> str:
    """`entry` as the last member of the object at `path`; what is missing on the way is made."""
    there = inner(node, path[0]) if path else None
    if there is not None:
        return _in_object(text, there, path[1:], name, entry)
    value: object = entry
    for key in (*path, name)[:0:-1]:
        value = {key: value}
    return _append(text, node, f"{quoted(path[0] if path else name)}: ", value)


def _append(text: str, node: Object | Array, key: str, value: object) -> str:
    ending = ending_of(text)
    unit = unit_of(text)
    outer = indent_of(text, node.start)
    line = f"{ending}{outer}{unit}"
    new = f"{line}{key}{_shown(value, line, unit)}"
    last = node.last
    if last is None:
        inside = text[node.start + 1 : node.end - 1].rstrip()  # comments, where it is not empty
        return edited(text, [(node.start + 1 + len(inside), node.end - 1, f"{new}{ending}{outer}")])
    if node.trailing_comma is not None:
        at = _end_of_comment(text, node.trailing_comma + 1)
        return edited(text, [(at, at, f"{new},")])
    at = _end_of_comment(text, last.end)
    closing = "" if "\n" in text[at : node.end] else f"{ending}{outer}"
    return edited(text, [(last.end, last.end, ","), (at, at, f"{new}{closing}")])


def _end_of_comment(text: str, at: int) -> int:
    """Of what is said on the rest of the line about what ends at a position, which stays beside it."""
    found = _COMMENT.match(text, at)
    return found.end() if found else at


def _shown(value: object, line: str, unit: str) -> str:
    """A member or an object on each line, as `line` begins them; lists of words on one."""
    deeper = line + unit
    match value:
        case Mapping():
            members = (f"{deeper}{quoted(key)}: {_shown(each, deeper, unit)}" for key, each in value.items())
            return f"{{{','.join(members)}{line}}}"
        case [Mapping(), *_]:
            return f"[{','.join(deeper + _shown(each, deeper, unit) for each in value)}{line}]"
        case list():
            return quoted_list(value)
    return quoted(str(value))

"""Agents in an editor's settings: put behind acp-proxy, and out again, by changing only the text that must. Pure.

An agent is an object with `command` and `args`, or with `argv` alone; what `command` is without `args` (a program, or
a line for a shell) the editor says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from acp_proxy.setup.jsonc import Array, NotJsonError, Object, Scalar, parse

PROXY = "acp-proxy"
RUN = ("run", "--")
Edit = tuple[int, int, str]  # text[start:end] becomes the string


class CannotEditError(Exception):
    """The settings are not as expected; the text is one line, without the file's name."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Where an editor keeps its agents: the keys of the object that has one member for each."""

    at: tuple[str, ...]
    shell_line: bool = False  # a `command` without `args` is a line for a shell
    extra: Mapping[str, str] | None = None  # members that a new agent has beside command and args


@dataclass(frozen=True, slots=True)
class Agent:
    """One that the settings name. `command` is None where the editor starts it by itself."""

    name: str
    command: tuple[str, ...] | None
    wrapped: bool


def agents(text: str, shape: Shape) -> list[Agent]:
    """In their order. Raises CannotEditError."""
    found = []
    for name, entry in _entries(text, shape):
        command = _command(entry)
        found.append(Agent(name, command, command is not None and is_wrapped(command)))
    return found


def wrapped(text: str, shape: Shape, names: Iterable[str]) -> str:
    """The text with these agents behind acp-proxy; those that are already stay as they are. Raises CannotEditError."""
    wanted = set(names)
    edits = [edit for name, entry in _entries(text, shape) if name in wanted for edit in _wrap(text, entry, shape)]
    return _edited(text, edits)


def unwrapped(text: str, shape: Shape) -> str:
    """The text with every agent started by itself again. Raises CannotEditError."""
    return _edited(text, [edit for _, entry in _entries(text, shape) for edit in _unwrap(entry)])


def added(text: str, shape: Shape, name: str, command: Sequence[str]) -> str:
    """The text with one more agent, behind acp-proxy. Raises CannotEditError."""
    if not text.strip("\ufeff \t\r\n"):
        text += "{}\n"
    entry = {**(shape.extra or {}), "command": PROXY, "args": [*RUN, *command]}
    return _add(text, _root(text), shape.at, name, entry)


def is_wrapped(command: Sequence[str]) -> bool:
    """Also where it is named by its path, or has a path in a line for a shell."""
    return bool(command) and PurePath(re.split(r"\s", command[0].strip(), maxsplit=1)[0]).name == PROXY


def _root(text: str) -> Object:
    try:
        root = parse(text)
    except NotJsonError as error:
        raise CannotEditError(f"not valid JSON, {error}") from error
    if not isinstance(root, Object):
        raise CannotEditError("expected an object")
    return root


def _entries(text: str, shape: Shape) -> list[tuple[str, Object]]:
    """The agents that are objects, in their order; none where the settings have no place for them."""
    if not text.strip("\ufeff \t\r\n"):
        return []
    node: Object = _root(text)
    for key in shape.at:
        inner = node.get(key)
        if inner is None:
            return []
        if not isinstance(inner, Object):
            raise CannotEditError(f"expected {'.'.join(shape.at)} to be an object")
        node = inner
    return [(member.key, member.value) for member in node.members if isinstance(member.value, Object)]


def _command(entry: Object) -> tuple[str, ...] | None:
    match entry.get("argv"), entry.text("command"), entry.get("args"):
        case Array(texts=[_, *_] as argv), None, None:
            return tuple(argv)
        case None, str(command), None:
            return (command,)
        case None, str(command), Array(texts=list(args)):
            return (command, *args)
    return None


def _wrap(text: str, entry: Object, shape: Shape) -> Iterable[Edit]:
    command = _command(entry)
    if command is None or is_wrapped(command):
        return
    argv, program, args = entry.get("argv"), entry.get("command"), entry.get("args")
    if isinstance(argv, Array):
        yield _insert_first(text, argv, [PROXY, *RUN])
    elif isinstance(program, Scalar) and isinstance(args, Array):
        yield program.start, program.end, _quoted(PROXY)
        yield _insert_first(text, args, [*RUN, command[0]])
    elif isinstance(program, Scalar) and shape.shell_line:
        yield program.start, program.end, _quoted(f"{PROXY} {' '.join(RUN)} {command[0]}")
    elif isinstance(program, Scalar):
        yield program.start, program.end, _quoted(PROXY)
        separator = f",{_break_before(text, entry)}" if _break_before(text, entry) else ", "
        yield program.end, program.end, f'{separator}"args": {_list([*RUN, command[0]])}'


def _unwrap(entry: Object) -> Iterable[Edit]:
    command = _command(entry)
    if command is None or not is_wrapped(command):
        return
    program, values = entry.get("command"), entry.get("argv") or entry.get("args")
    if isinstance(values, Array) and (texts := values.texts) and "--" in texts[:-1]:
        first = texts.index("--") + 1
        if not isinstance(program, Scalar):
            yield values.items[0].start, values.items[first].start, ""
            return
        yield program.start, program.end, _quoted(texts[first])
        after = values.items[first + 1].start if first + 1 < len(texts) else values.items[first].end
        yield values.items[0].start, after, ""
    elif isinstance(program, Scalar) and " -- " in command[0]:
        yield program.start, program.end, _quoted(command[0].partition(" -- ")[2])


def _insert_first(text: str, array: Array, values: Sequence[str]) -> Edit:
    """Each on a line of its own where the items are."""
    if not array.items:
        return array.start + 1, array.start + 1, ", ".join(map(_quoted, values))
    first = array.items[0].start
    separator = f",{_line_start(text, first)}" if _line_start(text, first) else ", "
    return first, first, "".join(f"{_quoted(value)}{separator}" for value in values)


def _add(text: str, node: Object, path: Sequence[str], name: str, entry: Mapping[str, object]) -> str:
    """`entry` as the last member of the object at `path`; what is missing on the way is made."""
    inner = node.get(path[0]) if path else None
    if path and inner is not None:
        if not isinstance(inner, Object):
            raise CannotEditError(f"expected {path[0]} to be an object")
        return _add(text, inner, path[1:], name, entry)
    value: object = entry
    for key in (*path, name)[:0:-1]:
        value = {key: value}
    return _append_member(text, node, path[0] if path else name, value)


def _append_member(text: str, node: Object, key: str, value: object) -> str:
    ending = "\r\n" if "\r\n" in text else "\n"
    unit = _unit(text)
    outer = _indent_of(text, node.start)
    inner = f"{ending}{outer}{unit}"
    member = f"{inner}{_quoted(key)}: {_shown(value, inner, unit)}"
    if not node.members:
        return _edited(text, [(node.start + 1, node.end - 1, f"{member}{ending}{outer}")])
    if node.trailing_comma is not None:
        at = node.trailing_comma + 1
        return _edited(text, [(at, at, f"{member},")])
    at = node.members[-1].value.end
    closing = "" if "\n" in text[at : node.end] else f"{ending}{outer}"
    return _edited(text, [(at, at, f",{member}{closing}")])


def _shown(value: object, line: str, unit: str) -> str:
    """A member on each line, as `line` begins them, but lists on one."""
    match value:
        case dict():
            members = (f"{line}{unit}{_quoted(key)}: {_shown(each, line + unit, unit)}" for key, each in value.items())
            return f"{{{','.join(members)}{line}}}"
        case list():
            return _list(value)
    return json.dumps(value, ensure_ascii=False)


def _unit(text: str) -> str:
    """What a level is indented by."""
    found = re.search(r"^([ \t]+)\"", text, re.MULTILINE)
    return found[1] if found else "  "


def _indent_of(text: str, at: int) -> str:
    """Of the line that a position is on."""
    line = text[text.rfind("\n", 0, at) + 1 : at].lstrip("\ufeff")
    return line[: len(line) - len(line.lstrip())]


def _break_before(text: str, entry: Object) -> str:
    """The line break and indentation before the object's first member, "" where it stands on the line of the brace."""
    return _line_start(text, entry.members[0].start)


def _line_start(text: str, at: int) -> str:
    """The line break and indentation that end at a position, "" where something else stands before it."""
    before = text[:at]
    bare = before.rstrip(" \t")
    if not bare.endswith("\n"):
        return ""
    ending = "\r\n" if bare.endswith("\r\n") else "\n"
    return ending + before[len(bare) :]


def _list(values: Sequence[str]) -> str:
    return f"[{', '.join(map(_quoted, values))}]"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _edited(text: str, edits: Iterable[Edit]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text

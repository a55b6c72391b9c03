"""The agents that an editor's settings name, and where in their text. Pure; changes nothing.

An agent is an object with `command` and `args`, or with `argv` alone; what `command` is without `args` (a program, or
a line for a shell) the editor says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import PurePath

from msgspec import Struct

from acp_proxy.setup.jsonc import Array, NotJsonError, Object, is_empty, parse

PROXY = "acp-proxy"
RUN = ("run", "--")
_LISTED = frozenset({"registry", "extension"})  # the latter as Zed called it before
_NAMES = frozenset({PROXY, "acp_proxy"})  # the latter as `python -m acp_proxy`


class CannotEditError(Exception):
    """The settings are not as expected; the text is one line, without the file's name."""


class Shape(Struct, frozen=True):
    """How an editor writes its agents down: members of the object at `at`, and items of the array `more`."""

    at: tuple[str, ...] = ()
    only: frozenset[str] | None = None  # the members that are agents, None for all
    more: str | None = None  # a key beside them, with an array of agents that have an `id`
    shell_line: bool = False  # a `command` without `args` is a line for a shell
    argv: bool = False  # how a new agent is written
    extra: Mapping[str, str] | None = None  # members that a new agent has before its command
    registry: bool = False  # an agent may be of the ACP registry: `"type": "registry"`


class Agent(Struct, frozen=True):
    """An agent in the settings. `command` is None if they have no command for it."""

    name: str
    command: tuple[str, ...] | None
    listed: bool = False  # in the ACP registry, which says what starts it

    @property
    def wrapped(self) -> bool:
        return self.command is not None and is_wrapped(self.command)


def agents(text: str, shape: Shape) -> list[Agent]:
    """In their order. Raises CannotEditError."""
    return [_agent(name, entry, shape) for name, entry in entries(text, shape)]


def _agent(name: str, entry: Object, shape: Shape) -> Agent:
    listed = is_listed(entry, shape)
    return Agent(name, None if listed else command_of(entry), listed)


def is_listed(entry: Object, shape: Shape) -> bool:
    """Whether the registry says what starts it; a command beside that counts for nothing there."""
    return shape.registry and entry.text("type") in _LISTED


def is_wrapped(command: Sequence[str]) -> bool:
    """Also where acp-proxy is named by its path, started by something else, or within a line for a shell.

    What stands before `--` starts the agent; to put it behind acp-proxy once more would count each turn twice.
    """
    launcher = command[: command.index("--")] if "--" in command else ()
    lines = (head.split() for head, ends, _ in (word.partition(" -- ") for word in command) if ends)
    words = (command[0], *command[0].split()[:1], *launcher, *chain.from_iterable(lines))
    return not _NAMES.isdisjoint(PurePath(word).name for word in words)


def entries(text: str, shape: Shape) -> list[tuple[str, Object]]:
    """The objects that are agents; none where the settings have no place for them. Raises CannotEditError."""
    if is_empty(text):
        return []
    node: Object | None = root(text)
    for key in shape.at:
        node = inner(node, key) if node else None
    if node is None:
        return []
    members = [member for member in node.members if shape.only is None or member.key in shape.only]
    found = [(member.key, member.value) for member in members if isinstance(member.value, Object)]
    return [*found, *_items(node.get(shape.more), shape.more)] if shape.more else found


def _items(node: object, key: str) -> Iterable[tuple[str, Object]]:
    if node is None:
        return
    if not isinstance(node, Array):
        raise CannotEditError(f"expected {key} to be a list")
    for item in node.items:
        if isinstance(item, Object) and (name := item.text("id")):
            yield name, item


def root(text: str) -> Object:
    """The object that the settings are. Raises CannotEditError."""
    try:
        node = parse(text)
    except NotJsonError as error:
        raise CannotEditError(f"not valid JSON, {error}") from error
    if not isinstance(node, Object):
        raise CannotEditError("expected an object")
    return node


def inner(node: Object, key: str) -> Object | None:
    """The object under a key, None where nothing is. Raises CannotEditError for anything else."""
    found = node.get(key)
    if found is not None and not isinstance(found, Object):
        raise CannotEditError(f"expected {key} to be an object")
    return found


def command_of(entry: Object) -> tuple[str, ...] | None:
    """The words that start the agent, None where they are not all there and text."""
    match entry.get("argv"), entry.text("command"), entry.get("args"):
        case Array(texts=[str(program), *_] as argv), None, None if program:
            return tuple(argv)
        case None, str(command), None if command.strip():
            return (command,)
        case None, str(command), Array(texts=list(args)) if command.strip():
            return (command, *args)
    return None

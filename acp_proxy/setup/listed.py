"""Agents of the ACP registry put behind acp-proxy, and given back to the registry. Pure.

The entry stays where it is, under its name and with all that the user set in it: only its type changes, and what starts
the agent is put beside that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from acp_proxy.setup.agents import PROXY, RUN, CannotEditError, Shape, entries, is_listed, is_wrapped
from acp_proxy.setup.edits import Edit, after_comma, edited, quoted, quoted_list
from acp_proxy.setup.jsonc import Array, Object, Scalar
from acp_proxy.setup.registry import Started

_CUSTOM = quoted("custom")
_REGISTRY = quoted("registry")


def customized(text: str, shape: Shape, started: Mapping[str, Started]) -> str:
    """The text with these agents started by a command, behind acp-proxy. Raises CannotEditError."""
    found = [(name, entry) for name, entry in entries(text, shape) if name in started and is_listed(entry, shape)]
    return edited(text, [edit for name, entry in found for edit in _customize(text, name, entry, started[name])])


def listed_again(text: str, shape: Shape, names: Iterable[str]) -> str:
    """The text with these agents started as the registry says, as far as they stand as `customized` left them."""
    wanted = set(names)
    found = [entry for name, entry in entries(text, shape) if name in wanted and not is_listed(entry, shape)]
    return edited(text, [edit for entry in found for edit in _list_again(text, entry)])


def _customize(text: str, name: str, entry: Object, started: Started) -> Iterable[Edit]:
    if any(entry.get(key) is not None for key in ("command", "args")):
        raise CannotEditError(f"{name} comes from the registry and has a command; expected one of the two")
    kind, env = entry.get("type"), entry.get("env")
    if not isinstance(kind, Scalar):
        return
    separator = after_comma(text, entry.members[0].start)
    members = [f'"command": {quoted(PROXY)}', f'"args": {quoted_list((*RUN, *started.command))}']
    if started.env and not isinstance(env, Object):
        members.append(f'"env": {{{_variables(started.env)}}}')
    yield kind.start, kind.end, separator.join([_CUSTOM, *members])
    if isinstance(env, Object):
        missing = {key: value for key, value in started.env.items() if env.get(key) is None}
        if missing and env.members:
            first = env.members[0].start
            between = after_comma(text, first)
            yield first, first, "".join(f"{quoted(key)}: {quoted(value)}{between}" for key, value in missing.items())
        elif missing:
            yield env.start + 1, env.start + 1, _variables(missing)


def _list_again(text: str, entry: Object) -> Iterable[Edit]:
    kind, command, args = entry.get("type"), entry.get("command"), entry.get("args")
    if not isinstance(kind, Scalar) or not isinstance(command, Scalar) or not isinstance(args, Array):
        return
    if not args.texts or not is_wrapped((str(command.value), *args.texts)):
        return
    between = text[kind.end : command.start] + text[command.end : args.start]
    if kind.end < command.start < args.start and set(between) <= set(' \t\r\n,:"commandargs'):  # nothing of the user's
        yield kind.start, args.end, _REGISTRY


def _variables(env: Mapping[str, str]) -> str:
    return ", ".join(f"{quoted(key)}: {quoted(value)}" for key, value in env.items())

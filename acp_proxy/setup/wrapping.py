"""Agents put behind acp-proxy, and out again, by changing only the text that starts them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from acp_proxy.setup.agents import PROXY, RUN, Shape, command_of, entries, is_wrapped
from acp_proxy.setup.edits import Edit, after_comma, edited, quoted, quoted_list
from acp_proxy.setup.jsonc import Array, Object, Scalar


def wrapped(text: str, shape: Shape, names: Iterable[str], home: str) -> str:
    """The text with these agents behind acp-proxy; those that are already stay as they are. Raises CannotEditError.

    `home` is what `~` in a command means: the editor expands it, but an argument is not expanded.
    """
    wanted = set(names)
    found = [entry for name, entry in entries(text, shape) if name in wanted]
    return edited(text, [edit for entry in found for edit in _wrap(text, entry, shape, home)])


def unwrapped(text: str, shape: Shape, names: Iterable[str]) -> str:
    """The text with these agents started by themselves again. Raises CannotEditError."""
    wanted = set(names)
    found = [entry for name, entry in entries(text, shape) if name in wanted]
    return edited(text, [edit for entry in found for edit in _unwrap(text, entry)])


def _wrap(text: str, entry: Object, shape: Shape, home: str) -> Iterable[Edit]:
    command = command_of(entry)
    if command is None or is_wrapped(command):
        return
    argv, program, args = entry.get("argv"), entry.get("command"), entry.get("args")
    if isinstance(argv, Array):
        yield _first(text, argv, [quoted(word) for word in (PROXY, *RUN)])
    elif not isinstance(program, Scalar):
        return
    elif args is None and shape.shell_line:
        # The quotation marks stay where they are, so that whatever is escaped between them stays as it is.
        yield program.start + 1, program.start + 1, f"{PROXY} {' '.join(RUN)} "
    else:
        literal = text[program.start : program.end]
        if command[0].startswith("~/"):
            literal = quoted(home + command[0][1:])
        yield program.start, program.end, quoted(PROXY)
        if isinstance(args, Array):
            yield _first(text, args, [*map(quoted, RUN), literal])
        else:
            separator = after_comma(text, entry.members[0].start)
            yield program.end, program.end, f'{separator}"args": {quoted_list(RUN)[:-1]}, {literal}]'


def _unwrap(text: str, entry: Object) -> Iterable[Edit]:
    command = command_of(entry)
    if command is None or not is_wrapped(command):
        return
    program, values = entry.get("command"), entry.get("argv") or entry.get("args")
    if isinstance(values, Array) and (words := values.texts) and "--" in words[:-1]:
        first = words.index("--") + 1
        if not isinstance(program, Scalar):
            yield values.items[0].start, values.items[first].start, ""
            return
        yield program.start, program.end, text[values.items[first].start : values.items[first].end]
        if first + 1 < len(words):
            yield values.items[0].start, values.items[first + 1].start, ""
            return
        yield values.items[0].start, values.items[first].end, ""
        if (comma := values.trailing_comma) is not None:  # of a list that is empty now it would be no JSON
            yield comma, comma + 1, ""
    elif isinstance(program, Scalar):
        literal = text[program.start : program.end]
        if " -- " in literal:
            yield program.start, program.end, f'"{literal.partition(" -- ")[2]}'


def _first(text: str, array: Array, literals: Sequence[str]) -> Edit:
    """The literals before all items, each on a line of its own where the items are."""
    if not array.items:
        return array.start + 1, array.start + 1, ", ".join(literals)
    first = array.items[0].start
    return first, first, "".join(f"{literal}{after_comma(text, first)}" for literal in literals)

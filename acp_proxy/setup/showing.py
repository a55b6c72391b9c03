"""Changes of settings, and the editors that there are, as people read them. Writes to no stream."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from acp_proxy.setup.agents import Agent, CannotEditError, agents
from acp_proxy.setup.editors import EDITORS, Editor
from acp_proxy.setup.jsonc import Array, Node, NotJsonError, Object, Scalar, parse
from acp_proxy.setup.pasting import PASTED
from acp_proxy.setup.settings_file import SettingsError, SettingsFile
from acp_proxy.text.figures import aligned, clean

_SECRET = ("apikey", "api_key", "api-key", "authorization", "password", "secret", "token")
_HIDDEN = ("env", "headers")
_NAMES = ("key", "name")  # of a variable, where an `env` is a list of objects
_COLOURS = {"+": "32", "-": "31", "@": "36"}


def diff(path: Path, before: str, after: str, *, colours: bool) -> str:
    """Unified; line ends are shown as they are everywhere, and what may be a secret as `…`."""
    old, new = (_lines(_without_secrets(text)) for text in (before, after))
    name = _shown(str(path))
    lines = difflib.unified_diff(old, new, name, name, n=2, lineterm="")
    return "".join(f"{_painted(line) if colours else line}\n" for line in lines)


def found(environ: Mapping[str, str]) -> str:
    """The editors, their settings, and the agents in them."""
    rows = [("editor", "settings", "agents")]
    for editor in EDITORS.values():
        files = editor.files(environ)
        rows += [(editor.name, _short(path, environ), _agents_in(editor, path)) for path in files]
        if not files:
            rows.append((editor.name, "-", editor.none))
    rows += [(pasted.name, pasted.language, "prints what to put there") for pasted in PASTED.values()]
    return aligned(rows, [False, False, False])


def _agents_in(editor: Editor, path: Path) -> str:
    try:
        data = SettingsFile(path).read()
        if data is None:
            return "no file"
        there = agents(data.decode("utf-8"), editor.shape)
    except UnicodeDecodeError:
        return "cannot be read: expected UTF-8 text"
    except (SettingsError, CannotEditError) as error:
        return str(error).removeprefix(f"{path}: ").removesuffix(", nothing was done")
    return ", ".join(f"{clean(agent.name)}{_state(agent)}" for agent in there) or "none"


def _state(agent: Agent) -> str:
    if agent.listed:
        return " (from the registry)"
    if agent.command is None:
        return " (started by the editor)"
    return " (behind acp-proxy)" if agent.wrapped else ""


def _without_secrets(text: str) -> str:
    """Agents' keys stand beside their commands, and what a terminal shows is passed on in reports of faults."""
    try:
        found = sorted(_secrets(parse(text), hidden=False), reverse=True)
    except NotJsonError:  # an empty file
        return text
    for start, end in found:
        text = f'{text[:start]}"…"{text[end:]}'
    return text


def _secrets(node: Node, *, hidden: bool) -> Iterator[tuple[int, int]]:
    """Where texts of an `env` stand, but for the names in one, and those of keys and flags called such as `apiKey`.

    Also of such a variable or header among arguments.
    """
    match node:
        case Scalar(value=str(text)) if hidden and text:
            yield node.start, node.end
        case Array():
            flag = False  # the one before was such a one, and this is its value
            for item in node.items:
                text = item.value.lower() if isinstance(item, Scalar) and isinstance(item.value, str) else ""
                *names, value = re.split("[=:]", text)  # several where a flag has one in it: `--env=API_KEY=…`
                yield from _secrets(item, hidden=hidden or flag or _is_secret(*names))
                flag = not names and value.startswith("-") and _is_secret(value)
        case Object():
            for member in node.members:
                name = member.key.lower()
                secret = hidden or name in _HIDDEN or _is_secret(name)
                names_it = member.key in _NAMES and node.get("value") is not None
                yield from _secrets(member.value, hidden=secret and not names_it)


def _is_secret(*names: str) -> bool:
    return any(part in name for name in names for part in _SECRET)


def _lines(text: str) -> list[str]:
    if not text:
        return []
    lines = [_shown(line) for line in text.replace("\r\n", "\n").split("\n")]
    return lines[:-1] if lines[-1] == "" else [*lines[:-1], f"{lines[-1]}\n\\ no newline at the end"]


def _shown(line: str) -> str:
    """A line that controls no terminal, with all its layout."""
    return "".join(sign if sign.isprintable() or sign in "\t\ufeff" else "\ufffd" for sign in line)


def _painted(line: str) -> str:
    colour = _COLOURS.get(line[:1])
    return f"\x1b[{colour}m{line}\x1b[0m" if colour else line


def _short(path: Path, environ: Mapping[str, str]) -> str:
    home = environ.get("HOME", "")
    return _shown(f"~{str(path)[len(home) :]}" if home and str(path).startswith(f"{home}/") else str(path))

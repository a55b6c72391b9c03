"""Changes of settings, and the editors that there are, as people read them. Writes to no stream."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

from acp_proxy.figures import aligned, clean
from acp_proxy.setup.agents import Agent, CannotEditError, agents
from acp_proxy.setup.editors import EDITORS, Editor
from acp_proxy.setup.pasting import PASTED
from acp_proxy.setup.settings_file import SettingsError, SettingsFile

_COLOURS = {"+": "32", "-": "31", "@": "36"}


def diff(path: Path, before: str, after: str, *, colours: bool) -> str:
    """Unified; line ends are shown as they are everywhere."""
    lines = difflib.unified_diff(_lines(before), _lines(after), str(path), str(path), n=2, lineterm="")
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
    if agent.command is None:
        return " (started by the editor)"
    return " (behind acp-proxy)" if agent.wrapped else ""


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
    return f"~{str(path)[len(home) :]}" if home and str(path).startswith(f"{home}/") else str(path)

"""`acp-proxy setup`: from what was typed to what is changed and answered. Writes to no stream."""

from __future__ import annotations

import difflib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from acp_proxy.figures import aligned, clean
from acp_proxy.ledger.places import state_directory
from acp_proxy.setup.editors import AGENTS, EDITORS, Editor
from acp_proxy.setup.settings_file import SettingsError, SettingsFile
from acp_proxy.setup.wrapping import PROXY, Agent, CannotEditError, added, agents, unwrapped, wrapped


class SetupError(Exception):
    """The user must correct something; the text is one line."""


@dataclass(frozen=True, slots=True)
class Asked:
    editor: str
    agent: str | None = None
    dry_run: bool = False
    undo: bool = False


def main(asked: Asked, environ: Mapping[str, str], *, colours: bool) -> str:
    """What was done, for people. Raises SetupError."""
    editor = EDITORS[asked.editor]
    file = SettingsFile(editor.file(environ), state_directory(environ) / "setup")
    try:
        before = file.read()
        if asked.undo:
            return _undo(editor, file, before, asked, colours=colours)
        return _set_up(editor, file, before, asked, environ, colours=colours)
    except SettingsError as error:
        raise SetupError(str(error)) from error
    except CannotEditError as error:
        raise SetupError(f"{file.path}: {error}; nothing was done") from error


def found(environ: Mapping[str, str]) -> str:
    """The editors, their settings, and the agents in them."""
    rows = [("editor", "settings", "agents")]
    for editor in EDITORS.values():
        path = editor.file(environ)
        rows.append((editor.name, _short(path, environ), _agents_in(editor, path)))
    return aligned(rows, [False, False, False])


def _set_up(
    editor: Editor, file: SettingsFile, before: bytes | None, asked: Asked, environ: Mapping[str, str], *, colours: bool
) -> str:
    text = _decoded(file, before)
    if before is None and asked.agent is None:
        raise SetupError(f"{file.path}: not found, so {editor.title} has no agents of its own yet; {_offer(editor)}")
    after, said = _changed(editor, text, agents(text, editor.shape), asked.agent)
    if after == text:
        return said
    change = _diff(file.path, text, after, colours=colours)
    if asked.dry_run:
        return change
    original = _original(editor, file, before, text)
    file.replace(before, after.encode("utf-8"))
    file.keep(original, after.encode("utf-8"))
    return f"{change}\n{said}{_outlook(editor, environ)}"


def _changed(editor: Editor, text: str, there: list[Agent], wanted: str | None) -> tuple[str, str]:
    """The new text, and what is said of it."""
    chosen = [agent for agent in there if wanted is None or agent.name.casefold() == wanted.casefold()]
    if wanted is not None and not chosen:
        return _with_new(editor, text, there, wanted)
    startable = [agent for agent in chosen if agent.command is not None]
    if not startable:
        started = ", ".join(clean(agent.name) for agent in chosen)
        if started:
            raise SetupError(
                f"{editor.title} starts {started} by itself, its settings name no command; {_offer(editor)}"
            )
        raise SetupError(f"{editor.title} has no agents in its settings; {_offer(editor)}")
    new = [agent for agent in startable if not agent.wrapped]
    if not new:
        return text, f"{_names(startable)} behind acp-proxy already.\n"
    said = f"{_names(new)} behind acp-proxy now. `acp-proxy setup {editor.name} --undo` takes it back.\n"
    return wrapped(text, editor.shape, [agent.name for agent in new]), said


def _with_new(editor: Editor, text: str, there: list[Agent], wanted: str) -> tuple[str, str]:
    known = AGENTS.get(wanted.casefold())
    if known is None:
        names = ", ".join([*(clean(agent.name) for agent in there), *AGENTS])
        raise SetupError(
            f"--agent: {editor.title} has no {clean(wanted)!r}, and none such can be added; expected one of {names}"
        )
    title, command = known
    name = f"{title} (acp-proxy)"
    if any(agent.name == name for agent in there):
        return text, f"{name} is behind acp-proxy already.\n"
    said = f"{name} was added. `acp-proxy setup {editor.name} --undo` takes it back.\n"
    return added(text, editor.shape, name, command), said


def _original(editor: Editor, file: SettingsFile, before: bytes | None, text: str) -> bytes | None:
    """What an undo gives back: as it was before the first setup, where only we have changed it since."""
    ours, original = file.kept(before)
    if ours:
        return original
    return None if before is None else unwrapped(text, editor.shape).encode("utf-8")


def _undo(editor: Editor, file: SettingsFile, before: bytes | None, asked: Asked, *, colours: bool) -> str:
    if before is None:
        raise SetupError(f"{file.path}: not found, there is nothing to undo")
    text = _decoded(file, before)
    ours, original = file.kept(before)
    after = (original or b"").decode("utf-8") if ours else unwrapped(text, editor.shape)
    if after == text:
        return f"No agent of {editor.title} is behind acp-proxy.\n"
    change = _diff(file.path, text, after, colours=colours)
    if asked.dry_run:
        return change
    if ours and original is None:
        file.remove()
    else:
        file.replace(before, after.encode("utf-8"))
    file.forget()
    if ours:
        return f"{change}\n{file.path} is as it was before.\n"
    return f"{change}\nThe file was changed since: only what starts the agents was put back.\n"


def _decoded(file: SettingsFile, data: bytes | None) -> str:
    try:
        return (data or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise SetupError(f"{file.path}: expected UTF-8 text; nothing was done") from error


def _agents_in(editor: Editor, path: Path) -> str:
    try:
        data = SettingsFile(path, Path()).read()
        if data is None:
            return "-"
        there = agents(data.decode("utf-8"), editor.shape)
    except (SettingsError, CannotEditError, UnicodeDecodeError):
        return "cannot be read"
    return ", ".join(f"{clean(agent.name)}{_state(agent)}" for agent in there) or "none"


def _state(agent: Agent) -> str:
    if agent.command is None:
        return " (started by the editor)"
    return " (behind acp-proxy)" if agent.wrapped else ""


def _names(there: list[Agent]) -> str:
    names = [clean(agent.name) for agent in there]
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"


def _offer(editor: Editor) -> str:
    return f"`acp-proxy setup {editor.name} --agent claude` adds one ({', '.join(AGENTS)})"


def _outlook(editor: Editor, environ: Mapping[str, str]) -> str:
    if shutil.which(PROXY, path=environ.get("PATH")):
        return ""
    return f"`{PROXY}` is not on the PATH: {editor.title} will not find it until it is.\n"


def _diff(path: Path, before: str, after: str, *, colours: bool) -> str:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), str(path), str(path), n=2
    )
    shown = [line if line.endswith("\n") else f"{line}\n\\ no newline at the end\n" for line in lines]
    return "".join(_painted(line.replace("\r\n", "\n")) if colours else line.replace("\r\n", "\n") for line in shown)


def _painted(line: str) -> str:
    colour = {"+": "32", "-": "31", "@": "36"}.get(line[:1])
    return f"\x1b[{colour}m{line[:-1]}\x1b[0m\n" if colour else line


def _short(path: Path, environ: Mapping[str, str]) -> str:
    home = environ.get("HOME", "")
    return f"~{str(path)[len(home) :]}" if home and str(path).startswith(f"{home}/") else str(path)

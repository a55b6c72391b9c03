"""`acp-proxy setup`: from what was typed to what is changed and answered. Writes to no stream."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence

from msgspec import Struct

from acp_proxy.setup.agents import PROXY, CannotEditError
from acp_proxy.setup.changes import Change, Machine, SetupError, set_up, undo
from acp_proxy.setup.editors import EDITORS, Editor
from acp_proxy.setup.originals import Original
from acp_proxy.setup.pasting import PASTED, Pasted
from acp_proxy.setup.settings_file import SettingsError, SettingsFile
from acp_proxy.setup.showing import diff
from acp_proxy.system.directories import home, state_directory
from acp_proxy.text.figures import clean


class Asked(Struct, frozen=True):
    """The arguments."""

    editor: str
    agent: str | None = None
    dry_run: bool = False
    undo: bool = False


def main(asked: Asked, environ: Mapping[str, str], *, colours: bool) -> str:
    """Runs the command; returns its output for people. Raises SetupError."""
    if pasted := PASTED.get(asked.editor):
        return _to_paste(pasted, asked)
    editor = EDITORS[asked.editor]
    files = [SettingsFile(path) for path in editor.files(environ)]
    if not files:
        raise SetupError(f"{editor.title}: {editor.none}, nothing was done")
    changes = [_planned(editor, file, asked, environ) for file in files]  # all of them, before the first is made
    answers, done = list[str](), list[str]()
    for change in changes:
        try:
            answers.append(_made(editor, change, asked, environ, colours=colours))
        except SettingsError as error:
            raise SetupError(_in_part(str(error), done) if done else str(error)) from error
        done += [str(change.file.path)] if change.after != change.before and not asked.dry_run else []
    return "".join(answers)


def _in_part(error: str, done: Sequence[str]) -> str:
    return f"{error.removesuffix(', nothing was done')}; done already: {', '.join(done)}"


def _to_paste(editor: Pasted, asked: Asked) -> str:
    if asked.undo:
        return f"acp-proxy has changed nothing of {editor.title}: take out what you put in.\n"
    if asked.agent is None:
        return editor.answer(list(editor.own))
    if asked.agent.casefold() not in editor.own:
        expected = ", ".join(editor.own)
        raise SetupError(f"--agent: unknown for {editor.title}: {clean(asked.agent)!r}; expected one of {expected}")
    return editor.answer([asked.agent.casefold()])


def _planned(editor: Editor, file: SettingsFile, asked: Asked, environ: Mapping[str, str]) -> Change:
    try:
        original = Original(state_directory(environ) / "setup", file.target)
        if asked.undo:
            return undo(editor, file, original, asked.agent)
        machine = Machine(str(home(environ)), editor.registry(environ))
        return set_up(editor, file, original, asked.agent, machine)
    except UnicodeDecodeError as error:
        raise SetupError(f"{file.path}: expected UTF-8 text, nothing was done") from error
    except CannotEditError as error:
        raise SetupError(f"{file.path}: {error}, nothing was done") from error
    except SettingsError as error:
        raise SetupError(str(error)) from error


def _made(editor: Editor, change: Change, asked: Asked, environ: Mapping[str, str], *, colours: bool) -> str:
    if change.after == change.before:
        return f"{change.said}{change.left_out}"
    shown = diff(change.file.path, change.before, change.after, colours=colours)
    if asked.dry_run:
        return f"{shown}{change.left_out}"
    change.make()
    outlook = "" if asked.undo else _outlook(editor, environ)
    afterwards = f"{editor.afterwards}\n" if editor.afterwards else ""
    return f"{shown}\n{change.said}{change.left_out}{outlook}{afterwards}"


def _outlook(editor: Editor, environ: Mapping[str, str]) -> str:
    if shutil.which(PROXY, path=environ.get("PATH")):
        return ""
    return f"`{PROXY}` is not on the PATH: {editor.title} will not find it until it is.\n"

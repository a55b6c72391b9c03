"""`acp-proxy setup`: from what was typed to what is changed and answered. Writes to no stream."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from acp_proxy.config.files import home
from acp_proxy.figures import clean
from acp_proxy.ledger.places import state_directory
from acp_proxy.setup.adding import added
from acp_proxy.setup.agents import PROXY, Agent, CannotEditError, agents
from acp_proxy.setup.editors import EDITORS, Editor
from acp_proxy.setup.known import KNOWN
from acp_proxy.setup.originals import Original
from acp_proxy.setup.pasting import PASTED, Pasted
from acp_proxy.setup.settings_file import SettingsError, SettingsFile
from acp_proxy.setup.showing import diff
from acp_proxy.setup.wrapping import unwrapped, wrapped


class SetupError(Exception):
    """The user must correct something; the text is one line."""


@dataclass(frozen=True, slots=True)
class Asked:
    editor: str
    agent: str | None = None
    dry_run: bool = False
    undo: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """Of one file: its text before and after, what is said of it, and what makes it so."""

    file: SettingsFile
    before: str
    after: str
    said: str
    make: Callable[[], None] = lambda: None


def main(asked: Asked, environ: Mapping[str, str], *, colours: bool) -> str:
    """What was done, for people. Raises SetupError."""
    if pasted := PASTED.get(asked.editor):
        return _to_paste(pasted, asked)
    editor = EDITORS[asked.editor]
    files = [SettingsFile(path) for path in editor.files(environ)]
    if not files:
        raise SetupError(f"{editor.title}: {editor.none}, nothing was done")
    changes = [_planned(editor, file, asked, environ) for file in files]  # all of them, before the first is made
    return "".join(_made(editor, change, asked, environ, colours=colours) for change in changes)


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
        before = file.read()
        original = Original(state_directory(environ) / "setup", file.target)
        if asked.undo:
            return _undo(editor, file, original, before, asked.agent)
        return _set_up(editor, file, original, before, asked.agent, str(home(environ)))
    except UnicodeDecodeError as error:
        raise SetupError(f"{file.path}: expected UTF-8 text, nothing was done") from error
    except CannotEditError as error:
        raise SetupError(f"{file.path}: {error}, nothing was done") from error
    except SettingsError as error:
        raise SetupError(str(error)) from error


def _made(editor: Editor, change: Change, asked: Asked, environ: Mapping[str, str], *, colours: bool) -> str:
    if change.after == change.before:
        return change.said
    shown = diff(change.file.path, change.before, change.after, colours=colours)
    if asked.dry_run:
        return shown
    try:
        change.make()
    except SettingsError as error:
        raise SetupError(str(error)) from error
    outlook = "" if asked.undo else _outlook(editor, environ)
    afterwards = f"{editor.afterwards}\n" if editor.afterwards else ""
    return f"{shown}\n{change.said}{outlook}{afterwards}"


def _set_up(
    editor: Editor, file: SettingsFile, original: Original, before: bytes | None, wanted: str | None, home: str
) -> Change:
    if before is None and wanted is None:
        raise SetupError(f"{file.path}: not found; {_offer(editor)}")
    text = (before or b"").decode("utf-8")
    after, said = _changed(editor, file, text, wanted, home)
    if after != text:
        file.check()

    def make() -> None:
        # What an undo gives back: as it was before the first setup, where only we have changed it since.
        ours, first = original.of(before or b"")
        if not ours and before is not None:
            first = unwrapped(text, editor.shape, [agent.name for agent in agents(text, editor.shape)]).encode("utf-8")
        original.keep(first, after.encode("utf-8"))
        file.replace(before, after.encode("utf-8"))

    return Change(file, text, after, said, make)


def _changed(editor: Editor, file: SettingsFile, text: str, wanted: str | None, home: str) -> tuple[str, str]:
    """The new text, and what is said of it."""
    there = agents(text, editor.shape)
    chosen = _chosen(there, wanted)
    startable = [agent for agent in chosen if agent.command is not None]
    if wanted is not None and wanted.casefold() in KNOWN and not startable:
        return _with_new(editor, text, wanted.casefold())
    if not chosen and wanted is not None:
        names = ", ".join(dict.fromkeys([*(clean(agent.name) for agent in there), *KNOWN]))
        raise SetupError(f"--agent: {editor.title} has no {clean(wanted)!r}; expected one of {names}")
    if not startable:
        started = ", ".join(clean(agent.name) for agent in chosen)
        if started:
            raise SetupError(f"{file.path}: does not say what starts {started}; {_offer(editor)}")
        raise SetupError(f"{file.path}: no agents in it; {_offer(editor)}")
    new = [agent for agent in startable if not agent.wrapped]
    if not new:
        return text, f"{_names(startable)} behind acp-proxy already.\n"
    said = f"{_names(new)} behind acp-proxy now. `acp-proxy setup {editor.name} --undo` takes it back.\n"
    return wrapped(text, editor.shape, [agent.name for agent in new], home), said


def _chosen(there: list[Agent], wanted: str | None) -> list[Agent]:
    """By name, else those that start what is meant by it."""
    if wanted is None:
        return there
    named = [agent for agent in there if agent.name.casefold() == wanted.casefold()]
    known = KNOWN.get(wanted.casefold())
    if known is None or any(agent.command for agent in named):
        return named
    return [agent for agent in there if agent.command and known.starts(agent.command)]


def _with_new(editor: Editor, text: str, wanted: str) -> tuple[str, str]:
    agent = KNOWN[wanted]
    name = editor.named(agent)
    said = f"{name} was added. `acp-proxy setup {editor.name} --undo` takes it back.\n"
    return added(text, editor.shape, name, agent.title, agent.command), said


def _undo(editor: Editor, file: SettingsFile, original: Original, before: bytes | None, wanted: str | None) -> Change:
    if before is None:
        raise SetupError(f"{file.path}: not found, there is nothing to undo")
    text = before.decode("utf-8")
    ours, first = original.of(before)
    if ours and wanted is None:
        after = (first or b"").decode("utf-8")
        said = f"{file.path} is {'gone, as it was' if first is None else 'as it was'} before.\n"
    else:
        chosen = [agent for agent in _chosen(agents(text, editor.shape), wanted) if agent.wrapped]
        after = unwrapped(text, editor.shape, [agent.name for agent in chosen])
        changed = "" if ours else f"{file.path} was changed since: only what starts the agents was put back.\n"
        said = changed or f"{_names(chosen)} no longer behind acp-proxy.\n"
    if after == text:
        which = "no agent" if wanted is None else clean(wanted)
        return Change(
            file, text, after, f"{file.path}: {which} is{'' if wanted is None else ' not'} behind acp-proxy.\n"
        )
    file.check()

    def make() -> None:
        if ours and wanted is not None:
            original.keep(first, after.encode("utf-8"))
        if ours and wanted is None and first is None:
            file.remove(before)
        else:
            file.replace(before, after.encode("utf-8"))
        if wanted is None:
            original.forget()

    return Change(file, text, after, said, make)


def _names(there: list[Agent]) -> str:
    names = [clean(agent.name) for agent in there]
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"


def _offer(editor: Editor) -> str:
    return f"`acp-proxy setup {editor.name} --agent claude` adds an agent ({', '.join(KNOWN)})"


def _outlook(editor: Editor, environ: Mapping[str, str]) -> str:
    if shutil.which(PROXY, path=environ.get("PATH")):
        return ""
    return f"`{PROXY}` is not on the PATH: {editor.title} will not find it until it is.\n"

"""The changes of a setup or its undo to one settings file, with the text about them. Writes only on request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from acp_proxy.setup.adding import added
from acp_proxy.setup.agents import Agent, agents
from acp_proxy.setup.editors import Editor
from acp_proxy.setup.known import KNOWN
from acp_proxy.setup.listed import customized, listed_again
from acp_proxy.setup.originals import Original
from acp_proxy.setup.registry import Started
from acp_proxy.setup.settings_file import SettingsError, SettingsFile
from acp_proxy.setup.wrapping import unwrapped, wrapped
from acp_proxy.text.figures import clean


class SetupError(Exception):
    """The user must correct something; the text is one line."""


class Change(Struct, frozen=True):
    """A change of one file: its text before and after, the message, and what writes it (raises SettingsError)."""

    file: SettingsFile
    before: str
    after: str
    said: str
    make: Callable[[], None] = lambda: None
    left_out: str = ""  # a line about the agents that stay outside, also where nothing is changed yet


class Machine(Struct, frozen=True):
    """What a setup needs to know in addition to the settings."""

    home: str  # what `~` means in a command
    registry: Mapping[str, Started] = {}  # what starts the agents that the editor installs itself


def set_up(editor: Editor, file: SettingsFile, original: Original, wanted: str | None, machine: Machine) -> Change:
    """All agents behind acp-proxy, or the wanted one. Raises SetupError, SettingsError and CannotEditError."""
    data = file.read()
    if data is None and wanted is None:
        raise SetupError(f"{file.path}: not found; {_offer(editor)}")
    text = (data or b"").decode("utf-8")
    after, said, left_out = _behind(editor, file, text, wanted, machine)
    if after != text:
        file.check()
    first = _before_setup(editor, original, data, text)

    def make() -> None:
        known, _ = original.kept()
        original.keep(first, after.encode("utf-8"))
        try:
            file.replace(data, after.encode("utf-8"))
        except SettingsError:
            if not known:
                original.forget()
            raise

    return Change(file, text, after, said, make, left_out)


def undo(editor: Editor, file: SettingsFile, original: Original, wanted: str | None) -> Change:
    """The file as it was; without its original, or for one agent, what starts them. Raises as `set_up` does."""
    data = file.read()
    if data is None:
        raise SetupError(f"{file.path}: not found, there is nothing to undo")
    text = data.decode("utf-8")
    known, first = original.kept()
    ours = original.made(data)
    if ours and wanted is None:
        return _as_it_was(file, original, data, first)
    behind = [agent for agent in _chosen(agents(text, editor.shape), wanted) if agent.wrapped]
    chosen = behind if wanted is not None else _of_setup(editor, behind, first) if known else []
    after = _put_back(editor, text, chosen, first)
    if after == text:
        return Change(file, text, after, f"{clean(str(file.path))}: {_nothing_to_undo(editor, behind, wanted)}.\n")
    file.check()
    name = clean(str(file.path))
    since = f"{name} was changed since: only what starts the agents was put back.\n{_left(editor, chosen, first)}"
    said = since if wanted is None else f"{_names(chosen)} no longer behind acp-proxy.\n"

    def make() -> None:
        if ours:
            original.keep(first, after.encode("utf-8"))
        file.replace(data, after.encode("utf-8"))
        if wanted is None:
            original.forget()

    return Change(file, text, after, said, make)


def _before_setup(editor: Editor, original: Original, data: bytes | None, text: str) -> bytes | None:
    """The result of an undo: the file as the first setup found it, with the user's later changes."""
    known, first = original.kept()
    if not known or data is None:
        return data
    if original.made(data):
        return first
    ours = _of_setup(editor, agents(text, editor.shape), first)
    return _put_back(editor, text, ours, first).encode("utf-8")


def _put_back(editor: Editor, text: str, chosen: Iterable[Agent], first: bytes | None) -> str:
    """The text with these agents started as before the first setup: by themselves, or as the registry says."""
    names = [agent.name for agent in chosen]
    before = agents((first or b"").decode("utf-8"), editor.shape)
    listed = {agent.name for agent in before if agent.listed}.intersection(names)
    return unwrapped(listed_again(text, editor.shape, listed), editor.shape, names)


def _of_setup(editor: Editor, there: list[Agent], first: bytes | None) -> list[Agent]:
    """Agents behind acp-proxy, except those that the user had put there before the first setup."""
    before = agents((first or b"").decode("utf-8"), editor.shape)
    theirs = {agent.name for agent in before if agent.wrapped}
    return [agent for agent in there if agent.wrapped and agent.name not in theirs]


def _left(editor: Editor, chosen: list[Agent], first: bytes | None) -> str:
    """The message about agents that did not exist before the first setup."""
    there = {agent.name for agent in agents((first or b"").decode("utf-8"), editor.shape)}
    added = [clean(agent.name) for agent in chosen if agent.name not in there]
    return f"Still there, as you may have come to use it, without acp-proxy: {', '.join(added)}.\n" if added else ""


def _nothing_to_undo(editor: Editor, behind: list[Agent], wanted: str | None) -> str:
    if wanted is not None and behind:
        return f"{_names(behind)} behind acp-proxy within a line for a shell, which is yours to change"
    if wanted is not None:
        return f"{clean(wanted)} is not behind acp-proxy"
    if not behind:
        return "no agent is behind acp-proxy"
    return (
        f"no setup of it is remembered, {_names(behind)} behind acp-proxy as before; "
        f"`acp-proxy setup {editor.name} --undo --agent NAME` takes one out"
    )


def _as_it_was(file: SettingsFile, original: Original, data: bytes, first: bytes | None) -> Change:
    file.check()

    def make() -> None:
        if first is None:
            file.remove(data)
        else:
            file.replace(data, first)
        original.forget()

    said = f"{clean(str(file.path))} is {'gone, as it was' if first is None else 'as it was'} before.\n"
    return Change(file, data.decode("utf-8"), (first or b"").decode("utf-8"), said, make)


def _behind(
    editor: Editor, file: SettingsFile, text: str, wanted: str | None, machine: Machine
) -> tuple[str, str, str]:
    """The new text, what is said of it, and of the agents that stay outside."""
    there = agents(text, editor.shape)
    chosen = _chosen(there, wanted, machine.registry)
    listed = {agent.name: machine.registry[agent.name] for agent in chosen if _can_start(agent, machine.registry)}
    startable = [agent for agent in chosen if agent.command is not None or agent.name in listed]
    if wanted is not None and wanted.casefold() in KNOWN and not startable:
        return *_with_new(editor, text, wanted.casefold()), ""
    if not chosen and wanted is not None:
        names = ", ".join(dict.fromkeys([*(clean(agent.name) for agent in there), *KNOWN]))
        raise SetupError(f"--agent: {editor.title} has no {clean(wanted)!r}; expected one of {names}")
    outside = [agent for agent in chosen if agent not in startable]
    if not startable:
        why = f"does not start {_outside(outside, machine.registry)}" if outside else "no agents in it"
        raise SetupError(f"{file.path}: {why}; {_offer(editor, there)}")
    also = f"Not behind it: {_outside(outside, machine.registry)}; {_offer(editor, there)}.\n" if outside else ""
    new = [agent for agent in startable if not agent.wrapped]
    if not new:
        return text, f"{_names(startable)} behind acp-proxy already.\n", also
    after = wrapped(text, editor.shape, [agent.name for agent in new], machine.home)
    said = f"{_names(new)} behind acp-proxy now. `acp-proxy setup {editor.name} --undo` takes it back.\n"
    return customized(after, editor.shape, listed), said, also


def _can_start(agent: Agent, registry: Mapping[str, Started]) -> bool:
    """Whether it is of the registry, and a command that is here starts it."""
    return agent.listed and agent.name in registry and registry[agent.name].lacks is None


def _outside(agents: Iterable[Agent], registry: Mapping[str, Started]) -> str:
    """The agents that stay outside, each with what would have to be there."""
    lacks = {name: started.lacks for name, started in registry.items() if started.lacks}
    return ", ".join(
        f"{clean(agent.name)} (`{lacks[agent.name]}` is not on the PATH)"
        if agent.listed and agent.name in lacks
        else f"{clean(agent.name)} (the settings do not say what starts it)"
        for agent in agents
    )


def _chosen(there: list[Agent], wanted: str | None, registry: Mapping[str, Started] | None = None) -> list[Agent]:
    """By name, else those that start what is meant by it."""
    if wanted is None:
        return there
    named = [agent for agent in there if agent.name.casefold() == wanted.casefold()]
    known = KNOWN.get(wanted.casefold())
    if known is None or any(agent.command for agent in named):
        return named
    listed = registry or {}
    return [
        agent
        for agent in there
        if (agent.command and known.starts(agent.command))
        or (_can_start(agent, listed) and known.starts(listed[agent.name].command))
    ]


def _with_new(editor: Editor, text: str, wanted: str) -> tuple[str, str]:
    agent = KNOWN[wanted]
    name = editor.named(agent)
    said = f"{name} was added. `acp-proxy setup {editor.name} --undo` takes it back.\n"
    return added(text, editor.shape, name, agent.title, agent.command), said


def _names(there: list[Agent]) -> str:
    names = [clean(agent.name) for agent in there]
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"


def _offer(editor: Editor, there: Sequence[Agent] = ()) -> str:
    """What adds an agent: one that the editor starts itself, so far without another beside it, or else any."""
    outside = [agent.name.casefold() for agent in there if agent.command is None]
    started = [agent.command for agent in there if agent.command is not None]
    lacking = (
        name
        for name, known in KNOWN.items()
        if any(each.startswith(name) for each in outside) and not any(map(known.starts, started))
    )
    return f"`acp-proxy setup {editor.name} --agent {next(lacking, 'claude')}` adds an agent ({', '.join(KNOWN)})"

"""Settings as editors' documentation shows them: what `setup` makes of them, and back."""

from __future__ import annotations

import json
import re

import pytest

from acp_proxy.setup import NAMES, showing
from acp_proxy.setup.editors import EDITORS
from acp_proxy.setup.pasting import PASTED
from tests.setup.machine import GOLDEN, Machine

HIDDEN = re.compile(r'("(?:API_KEY|OPENCODE_\w+)": )"[^"]+"')
AGENTS = {
    "zed": "My Custom Agent, Gemini, OpenCode, goose",
    "vscode": "Claude Code, Local",
    "jetbrains": "Auggie, OpenCode, Example Agent",
    "obsidian": "claude, codex, gemini, opencode",
    "acpx": "claude, gemini, my-custom",
}


def test_the_command_line_knows_every_editor() -> None:
    assert sorted(NAMES) == sorted([*EDITORS, *PASTED])


@pytest.mark.parametrize("editor", EDITORS)
def test_the_agents_of_an_editor_are_put_behind_acp_proxy(machine: Machine, editor: str) -> None:
    path = machine.write(editor, _golden(editor))
    answer = machine.setup(editor).replace(str(machine.home), "~")
    shown, _, said = answer.partition("\n\n")
    assert f"{shown}\n" == HIDDEN.sub(r'\1"…"', _golden(editor, "diff"))
    assert said.startswith(
        f"{AGENTS[editor]} are behind acp-proxy now. `acp-proxy setup {editor} --undo` takes it back.\n"
    )
    assert path.read_text().replace(str(machine.home), "~") == _patched(_golden(editor), _golden(editor, "diff"))


@pytest.mark.parametrize("editor", EDITORS)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_an_undo_gives_back_every_byte(machine: Machine, editor: str, ending: str, mark: str) -> None:
    before = f"{mark}{_golden(editor)}".replace("\n", ending).encode()
    path = machine.write(editor, before)
    machine.setup(editor)
    after = path.read_bytes()
    assert after.count(b"\r") == (after.count(b"\n") if ending == "\r\n" else 0)
    assert after.startswith(mark.encode())
    machine.setup(editor)
    machine.setup(editor, "claude")
    answer = machine.setup(editor, undo=True)
    assert path.read_bytes() == before
    assert f"{path} is as it was before.\n" in answer
    assert machine.kept == []
    assert "no agent is behind acp-proxy" in machine.setup(editor, undo=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize("editor", EDITORS)
@pytest.mark.parametrize("indent", [None, 3, "\t"])
def test_what_was_wrapped_by_hand_stays_so_in_every_editor(
    machine: Machine, editor: str, indent: int | str | None
) -> None:
    by_hand = {"command": "acp-proxy", "args": ["run", "--team", "core", "--", "mine"]}
    agents = {"claude": by_hand, "codex": {"command": "codex-acp", "args": []}}
    at = EDITORS[editor].shape.at
    before = json.dumps({at[0]: agents} if at else agents, indent=indent).encode()
    path = machine.write(editor, before)
    assert "codex is behind acp-proxy now." in machine.setup(editor)
    for _ in range(2):
        machine.setup(editor, undo=True)
        assert path.read_bytes() == before


def test_the_list_shows_each_editor_with_its_agents(machine: Machine) -> None:
    for editor in ("zed", "obsidian"):
        machine.write(editor, _golden(editor))
    machine.write("acpx", "{")
    machine.setup("zed", "gemini")
    notes = "~/Notes/.obsidian/plugins/agent-client/data.json"
    zed = "claude-acp (from the registry), My Custom Agent, Gemini (behind acp-proxy), OpenCode, goose"
    rows = [
        ("editor", "settings", "agents"),
        ("zed", "~/.config/zed/settings.json", zed),
        ("vscode", "~/.config/Code/User/settings.json", "no file"),
        ("jetbrains", "~/.jetbrains/acp.json", "no file"),
        ("obsidian", notes, "claude, codex, gemini, opencode"),
        ("acpx", "~/.acpx/config.json", "not valid JSON, line 1: expected text in double quotes"),
        ("codecompanion", "Lua", "prints what to put there"),
        ("avante", "Lua", "prints what to put there"),
        ("agentic", "Lua", "prints what to put there"),
        ("agent-shell", "Emacs Lisp", "prints what to put there"),
        ("toad", "a command", "prints what to put there"),
    ]
    expected = [f"{editor:13}  {path:{len(notes)}}  {there}" for editor, path, there in rows]
    assert showing.found(machine.environ).splitlines() == expected


@pytest.mark.parametrize(
    ("settings", "said"),
    [(b"\xff", "cannot be read: expected UTF-8 text"), (b"{}", "none"), (b" " * 5_000_000, "too large for settings")],
)
def test_the_list_says_what_is_wrong_with_settings(machine: Machine, settings: bytes, said: str) -> None:
    machine.write("zed", settings)
    machine.settings_of("jetbrains").mkdir()
    lines = [line.split(maxsplit=2) for line in showing.found(machine.environ).splitlines()]
    assert lines[1] == ["zed", "~/.config/zed/settings.json", said]
    assert lines[3] == ["jetbrains", "~/.jetbrains/acp.json", "is not a file"]


def _golden(editor: str, kind: str = "json") -> str:
    return (GOLDEN / f"{editor}.{kind}").read_text()


def _patched(text: str, diff: str) -> str:
    """The text with a unified diff applied, by hand."""
    lines, at, out = text.splitlines(), 0, []
    for line in diff.splitlines()[2:]:
        if line.startswith("@@"):
            start = int(line.split()[1].split(",")[0][1:]) - 1
            out += lines[at:start]
            at = start
        elif line.startswith("+"):
            out.append(line[1:])
        else:
            assert lines[at] == line[1:]
            out += [] if line.startswith("-") else [lines[at]]
            at += 1
    return "\n".join([*out, *lines[at:]]) + "\n"

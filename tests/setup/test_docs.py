"""The page about editors shows what `setup` prints, and has every editor and agent."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from acp_proxy.setup import NAMES
from acp_proxy.setup.editors import EDITORS
from acp_proxy.setup.known import KNOWN
from acp_proxy.setup.pasting import PASTED
from tests.setup.machine import Machine

PAGE = (Path(__file__).parents[2] / "docs/editors.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("editor", PASTED)
def test_the_lines_to_paste_are_those_that_are_printed(machine: Machine, editor: str) -> None:
    printed = re.search(rf"acp-proxy setup {editor} --agent claude\n```\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    assert printed
    assert printed[1] == machine.setup(editor, "claude")


def test_every_editor_has_a_row_and_a_section_with_its_source() -> None:
    assert sorted(re.findall(r"^\| `([a-z-]+)` \|", PAGE.partition("## What")[0], re.MULTILINE)) == sorted(NAMES)
    titles = [*(editor.title for editor in EDITORS.values()), *(pasted.title for pasted in PASTED.values())]
    sections = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")[2:]}
    assert sorted(sections) == sorted([*titles, "Conductors", "Others"])
    assert all(re.search(r"^Sources?: .*https://", part, re.MULTILINE | re.DOTALL) for part in sections.values())


def test_the_agents_that_can_be_added_are_started_as_the_page_says() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `([^`]+)` \|$", PAGE.partition("### Agents that can be added")[2], re.MULTILINE)
    assert rows == [(agent.name, " ".join(agent.command)) for agent in KNOWN.values()]

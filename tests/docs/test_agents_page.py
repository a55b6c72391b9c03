"""What agents never report is on their page as in the table of the code, from which `doctor` says it."""

from __future__ import annotations

import re
from pathlib import Path

from acp_proxy.core.agents.table import TABLE
from tests.cases import each_of

PAGE = Path(__file__).parents[2] / "docs/agents.md"
ROWS = [line.split("|")[1:-1] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
OTHERWISE = {"codebuddy": "CodeBuddy"}  # it gives no name


def never_told(agent: str) -> list[str]:
    """The last cells of the rows that name an agent."""
    name = re.escape(OTHERWISE.get(agent, f"`{agent}`"))
    return [cells[-1].strip() for cells in ROWS if len(cells) == 6 and re.search(name, cells[0])]


@each_of(list(TABLE))
def test_what_an_agent_never_reports_is_on_its_page_where_the_table_has_any(agent: str) -> None:
    cells = never_told(agent)
    assert cells
    for _, profile in TABLE[agent]:
        assert any(bool(cell) is bool(profile.unreported) for cell in cells)


@each_of(list(TABLE))
def test_what_an_agent_never_reports_is_said_in_the_words_of_its_page(agent: str) -> None:
    """Of the newest version; the page says more, of when and why."""
    newest = TABLE[agent][-1][1]
    words = set(re.findall(r"[a-z]{4,}", newest.unreported))
    page = set(re.findall(r"[a-z]{4,}", " ".join(never_told(agent)).lower()))
    assert not words or words & page

"""The table of requirements points at modules and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SEEDS = (ROOT / "docs/seeds.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in SEEDS.splitlines()
    if line.startswith("| ") and not line.startswith("| requirement")
]


@pytest.mark.parametrize("requirement", [row[0] for row in ROWS])
def test_a_requirement_is_met_somewhere_or_said_not_to_be(requirement: str) -> None:
    (where, shown, newer) = next(row[1:] for row in ROWS if row[0] == requirement)
    assert (where == "-") == (shown == "-")
    assert where != "-" or newer
    for module in re.findall(r"`([^`]+)`", where):
        assert (ROOT / "acp_proxy" / module).exists() or (ROOT / module).exists(), module
    for reference in re.findall(r"`([^`]+)`", shown):
        file, _, test = reference.partition("::")
        assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8") if test else (ROOT / file).exists(), (
            reference
        )


def test_every_document_is_there() -> None:
    assert len(re.findall(r"^## ", SEEDS, re.MULTILINE)) == 5
    for number in range(1, 16):
        assert f"FR-{number:03}" in SEEDS
    for number in range(1, 7):
        assert f"SC-{number:03}" in SEEDS

"""docs/security.md claims nothing that is not tested: whatever it names is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/security.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)(?:::(test_\w+))?`", PAGE)))
UNTESTED = 3  # rows that say what nothing holds, or whose business it is


def test_a_test_that_is_named_exists() -> None:
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file, _ in NAMED}
    named = [(f"{file}::{test}", f"def {test}(" if test else "def test_", texts[file]) for file, test in NAMED]
    assert [name for name, definition, text in named if definition not in text] == []


def test_every_row_names_a_test_but_for_those_that_promise_nothing() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith(("| | ", "| it could"))]
    assert len(rows) > 20
    assert len([row for row in rows if "`tests/" not in row]) == UNTESTED

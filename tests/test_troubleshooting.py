"""Each line that the page on trouble explains is one that the program says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
CODE = "\n".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "acp_proxy").rglob("*.py")))
LINES = [text for row in re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE) for text in re.findall(r"`([^`]+)`", row)]
EVENTS = set(re.findall(r'(?:warn|_tell_once|log\(\s*"[a-z]+",)\(?\s*"([a-z]+\.[a-z_]+)"', CODE))


@pytest.mark.parametrize("line", [line for line in LINES if line not in ("≥", "~", "estimated", "--")])
def test_a_line_that_is_explained_is_said(line: str) -> None:
    assert line in re.sub(r'"\s*\n\s*f?"|\{[^{}]*\}', "", CODE) or line in CODE


def test_every_event_of_the_log_is_explained() -> None:
    assert EVENTS - set(LINES) == set()


def test_there_is_enough_to_explain() -> None:
    assert len(LINES) > 40
    assert len(EVENTS) > 10

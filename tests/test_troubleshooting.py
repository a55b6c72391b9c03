"""Each line that the page on trouble explains is one that the program says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
CODE = "\n".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "acp_proxy").rglob("*.py")))
LINES = [text for row in re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE) for text in re.findall(r"`([^`]+)`", row)]
EVENTS = set(re.findall(r'(?:warn|_tell_once|log\(\s*"[a-z]+",)\(?\s*"([a-z]+\.[a-z_]+)"', CODE))

ENDING = re.compile(
    r"(Usage|Setup|Settings|CannotEdit|Config|Ledger|LedgerUnavailable|RowRefused|Demo)Error|NoSuchSession"
)


def endings() -> set[str]:
    """What the exceptions that end a command with one line are made with, without what is filled in."""
    raised = (node.exc for node in ast.walk(ast.parse(CODE)) if isinstance(node, ast.Raise))
    calls = (call for call in raised if isinstance(call, ast.Call))
    texts = ("".join(literals(call)) for call in calls if ENDING.fullmatch(ast.unparse(call.func)))
    return {text for text in texts if len(re.findall(r"(?<![-\w])[a-z]{2,}", text)) > 2}  # others only fill in


def literals(call: ast.Call) -> Iterator[str]:
    for node in call.args:
        for part in node.values if isinstance(node, ast.JoinedStr) else [node]:
            yield str(part.value) if isinstance(part, ast.Constant) else "{}"


def test_a_line_that_is_explained_is_said() -> None:
    said = re.sub(r'"\s*\n\s*f?"|\{[^{}]*\}', "", CODE) + CODE
    assert [line for line in LINES if line not in ("≥", "~", "estimated", "--") and line not in said] == []


def test_every_event_of_the_log_is_explained() -> None:
    assert EVENTS - set(LINES) == set()


def test_every_line_that_ends_a_command_is_explained() -> None:
    said = endings()
    assert [text for text in sorted(said) if not any(line in text for line in LINES)] == []
    assert len(said) > 60


def test_there_is_enough_to_explain() -> None:
    assert len(LINES) > 40
    assert len(EVENTS) > 10

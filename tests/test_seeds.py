"""The table of requirements points at functions and tests that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
SEEDS = (ROOT / "docs/seeds.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in SEEDS.splitlines()
    if line.startswith("| ") and not line.startswith("| requirement")
]


def test_a_requirement_is_met_somewhere_and_shown_or_said_not_to_be() -> None:
    assert [f"{row[0]}: {wrong}" for row in ROWS for wrong in complaints(row)] == []


def complaints(row: list[str]) -> Iterator[str]:
    _, where, shown, newer = row
    if (where == "-") != (shown == "-") or (where == "-" and not newer):
        yield "neither met nor said not to be"
    for place in re.findall(r"`([^`]+)`", where):
        file, _, name = place.partition("::")
        path = next((path for path in (ROOT / "acp_proxy" / file, ROOT / file) if path.exists()), None)
        if not path or (name and not re.search(rf"^\s*(async def |def |class )?{name}\b[(:  =]", _text(path), re.M)):
            yield f"{place} is not there"
    tests = re.findall(r"`(tests/[^`]+)`", shown + newer)
    if not tests and "](" not in shown and shown != "-":
        yield "not shown"
    for test in tests:
        file, name = test.split("::")
        if not re.search(rf"^\s*(async )?def {name}\(", _text(ROOT / file), re.M):
            yield f"{test} is not there"


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_every_document_is_there() -> None:
    assert len(re.findall(r"^## ", SEEDS, re.MULTILINE)) == 5
    for number in range(1, 16):
        assert f"FR-{number:03}" in SEEDS
    for number in range(1, 7):
        assert f"SC-{number:03}" in SEEDS


def test_every_method_and_type_of_the_first_protocol_has_a_row() -> None:
    names = [
        *("initialize", "authenticate", "session/new", "session/load", "session/prompt", "session/cancel"),
        *("session/request_permission", "fs/read_text_file", "fs/write_text_file", "session/update"),
        *("SessionId", "ProtocolVersion", "StopReason", "ToolCallStatus", "ToolKind", "PermissionOptionKind"),
        *("ToolCallContent", "clientCapabilities", "agentCapabilities", "loadSession", "promptCapabilities"),
        *("plan", "agent_message_chunk", "user_message_chunk", "tool_call", "tool_call_update"),
        *("text", "image", "audio", "resource_link", "resource", "authMethods", "mcpServers"),
    ]
    assert [name for name in names if not any(re.search(rf"(?<![\w/]){name}(?![\w/])", row[0]) for row in ROWS)] == []

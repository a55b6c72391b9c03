"""Copilot CLI's events: what is inside of what, and who made a call."""

from __future__ import annotations

import json
from pathlib import Path

from acp_proxy.books import Call, NotUnderstood
from acp_proxy.books.copilot import files, read
from acp_proxy.core.usage import Usage

USAGE = {
    "model": "claude-opus-4.6",
    "inputTokens": 100,
    "outputTokens": 20,
    "cacheReadTokens": 60,
    "cacheWriteTokens": 7,
    "cost": 1.0,
    "interactionType": "conversation-agent",
}


def line(kind: str, data: object, name: str = "e1", **fields: object) -> bytes:
    written = {"type": kind, "data": data, "id": name, "timestamp": "2026-11-28T00:16:39.101Z", "parentId": None}
    return json.dumps(written | fields, separators=(",", ":")).encode() + b"\n"


def record(usage: object, **fields: object) -> bytes:
    return line("session.usage_record", {"usage": usage}, "e1", **fields)


START = line("session.start", {"sessionId": "s1", "copilotVersion": "1.0.102", "context": {"cwd": "/home/dev"}}, "e0")


def only(*lines: bytes) -> Call:
    (call,) = read(lines)
    assert isinstance(call, Call)
    return call


def problem(*lines: bytes) -> NotUnderstood:
    (told,) = read(lines)
    assert isinstance(told, NotUnderstood)
    return told


def test_caches_are_inside_the_input_and_reasoning_is_inside_the_output() -> None:
    call = only(START, record(USAGE | {"reasoningTokens": 15}))
    assert call.usage == Usage(input=33, cached_read=60, cached_write=7, output=5, thought=15)
    assert (call.session, call.version, call.cwd, call.kind, call.cost) == ("s1", "1.0.102", "/home/dev", "main", None)


def test_a_call_is_of_a_subagent_of_the_main_loop_or_of_the_agents_own() -> None:
    subagent = only(START, record(USAGE | {"interactionType": "conversation-subagent"}, agentId="a1"))
    assert (subagent.kind, subagent.session, subagent.parent) == ("subagent", "s1", "s1")
    assert only(START, record(USAGE | {"interactionType": "conversation-other"})).kind == "side"


def test_a_compaction_that_called_a_model_is_a_call() -> None:
    call = only(START, line("session.compaction_complete", {"success": True, "compactionTokensUsed": USAGE}))
    assert (call.kind, call.usage.total) == ("compaction", 120)
    assert list(read([START, line("session.compaction_complete", {"success": False})])) == []


def test_an_endpoint_that_counts_nothing_tells_of_no_call() -> None:
    assert list(read([START, record({"inputTokens": 0, "outputTokens": 0})])) == []


def test_a_form_that_is_not_known_is_told_with_the_version_of_the_agent() -> None:
    for usage in (
        None,
        {"tokens": 5},
        USAGE | {"outputTokens": "20"},
        USAGE | {"inputTokens": -1},
        USAGE | {"cacheReadTokens": 100},
        USAGE | {"reasoningTokens": 21},
    ):
        assert problem(START, record(usage)).version == "1.0.102"
    assert problem(START, record(USAGE, timestamp=7)).version == "1.0.102"
    assert problem(record(USAGE)).version is None


def test_only_events_are_books(tmp_path: Path) -> None:
    for name in ("2/events.jsonl", "1/events.jsonl", "1/other.jsonl"):
        for place in (".copilot", "elsewhere"):
            (tmp_path / place / "session-state" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / place / "session-state" / name).touch()
    assert [path.parent.name for path in files(tmp_path, {})] == ["1", "2"]
    assert len(list(files(tmp_path, {"COPILOT_HOME": str(tmp_path / "elsewhere")}))) == 2

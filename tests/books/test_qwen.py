"""Qwen Code's telemetry: what is inside of what, and who asked for a call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from acp_proxy.books import Call, NotUnderstood
from acp_proxy.books.qwen import files, read
from acp_proxy.core.usage import Usage

COUNTS: dict[str, object] = {
    "input_token_count": 100,
    "output_token_count": 20,
    "cached_content_token_count": 60,
    "thoughts_token_count": 5,
    "total_token_count": 120,
}


def line(counts: Mapping[str, object], **fields: object) -> bytes:
    event = {"event.name": "qwen-code.api_response", "event.timestamp": "2026-11-27T23:36:44.963Z", "response_id": "r1"}
    event |= {"model": "qwen3-coder-plus", "prompt_id": "s1########1"}
    written = {"uuid": "u1", "sessionId": "s1", "type": "system", "subtype": "ui_telemetry", "cwd": "/home/dev/demo"}
    record = written | {"version": "0.24.4", "systemPayload": {"uiEvent": event | dict(counts)}} | fields
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def only(written: bytes) -> Call:
    (call,) = read([written])
    assert isinstance(call, Call)
    return call


def problem(written: bytes) -> NotUnderstood:
    (told,) = read([written])
    assert isinstance(told, NotUnderstood)
    return told


def test_the_total_says_whether_thinking_is_inside_the_output() -> None:
    assert only(line(COUNTS)).usage == Usage(input=40, cached_read=60, output=15, thought=5)
    beside = only(line(COUNTS | {"total_token_count": 125}))
    assert beside.usage == Usage(input=40, cached_read=60, output=20, thought=5)
    assert problem(line(COUNTS | {"total_token_count": 130})).version == "0.24.4"


def test_a_subagent_is_told_by_its_name_in_newer_and_in_older_versions() -> None:
    for told in ({"subagent_name": "general-purpose"}, {"prompt_id": "s1#general-purpose-bwwirw#0"}):
        call = only(line(COUNTS | told))
        assert (call.kind, call.session, call.parent) == ("subagent", "s1", "s1")
    for told in ({"subagent_name": "managed-auto-memory-extractor"}, {"prompt_id": "s1#managed-auto-memory-dream-1#0"}):
        assert only(line(COUNTS | told)).kind == "side"
    assert only(line(COUNTS)).kind == "main"


def test_an_endpoint_that_counts_nothing_tells_of_no_call() -> None:
    nothing = {
        "input_token_count": 0,
        "output_token_count": 0,
        "total_token_count": 0,
        "cached_content_token_count": 0,
    }
    assert list(read([line(COUNTS | nothing)])) == []


def test_a_form_that_is_not_known_is_told_with_the_version_of_the_agent() -> None:
    for counts in (
        COUNTS | {"input_token_count": "100"},
        COUNTS | {"output_token_count": -1},
        COUNTS | {"cached_content_token_count": 101},
        COUNTS | {"event.timestamp": "yesterday"},
        {"tokens": 5},
    ):
        assert problem(line(counts, version="0.30.0")).version == "0.30.0"
    assert problem(line(COUNTS, sessionId=7)).version == "0.24.4"


def test_the_word_in_another_line_is_no_call() -> None:
    for payload in (
        None,
        "qwen-code.api_response",
        {"uiEvent": {"event.name": "other", "was": "qwen-code.api_response"}},
    ):
        assert list(read([line(COUNTS, systemPayload=payload, told="qwen-code.api_response")])) == []


def test_chats_are_books_and_files_of_subagents_and_of_sums_are_not(tmp_path: Path) -> None:
    names = (
        "projects/-a/chats/2.jsonl",
        "projects/-a/chats/1.jsonl",
        "projects/-a/subagents/1/agent-x.jsonl",
        "usage_record.jsonl",
    )
    for place in (".qwen", "home", "runtime"):
        for name in names:
            (tmp_path / place / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / place / name).touch()
    assert [path.name for path in files(tmp_path, {})] == ["1.jsonl", "2.jsonl"]
    environ = {"QWEN_HOME": str(tmp_path / "home")}
    assert {path.relative_to(tmp_path).parts[0] for path in files(tmp_path, environ)} == {"home"}
    environ |= {"QWEN_RUNTIME_DIR": str(tmp_path / "runtime")}
    assert {path.relative_to(tmp_path).parts[0] for path in files(tmp_path, environ)} == {"runtime"}

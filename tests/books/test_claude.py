"""Claude Code's lines: what makes one call of several lines, and what is no call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from acp_proxy.books import Call, NotUnderstood
from acp_proxy.books.claude import files, read
from acp_proxy.core.usage import Usage

USAGE = {"input_tokens": 10, "cache_read_input_tokens": 200, "cache_creation_input_tokens": 30, "output_tokens": 7}


def line(usage: object, *, model: str = "claude-opus-5-5", message: object = "m1", **fields: object) -> bytes:
    said = {"id": message, "type": "message", "role": "assistant", "model": model, "content": [], "usage": usage}
    written: dict[str, Any] = {
        "message": said,
        "requestId": "r1",
        "type": "assistant",
        "uuid": "u1",
        "timestamp": "2026-11-27T12:12:08.776Z",
        "sessionId": "s1",
        "version": "2.1.318",
    }
    return json.dumps(written | fields, separators=(",", ":")).encode() + b"\n"


def only(*lines: bytes) -> Call:
    (call,) = read(lines)
    assert isinstance(call, Call)
    return call


def problem(*lines: bytes) -> NotUnderstood:
    (told,) = read(lines)
    assert isinstance(told, NotUnderstood)
    return told


def test_counts_stand_beside_each_other_and_thinking_is_inside_the_output() -> None:
    call = only(line(USAGE | {"output_tokens_details": {"thinking_tokens": 5}}))
    assert call.usage == Usage(input=10, cached_read=200, cached_write=30, output=2, thought=5)
    assert (call.at, call.session, call.version) == (1795781528776000000, "s1", "2.1.318")


def test_the_parts_of_a_cache_write_count_where_their_sum_is_missing() -> None:
    parts = {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4}
    assert only(line(USAGE | {"cache_creation": parts})).usage.cached_write == 30
    assert only(line(USAGE | {"cache_creation_input_tokens": None, "cache_creation": parts})).usage.cached_write == 7


def test_a_later_line_tells_the_same_call_with_more_output() -> None:
    early, late = read([line(USAGE | {"output_tokens": 1}), line(USAGE)])
    assert isinstance(early, Call)
    assert isinstance(late, Call)
    assert early.id == late.id
    assert (early.usage.output, late.usage.output) == (1, 7)


def test_a_request_that_is_tried_again_is_another_call() -> None:
    first, second = read([line(USAGE), line(USAGE, requestId="r2")])
    assert isinstance(first, Call)
    assert isinstance(second, Call)
    assert first.id != second.id


def test_lines_without_an_id_of_a_message_are_never_joined() -> None:
    first, second = read([line(USAGE, message=None), line(USAGE, message=None, uuid="u2")])
    assert isinstance(first, Call)
    assert isinstance(second, Call)
    assert first.id != second.id
    assert problem(line(USAGE, message=None, uuid=None)).version == "2.1.318"


def test_a_line_that_a_fork_copied_stays_a_call_of_its_first_session() -> None:
    origin = {"sessionId": "s0", "messageUuid": "u0"}
    copied, new = read([line(USAGE, forkedFrom=origin), line(USAGE, message="m2", requestId="r2")])
    assert isinstance(copied, Call)
    assert isinstance(new, Call)
    assert (copied.id, copied.session, copied.parent) == (only(line(USAGE)).id, "s0", None)
    assert (new.session, new.parent) == ("s1", "s0")


def test_what_the_agent_says_itself_is_no_call() -> None:
    assert list(read([line(USAGE, model="<synthetic>"), line(None, model="<synthetic>")])) == []


def test_an_assistant_line_inside_of_another_line_is_no_call() -> None:
    assert list(read([b'{"type":"progress","data":' + line(USAGE).strip() + b',"message":7}\n'])) == []


def test_a_form_of_usage_that_is_not_known_is_told_with_the_version_of_the_agent() -> None:
    for usage in (
        None,
        {},
        {"tokens": {"in": 5}},
        USAGE | {"output_tokens": "7"},
        USAGE | {"input_tokens": -1},
        USAGE | {"input_tokens": 2**60},
        USAGE | {"output_tokens_details": {"thinking_tokens": 8}},
    ):
        assert problem(line(usage, version="2.2.0")).version == "2.2.0"
    assert problem(line(USAGE, timestamp="yesterday")).version == "2.1.318"
    assert problem(line(USAGE, timestamp="1969-01-01T00:00:00Z")).version == "2.1.318"


def test_passes_of_the_model_inside_one_request_are_calls_of_their_own_kind() -> None:
    passes = [
        {"type": "compaction", "input_tokens": 1000, "output_tokens": 50},
        {"type": "message", "input_tokens": 10, "cache_read_input_tokens": 200, "output_tokens": 3},
        {"type": "advisor_message", "model": "claude-mythos-5", "input_tokens": 900, "output_tokens": 40},
        {"type": "message", "input_tokens": 20, "cache_read_input_tokens": 210, "output_tokens": 4},
    ]
    main, *beside = (told for told in read([line(USAGE | {"iterations": passes})]) if isinstance(told, Call))
    assert main.usage == Usage(input=30, cached_read=410, cached_write=0, output=7)
    assert [(call.kind, call.model, call.usage) for call in beside] == [
        ("compaction", "claude-opus-5-5", Usage(input=1000, output=50)),
        ("side", "claude-mythos-5", Usage(input=900, output=40)),
    ]
    assert len({main.id, *(call.id for call in beside)}) == 3
    call, unknown = read([line(USAGE | {"iterations": [passes[0] | {"type": "rehearsal"}]})])
    assert isinstance(call, Call)
    assert isinstance(unknown, NotUnderstood)


def test_books_are_found_where_the_configuration_is(tmp_path: Path) -> None:
    for name in (
        ".claude/projects/-a/2.jsonl",
        ".claude/projects/-a/1.jsonl",
        ".claude/projects/-a/1/subagents/agent-1.jsonl",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for name in (".config/claude/projects/-b/3.jsonl", "elsewhere/projects/-c/4.jsonl", ".claude/projects/-a/notes.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [path.stem for path in files(tmp_path, {})] == ["1", "2", "agent-1", "3"]
    assert [path.stem for path in files(tmp_path, {"CLAUDE_CONFIG_DIR": str(tmp_path / "elsewhere")})] == ["4"]
    assert list(files(tmp_path / "nobody", {})) == []


def test_links_that_lead_out_are_not_followed_and_two_names_of_one_place_are_one(tmp_path: Path) -> None:
    projects = tmp_path / ".claude" / "projects"
    (projects / "-a").mkdir(parents=True)
    (projects / "-a" / "1.jsonl").touch()
    (tmp_path / "other" / "2.jsonl").parent.mkdir()
    (tmp_path / "other" / "2.jsonl").touch()
    (projects / "-b").symlink_to(tmp_path / "other")
    (projects / "-a" / "loop").symlink_to(projects)
    (projects / "-a" / "2.jsonl").symlink_to(tmp_path / "other" / "2.jsonl")
    (tmp_path / ".config").mkdir()
    (tmp_path / ".config" / "claude").symlink_to(tmp_path / ".claude")
    assert [path.name for path in files(tmp_path, {})] == ["1.jsonl"]

"""Gemini CLI's records: messages that grow, and sessions that change."""

from __future__ import annotations

import json
from pathlib import Path

from acp_proxy.books import Call, NotUnderstood
from acp_proxy.books.gemini import files, parent, read
from acp_proxy.core.usage import Usage
from tests.books.recorded import DATA
from tests.books.recorded import calls as recorded

TOKENS = {"input": 100, "output": 20, "cached": 60, "thoughts": 5, "tool": 0, "total": 125}
SESSION = {"sessionId": "s1", "projectHash": "0", "startTime": "2026-11-27T12:10:42Z", "kind": "main"}


def line(record: object) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def message(tokens: object, name: str = "m1", **fields: object) -> dict[str, object]:
    said = {"id": name, "timestamp": "2026-11-27T12:10:43.239Z", "type": "gemini", "content": "", "tokens": tokens}
    return said | {"model": "gemini-3.8-flash"} | fields


def told(*records: object) -> list[Call | NotUnderstood]:
    return list(read(line(record) for record in records))


def calls(*records: object) -> list[Call]:
    return [call for call in told(*records) if isinstance(call, Call)]


def test_caches_are_inside_the_input_and_thinking_and_tools_are_beside() -> None:
    (call,) = calls(SESSION, message(TOKENS | {"tool": 7}))
    assert call.usage == Usage(input=47, cached_read=60, output=20, thought=5)
    assert (call.session, call.model, call.kind) == ("s1", "gemini-3.8-flash", "main")


def test_a_message_that_is_written_again_is_the_same_call_with_more() -> None:
    early, late = calls(SESSION, message(TOKENS | {"output": 1}), {"$set": {"messages": [message(TOKENS)]}})
    assert early.id == late.id
    assert (early.usage.output, late.usage.output) == (1, 20)


def test_a_message_without_tokens_and_one_of_another_kind_are_no_calls() -> None:
    assert told(SESSION, message(None), message(TOKENS, type="user"), {"$rewindTo": "m1"}) == []
    assert told(SESSION, message("none", type="info")) == []


def test_a_subagent_is_told_by_its_file_and_its_parent_by_the_directory() -> None:
    (call,) = calls(SESSION | {"kind": "subagent", "directories": ["/home/dev/demo"]}, message(TOKENS))
    assert (call.kind, call.cwd) == ("subagent", "/home/dev/demo")
    found = list(files(DATA / "gemini" / "subagents" / "home", {}))
    main = {call.session for call in recorded([path for path in found if parent(path) is None], read)}
    assert {parent(path) for path in found} == {None, *main}


def test_a_session_that_gets_another_id_has_the_calls_after_it() -> None:
    first, second = calls(SESSION, message(TOKENS), {"$set": {"sessionId": "s2"}}, message(TOKENS, "m2"))
    assert (first.session, second.session) == ("s1", "s2")


def test_a_form_that_is_not_known_is_not_understood() -> None:
    for tokens in ({"in": 5}, TOKENS | {"output": "20"}, TOKENS | {"input": -1}, TOKENS | {"cached": 101}):
        (problem,) = told(SESSION, message(tokens))
        assert isinstance(problem, NotUnderstood)
        (problem,) = told(SESSION, {"$set": {"messages": [message(tokens)]}})
        assert isinstance(problem, NotUnderstood)
    for incomplete in (message(TOKENS, timestamp=None), message(TOKENS, id=None)):
        (problem,) = told(SESSION, incomplete)
        assert isinstance(problem, NotUnderstood)
    (problem,) = told(message(TOKENS))
    assert isinstance(problem, NotUnderstood)


def test_only_chats_are_books(tmp_path: Path) -> None:
    for name in (
        "a/chats/session-2.jsonl",
        "a/chats/s2/1.jsonl",
        "b/chats/session-1.jsonl",
        "b/logs.jsonl",
        "b/bin/x.jsonl",
    ):
        for home in (".gemini", "elsewhere/.gemini"):
            (tmp_path / home / "tmp" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / home / "tmp" / name).touch()
    assert [path.name for path in files(tmp_path, {})] == ["session-2.jsonl", "1.jsonl", "session-1.jsonl"]
    assert len(list(files(tmp_path, {"GEMINI_CLI_HOME": str(tmp_path / "elsewhere")}))) == 3
    (tmp_path / ".gemini" / "tmp" / "c").mkdir()
    (tmp_path / ".gemini" / "tmp" / "c" / "chats").symlink_to(
        tmp_path / "elsewhere" / ".gemini" / "tmp" / "a" / "chats"
    )
    assert len(list(files(tmp_path, {}))) == 3

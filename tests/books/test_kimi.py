"""Kimi Code's lines: whose session they are of, and which calls are what."""

from __future__ import annotations

import json
from pathlib import Path

from acp_proxy.books import Call, NotUnderstood
from acp_proxy.books.kimi import files, read, session
from acp_proxy.core.usage import Usage
from tests.books.recorded import DATA, served

USAGE = {"inputOther": 100, "output": 20, "inputCacheRead": 60, "inputCacheCreation": 7}
START = {"type": "metadata", "protocol_version": "1.5", "created_at": 1795825004865}
LOOP = {"type": "llm.request", "agentId": "main", "kind": "loop", "model": "kimi-k3", "modelAlias": "mine"}


def bound(runtime: str) -> dict[str, object]:
    return {"type": "runtime.set_binding", "runtimeId": runtime, "agentId": "main", "time": 1795825004913}


def record(usage: object, **fields: object) -> dict[str, object]:
    written = {"type": "usage.record", "agentId": "main", "model": "mine", "usage": usage, "usageScope": "turn"}
    return written | {"time": 1795825006438} | fields


def told(*written: object, of: str | None = None) -> list[Call | NotUnderstood]:
    return list(read((json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in written), of))


def only(*written: object, of: str | None = None) -> Call:
    (call,) = told(*written, of=of)
    assert isinstance(call, Call)
    return call


def test_all_counts_stand_beside_each_other_and_thinking_is_in_the_output() -> None:
    call = only(START, bound("acp:s1"), LOOP, record(USAGE))
    assert call.usage == Usage(input=100, cached_read=60, cached_write=7, output=20)
    assert (call.session, call.model, call.kind, call.at) == ("s1", "kimi-k3", "main", 1795825006438000000)


def test_the_request_before_a_record_says_for_what_it_was() -> None:
    of_compaction = LOOP | {"kind": "compaction"}
    assert only(START, bound("acp:s1"), of_compaction, record(USAGE, usageScope="session")).kind == "compaction"
    assert only(START, bound("acp:s1"), LOOP, record(USAGE, usageScope="session")).kind == "side"
    subagent = only(START, bound("acp:s1"), LOOP, record(USAGE, agentId="agent-0", model="other"))
    assert (subagent.kind, subagent.parent, subagent.model) == ("subagent", "s1", "other")


def test_a_line_that_names_no_session_is_of_that_of_its_directory() -> None:
    assert only(START, bound("local"), record(USAGE), of="s2").session == "s2"
    assert only(START, bound("local"), bound("acp:s1"), record(USAGE), of="s2").session == "s1"
    (problem,) = told(START, bound("local"), record(USAGE))
    assert isinstance(problem, NotUnderstood)


def test_sessions_in_a_terminal_are_told_by_their_directories_and_a_fork_joins_its_parent() -> None:
    recording = DATA / "kimi-terminal" / "forked"
    found = list(files(recording / "home", {}))
    calls: dict[str, Call] = {}
    for path in found:
        for call in read(path.read_bytes().splitlines(keepends=True), session(path)):
            assert isinstance(call, Call)
            calls[call.id] = call
    assert {session(path) for path in found} == {call.session for call in served(recording)}
    assert [call.usage for call in calls.values()] == [call.usage for call in served(recording)]


def test_a_call_that_was_cut_short_before_it_told_its_tokens_is_no_call() -> None:
    assert told(START, bound("acp:s1"), record(dict.fromkeys(USAGE, 0))) == []


def test_a_form_that_is_not_known_is_told_with_the_version_of_the_format() -> None:
    for usage in (None, {"tokens": 5}, USAGE | {"output": "20"}, USAGE | {"inputOther": -1}):
        (problem,) = told(START, bound("acp:s1"), record(usage))
        assert isinstance(problem, NotUnderstood)
        assert problem.version == "1.5"
    (problem,) = told(START | {"protocol_version": "2.0"}, bound("acp:s1"), record(USAGE))
    assert isinstance(problem, NotUnderstood)
    assert problem.version == "2.0"
    for time in (None, 2**53, "now"):
        (problem,) = told(START, bound("acp:s1"), record(USAGE, time=time))
        assert isinstance(problem, NotUnderstood)


def test_only_wires_are_books(tmp_path: Path) -> None:
    for name in ("wd/s1/agents/main/wire.jsonl", "wd/s1/agents/agent-0/wire.jsonl", "wd/s1/other.jsonl"):
        for place in (".kimi-code", "elsewhere"):
            (tmp_path / place / "sessions" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / place / "sessions" / name).touch()
    assert [(session(path), path.parent.name) for path in files(tmp_path, {})] == [("s1", "agent-0"), ("s1", "main")]
    assert len(list(files(tmp_path, {"KIMI_CODE_HOME": str(tmp_path / "elsewhere")}))) == 2

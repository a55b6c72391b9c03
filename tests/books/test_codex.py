"""Codex' lines: which `token_count` is a call, and whose call it is."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

from acp_proxy.books import Call, NotUnderstood
from acp_proxy.books.codex import files, read
from acp_proxy.core.usage import Usage

PARENT = "01a21f68-e497-7a30-a409-6e690d7f144a"
OF_PARENT = "01a21f68-e4e0-7a30-a409-000000000001"
FORK = "01a21f68-e707-7423-a782-3ec7e1fbabf6"
OF_FORK = "01a21f68-e710-7423-a782-000000000002"
_ordinals = count()


def line(kind: str, payload: object, at: str = "2026-11-27T12:11:16.175Z") -> bytes:
    written = {"timestamp": at, "ordinal": next(_ordinals), "type": kind, "payload": payload}
    return json.dumps(written, separators=(",", ":")).encode() + b"\n"


def meta(thread: str, version: str = "0.141.0", **fields: object) -> bytes:
    return line("session_meta", {"id": thread, "cwd": "/home/dev", "cli_version": version, "source": "cli"} | fields)


def tokens(sent: int, written: int, **parts: int) -> dict[str, int]:
    return {"input_tokens": sent, "output_tokens": written, "total_tokens": sent + written} | parts


def counted(total: object, last: object) -> bytes:
    info = {"total_token_usage": total, "last_token_usage": last}
    return line("event_msg", {"type": "token_count", "info": info, "rate_limits": None})


def record(thread: str, turn: str, usage: object, total: object) -> bytes:
    told = {"thread_id": thread, "turn_id": turn, "response_id": "r1", "usage": usage, "thread_token_usage": total}
    return line("token_usage_record", told)


def turn(name: str | None, model: str = "gpt-5.4") -> bytes:
    started = line("event_msg", {"type": "task_started", "turn_id": name})
    return started + line("turn_context", {"turn_id": name, "model": model})


def told(*written: bytes) -> list[Call | NotUnderstood]:
    return list(read(b"".join(written).splitlines(keepends=True)))


def calls(*written: bytes) -> list[Call]:
    return [call for call in told(*written) if isinstance(call, Call)]


def test_caches_are_inside_the_input_and_thinking_is_inside_the_output() -> None:
    usage = tokens(100, 20, cached_input_tokens=60, cache_write_input_tokens=10, reasoning_output_tokens=15)
    (call,) = calls(meta(PARENT), turn(OF_PARENT), counted(usage, usage))
    assert call.usage == Usage(input=30, cached_read=60, cached_write=10, output=5, thought=15)
    assert (call.session, call.model, call.kind, call.parent) == (PARENT, "gpt-5.4", "main", None)


def test_an_event_that_is_said_again_is_no_call() -> None:
    first, second = tokens(100, 20), tokens(110, 21)
    total = tokens(210, 41)
    found = calls(
        *(meta(PARENT), turn(OF_PARENT), counted(first, first), counted(first, first)),
        *(
            counted(total, second),
            counted(total, tokens(0, 0, total_tokens=9000)),
            line("event_msg", {"type": "token_count"}),
        ),
    )
    assert [call.usage.total for call in found] == [120, 131]


def test_a_record_and_its_event_are_one_call() -> None:
    first, second, total = tokens(100, 20), tokens(110, 21), tokens(210, 41)
    found = calls(
        *(meta(PARENT, "0.166.0"), turn(OF_PARENT), record(PARENT, OF_PARENT, first, first), counted(first, first)),
        *(turn(OF_PARENT, "gpt-6"), record(PARENT, OF_PARENT, second, total), counted(total, second)),
    )
    assert [(call.usage.total, call.model) for call in found] == [(120, "gpt-5.4"), (131, "gpt-6")]


def test_turns_that_a_fork_copied_stay_calls_of_its_parent() -> None:
    first, second, total = tokens(100, 20), tokens(110, 21), tokens(210, 41)
    before = calls(meta(PARENT), turn(OF_PARENT), counted(first, first))
    copied, own = calls(
        *(meta(FORK, forked_from_id=PARENT), meta(PARENT), turn(OF_PARENT), counted(first, first)),
        *(turn(OF_FORK), counted(total, second)),
    )
    assert (copied.id, copied.session, copied.parent) == (before[0].id, PARENT, None)
    assert (own.session, own.parent, own.usage.total) == (FORK, PARENT, 131)


def test_a_copied_turn_whose_id_tells_no_time_is_not_understood() -> None:
    usage = tokens(100, 20)
    (problem,) = told(meta(FORK, forked_from_id=PARENT), meta(PARENT), turn("7"), counted(usage, usage))
    assert isinstance(problem, NotUnderstood)
    assert problem.version == "0.141.0"


def test_what_a_fork_says_of_its_parent_before_its_first_record_is_no_call() -> None:
    of_parent, own, total = tokens(100, 20), tokens(110, 21), tokens(210, 41)
    found = calls(
        *(meta(FORK, "0.166.0", forked_from_id=PARENT), turn(OF_FORK), counted(of_parent, of_parent)),
        *(record(FORK, OF_FORK, own, total), counted(total, own)),
    )
    assert [call.usage.total for call in found] == [131]


def test_the_call_before_a_compaction_made_it_and_one_of_an_earlier_turn_did_not() -> None:
    first, second, total = tokens(100, 20), tokens(110, 21), tokens(210, 41)
    compacted = line("compacted", {"message": ""})
    start = (meta(PARENT), turn(OF_PARENT), counted(first, first))
    assert [call.kind for call in calls(*start, turn(OF_FORK), counted(total, second), compacted)] == [
        "main",
        "compaction",
    ]
    assert [call.kind for call in calls(*start, turn(OF_FORK), compacted)] == ["main"]


def test_a_thread_that_another_started_is_a_subagent_of_it() -> None:
    usage = tokens(100, 20)
    source = {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}}
    (call,) = calls(meta(FORK, source=source, parent_thread_id=PARENT), record(FORK, OF_FORK, usage, usage))
    assert (call.kind, call.parent, call.session) == ("subagent", PARENT, FORK)


def test_a_form_that_is_not_known_is_told_with_the_version_of_the_agent() -> None:
    for usage in (
        {"in": 5},
        tokens(100, 20) | {"output_tokens": "20"},
        tokens(-1, 20),
        tokens(100, 20, cached_input_tokens=101),
        tokens(100, 20, reasoning_output_tokens=21),
    ):
        for written in (record(PARENT, OF_PARENT, usage, tokens(100, 20)), counted(tokens(100, 20), usage)):
            (problem,) = told(meta(PARENT, "0.200.0"), record(PARENT, OF_PARENT, tokens(1, 1), tokens(1, 1)), written)[
                1:
            ]
            assert problem.version == "0.200.0"
            assert isinstance(problem, NotUnderstood)
    (problem,) = told(counted(tokens(100, 20), tokens(100, 20)))
    assert isinstance(problem, NotUnderstood)


def test_fields_in_another_order_change_nothing() -> None:
    usage = tokens(100, 20)
    info = {"total_token_usage": usage, "last_token_usage": usage}
    written = {
        "payload": {"info": info, "type": "token_count"},
        "type": "event_msg",
        "timestamp": "2026-11-27T12:11:16Z",
    }
    assert len(calls(meta(PARENT), turn(OF_PARENT), json.dumps(written, separators=(",", ":")).encode() + b"\n")) == 1


def test_live_sessions_are_found_before_archived_ones(tmp_path: Path) -> None:
    for name in (
        "archived_sessions/rollout-1.jsonl",
        "sessions/2026/11/28/rollout-3.jsonl",
        "sessions/2026/11/27/rollout-2.jsonl",
    ):
        for place in (".codex", "elsewhere"):
            (tmp_path / place / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / place / name).touch()
    (tmp_path / ".codex" / "history.jsonl").touch()
    assert [path.name for path in files(tmp_path, {})] == ["rollout-2.jsonl", "rollout-3.jsonl", "rollout-1.jsonl"]
    elsewhere = files(tmp_path, {"CODEX_HOME": str(tmp_path / "elsewhere")})
    assert {path.relative_to(tmp_path).parts[0] for path in elsewhere} == {"elsewhere"}

"""pi's entries: which of them tell of calls, what these cost, and whose they are in a fork."""

from __future__ import annotations

import json
from pathlib import Path

from acp_proxy.books import Call, NotUnderstood
from acp_proxy.books.pi import files, read
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from tests.books.recorded import calls, recordings

COST = {"input": 0.0055, "output": 0.005025, "cacheRead": 0.002505, "cacheWrite": 0.00188125, "total": 0.01491125}
USAGE = {"input": 100, "output": 20, "cacheRead": 60, "cacheWrite": 7, "totalTokens": 187, "cost": COST}
SESSION = {"type": "session", "version": 3, "id": "s2", "timestamp": "2026-11-28T00:03:41.810Z", "cwd": "/home/dev"}
NANO_PER_TOKEN = Usage(input=5_000, cached_read=500, cached_write=6_250, output=25_000, thought=25_000)


def line(record: object) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def entry(usage: object, at: str = "2026-11-28T00:03:42.000Z", **fields: object) -> dict[str, object]:
    message = {"role": "assistant", "content": [], "provider": "p", "model": "claude-opus-5-5", "usage": usage}
    return {"type": "message", "id": "a1b2c3d4", "timestamp": at, "message": message} | fields


def told(*written: object) -> list[Call | NotUnderstood]:
    return list(read(line(record) for record in written))


def only(*written: object) -> Call:
    (call,) = told(*written)
    assert isinstance(call, Call)
    return call


def test_reasoning_is_inside_the_output_and_all_else_stands_beside() -> None:
    call = only(SESSION, entry(USAGE | {"reasoning": 15, "cacheWrite1h": 7}))
    assert call.usage == Usage(input=100, cached_read=60, cached_write=7, output=5, thought=15)
    assert (call.session, call.model, call.kind, call.cwd) == ("s2", "claude-opus-5-5", "main", "/home/dev")


def test_the_cost_is_exact_to_a_nano_unit_and_unknown_where_it_is_zero() -> None:
    assert only(SESSION, entry(USAGE)).cost == Money(14_911_250, "USD")
    assert only(SESSION, entry(USAGE | {"cost": COST | {"total": 0}})).cost is None
    assert only(SESSION, entry(USAGE | {"cost": None})).cost is None


def test_recorded_costs_are_the_prices_of_the_tokens_that_were_served() -> None:
    for recording in recordings("pi"):
        for call in calls(files(recording / "home", {}), read):
            if call.model != "gpt-6.1-sol":
                price = sum(
                    getattr(call.usage, name) * getattr(NANO_PER_TOKEN, name) for name in Usage.__struct_fields__
                )
                assert call.cost == Money(price, "USD")


def test_entries_that_are_no_answers_are_calls_of_other_kinds() -> None:
    own = {"id": "a1b2c3d4", "timestamp": "2026-11-28T00:03:42.000Z", "usage": USAGE}
    for written, kind, model in (
        (entry(None, message={"role": "toolResult", "usage": USAGE}), "subagent", None),
        (own | {"type": "compaction"}, "compaction", None),
        (own | {"type": "branch_summary"}, "compaction", None),
        (own | {"type": "usage", "kind": "cache_warm", "model": "m"}, "side", "m"),
    ):
        call = only(SESSION, written)
        assert (call.kind, call.model, call.usage.total) == (kind, model, 187)


def test_what_the_provider_names_is_the_model() -> None:
    message = {"role": "assistant", "model": "auto", "responseModel": "claude-opus-5-5", "usage": USAGE}
    assert only(SESSION, entry(None, message=message)).model == "claude-opus-5-5"


def test_an_answer_that_failed_before_it_cost_anything_is_no_call() -> None:
    nothing = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite", "totalTokens"), 0)
    assert told(SESSION, entry(nothing)) == []


def test_entries_that_a_fork_copied_are_its_parents() -> None:
    fork = SESSION | {"parentSession": "/home/dev/.pi/agent/sessions/--demo--/2026-11-28T00-00-00-000Z_s1.jsonl"}
    copied = only(fork, entry(USAGE, "2026-11-28T00:03:40.000Z"))
    own = only(fork, entry(USAGE))
    assert (copied.session, copied.parent) == ("s1", None)
    assert (own.session, own.parent) == ("s2", "s1")
    assert copied.id == only(SESSION | {"id": "s1"}, entry(USAGE, "2026-11-28T00:03:40.000Z")).id != own.id


def test_a_form_that_is_not_known_is_told_with_the_version_of_the_format() -> None:
    for usage in (
        {"in": 5},
        USAGE | {"output": "20"},
        USAGE | {"input": -1},
        USAGE | {"reasoning": 21},
        USAGE | {"cost": {"total": "much"}},
        USAGE | {"cost": {"total": -1}},
    ):
        (problem,) = told(SESSION, entry(usage))
        assert isinstance(problem, NotUnderstood)
        assert problem.version == "3"
    (problem,) = told(SESSION | {"version": 4}, entry(USAGE))
    assert isinstance(problem, NotUnderstood)
    assert problem.version == "4"
    (problem,) = told(entry(USAGE))
    assert isinstance(problem, NotUnderstood)


def test_usage_inside_of_what_a_tool_said_is_no_call() -> None:
    content = {"role": "toolResult", "details": {"usage": {"input": "?"}}, "content": []}
    assert told(SESSION, entry(None, message=content), {"type": "custom", "timestamp": 7, "data": {"usage": {}}}) == []


def test_sessions_are_found_where_the_configuration_is(tmp_path: Path) -> None:
    for place in (".pi/agent/sessions/--a--", "agent/sessions/--a--", "sessions"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "1_s.jsonl").touch()
    found = [
        [path.relative_to(tmp_path).as_posix() for path in files(tmp_path, environ)]
        for environ in (
            {},
            {"PI_CODING_AGENT_DIR": str(tmp_path / "agent")},
            {"PI_CODING_AGENT_DIR": str(tmp_path / "agent"), "PI_CODING_AGENT_SESSION_DIR": str(tmp_path / "sessions")},
        )
    ]
    assert found == [[".pi/agent/sessions/--a--/1_s.jsonl"], ["agent/sessions/--a--/1_s.jsonl"], ["sessions/1_s.jsonl"]]

"""OpenClaw's book against what the model server told it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from acp_proxy.books import Call, NotUnderstood, openclaw
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from tests.books.served import DATABASES, Served, calls, served

HELLO = DATABASES / "openclaw-2026.9.6" / "hello.db"
SESSION = {"type": "session", "version": 4, "id": "s1", "timestamp": "2026-11-28T06:57:39.260Z", "cwd": "/home/dev"}
USAGE = {"input": 100, "output": 20, "cacheRead": 60, "cacheWrite": 7, "reasoningTokens": 5, "cost": {"total": 0.25}}


def entry(**changed: Any) -> dict[str, Any]:
    message = {"role": "assistant", "model": "gpt-5.5", "content": "secret", "usage": USAGE}
    return {"type": "message", "id": "e1", "timestamp": "2026-11-28T06:57:45.000Z", "message": message} | changed


def told(*entries: object, of: str | None = None, key: str = "agent:main:main") -> list[Call | NotUnderstood]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE session_windows (session_id TEXT, session_key TEXT)")
        connection.execute("INSERT INTO session_windows VALUES ('s1', ?)", (key,))
        connection.execute("CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT)")
        for number, each in enumerate(entries):
            text = None if each is None else json.dumps(each)
            connection.execute("INSERT INTO transcript_events VALUES ('s1', ?, ?)", (number, text))
        return list(openclaw.read(connection, of))


def test_its_calls_are_those_that_were_served_session_by_session(tmp_path: Path) -> None:
    found = calls(HELLO, openclaw.read, tmp_path)
    assert [Served(call.session, call.kind, str(call.model), call.usage) for call in found] == served(HELLO)
    assert {call.cwd for call in found} == {"/home/dev/demo"}
    for call in found:  # at the prices of its configuration, which knew none of caches that are written
        price = call.usage.input * 2000 + call.usage.cached_read * 200 + call.usage.completion * 8000
        assert call.cost == Money(price, "USD")


def test_reasoning_is_inside_the_output_and_all_else_stands_beside() -> None:
    (call,) = told(SESSION, entry())
    assert isinstance(call, Call)
    assert call.usage == Usage(input=100, cached_read=60, cached_write=7, output=15, thought=5)
    assert (call.id, call.session, call.cost, call.cwd) == ("e1", "s1", Money(250_000_000, "USD"), "/home/dev")
    assert "secret" not in repr(call)


def test_one_session_alone_is_read_where_it_is_named() -> None:
    assert len(told(SESSION, entry(), of="s1")) == 1
    assert told(SESSION, entry(), of="s2") == []


def test_a_session_over_acp_has_the_id_that_the_protocol_has() -> None:
    (call,) = told(SESSION, entry(), key="agent:main:acp-bridge:0de0cc3e", of="0de0cc3e")
    assert isinstance(call, Call)
    assert call.session == "0de0cc3e"


@pytest.mark.parametrize(
    "changed",
    [{"message": {"role": "user", "usage": USAGE}}, {"message": {"role": "assistant"}}, {"message": None}],
    ids=["of the user", "without usage", "no message"],
)
def test_other_entries_are_no_calls(changed: dict[str, Any]) -> None:
    assert told(SESSION, entry(**changed)) == []


@pytest.mark.parametrize(
    "odd",
    [
        None,
        entry(timestamp="1950-01-01T00:00:00Z"),
        entry(message={"role": "assistant", "usage": USAGE | {"input": -1}}),
        entry(message={"role": "assistant", "usage": USAGE | {"reasoningTokens": 21}}),
        entry(message={"role": "assistant", "usage": USAGE | {"cost": {"total": "much"}}}),
    ],
    ids=["compressed", "before 1970", "less than nothing", "more thought than said", "a cost in words"],
)
def test_an_entry_of_another_form_is_not_understood_and_the_others_are(odd: object) -> None:
    first, second = told(SESSION, odd, entry(id="e2"))
    assert isinstance(first, NotUnderstood)
    assert isinstance(second, Call)


def test_a_session_of_another_version_is_not_understood_and_nothing_of_it_is_guessed() -> None:
    (odd,) = told(SESSION | {"version": 5}, entry())
    assert isinstance(odd, NotUnderstood)
    assert odd.version == "5"


def test_a_database_without_its_table_is_not_understood() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        assert [*openclaw.read(connection)] == [NotUnderstood("expected table transcript_events")]


def test_each_of_its_agents_has_a_database(tmp_path: Path) -> None:
    path = tmp_path / ".openclaw/agents/main/agent/openclaw-agent.sqlite"
    assert list(openclaw.files(tmp_path, {})) == []
    path.parent.mkdir(parents=True)
    path.touch()
    assert list(openclaw.files(tmp_path, {})) == [path]
    assert list(openclaw.files(Path("/nowhere"), {"OPENCLAW_STATE_DIR": str(tmp_path / ".openclaw")})) == [path]

"""The files that OpenCode kept before it had a database, against what the model server told it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from acp_proxy.books import Call, NotUnderstood, opencode_files
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from tests.books.served import DATABASES, Served, family, served

RECORDED = DATABASES / "opencode-1.1.53"
SESSION = json.dumps({"id": "ses_1", "version": "1.1.53", "directory": "/home/dev/demo", "title": "secret"}).encode()
TOKENS = {"input": 10, "output": 9, "reasoning": 0, "cache": {"read": 2, "write": 1}}


@pytest.mark.parametrize("name", ["subagent", "fork"])
def test_its_calls_are_those_that_were_served_session_by_session(name: str) -> None:
    found = _unique(_all(RECORDED / name))
    as_served = [Served(family(call), call.kind, str(call.model).partition("/")[2], call.usage) for call in found]
    assert sorted(as_served, key=repr) == sorted(served(RECORDED / name), key=repr)
    for call in found:
        prompt = call.usage.input * 3000 + call.usage.cached_read * 300 + call.usage.cached_write * 3750
        assert call.cost == Money(prompt + call.usage.output * 15000, "USD")


def test_the_copies_in_a_fork_come_later_and_have_the_same_ids() -> None:
    found = _all(RECORDED / "fork")
    assert len(found) == len(_unique(found)) + 3


def test_a_message_is_a_call_with_the_directory_and_the_version_of_its_session() -> None:
    [call] = _read(_message())
    assert call == Call(
        id="1000 anth/mock-large 10 2 1 9 0",
        session="ses_1",
        at=2000 * 10**6,
        model="anth/mock-large",
        usage=Usage(10, 2, 1, 9),
        cost=Money(5_000_000, "USD"),
        version="1.1.53",
        cwd="/home/dev/demo",
    )


@pytest.mark.parametrize(
    "different", [{"role": "user"}, {"finish": None, "error": {"name": "MessageAbortedError"}}], ids=["user", "aborted"]
)
def test_a_message_of_another_role_and_one_that_was_cut_short_are_no_calls(different: dict[str, Any]) -> None:
    assert _read(_message(**different)) == []


@pytest.mark.parametrize(
    "message",
    [
        lambda: _message(tokens=TOKENS | {"reasoning": 1}),
        lambda: _message(tokens=TOKENS | {"input": "secret"}),
        lambda: _message(tokens=None),
        lambda: _message(cost="secret"),
        lambda: _message()[:-20],
        lambda: b"",
        lambda: b"\xff secret",
        lambda: b"[" * 100_000,
    ],
    ids=["thinking", "tokens", "no tokens", "cost", "cut short", "empty", "no text", "nested"],
)
def test_a_message_of_another_form_is_not_understood_and_tells_nothing(message: Any) -> None:
    found, call = _read(message(), _message())
    assert isinstance(found, NotUnderstood)
    assert found.version == "1.1.53"
    assert "secret" not in found.reason
    assert isinstance(call, Call)


@pytest.mark.parametrize("session", [b"", b"{}", b'{"id": 1}', b"\xff"])
def test_a_session_of_another_form_is_not_understood_once(session: bytes) -> None:
    found = list(opencode_files.read_messages(session, [_message(), _message()]))
    assert found == [NotUnderstood("expected a session with its id, version and directory")]


def _all(recorded: Path) -> list[Call]:
    found = []
    for session in opencode_files.files(Path("/nowhere"), {"XDG_DATA_HOME": str(recorded)}):
        messages = [path.read_bytes() for path in opencode_files.messages(session)]
        found += list(opencode_files.read_messages(session.read_bytes(), messages))
    calls = [call for call in found if isinstance(call, Call)]
    assert calls == found
    assert calls
    return calls


def _unique(calls: list[Call]) -> list[Call]:
    return list({call.id: call for call in reversed(calls)}.values())


def _message(**different: Any) -> bytes:
    message = {
        "role": "assistant",
        "time": {"created": 1000, "completed": 2000},
        "tokens": TOKENS,
        "cost": 0.005,
        "providerID": "anth",
        "modelID": "mock-large",
        "finish": "stop",
    }
    return json.dumps(message | different).encode()


def _read(*messages: bytes) -> list[Call | NotUnderstood]:
    return list(opencode_files.read_messages(SESSION, messages))

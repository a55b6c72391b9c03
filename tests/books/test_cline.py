"""Cline's documents: what the model server served, message by message, and what is no call."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.books import Call, NotUnderstood
from acp_proxy.books.cline import about, files, read
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.importing.shelves import SHELVES
from tests.books.recorded import DATA, paid, served

TASKS = DATA / "cline" / "tasks"
BOOKS = list(files(TASKS / "home", {}))
METRICS = {"inputTokens": 190, "outputTokens": 20, "cacheReadTokens": 60, "cacheWriteTokens": 30}


def message(**changed: Any) -> dict[str, Any]:
    known = {"id": "m1", "role": "assistant", "ts": 1000, "modelInfo": {"id": "gpt-5.5"}, "metrics": METRICS}
    return known | {"content": [{"type": "text", "text": "secret"}]} | changed


def told(*messages: dict[str, Any], **document: Any) -> list[Call | NotUnderstood]:
    known = {"version": 1, "sessionId": "s1", "origin": {"version": "3.0.65"}, "messages": messages}
    return list(read(json.dumps(known | document).encode(), b'{"cwd":"/home/dev/demo"}'))


def test_its_calls_are_those_that_were_served_session_by_session() -> None:
    found = [call for path in BOOKS for call in SHELVES["cline"].read(path) if isinstance(call, Call)]
    assert paid(found) == Counter((call.session, call.model, call.usage) for call in served(TASKS))
    whats = {call.usage: call.what for call in served(TASKS)}
    assert all(call.kind == whats[call.usage] for call in found)
    assert {(call.cwd, call.version) for call in found} == {("/home/dev/demo", "3.0.65")}


def test_a_subagent_belongs_to_the_session_that_started_it() -> None:
    found = [call for path in BOOKS for call in read(path.read_bytes()) if isinstance(call, Call) and call.parent]
    (subagent,) = found
    assert subagent.parent == "1795847507718_8e95l"
    assert subagent.kind == "subagent"


def test_a_message_is_a_call_with_the_cost_that_cline_computed() -> None:
    assert told(message(metrics=METRICS | {"cost": 0.0125})) == [
        Call(
            id="m1",
            session="s1",
            at=1_000_000_000,
            model="gpt-5.5",
            usage=Usage(input=100, cached_read=60, cached_write=30, output=20),
            cost=Money(12_500_000, "USD"),
            version="3.0.65",
            cwd="/home/dev/demo",
        )
    ]


@pytest.mark.parametrize("cost", [0, -1, 1e300])
def test_a_cost_that_is_none_is_unknown(cost: float) -> None:
    (call,) = told(message(metrics=METRICS | {"cost": cost}))
    assert isinstance(call, Call)
    assert call.cost is None


@pytest.mark.parametrize("changed", [{"role": "user"}, {"metrics": None}], ids=["user", "without tokens"])
def test_other_messages_are_no_calls(changed: dict[str, Any]) -> None:
    assert told(message(**changed)) == []


@pytest.mark.parametrize(
    "changed",
    [{"id": None}, {"ts": None}, {"ts": -1}, {"ts": 1e300}, {"metrics": METRICS | {"inputTokens": 80}}],
    ids=["without an id", "without a time", "before 1970", "after all times", "more cached than asked"],
)
def test_a_call_of_another_form_is_not_understood_and_the_others_are(changed: dict[str, Any]) -> None:
    odd, call = told(message(**changed), message(id="m2"))
    assert isinstance(odd, NotUnderstood)
    assert odd.version == "3.0.65"
    assert isinstance(call, Call)


@pytest.mark.parametrize("document", [{"version": 2}, {"messages": {}}, {"sessionId": None}])
def test_a_document_of_another_form_is_not_understood(document: dict[str, Any]) -> None:
    (odd,) = told(message(), **document)
    assert isinstance(odd, NotUnderstood)


@given(st.sampled_from(BOOKS), st.integers(0, 3000), st.binary(max_size=20))
def test_no_bytes_make_it_raise(path: Path, at: int, by: bytes) -> None:
    data = path.read_bytes()
    for damaged in (data[:at], data[:at] + by + data[at + len(by) :]):
        list(read(damaged, damaged))


def test_its_files_are_where_the_environment_says(tmp_path: Path) -> None:
    sessions = TASKS / "home/.cline/data/sessions"
    for environ in (
        {"CLINE_DIR": str(sessions.parents[1])},
        {"CLINE_DATA_DIR": str(sessions.parent)},
        {"CLINE_SESSION_DATA_DIR": str(sessions)},
    ):
        assert list(files(tmp_path, environ)) == BOOKS
    assert {about(path).stat().st_size > 0 for path in BOOKS} == {True}


def test_nothing_of_a_message_leaves_the_reader() -> None:
    assert "secret" not in repr(told(message()))

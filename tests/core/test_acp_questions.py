"""What a client is asked by us is valid ACP, and an answer says what was chosen, or nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from acp_proxy.core.acp.questions import call_over_line, choice_line, chosen, filled_in, form_line, withdrawal_line
from acp_proxy.core.jsonrpc import Response
from tests.core.messages import JSON, is_valid

FIELDS: dict[str, dict[str, Any]] = {
    "amount": {"type": "number", "title": "How much", "minimum": 0},
    "why": {"type": "string", "title": "Why"},
}


def read(line: bytes, **rest: Any) -> Any:
    message = json.loads(line)
    assert message.items() >= {"jsonrpc": "2.0", **rest}.items()
    assert b"\n" not in line
    return message


@pytest.mark.parametrize("version", [1, 2])
def test_a_form_wants_all_of_its_fields(version: int) -> None:
    message = read(form_line("q", "s", "Ask for more?", "More", FIELDS), id="q", method="elicitation/create")
    assert is_valid(version, "AgentRequest", message)
    assert is_valid(version, "CreateElicitationRequest", message["params"])
    schema = {"type": "object", "title": "More", "properties": FIELDS, "required": ["amount", "why"]}
    assert message["params"] == {
        "sessionId": "s",
        "mode": "form",
        "message": "Ask for more?",
        "requestedSchema": schema,
    }


def test_a_choice_is_between_two_and_shown_as_a_tool_call_that_waits() -> None:
    line = choice_line("q", "s", "More", "Ask for more?", "Ask", "Not now")
    message = read(line, id="q", method="session/request_permission")
    assert is_valid(1, "AgentRequest", message)
    assert is_valid(1, "RequestPermissionRequest", message["params"])
    call, options = message["params"]["toolCall"], message["params"]["options"]
    assert (message["params"]["sessionId"], call["toolCallId"], call["title"]) == ("s", "q", "More")
    assert (call["status"], call["content"][0]["content"]["text"]) == ("pending", "Ask for more?")
    assert [(each["name"], each["kind"]) for each in options] == [("Ask", "allow_once"), ("Not now", "reject_once")]
    answers = [{"outcome": {"outcome": "selected", "optionId": each["optionId"]}} for each in options]
    assert [chosen(Response("q", each)) for each in answers] == [True, False]


def test_the_call_of_a_choice_comes_to_its_end() -> None:
    message = read(call_over_line("q", "s"), method="session/update")
    assert is_valid(1, "AgentNotification", message)
    update = {"sessionUpdate": "tool_call_update", "toolCallId": "q", "status": "completed"}
    assert message["params"] == {"sessionId": "s", "update": update}
    assert "id" not in message


@pytest.mark.parametrize("version", [1, 2])
def test_a_question_that_is_taken_back_is_named_by_its_id(version: int) -> None:
    message = read(withdrawal_line("q"), method="$/cancel_request", params={"requestId": "q"})
    assert is_valid(version, "CancelRequestNotification", message["params"])
    assert "id" not in message


def test_a_session_with_half_a_surrogate_pair_is_asked_as_it_is_called() -> None:
    for line in (form_line("q", "a\ud83d", "", "", {}), choice_line("q", "a\ud83d", "", "", "", "")):
        assert json.loads(line)["params"]["sessionId"] == "a\ud83d"
    assert json.loads(call_over_line("q", "a\ud83d"))["params"]["sessionId"] == "a\ud83d"


@pytest.mark.parametrize(
    ("result", "content"),
    [
        ({"action": "accept", "content": {"amount": 5}}, {"amount": 5}),
        ({"action": "accept"}, {}),
        ({"action": "decline", "content": {"amount": 5}}, None),
        ({"action": "cancel"}, None),
        ({"content": {"amount": 5}}, None),
        (None, None),
        ([], None),
    ],
)
def test_what_was_filled_in_counts_only_where_it_was_sent(result: Any, content: dict[str, Any] | None) -> None:
    assert filled_in(Response("q", result)) == content


@pytest.mark.parametrize("outcome", ["cancelled", "selected", None])
def test_nothing_was_chosen_without_the_first_option(outcome: str | None) -> None:
    assert not chosen(Response("q", {"outcome": {"outcome": outcome}}))
    assert chosen(Response("q", {"outcome": {"outcome": outcome, "optionId": "ask"}})) is (outcome == "selected")


def test_an_error_is_no_answer() -> None:
    response = Response("q", error={"code": -32601, "message": "no"})
    assert (filled_in(response), chosen(response)) == (None, False)


@given(JSON)
def test_any_json_is_read_as_an_answer(value: Any) -> None:
    for result in (value, {"action": "accept", "content": value}, {"outcome": value}, {"outcome": {"outcome": value}}):
        assert filled_in(Response("q", result)) in (None, {}, value)
        assert chosen(Response("q", result)) in (True, False)

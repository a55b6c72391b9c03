"""What is read from the fields of ACP, and that what is written is valid ACP."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core import acp
from acp_proxy.core.jsonrpc import Notification, parse
from acp_proxy.core.money import Money
from tests.core.messages import JSON, SCHEMAS, is_valid

USD = Money.of("0.045989", "USD")


def update_in(version: int, line: bytes) -> Any:
    """The update on a line, once all around it is valid."""
    message = json.loads(line)
    assert is_valid(version, "AgentNotification", message)
    assert is_valid(version, {1: "SessionNotification", 2: "UpdateSessionNotification"}[version], message["params"])
    assert (message["jsonrpc"], message["method"], message["params"]["sessionId"]) == ("2.0", "session/update", "s")
    return message["params"]["update"]


# -- writers


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("cost", [None, USD])
def test_a_usage_update_is_valid_in_every_version(version: int, cost: Money | None) -> None:
    line = acp.usage_update_line("s", 29_000, 200_000, cost, {"acp-proxy": {"source": "meter", "estimated": False}})
    update = update_in(version, line)
    assert is_valid(version, "UsageUpdate", update)
    assert (update["used"], update["size"], "cost" in update) == (29_000, 200_000, cost is not None)
    assert update["_meta"] == {"acp-proxy": {"source": "meter", "estimated": False}}


@pytest.mark.parametrize(
    ("amount", "written"),
    [("0.045989", b"0.045989"), ("0.30000000000000004", b"0.3"), ("3", b"3"), ("0", b"0"), ("123456.7", b"123456.7")],
)
def test_a_cost_is_written_as_the_number_that_it_is(amount: str, written: bytes) -> None:
    line = acp.usage_update_line("s", 1, 2, Money.of(amount, "credits"))
    assert b'"cost":{"amount":' + written + b',"currency":"credits"}' in line
    message = parse(line)
    assert isinstance(message, Notification)
    assert acp.cost_of(message.params["update"]) == Money.of(amount, "credits")


def test_a_usage_update_without_meta_has_none() -> None:
    assert "_meta" not in update_in(1, acp.usage_update_line("s", 1, 2))


def test_a_message_is_valid() -> None:
    update = update_in(1, acp.message_line("s", "Budget “daily” is used up.\n"))
    assert is_valid(1, "ContentChunk", update)
    assert update["content"] == {"type": "text", "text": "Budget “daily” is used up.\n"}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("description", [None, "80 % of 5 USD"])
def test_a_notice_is_valid(version: int, description: str | None) -> None:
    update = update_in(version, acp.notice_line("s", "warning", "Budget", description))
    assert is_valid(version, "Notice", update)
    assert update.get("description") == description


@pytest.mark.parametrize("version", [1, 2])
def test_a_turn_is_cancelled_by_a_notification(version: int) -> None:
    message = json.loads(acp.cancel_line("a\ud83d"))
    assert message == {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "a\ud83d"}}
    assert is_valid(version, "ClientNotification", message)


@pytest.mark.parametrize("version", [1, 2])
def test_a_refusal_by_an_error_is_a_valid_answer(version: int) -> None:
    error = {"code": -32603, "message": "no", "data": {"details": "no"}}
    answer = json.loads(acp.answer_to(b'{"id":4,"method":"session/prompt"}', error=error))
    assert is_valid(version, "Error", answer["error"])
    assert is_valid(version, "AgentResponse", answer)
    assert (answer["id"], answer["error"]) == (4, error)


def test_a_refused_prompt_is_answered_validly() -> None:
    result = {"stopReason": "end_turn", "_meta": {"acp-proxy": {}}}
    answer = json.loads(acp.answer_to(b'{"id":"p","method":"session/prompt"}', result))
    assert is_valid(1, "AgentResponse", answer)
    assert is_valid(1, "PromptResponse", answer["result"])


IDS = [
    "0",
    "-1",
    "9007199254740993",
    "123456789012345678901234567890",
    '"7"',
    '"\\ud83d"',
    '"\\u00e9\\n"',
    "null",
    "1.50",
]


@pytest.mark.parametrize("id", IDS)
def test_an_id_is_echoed_exactly(id: str) -> None:
    line = b'{"jsonrpc":"2.0","id":' + id.encode() + b',"method":"session/prompt"}'
    written = acp.answer_to(line, {})
    assert json.loads(written, parse_float=Decimal)["id"] == json.loads(id, parse_float=Decimal)
    assert type(json.loads(written)["id"]) is type(json.loads(id))


def test_an_answer_repeats_the_digits_of_its_request() -> None:
    assert acp.answer_to(b'{"method":"m" , "id" : 1.50e3}\r\n', {}) == b'{"jsonrpc":"2.0","id":1.50e3,"result":{}}'
    assert acp.answer_to(b'{"id":"\\u0061","method":"m"}', error={"code": 1, "message": "m"}) == (
        b'{"jsonrpc":"2.0","id":"\\u0061","error":{"code":1,"message":"m"}}'
    )


def test_an_answer_finds_the_id_beside_text_that_is_no_text() -> None:
    assert json.loads(acp.answer_to(b'{"id":7,"method":"m","params":{"text":"\xff\\ud83d"}}', {}))["id"] == 7


@given(st.text(), st.text(), st.dictionaries(st.text(), st.text()))
def test_any_text_is_written_on_one_line(session: str, text: str, meta: dict[str, Any]) -> None:
    for line in (
        acp.usage_update_line(session, 1, 2, USD),
        acp.message_line(session, text),
        acp.answer_to(b"", meta),
    ):
        assert b"\n" not in line
        json.loads(line)


@pytest.mark.parametrize(
    ("given", "booked"),
    [("claude", "claude"), ("cut \ud83d\0", "cut \ufffd\ufffd"), ("\ud83d\ude00", "😀"), ("", None), (7, None)],
)
def test_what_is_booked_is_text_that_every_ledger_takes(given: Any, booked: str | None) -> None:
    assert acp.label(given) == booked


def test_a_session_with_half_a_surrogate_pair_is_named_as_it_was() -> None:
    assert json.loads(acp.usage_update_line("a\ud83d", 1, 2))["params"]["sessionId"] == "a\ud83d"


def test_the_meta_of_an_update_does_not_hide_that_of_its_notification() -> None:
    def read(**meta: Any) -> Any:
        params = {"sessionId": "s", "update": {"sessionUpdate": "agent_message_chunk", **meta}}
        found = acp.update_of(Notification("session/update", {**params, "_meta": {"usage": 1, "trace": 2}}))
        return found and found.meta

    assert read() == read(_meta={}) == read(_meta=7) == {"usage": 1, "trace": 2}
    assert read(_meta={"trace": 3}) == {"usage": 1, "trace": 3}


@pytest.mark.parametrize(("meta", "ours"), [({"source": "meter"}, {"source": "meter"}), (1, {}), (None, {})])
def test_an_acp_proxy_nearer_to_the_agent_marks_what_is_its_own(meta: Any, ours: dict[str, Any]) -> None:
    assert acp.ours_in({"acp-proxy": meta, "usage": 1}) == ours


# -- names


def test_errors_have_the_codes_that_the_protocol_gives_them() -> None:
    codes = {each["title"]: each.get("const") for each in SCHEMAS[2]["$defs"]["ErrorCode"]["anyOf"]}
    assert acp.INVALID_REQUEST["code"] == codes["Invalid request"]
    assert codes["Request cancelled"] == acp.REQUEST_CANCELLED
    assert acp.is_gone({"code": codes["Resource not found"]})
    assert acp.is_gone(None)
    assert not acp.is_gone({"code": codes["Internal error"]})


# -- the peers


@pytest.mark.parametrize(
    ("version", "read"),
    [(1, 1), (2, 2), (True, None), (False, None), ("1", None), (Decimal("1.5"), None), (None, None)],
)
def test_a_version_is_an_integer(version: Any, read: int | None) -> None:
    assert acp.hello({"protocolVersion": version}).version == read


@pytest.mark.parametrize(("notices", "shown"), [({}, True), (True, True), (False, False), (None, False)])
def test_a_client_shows_notices_unless_it_says_nothing_of_them_or_no(notices: Any, shown: bool) -> None:
    assert acp.hello({"capabilities": {"session": {"notices": notices}}}).notices is shown
    assert not acp.hello({"capabilities": {"session": {}}}).notices


@pytest.mark.parametrize(("form", "shown"), [({}, True), (True, False), (None, False)])
def test_a_client_shows_forms_where_it_has_an_object_for_them(form: Any, shown: bool) -> None:
    for name in ("clientCapabilities", "capabilities"):
        assert acp.hello({name: {"elicitation": {"form": form}}}).forms is shown


# -- what has an agent work


@pytest.mark.parametrize(
    ("method", "params", "works"),
    [
        ("_session/steering", {}, True),
        ("_session/goal", {}, True),
        ("_session/goal", {"action": "set"}, True),
        ("_codex/session/goal_control", {"action": "resume"}, True),
        ("_session/goal", {"action": "pause"}, False),
        ("_codex/session/goal_control", {"action": "clear"}, False),
        ("session/set_model", {}, False),
        ("session/set_model", {"action": "set"}, False),
        ("session/set_model", {"action": "pause"}, False),
    ],
)
def test_beside_prompts_words_to_a_turn_and_goals_set_an_agent_to_work(
    method: str, params: dict[str, Any], works: bool
) -> None:
    assert acp.sets_to_work(method, params) is works


@pytest.mark.parametrize(
    ("meta", "prompts"),
    [
        ({"steering": {"idleBehavior": "promptRequired"}}, True),
        ({"steering": {"idleBehavior": "start"}}, False),
        ({"steering": {}}, False),
        ({"steering": None}, False),
        (None, False),
    ],
)
def test_a_client_that_steers_may_send_a_prompt_itself(meta: Any, prompts: bool) -> None:
    assert acp.prompts_itself({"_meta": meta}) is prompts


@pytest.mark.parametrize(
    ("params", "names"),
    [
        ({"sessionId": "s"}, True),
        ({"session_id": None}, True),
        ({"SessionID": 1}, True),
        ({"_meta": {"session_id": "s"}}, True),
        ({"session": "s", "sessionIds": []}, False),
        ({"_meta": "session_id"}, False),
        ({}, False),
    ],
)
def test_params_may_name_a_session_by_any_spelling(params: dict[str, Any], names: bool) -> None:
    assert acp.may_name_session(params) is names


# -- model


@pytest.mark.parametrize(
    ("result", "model"),
    [
        (
            {"configOptions": [{"category": "mode", "currentValue": "x"}, {"category": "model", "currentValue": "m"}]},
            "m",
        ),
        ({"configOptions": [{"category": "model", "currentValue": v} for v in ("first", "second")]}, "first"),
        (
            {"configOptions": [{"id": v, "category": "model", "currentValue": v} for v in ("provider", "model")]},
            "model",
        ),
        ({"configOptions": [{"id": v, "currentValue": v} for v in ("mode", "model")]}, "model"),
        ({"configOptions": [{"configId": "model", "category": None, "currentValue": "m"}]}, "m"),
        ({"configOptions": [{"id": "model", "category": "model_config", "currentValue": "off"}]}, None),
        ({"configOptions": [{"category": "model", "currentValue": "o"}], "models": {"currentModelId": "m"}}, "o"),
        (
            {"configOptions": [{"category": "model_config", "currentValue": "off"}], "models": {"currentModelId": "m"}},
            "m",
        ),
        ({"configOptions": [{"category": "model", "currentValue": False}], "models": {"currentModelId": "m"}}, "m"),
        ({"configOptions": None, "models": None}, None),
        ({"configOptions": [1, None]}, None),
        (None, None),
    ],
)
def test_a_model_is_the_option_of_that_name_else_the_first_of_its_category_else_the_current_one(
    result: Any, model: str | None
) -> None:
    assert acp.model_of(result) == model


# -- session info


def test_a_nested_null_clears_its_key_in_v1_and_objects_are_replaced_in_v2() -> None:
    info = acp.info_after(acp.Info(), {"_meta": {"a": {"x": 1, "y": {"z": 2}}, "b": 3}}, 1)
    patch = {"_meta": {"a": {"x": None, "y": {"w": 4}}, "b": None}}
    assert acp.info_after(info, patch, 1).meta == {"a": {"y": {"z": 2, "w": 4}}}
    assert acp.info_after(info, patch, 2).meta == {"a": {"x": None, "y": {"w": 4}}}
    assert info.meta == {"a": {"x": 1, "y": {"z": 2}}, "b": 3}  # what an event carries never changes


def test_null_clears_and_what_is_left_out_stays() -> None:
    info = acp.Info("title", "2026-11-21T00:00:00Z", {"a": 1})
    assert acp.info_after(info, {}, 1) == info
    assert acp.info_after(info, {"title": None, "_meta": None}, 1) == acp.Info(None, info.updated_at, {})
    assert acp.info_after(info, {"title": 5, "updatedAt": [], "_meta": "x"}, 1) == info


def test_meta_nested_beyond_all_bounds_is_merged_without_raising() -> None:
    deep: dict[str, Any] = {}
    for _ in range(900):
        deep = {"a": deep}
    info = acp.info_after(acp.Info(meta=deep), {"_meta": deep}, 1)
    assert info.meta.keys() == {"a"}


@pytest.mark.parametrize(("above", "kept"), [(0, {"x": 1, "y": 2}), (31, {"x": 1, "y": 2}), (32, {"y": 2})])
def test_meta_is_patched_down_to_a_depth_and_replaced_below(above: int, kept: dict[str, int]) -> None:
    def nested(inner: dict[str, Any]) -> dict[str, Any]:
        for _ in range(above):
            inner = {"a": inner}
        return inner

    info = acp.info_after(acp.Info(meta=nested({"x": 1})), {"_meta": nested({"y": 2})}, 1)
    assert info.meta == nested(kept)


# -- anything


def test_a_permission_names_its_tool_call_in_both_versions() -> None:
    assert acp.permitted_tool_call({"toolCall": {"toolCallId": "a"}}) == "a"
    assert acp.permitted_tool_call({"subject": {"type": "tool_call", "toolCall": {"toolCallId": "b"}}}) == "b"
    assert acp.permitted_tool_call({"subject": 1, "toolCall": []}) is None


@given(JSON)
def test_readers_take_any_json(value: Any) -> None:
    for read in (acp.hello, acp.opened_session, acp.model_of, acp.ending, acp.ends, acp.accepts, acp.counters):
        read(value)
    acp.permission_outcome(value)
    list(acp.listed_sessions(value))
    acp.update_of(Notification("session/update", {"sessionId": "s", "update": value, "_meta": value}))
    names = ("cost", "used", "size", "state", "content", "rawInput", "rawOutput", "toolCall", "subject", "prompt")
    fields = dict.fromkeys(names, value)
    for look in (acp.cost_of, acp.context_of, acp.state_of, acp.prompt_chars, acp.permitted_tool_call, acp.subagent_of):
        look(fields)
    acp.tool_chars(fields, 1)
    acp.info_after(acp.Info(), {"title": value, "_meta": value}, 1)


def test_of_a_name_of_any_length_the_beginning_is_booked() -> None:
    assert acp.label("m" * 300) == "m" * 300
    assert acp.label("m" * 5000) == "m" * 300
    assert acp.label("\0" + "m" * 5000) == "\ufffd" + "m" * 299

"""What is read from the fields of ACP, and that what is written is valid ACP."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core import acp
from acp_proxy.core.events import Counters, ModelCounters
from acp_proxy.core.jsonrpc import Notification, parse
from acp_proxy.core.money import Money
from tests.core.messages import JSON, is_valid

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


# -- counters


@pytest.mark.parametrize(
    ("value", "counters"),
    [
        (
            {"totalTokens": 6, "inputTokens": 1, "outputTokens": 2, "thoughtTokens": 3, "cachedReadTokens": 4},
            Counters(1, 2, 6, 3, 4),
        ),
        (
            {"total_tokens": 6, "input_tokens": 1, "output_tokens": 2, "thought_tokens": 3, "cached_write_tokens": 5},
            Counters(1, 2, 6, 3, None, 5),
        ),
        (
            {"inputTokens": 1, "cachedInputTokens": 2, "cacheWriteInputTokens": 3, "reasoningOutputTokens": 4},
            Counters(1, None, None, 4, 2, 3),
        ),
        (
            {"promptTokens": 1, "completionTokens": 2, "thoughtsTokens": 3, "totalTokens": 6, "cachedTokens": 4},
            Counters(1, 2, 6, 3, 4),
        ),
        ({"reasoningTokens": 3, "cacheCreationTokens": 5}, Counters(thought=3, cached_write=5)),
        ({"cachedWriteTokens": 0}, Counters(cached_write=0)),
        ({"inputTokens": "12", "outputTokens": " 3.0 ", "totalTokens": "15"}, Counters(12, 3, 15)),
        ({"inputTokens": "12k", "outputTokens": "", "totalTokens": "-1", "thoughtTokens": "1_000"}, None),
        ({"inputTokens": "1e99", "outputTokens": "9" * 5000, "totalTokens": "NaN", "thoughtTokens": "²"}, None),
        ({"inputTokens": 10**12, "outputTokens": 10**12 + 1}, Counters(10**12)),
        ({"inputTokens": -1, "outputTokens": True, "totalTokens": Decimal("1.5"), "thoughtTokens": None}, None),
        ({"inputTokens": Decimal("300.0"), "outputTokens": Decimal("3E+2")}, Counters(300, 300)),
        ({"inputTokens": Decimal("NaN"), "outputTokens": Decimal("-1.0"), "totalTokens": Decimal("1E+99")}, None),
        ({}, None),
        ([], None),
        (None, None),
        (5, None),
    ],
)
def test_counters_go_by_many_names_and_malformed_ones_are_absent(value: Any, counters: Counters | None) -> None:
    assert acp.counters(value) == counters


def test_an_ending_reads_usage_and_quota_wherever_and_however_they_are_spelled() -> None:
    assert acp.ending({"_meta": {"usage": {"input_tokens": 1}}}).counters == Counters(1)
    assert acp.counters({"thoughts_tokens": 3}) == acp.counters({"thoughtsTokens": 3}) == Counters(thought=3)
    assert acp.ending({"usage": {"inputTokens": 2}, "_meta": {"usage": {"input_tokens": 1}}}).counters == Counters(2)
    by_model = [{"model": "a", "tokenCount": {"outputTokens": 3}}]
    ending = acp.ending({"_meta": {"quota": {"tokenCount": {"inputTokens": 2}, "modelUsage": by_model}}})
    assert (ending.quota, ending.model_usage) == (Counters(2), (ModelCounters("a", Counters(output=3)),))


def test_an_ending_reads_usage_quota_and_models() -> None:
    ending = acp.ending(
        {
            "stopReason": "max_tokens",
            "usage": {"inputTokens": 1},
            "_meta": {
                "quota": {
                    "token_count": {"input_tokens": 2},
                    "model_usage": [
                        {"model": "a", "token_count": {"output_tokens": 3}},
                        {"model": "", "token_count": {"output_tokens": 4}},
                        {"model": "b"},
                        "junk",
                    ],
                }
            },
        }
    )
    assert (ending.stop_reason, ending.counters, ending.quota) == ("max_tokens", Counters(1), Counters(2))
    assert ending.model_usage == (ModelCounters("a", Counters(output=3)), ModelCounters("b", Counters()))
    assert ending.meta.keys() == {"quota"}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"stopReason": "refusal"}, "refusal"),
        ({"stopReason": "_vendor/other"}, "_vendor/other"),
        ({}, "end_turn"),
        (None, "end_turn"),
        ({"stopReason": 5}, "end_turn"),
        ({"error": {"code": 1}}, "error"),
    ],
)
def test_any_stop_reason_is_kept_and_none_is_end_turn(fields: Any, reason: str) -> None:
    assert acp.ending(fields).stop_reason == reason


def test_the_meta_of_an_update_does_not_hide_that_of_its_notification() -> None:
    def read(**meta: Any) -> Any:
        params = {"sessionId": "s", "update": {"sessionUpdate": "agent_message_chunk", **meta}}
        found = acp.update_of(Notification("session/update", {**params, "_meta": {"usage": 1, "trace": 2}}))
        return found and found.meta

    assert read() == read(_meta={}) == read(_meta=7) == {"usage": 1, "trace": 2}
    assert read(_meta={"trace": 3}) == {"usage": 1, "trace": 3}


@pytest.mark.parametrize("meta", [None, 1, [], {"quota": 1}, {"quota": {"model_usage": {}, "token_count": []}}])
def test_a_malformed_quota_is_absent(meta: Any) -> None:
    ending = acp.ending({"stopReason": "end_turn", "_meta": meta})
    assert (ending.quota, ending.model_usage) == (None, ())


# -- cost


@pytest.mark.parametrize(
    ("cost", "money"),
    [
        ({"amount": Decimal("0.045989"), "currency": "USD"}, USD),
        ({"amount": Decimal("0.03808400000000001"), "currency": "USD"}, Money(38_084_000, "USD")),
        ({"amount": 2, "currency": "credits"}, Money(2_000_000_000, "credits")),
        ({"amount": Decimal("0.5"), "currency": ""}, None),  # credits of one call, of codebuddy
        ({"amount": 0, "currency": "USD"}, Money(0, "USD")),
        ({"amount": "0.1", "currency": "USD"}, Money(100_000_000, "USD")),
        ({"amount": "5e-7", "currency": "USD"}, Money(500, "USD")),
        ({"amount": 1, "currency": "usd"}, Money(1_000_000_000, "USD")),
        ({"amount": 1, "currency": " Usd\n"}, Money(1_000_000_000, "USD")),
        ({"amount": 1, "currency": " Credits "}, Money(1_000_000_000, "Credits")),
        ({"amount": 1, "currency": "  "}, None),
        ({"amount": "0,1", "currency": "USD"}, None),
        ({"amount": "1e9999", "currency": "USD"}, None),
        ({"amount": "", "currency": "USD"}, None),
        ({"amount": True, "currency": "USD"}, None),
        ({"amount": -1, "currency": "USD"}, None),
        ({"amount": Decimal("NaN"), "currency": "USD"}, None),
        ({"amount": Decimal("1e999999999"), "currency": "USD"}, None),
        ({"amount": 10**30, "currency": "USD"}, None),
        ({"amount": 1, "currency": None}, None),
        ({"amount": 1}, None),
        (None, None),
        (1, None),
    ],
)
def test_a_cost_is_exact_and_a_malformed_one_absent(cost: Any, money: Money | None) -> None:
    assert acp.cost_of({"cost": cost}) == money


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


# -- characters


@pytest.mark.parametrize(
    ("prompt", "chars"),
    [
        ([{"type": "text", "text": "héllo"}, {"type": "text", "text": "!"}], 6),
        ([{"type": "resource", "resource": {"uri": "file:///a", "text": "abc"}}], 3),
        ([{"type": "image", "data": "AAAA"}, {"type": "resource_link", "uri": "file:///a"}, "junk", None], 0),
        ("not a list", 0),
        (None, 0),
    ],
)
def test_a_prompt_is_measured_by_its_text(prompt: Any, chars: int) -> None:
    assert acp.prompt_chars({"prompt": prompt}) == chars


def test_a_tool_is_measured_by_its_input_and_one_telling_of_its_output() -> None:
    fields = {"rawInput": {"c": "ls"}, "rawOutput": {"o": "abc"}, "content": [{"type": "content", "content": {}}]}
    assert acp.tool_chars(fields, 100) == (len('{"c":"ls"}'), len('{"o":"abc"}'))
    assert acp.tool_chars({"content": ["x"]}, 100) == (0, len('["x"]'))
    assert acp.tool_chars(fields, 1 << 20) == (0, 1 << 20)
    assert acp.tool_chars({"rawOutput": "\ud83d"}, 77) == (0, 77)


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


def test_of_the_models_of_a_turn_so_many_are_told_apart_as_any_turn_has() -> None:
    rows = [{"model": f"m{number}", "token_count": {"input_tokens": 1}} for number in range(5000)]
    found = acp.ending({"_meta": {"quota": {"token_count": {}, "model_usage": rows}}}).model_usage
    assert [row.model for row in found] == [f"m{number}" for number in range(100)]


def test_of_a_name_of_any_length_the_beginning_is_booked() -> None:
    assert acp.label("m" * 300) == "m" * 300
    assert acp.label("m" * 5000) == "m" * 300
    assert acp.label("\0" + "m" * 5000) == "\ufffd" + "m" * 299

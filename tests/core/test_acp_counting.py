"""What is read of counted values: tokens, costs, the end of a turn, characters."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core import acp
from acp_proxy.core.events import Counters, ModelCounters
from acp_proxy.core.money import Money

USD = Money.of("0.045989", "USD")
LARGE = 1 << 18  # bytes of an update whose parts are not measured one by one


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
        ({"inputTokens": Decimal("0.0"), "outputTokens": Decimal("1E+12")}, Counters(0, 10**12)),
        ({"inputTokens": Decimal(10**12 + 1), "outputTokens": Decimal("0.1")}, None),
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


@pytest.mark.parametrize("meta", [None, 1, [], {"quota": 1}, {"quota": {"model_usage": {}, "token_count": []}}])
def test_a_malformed_quota_is_absent(meta: Any) -> None:
    ending = acp.ending({"stopReason": "end_turn", "_meta": meta})
    assert (ending.quota, ending.model_usage) == (None, ())


def test_of_the_models_of_a_turn_so_many_are_told_apart_as_any_turn_has() -> None:
    rows = [{"model": f"m{number}", "token_count": {"input_tokens": 1}} for number in range(5000)]
    found = acp.ending({"_meta": {"quota": {"token_count": {}, "model_usage": rows}}}).model_usage
    assert [row.model for row in found] == [f"m{number}" for number in range(100)]


@given(st.integers(-9, 10**18) | st.sampled_from([10**12, 10**12 + 1]))
def test_a_count_is_read_from_its_digits_as_from_its_number(number: int) -> None:
    assert acp.count_in(str(number).encode()) == (number if 0 <= number <= 10**12 else None)


@pytest.mark.parametrize("json", [b"", b"1.0", b"1e3", b"null", b'"7"', b"-0", b" 7", b"9" * 10_000, b"\xb2"])
def test_a_count_that_is_not_written_plainly_is_left_to_who_parses_it(json: bytes) -> None:
    assert acp.count_in(json) is None


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


def test_only_a_null_that_is_there_clears_a_cost() -> None:
    assert acp.cost_is_null({"cost": None})
    assert not acp.cost_is_null({})
    assert not acp.cost_is_null({"cost": {"amount": 0, "currency": "USD"}})


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


def test_an_update_that_is_as_long_as_its_parts_are_measured_one_by_one_is_not_longer() -> None:
    fields = {"rawInput": {"c": "ls"}, "rawOutput": "abc"}
    assert acp.tool_chars(fields, LARGE) == (len('{"c":"ls"}'), len('"abc"'))
    assert acp.tool_chars(fields, LARGE + 1) == (0, LARGE + 1)


@pytest.mark.parametrize(
    ("kind", "chars"), [("agent_message_chunk", 3), ("agent_thought", 3), ("user_message_chunk", 0), ("tool_call", 0)]
)
def test_of_updates_what_the_agent_says_and_thinks_is_measured(kind: str, chars: int) -> None:
    update = acp.Update("s", kind, {"content": {"type": "text", "text": "abc"}}, {})
    assert acp.update_chars(update) == chars

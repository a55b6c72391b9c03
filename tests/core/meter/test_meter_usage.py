"""Which tokens a turn used, by how its agent counts."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from acp_proxy.core.agents import InputCounts
from acp_proxy.core.agents.profile import UNKNOWN, Overlap
from acp_proxy.core.events import Counters, Implementation, Initialized
from acp_proxy.core.meter.counters import partition
from acp_proxy.core.meter.dialects import status_line
from acp_proxy.core.usage import Usage
from tests.cases import each_of
from tests.core.story import (
    CLAUDE,
    CODEX,
    GLM,
    GOOSE,
    OPENCODE,
    QWEN,
    Story,
    codebuddy_call,
    disjoint,
    inclusive,
    qwen_call,
    usd,
)


@pytest.mark.parametrize(
    ("counters", "usage"),
    [
        (Counters(10, 5, 10 + 5 + 3 + 2 + 7, 7, 3, 2), Usage(10, 3, 2, 5, 7)),
        (Counters(10, 9, 10 + 9 + 3 + 2, 7, 3, 2), Usage(10, 3, 2, 2, 7)),
        (Counters(10, 9, 10 + 9, 7, 3, 2), Usage(5, 3, 2, 2, 7)),
        (Counters(10, 9, 10 + 9 + 7, 7, 3, 2), Usage(5, 3, 2, 9, 7)),
        (Counters(10, 5, 15), Usage(10, 0, 0, 5)),
        (Counters(10, 5, None), Usage(10, 0, 0, 5)),
    ],
    ids=["all disjoint", "thinking in output", "both inside", "caches in input", "no parts", "no total"],
)
def test_which_counters_overlap_follows_from_the_first_identity_of_the_total(counters: Counters, usage: Usage) -> None:
    reading = partition(counters, UNKNOWN.overlap)
    assert reading.usage == usage
    assert reading.certain


def test_counters_that_no_identity_holds_for_are_read_as_the_least_that_they_can_mean() -> None:
    reading = partition(Counters(10, 5, 1000, 1, 4, 0), UNKNOWN.overlap)
    assert reading.usage == Usage(6, 4, 0, 4, 1)
    assert not reading.certain


@pytest.mark.parametrize(
    ("input", "usage"), [("excludes_cache", Usage(10, 4, 0, 5)), ("includes_cache", Usage(6, 4, 0, 5))]
)
def test_without_an_identity_the_agents_row_decides(input: InputCounts, usage: Usage) -> None:
    reading = partition(Counters(10, 5, None, None, 4), Overlap(input))
    assert reading.usage == usage
    assert reading.certain


@pytest.mark.parametrize(
    "counters",
    [Counters(None, 201, 6612, 51, 5010, 301), Counters(1100, None, 6612, None, 5010, 301), Counters(1100, None)],
    ids=["no input", "no output", "no total either"],
)
def test_usage_of_which_a_part_is_missing_is_at_least_that(counters: Counters) -> None:
    story = Story(CODEX)
    story.open(model="claude-opus-5-5")
    row = story.turn(counters)
    assert (row.usage_source, row.cost_source, row.cost_at_least) == ("partial", "computed", True)


def test_usage_without_output_of_an_agent_that_nobody_described_is_at_least_that() -> None:
    story = Story()
    story.open(model="mock")
    row = story.turn(Counters(1100, None))
    assert (row.usage, row.usage_source, row.cost_source) == (Usage(1100), "partial", "computed")


@pytest.mark.parametrize("version", ["1.2.11", "7.0.33"])  # Kilo 7.0.33 calls itself so
def test_thinking_that_an_older_opencode_tells_beside_output_may_be_in_it(version: str) -> None:
    story = Story(("OpenCode", version))
    story.open()
    row = story.turn(Counters(1300, 203, 1300 + 203 + 53 + 5030, 53, 5030))
    assert (row.usage, row.usage_source) == (Usage(1300, 5030, 0, 150, 53), "partial")
    assert story.turn(disjoint(1300, 5030, 303, 203)).usage_source == "agent"


@pytest.mark.parametrize("agent", [("pydantic-acp", "1.10.0"), ("my-agent", "1.10.0", "Pydantic ACP")])
def test_a_total_that_counts_caches_twice_does_not_tell_how_pydantic_acp_counts(agent: tuple[str, ...]) -> None:
    story = Story()
    story.tell(Initialized(story.now(), 1, Implementation(), Implementation(*agent), False))
    story.open()
    row = story.turn(Counters(6110, 201, 6110 + 201 + 5010, 51, 5010))
    assert (row.usage, row.usage_source) == (Usage(1100, 5010, 0, 150, 51), "agent")


@pytest.mark.parametrize("part", ["thought", "cached_read", "cached_write"])
def test_without_a_total_nobody_knows_where_an_unknown_agents_parts_belong(part: str) -> None:
    assert partition(Counters(10, 5), UNKNOWN.overlap).certain
    assert not partition(replace(Counters(10, 5), **{part: 3}), UNKNOWN.overlap).certain


def test_where_the_user_tells_of_caches_the_total_tells_of_thinking() -> None:
    how = Overlap("excludes_cache", decided=True)
    assert partition(Counters(10, 5, 10 + 5 + 3 + 2 + 7, 7, 3, 2), how).usage == Usage(10, 3, 2, 5, 7)


def test_the_users_word_on_caches_is_not_overruled_by_an_identity() -> None:
    how = Overlap("includes_cache", decided=True)
    assert partition(Counters(10, 5, 10 + 5 + 4, None, 4), how).usage == Usage(6, 4, 0, 5)


def test_cached_input_above_an_inclusive_input_leaves_none_uncached() -> None:
    assert partition(Counters(3, 5, 8, None, 4), Overlap("includes_cache")).usage == Usage(0, 4, 0, 5)


def test_contradicting_counters_of_an_unknown_agent_have_no_price() -> None:
    story = Story()
    story.open(model="mock")
    row = story.turn(Counters(10, 5, 1000, 1, 4, 0))
    assert (row.usage_source, row.cost_source, row.costs) == ("partial", "unknown", ())
    assert row.unpriced


# -- scope last_call


def test_a_turn_of_one_call_is_all_of_it_and_one_with_tools_is_at_least_that() -> None:
    story = Story(OPENCODE)
    story.open()
    counters = Counters(1200, 192, 1934, 22, 520)
    assert story.turn(counters).usage_source == "agent"
    row = story.turn(counters, tool_calls=1)
    assert (row.usage, row.usage_source) == (Usage(1200, 520, 0, 192, 22), "partial")


# -- scope call


def test_contexts_that_are_told_call_by_call_prove_calls_of_tools_that_do_not_show() -> None:
    for told, source in (((1000,), "agent"), ((1000, 1200), "partial")):
        story = Story(GOOSE)
        story.open()
        turn = story.begin()
        for used in told:
            story.report(turn, used=used, size=200_000)
        assert story.end(turn, inclusive(1100, 100))[-1].usage_source == source


def test_calls_are_summed() -> None:
    story = Story(QWEN)
    story.open()
    turn = story.begin()
    story.update(turn, qwen_call(6110, 201, 5010))
    story.update(turn, qwen_call(6220, 202, 5020))
    row = story.end(turn, tool_calls=1)[-1]
    assert (row.usage, row.usage_source) == (Usage(2300, 10030, 0, 403), "agent")


def test_calls_of_which_one_misses_a_part_are_at_least_that() -> None:
    story = Story(QWEN)
    story.open()
    turn = story.begin()
    story.update(turn, {"usage": {"inputTokens": "6110 tokens", "outputTokens": 201, "totalTokens": 6311}})
    story.update(turn, qwen_call(6220, 202, 5020))
    row = story.end(turn, tool_calls=1)[-1]
    assert (row.usage, row.usage_source) == (Usage(1200, 5020, 0, 403), "partial")


def test_a_call_of_which_only_a_total_is_told_is_none() -> None:
    story = Story(QWEN)
    story.open()
    turn = story.begin()
    story.update(turn, {"usage": {"totalTokens": 6311}})
    assert story.end(turn)[-1].usage_source == "none"


def test_a_call_between_turns_is_work_of_its_own() -> None:
    story = Story(QWEN)
    story.open(model="mock")
    (row,) = story.update(None, qwen_call(100, 10))
    assert (row.kind, row.usage, row.cost_source) == ("autonomous", Usage(100, 0, 0, 10), "computed")


def test_zeros_of_claude_are_a_command_of_its_own_unless_it_told_a_context_of_nothing_too() -> None:
    for used, source in ((None, "agent"), (2516, "agent"), (0, "none")):
        story = Story(CLAUDE)
        story.open(model="claude-opus-5-5")
        turn = story.begin()
        if used is not None:
            story.report(turn, used=used, size=1_000_000)
        row = story.end(turn, disjoint(0), output_chars=40)[-1]
        assert (row.usage.total, row.usage_source) == (0, source), used


def test_what_goose_has_left_after_a_compaction_is_not_what_the_compaction_used() -> None:
    for cost, source in (("0.0115675", "partial"), (None, "none")):
        story = Story(GOOSE)
        story.open(model="mock")
        row = story.turn(inclusive(73, 0), used=73, cost=cost, output_chars=40)
        assert (row.usage.total, row.usage_source, row.context_used) == (0, source, 73)


def test_a_last_call_is_the_context_also_after_tools() -> None:
    story = Story(GLM)
    story.open(model="mock")
    row = story.turn(inclusive(6220, 202, 5020), tool_calls=1)
    assert (row.usage_source, row.context_used) == ("partial", 6422)


# -- an agent that gives no name


def test_an_agent_without_a_name_is_known_by_the_calls_that_it_tells_with_its_contexts() -> None:
    story = nameless()
    turn = story.begin()
    story.report(turn, used=6110, size=200_000, meta=codebuddy_call(6110, 201, 5010))
    story.report(turn, used=6220, size=200_000, meta=codebuddy_call(6220, 202, 5020))
    row = story.end(turn, tool_calls=1)[-1]
    assert (row.usage, row.usage_source, row.detail) == (Usage(2300, 10030, 0, 403), "agent", "")
    assert story.changes[-1].lower_bound == Usage(2300, 10030, 0, 403)


def test_a_call_that_is_told_again_in_other_words_counts_once_also_when_its_turn_is_over() -> None:
    again = {
        "codebuddy.ai/requestId": "request",
        "usage": {
            "inputTokens": 6110,
            "outputTokens": 201,
            "totalTokens": 6311,
            "inputTokensDetails": {"cached_tokens": 5010},
        },
    }
    story = nameless()
    turn = story.begin()
    story.report(turn, used=6110, meta=again)
    story.report(turn, used=6110, meta=codebuddy_call(6110, 201, 5010))
    assert story.end(turn)[-1].usage == Usage(1100, 5010, 0, 201)
    assert story.report(None, used=6110, meta=again) == []


def test_another_session_of_the_same_id_may_begin_with_the_same_call() -> None:
    story = nameless()
    for _ in range(2):
        story.open(model="mock")
        turn = story.begin()
        story.report(turn, used=6110, meta=codebuddy_call(6110, 201, 5010))
        assert story.end(turn)[-1].usage == Usage(1100, 5010, 0, 201)


def test_a_cost_that_comes_with_a_call_is_booked_like_any_other() -> None:
    story = nameless()
    turn = story.begin()
    story.report(turn, used=6110, cost="0.5", meta=codebuddy_call(6110, 201, 5010))
    row = story.end(turn)[-1]
    assert (row.usage, row.costs, row.cost_source) == (Usage(1100, 5010, 0, 201), (usd("0.5"),), "agent")
    (between,) = story.report(None, used=6220, cost="0.7", meta=codebuddy_call(6220, 202, 5020))
    assert (between.usage, between.costs) == (Usage(1200, 5020, 0, 202), (usd("0.2"),))


def test_a_call_that_is_told_with_a_context_between_turns_is_work_of_its_own() -> None:
    story = nameless()
    (row,) = story.report(None, used=100, meta=codebuddy_call(100, 10))
    assert (row.kind, row.usage) == ("autonomous", Usage(100, 0, 0, 10))


def test_a_turn_in_which_a_call_wrote_that_was_never_told_is_at_least_what_was_told() -> None:
    for parent, source in (({}, "partial"), ({"codebuddy.ai/parentToolCallId": "t1"}, "agent")):
        story = nameless()
        turn = story.begin()
        story.report(turn, used=6110, meta=codebuddy_call(6110, 201, 5010))
        story.update(turn, {"codebuddy.ai/modelRequestId": "first"})
        story.update(turn, {"codebuddy.ai/modelRequestId": "first"})
        story.update(turn, {"codebuddy.ai/modelRequestId": "second"} | parent)
        row = story.end(turn, tool_calls=1)[-1]
        assert (row.usage.total, row.usage_source) == (6311, source), parent


def test_a_call_that_was_never_told_shows_also_where_the_first_one_wrote_before_the_agent_was_known() -> None:
    story = nameless()
    turn = story.begin()
    story.update(turn, {"codebuddy.ai/modelRequestId": "first"})
    story.report(turn, used=6110, meta=codebuddy_call(6110, 201, 5010))
    story.update(turn, {"codebuddy.ai/modelRequestId": "never told"})
    story.update(turn, {"codebuddy.ai/modelRequestId": "last"})
    story.report(turn, used=6330, meta=codebuddy_call(6330, 203, 5030))
    assert story.end(turn, tool_calls=2)[-1].usage_source == "partial"


def nameless() -> Story:
    story = Story()
    story.tell(Initialized(story.now(), 1, Implementation(), Implementation(), False))
    story.open(model="mock")
    return story


@each_of(
    [
        (Counters(100, 10, 110, cached_read=100), Usage(0, 100, 0, 10)),
        (Counters(100, 10, 110, cached_write=100), Usage(0, 0, 100, 10)),
    ]
)
def test_as_much_cached_as_input_is_in_it_when_the_total_says_so(case: tuple[Counters, Usage]) -> None:
    counters, usage = case
    assert partition(counters, UNKNOWN.overlap).usage == usage


def test_more_cached_than_input_is_beside_it_when_the_total_says_so() -> None:
    reading = partition(Counters(10, 5, 115, 2, cached_read=100), UNKNOWN.overlap)
    assert (reading.usage, reading.whole) == (Usage(10, 100, 0, 3, 2), True)


def test_one_cached_token_is_more_than_an_input_that_is_not_told() -> None:
    reading = partition(Counters(None, 10, cached_read=1), UNKNOWN.overlap)
    assert (reading.usage, reading.whole) == (Usage(0, 1, 0, 10), False)
    assert reading.detail == "more was cached than input tells, so that it stands beside it"


def test_why_two_counters_alone_prove_nothing_is_said_of_an_agent_that_nobody_described() -> None:
    told = Counters(10, 5)
    assert partition(told, UNKNOWN.overlap).detail == "neither caches nor thinking are told apart"
    assert partition(told, Overlap()).detail == ""


@each_of([("0" * 19 + "5", Counters(5, 9)), ("0" * 20 + "5", None)])
def test_a_number_of_more_than_twenty_digits_in_a_text_is_none(case: tuple[str, Counters | None]) -> None:
    number, counters = case
    assert status_line({"field_meta": {"openhands.dev/metrics": {"status_line": f"{number} in, 9 out"}}}) == counters

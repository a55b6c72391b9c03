"""Agents that nobody described: how they count is guessed, and no guess is said to be exact."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from acp_proxy.core.agents import ProfileOverride
from acp_proxy.core.entry import SessionState
from acp_proxy.core.events import Counters, ModelCounters
from acp_proxy.core.usage import NOTHING, Usage
from tests.core.story import (
    UNKNOWN_AGENT,
    Story,
    disjoint,
    inclusive,
    openhands,
    qwen_call,
    usd,
)


def test_an_unknown_agent_counts_per_turn_and_its_rows_say_that_this_is_a_guess() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    row = story.turn(disjoint(1000, 50, 0, 100), used=1150)
    assert row.usage == Usage(1000, 50, 0, 100)
    assert "unknown agent" in row.detail
    assert "caches beside input" in row.detail


def test_an_unknown_agent_that_tells_no_parts_is_not_said_to_have_them_beside() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    assert story.turn(Counters(1000, 100, 1100)).detail.endswith("neither caches nor thinking are told apart")


def test_thinking_and_caches_in_a_sum_of_all_counters_stand_beside_output_and_input() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    row = story.turn(Counters(1300, 203, 1300 + 203 + 53 + 5030, 53, 5030))
    assert (row.usage, row.usage_source) == (Usage(1300, 5030, 0, 203, 53), "agent")
    assert "thinking beside output, by totalTokens" in row.detail


def test_thinking_in_a_sum_of_all_counters_is_beside_the_output_of_an_agent_that_the_configuration_describes() -> None:
    story = Story(UNKNOWN_AGENT, profiles={"my-agent": ProfileOverride("turn", "excludes_cache")})
    story.open()
    row = story.turn(Counters(1300, 203, 1556, 53))
    assert (row.usage, row.usage_source) == (Usage(1300, 0, 0, 203, 53), "agent")


def test_a_sum_over_the_calls_of_a_turn_with_tools_does_not_mark_an_agent_as_cumulative() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    for calls, context in ((1, 1000), (2, 1200), (4, 1400), (1, 1500)):
        row = story.turn(inclusive(calls * context - 100, 100), used=context, tool_calls=calls - 1)
        assert (row.usage.prompt, row.usage_source) == (calls * context - 100, "agent")


def test_more_than_the_calls_of_a_turn_with_tools_can_have_sent_marks_an_agent_as_cumulative() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    story.turn(inclusive(1900, 200), used=1000, tool_calls=1)
    row = story.turn(inclusive(4200, 400), used=1200, tool_calls=1)
    assert row.usage == Usage(2300, 0, 0, 200)


def test_a_context_that_is_only_guessed_hides_no_cumulative_counters() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    story.turn(inclusive(1610, 207), used=8665)
    assert story.turn(inclusive(6800, 800), used=8908, tool_calls=1).usage == Usage(5190, 0, 0, 593)


def test_a_turn_after_one_that_was_cancelled_with_zeros_does_not_mark_an_agent_as_cumulative() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    story.turn(inclusive(1000, 100), used=1100)
    story.turn(inclusive(0, 0), used=1100, stop="cancelled")
    for total in (1200, 1300):
        assert story.turn(inclusive(total, 100), used=total + 100).usage.prompt == total


def test_of_an_unknown_agent_usage_that_one_call_can_have_had_is_at_least_that_after_tools() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    row = story.turn(inclusive(1000, 100), used=1100, tool_calls=1)
    assert (row.usage.total, row.usage_source) == (1100, "partial")
    assert row.detail.endswith("no more than one of several model calls")


def test_the_first_counters_after_a_load_are_not_the_turns_when_it_cannot_have_sent_so_much() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open("load")
    row = story.turn(inclusive(21_000, 2300), used=1817, output_chars=40)
    assert (row.usage, row.usage_source) == (NOTHING, "none")
    assert story.turn(inclusive(22_900, 2400), used=1920).usage == Usage(1900, 0, 0, 100)


def test_counters_that_outgrow_the_context_mark_an_unknown_agent_as_cumulative() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    story.turn(inclusive(1000, 100), used=1100)
    row = story.turn(inclusive(2200, 220), used=1320)
    assert row.usage == Usage(1200, 0, 0, 120)
    assert "cumulative" in row.detail
    assert story.turn(inclusive(3600, 360), used=1540).usage == Usage(1400, 0, 0, 140)


def test_what_a_cancelled_turn_used_comes_with_the_next_counters_of_an_agent_that_was_found_to_be_cumulative() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    story.turn(inclusive(1000, 100), used=1100)
    story.turn(inclusive(2200, 220), used=1320)
    assert story.turn(used=1320, stop="cancelled", output_chars=40).usage_source == "none"
    assert story.turn(inclusive(5000, 500), used=1600).usage == Usage(2800, 0, 0, 280)


def test_after_a_load_counters_go_on_from_the_turn_before_and_not_from_another_process() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open("load")
    story.restore(SessionState(counters=inclusive(21_000, 2300), context_used=1800))
    story.turn(inclusive(1000, 100), used=1900)
    row = story.turn(inclusive(2100, 220), used=2000)
    assert (row.usage, "cumulative" in row.detail) == (Usage(1100, 0, 0, 120), True)
    assert story.turn(inclusive(3400, 360), used=2100).usage == Usage(1300, 0, 0, 140)


def test_a_cancelled_turn_of_an_unknown_agent_that_has_the_counters_of_the_one_before_repeats_them() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    rows = (ModelCounters("mock", inclusive(1000, 100)),)
    for _ in range(2):  # two turns may well use the same
        assert story.turn(inclusive(1000, 100), model_usage=rows).usage.total == 1100
    story.turn(inclusive(1000, 100), model_usage=rows, stop="cancelled")
    assert [(row.usage.total, row.usage_source) for row in story.rows[2:]] == [(0, "none")]


def test_an_unknown_agent_that_answers_with_the_counters_of_the_turn_before_and_no_context_called_no_model() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    story.turn(inclusive(6110, 201), used=9000)
    for _ in range(2):
        row = story.turn(inclusive(6110, 201), output_chars=40)  # a command of its own
        assert (row.usage.total, row.usage_source) == (0, "none")
    row = story.turn(inclusive(12_420, 402), used=9300)  # the session's counters go on
    assert (row.usage.prompt, row.usage.completion) == (6310, 201)


def test_who_tells_its_counters_by_model_too_has_retried_a_stream_and_is_not_cumulative() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    story.turn(disjoint(1000, output=100), used=1100)
    once = ModelCounters("mock", disjoint(1200, output=100))
    row = story.turn(disjoint(2400, output=110), used=1300, model_usage=(once,))
    assert (row.usage, "per turn" in row.detail) == (Usage(1200, 0, 0, 100), True)


@pytest.mark.parametrize(("total", "usage"), [(1660, Usage(1000, 500, 0, 100, 60)), (1100, Usage(500, 500, 0, 40, 60))])
def test_counters_by_model_without_a_total_are_read_like_those_of_the_turn(total: int, usage: Usage) -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    row = ModelCounters("mock", Counters(1000, 100, None, 60, 500))
    assert story.turn(Counters(1000, 100, total, 60, 500), model_usage=(row,)).usage == usage
    assert [each.kind for each in story.rows] == ["turn"]


@pytest.mark.parametrize("told", [inclusive(1000, 100), Counters(1000, 100), inclusive(1000, 100, 0, 0)])
def test_what_only_the_counters_by_model_tell_apart_is_in_those_of_the_turn(told: Counters) -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    story.turn(told, model_usage=(ModelCounters("mock", Counters(1000, 100, None, 60, 500)),))
    assert (sum(row.usage.total for row in story.rows), story.rows[-1].usage.thought) == (1100, 60)


def test_counters_that_grow_as_the_context_does_stay_per_turn() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    for total in (1000, 1200, 1400):
        assert story.turn(inclusive(total, 100), used=total + 100).usage == Usage(total, 0, 0, 100)


def test_counters_that_fall_take_the_guess_back() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    story.turn(inclusive(1000, 100), used=1100)
    story.turn(inclusive(9000, 900), used=1500)
    for _ in range(2):
        assert story.turn(inclusive(1600, 100), used=1700, output_chars=40).usage == Usage(1600, 0, 0, 100)


def test_counters_that_were_proven_to_be_the_sessions_may_begin_anew_in_its_middle() -> None:
    """After a compaction, say. They are judged again from there on, also when it happens a second time."""
    story = Story(UNKNOWN_AGENT)
    story.open()
    for begin in (12_000, 4900, 5000):
        counted = 0
        for number, prompt in enumerate((begin, begin + 200, begin + 500), 1):
            counted += prompt
            row = story.turn(inclusive(counted, 100 * number), used=prompt + 100)
            assert row.usage == Usage(prompt, 0, 0, 100)
        assert row.usage_source == "agent"


def test_of_a_turn_in_whose_middle_the_sessions_counters_began_anew_the_last_calls_are_known() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    for number, (prompts, context) in enumerate(((12_000, 12_100), (24_200, 12_300), (36_500, 12_500)), 1):
        story.turn(inclusive(prompts, 100 * number), used=context)
    row = story.turn(inclusive(25_000, 200), used=12_900, tool_calls=4)
    assert (row.usage, row.usage_source) == (Usage(25_000, 0, 0, 200), "partial")


@pytest.mark.parametrize(
    "again",
    [
        Counters(21_000, 600, 21_600, None, 15_000),  # thinking is in the output now
        Counters(21_000, 600, 21_600, 150),  # what was cached is in the input
        Counters(21_000, 600, 21_600),
    ],
)
def test_a_part_that_is_not_told_any_more_has_not_fallen(again: Counters) -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    for calls in (1, 2, 3):
        story.turn(inclusive(7000 * calls, 200 * calls, 5000 * calls, 50 * calls), used=7000 + 200 * calls)
    assert story.turn(again, used=7700).usage.total == 0
    row = story.turn(inclusive(28_800, 800, 20_000, 200), used=7900)
    assert (row.usage.prompt, row.usage.completion) == (7800, 200)


def test_counters_of_a_session_may_begin_anew_twice_in_a_row() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    used = [
        story.turn(inclusive(prompts, output))
        for prompts, output in ((12_000, 100), (24_200, 200), (36_500, 300), (5000, 90), (4900, 80), (9900, 160))
    ]
    assert [row.usage.prompt for row in used] == [12_000, 12_200, 12_300, 5000, 4900, 5000]
    assert used[-1].usage_source == "partial"  # the floor of a call before it began anew says nothing


def test_counters_that_fell_with_the_context_are_not_the_turns_for_good() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    counted = ((12_000, 12_100), (5000, 5100), (10_200, 5300), (15_600, 5500), (21_200, 5700))
    used = [story.turn(inclusive(prompts, 100 * n), used=context) for n, (prompts, context) in enumerate(counted, 1)]
    assert [row.usage.prompt for row in used] == [12_000, 5000, 5200, 5400, 5600]


def test_a_contexts_sum_of_what_was_not_cached_proves_nothing_of_caches() -> None:
    """All that came to a session uncached adds up to its context, where all else was cached."""
    story = Story(UNKNOWN_AGENT)
    story.open()
    told = ((10_000, 0, 300), (10_500, 10_000, 500), (11_200, 20_500, 700))
    contexts = (10_000, 10_500, 11_200)
    used = [
        story.turn(disjoint(sent, read, output=output), used=context)
        for (sent, read, output), context in zip(told, contexts, strict=True)
    ]
    assert [row.usage for row in used] == [
        Usage(10_000, 0, 0, 300),
        Usage(500, 10_000, 0, 200),
        Usage(700, 10_500, 0, 200),
    ]


def test_counters_that_only_seem_to_have_fallen_are_not_the_turns_for_good() -> None:
    """Nothing tells whether the input holds what was cached; beside it, all counters grew."""
    story = Story(UNKNOWN_AGENT)
    story.open()
    for counters in (Counters(10_000, 300, None, None, 0), Counters(10_500, 500, None, None, 10_000)):
        story.turn(counters)
    row = story.turn(Counters(10_500, 700, None, None, 21_000))
    assert (row.usage.prompt, row.usage_source) == (11_000, "partial")


def test_an_unknown_agent_that_tells_what_gemini_tells_leaves_out_its_thinking_too() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    row = story.turn(quota=Counters(6220, 150))
    assert (row.usage, row.usage_source) == (Usage(6220, 0, 0, 150), "partial")


def test_an_unknown_agent_that_tells_each_call_as_qwen_does_is_summed() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    turn = story.begin()
    for prompt in (6110, 6220):
        story.update(turn, qwen_call(prompt, 201, 5010), {"content": {"type": "text", "text": ""}})
    story.update(turn, qwen_call(9, 9), {"content": {"type": "text", "text": "said"}})
    row = story.end(turn, tool_calls=1)[-1]
    assert (row.usage, row.usage_source) == (Usage(2310, 10020, 0, 402), "agent")
    assert row.detail == "unknown agent: usage told call by call"


def test_what_an_unknown_agent_tells_of_the_turn_stands_for_what_it_told_of_calls() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    turn = story.begin()
    story.update(turn, qwen_call(6110, 201), {"content": {"type": "text", "text": ""}})
    assert story.end(turn, inclusive(6110, 201))[-1].usage == Usage(6110, 0, 0, 201)


def test_usage_that_an_unknown_agent_tells_beside_its_text_is_read_like_that_at_the_end_of_a_turn() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    said = {"content": {"type": "text", "text": "said"}}
    turn = story.begin()
    for output in (10, 20):
        story.update(turn, qwen_call(6110, output, 5010), said)
    row = story.end(turn, output_chars=8)[-1]
    assert (row.usage, row.usage_source) == (Usage(1100, 5010, 0, 20), "agent")
    turn = story.begin()
    story.update(turn, qwen_call(6200, 30, 6100), said)
    row = story.end(turn, output_chars=8, tool_calls=1)[-1]
    assert (row.usage, row.usage_source) == (Usage(100, 6100, 0, 30), "partial")
    turn = story.begin()
    story.update(turn, qwen_call(9, 9), said)
    assert story.end(turn, inclusive(6300, 40, 6200))[-1].usage == Usage(100, 6200, 0, 40)


def test_usage_in_mid_turn_that_tells_another_prompt_is_of_another_call_though_no_tool_shows() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    turn = story.begin()
    for prompt in (6110, 6220, 6350):
        story.update(turn, qwen_call(prompt, 20, 5010), {"content": {"type": "text", "text": "said"}})
    row = story.end(turn, output_chars=240)[-1]
    assert (row.usage, row.usage_source) == (Usage(1340, 5010, 0, 20), "partial")


def test_usage_of_the_turn_before_that_is_told_again_in_mid_turn_is_no_call() -> None:
    """Some agents begin a turn with it, as Mistral Vibe does."""
    story = Story(UNKNOWN_AGENT)
    story.open()
    rows = []
    for prompts in ((6110,), (6110,), (6110, 6200)):
        turn = story.begin()
        for prompt in prompts:
            story.report(turn, used=prompt, size=200_000, meta=qwen_call(prompt, 20))
        rows += story.end(turn, output_chars=80)
    told = [(row.usage.prompt, row.usage_source) for row in rows]
    assert told == [(6110, "agent"), (0, "none"), (6200, "agent")]


@pytest.mark.parametrize("meta", [{"usage": {"inputTokens": 0, "outputTokens": 0}}, {"totalTokens": 6130}])
def test_a_total_or_zeros_in_mid_turn_take_back_nothing(meta: Mapping[str, object]) -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    turn = story.begin()
    story.update(turn, qwen_call(6110, 20, 5010), {"content": {"type": "text", "text": "said"}})
    story.report(turn, used=6130, size=200_000, meta=meta)
    assert story.end(turn, output_chars=80)[-1].usage == Usage(1100, 5010, 0, 20)


@pytest.mark.parametrize("meta", [qwen_call(6110, 20, 5010), qwen_call(6110, 20, 5010)["usage"]])
def test_usage_that_an_unknown_agent_tells_beside_its_context_is_read_so_too(meta: Mapping[str, object]) -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    turn = story.begin()
    story.report(turn, used=6130, size=200_000, meta=meta)
    row = story.end(turn, output_chars=8)[-1]
    assert (row.usage, row.usage_source) == (Usage(1100, 5010, 0, 20), "agent")


@pytest.mark.parametrize("agent", [UNKNOWN_AGENT, ("OpenHands", "2.0.0")])
def test_an_agent_that_tells_what_openhands_tells_counts_like_it_whatever_its_name(agent: tuple[str, str]) -> None:
    story = Story(agent)
    story.open()
    told = []
    for number in (1, 2):
        metrics = {"input_tokens": 6110 * number, "output_tokens": 200, "cache_read_tokens": 5010, "cost": number}
        turn = story.begin()
        story.update(turn, {"field_meta": {"openhands.dev/metrics": metrics}})
        told += story.end(turn)
    assert [(row.usage, row.costs, row.usage_source) for row in told] == [
        (Usage(1100, 5010, 0, 200), (usd("1"),), "agent"),
        (Usage(6110), (usd("1"),), "agent"),
    ]


def test_the_users_word_on_the_input_stands_also_where_an_agents_words_tell_what_it_is() -> None:
    story = Story(UNKNOWN_AGENT, profiles={"my-agent": ProfileOverride(input="excludes_cache")})
    story.open()
    turn = story.begin()
    story.update(turn, openhands(1100, 200, 5010))
    assert story.end(turn)[-1].usage == Usage(1100, 5010, 0, 200)


def test_output_alone_is_no_context() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    row = story.turn(Counters(None, 30, 230), output_chars=40)
    assert (row.usage, row.usage_source, row.context_used) == (Usage(0, 0, 0, 30), "partial", None)


def test_the_configuration_says_what_cannot_be_guessed() -> None:
    story = Story(UNKNOWN_AGENT, profiles={"my-agent": ProfileOverride("session", "includes_cache")})
    story.open()
    story.turn(Counters(1000, 100, None, None, 600))
    assert story.turn(Counters(2200, 220, None, None, 1300)).usage == Usage(500, 700, 0, 120)


def test_the_users_name_for_an_agent_wins_over_its_own() -> None:
    story = Story(("wrapper", "9.9"), agent_name="Copilot")
    story.open()
    story.turn(inclusive(100, 10))
    assert story.turn(inclusive(300, 30)).usage == Usage(200, 0, 0, 20)

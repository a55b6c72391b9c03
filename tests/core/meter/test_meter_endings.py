"""Turns that failed, were cancelled, or were answered out of their order."""

from __future__ import annotations

from acp_proxy.core.events import Counters
from acp_proxy.core.usage import NOTHING, Usage
from tests.core.story import (
    CALL,
    CODEX,
    GEMINI,
    OPENCODE,
    ZED_CLAUDE,
    Story,
    disjoint,
    inclusive,
)


def test_an_error_before_any_update_used_nothing() -> None:
    story = Story(CODEX)
    story.open(model="mock")
    row = story.turn(stop="error", updates=0)
    assert (row.usage, row.usage_source, row.cost_source, row.costs) == (NOTHING, "agent", "computed", ())
    assert not row.unpriced


def test_a_cancelled_turn_with_usage_is_at_least_that() -> None:
    story = Story(CODEX)
    story.open()
    row = story.turn(disjoint(2200, 5120, 312, 212), stop="cancelled")
    assert (row.usage.total, row.usage_source) == (7844, "partial")


def test_a_cancelled_answer_that_nobody_will_ever_report_is_estimated() -> None:
    story = Story(CODEX)
    story.open(model="mock")
    row = story.turn(stop="cancelled", chars=8, output_chars=80)
    assert (row.usage, row.usage_source, row.cost_source) == (Usage(2, 0, 0, 20), "estimated", "estimated")


def test_zeros_of_a_cancelled_answer_are_not_what_it_used() -> None:
    story = Story(CODEX)
    story.open(model="mock")
    row = story.turn(disjoint(0), stop="cancelled", chars=8, output_chars=80)
    assert (row.usage, row.usage_source) == (Usage(2, 0, 0, 20), "estimated")


def test_a_prompt_that_was_cancelled_before_any_answer_is_not_estimated() -> None:
    story = Story(CODEX)
    story.open(model="mock")
    row = story.turn(stop="cancelled", chars=80, updates=0)
    assert (row.usage, row.usage_source) == (NOTHING, "none")


def test_what_was_said_in_a_turn_that_failed_is_mostly_the_error_and_not_estimated() -> None:
    story = Story(CODEX)
    story.open(model="mock")
    row = story.turn(stop="error", chars=8, output_chars=80)
    assert (row.usage, row.usage_source, row.detail) == (NOTHING, "none", "failed; the agent reports nothing of it")


def test_a_reporting_agent_that_is_silent_about_a_turn_is_not_estimated() -> None:
    story = Story(CODEX)
    story.open()
    row = story.turn(output_chars=80)
    assert (row.usage, row.usage_source) == (NOTHING, "none")


def test_calls_that_a_reporting_agent_told_the_contexts_of_before_it_failed_silently_are_estimated() -> None:
    story = Story(CODEX)
    story.open(model="mock")
    story.turn(CALL, used=6612)
    turn = story.begin(chars=40)
    for used in (6612, 7060, 7172):  # the first is the one before it again
        story.report(turn, used=used, size=200_000)
    row = story.end(turn, tool_calls=2, output_chars=80)[-1]
    assert (row.usage, row.usage_source) == (Usage(14212, 0, 0, 20), "estimated")


def test_a_cancelled_turn_that_repeats_the_usage_of_the_one_before_is_estimated() -> None:
    story = Story((CODEX[0], "1.10.0"))
    story.open(model="mock")
    story.turn(disjoint(1401, 5010, 0, 201), used=6612)
    row = story.turn(disjoint(1401, 5010, 0, 201), used=6612, stop="cancelled", chars=20, output_chars=60)
    assert (row.usage, row.usage_source) == (Usage(6617, 0, 0, 15), "estimated")
    quiet = story.turn(disjoint(1401, 5010, 0, 201), used=6612, stop="cancelled", updates=0)
    assert (quiet.usage, quiet.detail) == (NOTHING, "the agent repeats the usage of the turn before")


def test_the_usage_of_the_turn_before_is_not_that_of_one_that_said_nothing() -> None:
    """OpenCode answers so, with `end_turn`, when a prompt is cancelled at once; Kilo does after a load."""
    story, told = Story(OPENCODE), Counters(1100, 150, 6311, 51, 5010)
    story.open()
    assert story.turn(told, used=6110, cost="0.0078", output_chars=30).usage.total == 6311
    loaded = Story(OPENCODE)
    loaded.open("load")
    loaded.restore(story.metered.state)
    for each in (story, loaded):
        silent = each.turn(told, used=6110, cost="0.0078")
        assert (silent.usage, silent.costs) == (NOTHING, ())
        assert (silent.usage_source, silent.detail) == ("none", "the agent repeats the usage of the turn before")
        assert each.turn(Counters(1200, 150, 6422, 52, 5020), used=6220, output_chars=30).usage.total == 6422


def test_a_last_call_is_not_all_of_a_turn_while_another_prompt_waits() -> None:
    story = Story(OPENCODE)
    story.open()
    first, _ = story.begin(), story.begin()
    assert story.end(first, Counters(2000, 150, 2150))[-1].usage_source == "partial"


def test_two_prompts_that_are_answered_with_the_same_usage_count_once() -> None:
    story = Story(OPENCODE)
    story.open()
    first, second = story.begin(), story.begin()
    counters = Counters(1200, 192, 1934, 22, 520)
    assert story.end(first, counters)[-1].usage.total == 1934
    row = story.end(second, counters)[-1]
    assert (row.usage, row.usage_source) == (NOTHING, "none")


def test_a_queued_prompt_that_reports_the_sum_of_both_is_charged_its_own_part() -> None:
    story = Story(ZED_CLAUDE)
    story.open()
    first, second = story.begin(), story.begin()
    story.end(first, disjoint(1700, 5070, 307, 207))
    assert story.end(second, disjoint(3500, 10150, 615, 415))[-1].usage == Usage(1800, 5080, 308, 208)


def test_a_clock_that_is_set_back_between_turns_makes_no_prompt_one_that_waited() -> None:
    for agent in (ZED_CLAUDE, OPENCODE):
        story = Story(agent)
        story.open()
        story.turn(disjoint(1700, 5070, 307, 207))
        story.at = -3600
        assert story.turn(disjoint(1700, 5070, 307, 207)).usage == Usage(1700, 5070, 307, 207)
        assert story.turn(disjoint(3500, 10150, 615, 415)).usage == Usage(3500, 10150, 615, 415)


def test_prompts_that_wait_within_one_tick_of_the_clock_have_waited() -> None:
    story = Story(ZED_CLAUDE)
    story.open()
    first = story.begin()
    story.at -= 1
    second = story.begin()
    story.at -= 1
    story.end(first, disjoint(1700, 5070, 307, 207))
    assert second.started_at == first.started_at
    assert story.end(second, disjoint(3500, 10150, 615, 415))[-1].usage == Usage(1800, 5080, 308, 208)


def test_a_queued_prompt_that_reports_less_than_the_one_before_reports_no_sum() -> None:
    story = Story(ZED_CLAUDE)
    story.open()
    first, second = story.begin(), story.begin()
    story.end(first, disjoint(1700, 5070, 307, 207))
    assert story.end(second, disjoint(3500, 5080, 0, 20))[-1].usage == Usage(3500, 5080, 0, 20)


def test_a_queued_prompt_of_an_agent_that_tells_each_by_itself_keeps_all_of_its_own() -> None:
    story = Story(CODEX)
    story.open()
    first, second = story.begin(), story.begin()
    story.end(first, disjoint(1700, 5070, 307, 207))
    assert story.end(second, disjoint(3500, 10150, 615, 415))[-1].usage == Usage(3500, 10150, 615, 415)


def test_a_queued_prompt_of_such_an_agent_that_used_as_much_as_the_one_before_repeats_nothing() -> None:
    story = Story(GEMINI)
    story.open()
    first, second = story.begin(), story.begin()
    assert [story.end(turn, inclusive(100, 10))[-1].usage.total for turn in (first, second)] == [110, 110]


def test_what_is_reported_while_two_prompts_wait_belongs_to_the_older() -> None:
    story = Story(OPENCODE)
    story.open()
    first, second = story.begin(), story.begin()
    story.report(first, used=100, cost="0.5")
    refused = story.end(second, stop="error", updates=0, behind=True)[-1]
    assert (refused.costs, refused.usage) == ((), NOTHING)
    row = story.end(first, Counters(80, 20, 100))[-1]
    assert (row.costs[0].text, row.usage_source) == ("0.5", "agent")  # nothing waits any more

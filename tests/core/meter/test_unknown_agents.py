"""Agents that nobody has described: nothing is said to be exact that can as well be something else."""

from __future__ import annotations

import itertools
from typing import get_args

from acp_proxy.core.acp import counters
from acp_proxy.core.agents import ProfileOverride
from acp_proxy.core.agents.profile import UNKNOWN
from acp_proxy.core.entry import SessionState
from acp_proxy.core.events import Counters, ModelSelected
from acp_proxy.core.meter.counters import partition
from acp_proxy.core.usage import Usage
from tests.cases import each_of
from tests.core.story import CLINE, KIMI, UNKNOWN_AGENT, Story, disjoint, inclusive, qwen_call
from tests.core.unknown_agents import Beside, Context, Covers, Kind, rows, rows_in_mid_turn

Way = tuple[Covers, Context, Kind]
EMPTY = {"content": {"type": "text", "text": ""}}


def opened(agent: tuple[str, str] = UNKNOWN_AGENT, how: str = "new") -> Story:
    story = Story(agent)
    story.open("load" if how == "load" else "new")
    return story


# -- of what its counters are


@each_of(list[Way](itertools.product(get_args(Covers), get_args(Context), get_args(Kind))))
def test_no_figure_is_said_to_be_exact_that_is_not(case: Way) -> None:
    for seed in range(9):
        for row, used in rows(seed, *case):
            if row.usage_source == "agent":
                assert (row.usage.prompt, row.usage.completion) == (used.prompt, used.completion)


@each_of(list[Way](itertools.product(get_args(Covers), ("none", "gauge", "prompt", "low"), get_args(Kind))))
def test_what_is_at_least_so_much_is_no_more_than_was_used(case: Way) -> None:
    for seed in range(9):
        for row, used in rows(seed, *case):
            assert used.covers(row.usage) or row.usage.prompt <= used.prompt


@each_of(
    list[tuple[Covers, Beside, Kind, bool, bool]](
        itertools.product(get_args(Covers), get_args(Beside), get_args(Kind), (True, False), (True, False))
    )
)
def test_what_is_told_in_mid_turn_alone_is_exact_only_where_it_is_and_never_more_than_was_used(
    case: tuple[Covers, Beside, Kind, bool, bool],
) -> None:
    covers, beside, kind, tools_show, again = case
    for seed in range(9):
        for row, used in rows_in_mid_turn(seed, covers, beside, kind, tools_show=tools_show, again=again):
            if row.usage_source == "agent":
                assert (row.usage.prompt, row.usage.completion) == (used.prompt, used.completion)
            assert row.usage_source != "partial" or row.usage.total <= used.total


@each_of(list[Covers](["turn", "session"]))
def test_who_tells_the_context_of_its_calls_is_soon_exact(covers: Covers) -> None:
    sources = [row.usage_source for seed in range(9) for row, _ in rows(seed, covers, "gauge", "plain")]
    assert sources.count("agent") > 0.75 * len(sources)


def test_without_a_context_what_came_to_a_session_tells_its_counters_from_a_turns() -> None:
    story = opened()
    told = [story.turn(inclusive(total, 100 * number)) for number, total in enumerate((6000, 12_100, 18_300), 1)]
    assert [(row.usage.prompt, row.usage_source) for row in told] == [
        (6000, "agent"),
        (6100, "partial"),
        (6200, "agent"),
    ]


def test_calls_that_are_smaller_than_an_agents_instructions_are_taken_per_turn() -> None:
    story = opened()
    for number, total in enumerate((100, 300, 900), 1):
        row = story.turn(inclusive(total, 10 * number), tool_calls=1)
        assert (row.usage.prompt, row.usage_source) == (total, "agent")


def test_a_turn_with_a_call_that_shows_nowhere_is_taken_for_no_sessions_counters() -> None:
    story = opened()
    told = [story.turn(inclusive(total, 100), used=used) for total, used in ((1000, 1100), (2300, 1300), (1350, 1450))]
    assert [row.usage_source for row in told] == ["agent", "partial", "agent"]
    assert told[2].usage.prompt == 1350


def test_counters_that_grew_by_less_than_a_call_are_no_sessions() -> None:
    story = opened()
    for number, total in enumerate((12_330, 12_770, 13_210)):
        row = story.turn(inclusive(total, 400 + number), used=6400 + 100 * number, tool_calls=1)
        assert (row.usage.prompt, row.usage_source) == (total, "agent")
    row = story.turn(inclusive(27_740, 834), used=7000, tool_calls=3)
    assert (row.usage.prompt, row.usage_source) == (27_740, "agent")


def test_a_context_that_is_the_sum_of_the_session_hides_no_cumulative_counters() -> None:
    story = opened()
    for number, total in enumerate((1000, 2100, 3300, 4600), 1):
        row = story.turn(inclusive(total, 100 * number), used=total + 100 * number)
    assert (row.usage, row.usage_source) == (Usage(1300, 0, 0, 100), "agent")


def test_the_usage_of_a_turn_with_tools_is_at_least_that_where_nobody_can_tell_whose_it_is() -> None:
    assert opened().turn(inclusive(6000, 100), tool_calls=1).usage_source == "partial"


def test_what_one_call_can_have_had_is_at_least_what_a_turn_with_tools_used_without_a_context_too() -> None:
    story = opened()
    story.turn(inclusive(6000, 100))
    assert story.turn(inclusive(6300, 100), tool_calls=1).usage_source == "partial"
    assert story.turn(inclusive(13_000, 200), tool_calls=1).usage_source == "agent"


def test_the_first_counters_after_a_load_are_a_guess_where_nothing_tells_whose_they_are() -> None:
    story = opened(how="load")
    row = story.turn(inclusive(2300, 200))
    assert (row.usage.total, row.usage_source) == (2500, "estimated")
    story = Story(UNKNOWN_AGENT, estimate=False)
    story.open("load")
    row = story.turn(inclusive(2300, 200))
    assert (row.usage.total, row.usage_source) == (0, "none")


def test_a_context_tells_of_the_first_counters_after_a_load_only_where_it_is_that_of_their_call() -> None:
    for tool_calls, told in ((0, "agent"), (4, "estimated")):
        row = opened(how="load").turn(inclusive(6000 * (tool_calls + 1), 100), used=6100, tool_calls=tool_calls)
        assert row.usage_source == told


def test_the_first_counters_after_a_load_that_hold_a_turn_of_the_ledgers_are_not_exact() -> None:
    first = opened()
    first.turn(inclusive(6000, 100), used=6100)  # taken for the turn's
    story = opened(how="load")
    story.restore(first.metered.state)
    row = story.turn(inclusive(12_200, 200), used=6300)
    assert ("go on from before" in row.detail, row.usage_source) == (True, "estimated")


def test_the_first_counters_after_a_load_are_at_least_what_they_grew_by_since_the_ledger_saw_them() -> None:
    first = opened()
    for number, total in enumerate((6000, 12_100, 18_300), 1):
        first.turn(inclusive(total, 100 * number))
    story = opened(how="load")
    story.restore(first.metered.state)
    row = story.turn(inclusive(24_600, 400))
    assert (row.usage, row.usage_source) == (Usage(6300, 0, 0, 100), "partial")
    row = story.turn(inclusive(31_000, 500))
    assert (row.usage, row.usage_source) == (Usage(6400, 0, 0, 100), "partial")


def test_counters_that_go_on_from_the_ledgers_after_a_load_are_no_turns_own_unless_their_context_says_so() -> None:
    first = opened()
    for number, total in enumerate((6000, 12_100, 18_300), 1):
        first.turn(inclusive(total, 100 * number), used=9000)
    for used, tool_calls, told in ((9000, 2, (6300, "partial")), (24_900, 0, (24_600, "agent"))):
        story = opened(how="load")
        story.restore(first.metered.state)
        row = story.turn(inclusive(24_600, 400), used=used, tool_calls=tool_calls)
        assert (row.usage.prompt, row.usage_source) == told
    story = opened(how="load")
    story.restore(first.metered.state)
    assert story.turn(inclusive(12_700, 200), used=6500, tool_calls=2).usage.prompt == 12_700  # they began anew


def test_a_context_that_has_not_proved_to_be_a_calls_makes_no_sessions_counters_the_turns() -> None:
    story = opened()
    story.turn(inclusive(12_330, 403), used=8900, tool_calls=1)
    row = story.turn(inclusive(25_800, 810), used=9100, tool_calls=2)
    assert (row.usage, row.usage_source) == (Usage(13_470, 0, 0, 407), "partial")


def test_counters_that_hold_a_turn_of_which_nothing_was_told_prove_no_large_call() -> None:
    story = opened()
    story.turn(stop="cancelled", chars=20, output_chars=40)
    story.turn(inclusive(3330, 420), used=8900)
    rows = [story.turn(inclusive(*told), used=8900, tool_calls=1) for told in ((7100, 870), (11_310, 1350))]
    assert [(row.usage.prompt, row.usage_source) for row in rows] == [(3770, "partial"), (4210, "partial")]


def test_what_a_session_of_the_same_id_did_before_says_nothing_of_counters() -> None:
    story, fresh = opened(how="load"), opened()
    story.turn(chars=20, output_chars=40, tool_calls=9)
    story.open()
    for told, calls in ((4280, 80), 1), ((10_600, 500), 3):
        row, other = (each.turn(inclusive(*told), used=8900, tool_calls=calls - 1) for each in (story, fresh))
        assert (row.usage, row.usage_source) == (other.usage, other.usage_source)


def test_after_a_load_a_context_that_has_not_proved_to_be_a_calls_makes_no_counters_the_turns() -> None:
    story = opened(how="load")
    story.turn(inclusive(4650, 450), used=8900, tool_calls=1)
    row = story.turn(inclusive(8860, 876), used=9000, tool_calls=1)
    assert (row.usage, row.usage_source) == (Usage(4210, 0, 0, 426), "partial")


def test_after_a_load_a_turn_of_one_call_with_another_context_tells_nothing_of_later_calls() -> None:
    story = opened(how="load")
    story.turn(inclusive(4280, 80), used=8900)
    row = story.turn(inclusive(10_600, 500), used=8900, tool_calls=2)
    assert (row.usage, row.usage_source) == (Usage(6320, 0, 0, 420), "partial")


def test_after_a_load_a_turn_with_the_context_of_its_only_call_tells_what_later_calls_can_have_sent() -> None:
    story = opened(how="load")
    story.turn(inclusive(6100, 200), used=6300)
    for told in ((12_900, 400), (19_900, 500)):
        row = story.turn(inclusive(*told), used=told[1] + 6300, tool_calls=told[0] // 6300 - 1)
        assert (row.usage.prompt, row.usage_source) == (told[0], "agent")


def test_after_a_load_a_turn_with_the_context_of_its_only_call_is_no_sessions() -> None:
    story = opened(how="load")
    story.turn(inclusive(6400, 200), used=8900, tool_calls=1)
    row = story.turn(inclusive(10_700, 400), used=11_100)
    assert (row.usage, row.usage_source) == (Usage(10_700, 0, 0, 400), "agent")


def test_who_is_known_to_count_per_turn_does_so_in_a_session_that_is_loaded_and_tells_no_context() -> None:
    story = opened()
    for total in 6000, 3000:
        story.turn(inclusive(total, 100))
    story.open("load", "loaded")
    row = story.turn(inclusive(9000, 100), session="loaded")
    assert (row.usage, row.usage_source) == (Usage(9000, 0, 0, 100), "agent")


def test_counters_that_grow_by_less_than_an_agents_instructions_after_a_load_are_the_turns() -> None:
    story = opened(how="load")
    sources = [story.turn(inclusive(total, 50)).usage_source for total in (6000, 6100, 6200)]
    assert sources == ["estimated", "agent", "agent"]
    assert story.rows[-1].usage.prompt == 6200


def test_the_first_counters_after_a_load_are_a_guess_too_where_they_are_less_than_the_ledgers() -> None:
    story = opened(how="load")
    story.restore(SessionState(counters=inclusive(4900, 220)))
    row = story.turn(inclusive(2900, 110))
    assert (row.usage.total, row.usage_source) == (3010, "estimated")


def test_of_a_loaded_session_only_the_first_counters_may_go_on_from_before() -> None:
    story = opened(how="load")
    told = [story.turn(inclusive(4800, 280), used=5080), story.turn(inclusive(9500, 470), tool_calls=2)]
    assert [(row.usage.prompt, row.usage_source) for row in told] == [(4800, "agent"), (9500, "agent")]


def test_the_first_counters_after_a_session_was_closed_are_at_least_what_they_grew_by() -> None:
    story = opened()
    story.turn(inclusive(13_485, 21), used=12_606)
    story.turn(inclusive(40_630, 68), used=12_820, tool_calls=1)
    story.close()
    story.open("load")
    row = story.turn(inclusive(68_120, 119), used=13_072, tool_calls=1)
    assert (row.usage, row.usage_source) == (Usage(27_490, 0, 0, 51), "partial")
    assert story.turn(inclusive(81_975, 139), used=13_125).usage == Usage(13_855, 0, 0, 20)


def test_counters_that_fell_when_a_session_was_closed_or_tell_their_only_call_are_the_turns() -> None:
    for told, context in (inclusive(12_000, 40), 13_072), (inclusive(14_000, 60), 14_060):
        story = opened()
        story.turn(inclusive(13_485, 21), used=12_606)
        story.close()
        story.open("load")
        row = story.turn(told, used=context)
        assert (row.usage.total, row.usage_source) == (told.total, "agent")


def test_a_turn_of_one_call_tells_what_a_call_can_have_sent_whatever_was_before_it() -> None:
    story = opened()
    for *tokens, calls in (3000, 100, 1), (2200, 80, 1), (10_700, 230, 3):
        row = story.turn(inclusive(*tokens), tool_calls=calls - 1)
        assert (row.usage.prompt, row.usage_source) == (tokens[0], "agent")


def test_the_first_counters_after_a_load_may_be_of_two_turns() -> None:
    row = opened(how="load").turn(inclusive(2300, 200), used=1400, output_chars=40)
    assert (row.usage.total, row.usage_source) == (0, "none")


def test_counters_that_fall_with_another_model_do_not_mark_an_agent_as_one_that_counts_by_turns() -> None:
    story = opened()
    for number, total in enumerate((6000, 12_100, 18_300), 1):
        story.turn(inclusive(total, 100 * number))
    story.open(session="s2", model="mock")
    story.turn(inclusive(6000, 100), session="s2")
    story.open(session="s2", model="haiku")
    story.turn(inclusive(5900, 100), session="s2")
    assert story.turn(inclusive(12_000, 200), session="s2").usage.prompt == 6100


def test_cumulative_counters_that_grow_by_less_than_a_call_with_another_model_have_begun_anew() -> None:
    story = opened()
    for number, total in enumerate((6000, 12_100, 18_300), 1):
        story.turn(inclusive(total, 100 * number))
    story.open(session="s2", model="mock")
    story.turn(inclusive(6000, 100), session="s2")
    story.tell(ModelSelected(story.now(), "s2", "haiku"))
    row = story.turn(inclusive(6200, 100), session="s2")
    assert (row.usage, row.usage_source) == (Usage(6200, 0, 0, 100), "agent")
    row = story.turn(inclusive(12_500, 200), session="s2")
    assert (row.usage, row.usage_source) == (Usage(6300, 0, 0, 100), "agent")


def test_cumulative_counters_of_which_one_fell_with_another_model_have_begun_anew() -> None:
    story = opened()
    for number, total in enumerate((6000, 12_100, 18_300), 1):
        story.turn(inclusive(total, 100 * number))
    story.open(session="s2", model="mock")
    story.turn(inclusive(6000, 100, 500), session="s2")
    story.tell(ModelSelected(story.now(), "s2", "haiku"))
    row = story.turn(inclusive(13_400, 210, 12_000), session="s2", tool_calls=1)  # what was not cached fell
    assert (row.usage, row.usage_source) == (Usage(1400, 12_000, 0, 210), "agent")


def test_a_prompt_that_waited_and_tells_more_than_its_calls_can_have_sent_tells_the_sum_of_both() -> None:
    story = opened()
    story.turn(disjoint(7000, output=100), used=7100)
    story.turn(disjoint(200, 7000, output=100), used=7300)
    first, second = story.begin(), story.begin()
    story.report(first, used=7400, size=200_000)
    story.end(first, disjoint(200, 7200, output=100))
    story.report(second, used=7600, size=200_000)
    row = story.end(second, disjoint(400, 14_500, output=200))[-1]
    assert (row.usage, row.usage_source) == (Usage(200, 7300, 0, 100), "partial")


def test_an_agent_that_was_known_to_tell_nothing_and_begins_to_is_read_as_an_unknown_agent() -> None:
    for agent in (KIMI, CLINE):
        story = opened(agent)
        assert story.turn(inclusive(6000, 100)).usage_source == "agent"
        row = story.turn(inclusive(12_100, 200))
        assert (row.usage.prompt, row.usage_source) == (6100, "partial")


def test_zeros_do_not_keep_an_answer_of_an_unknown_agent_from_being_estimated() -> None:
    row = opened().turn(Counters(0, 0, 0), chars=40, output_chars=40)
    assert (row.usage_source, row.usage.total) == ("estimated", 20)


# -- what its counters are called, and which of them overlap


@each_of(
    [
        {"input_tokens": 3, "output_tokens": 9, "cache_read_input_tokens": 500, "cache_creation_input_tokens": 20},
        {"inputTokens": 3, "outputTokens": 9, "cacheReadTokens": 500, "cacheWriteTokens": 20},
        {"prompt_tokens": 3, "completion_tokens": 9, "cache_read_tokens": 500, "cache_write_tokens": 20},
    ]
)
def test_counters_are_read_by_the_names_of_providers(value: dict[str, int]) -> None:
    told = counters(value)
    assert told == Counters(3, 9, None, None, 500, 20)
    row = opened().turn(told)
    assert (row.usage, row.usage_source) == (Usage(3, 500, 20, 9), "agent")


@each_of(
    list[dict[str, object]](
        [
            {
                "prompt_tokens": 600,
                "completion_tokens": 90,
                "total_tokens": 690,
                "prompt_tokens_details": {"cached_tokens": 500},
                "completion_tokens_details": {"reasoning_tokens": 20},
            },
            {
                "inputTokens": 600,
                "outputTokens": 90,
                "totalTokens": 690,
                "inputTokenDetails": {"cacheReadTokens": 500, "noCacheTokens": 100},
                "outputTokenDetails": {"reasoningTokens": 20, "textTokens": 70},
            },
            {
                "promptTokenCount": 600,
                "candidatesTokenCount": 70,
                "totalTokenCount": 690,
                "cachedContentTokenCount": 500,
                "thoughtsTokenCount": 20,
            },
        ]
    )
)
def test_parts_that_providers_tell_in_places_of_their_own_are_read(value: dict[str, object]) -> None:
    told = counters(value)
    assert told is not None
    assert partition(told, UNKNOWN.overlap).usage == Usage(100, 500, 0, 70, 20)


def test_more_cached_than_input_stands_beside_it_whatever_the_total_says() -> None:
    reading = partition(Counters(3, 5, 8, None, 400), UNKNOWN.overlap)
    assert (reading.usage, reading.whole) == (Usage(3, 400, 0, 5), False)


def test_what_was_once_more_cached_than_input_stands_beside_it_from_then_on() -> None:
    story = opened()
    story.turn(Counters(30, 50, 80, None, 400))
    row = story.turn(Counters(420, 40, 460, None, 390))
    assert (row.usage, row.usage_source) == (Usage(420, 390, 0, 40), "partial")


def test_a_total_may_hold_thinking_that_is_told_nowhere_also_where_a_context_tells_of_caches() -> None:
    row = opened().turn(Counters(6220, 150, 6422, None, 5020), used=6370)
    assert (row.usage, row.usage_source) == (Usage(1200, 5020, 0, 150), "partial")


def test_a_sessions_total_may_hold_thinking_that_is_told_nowhere_too() -> None:
    story = opened()
    for turn in (1, 2, 3):
        used = Counters(7000 * turn, 150 * turn, 7200 * turn, None, 5000 * turn)
        row = story.turn(used, used=7000 + 100 * turn if turn > 1 else 7150)
        assert (row.usage.prompt, row.usage.completion, row.usage_source) == (7000, 150, "partial")


def test_usage_without_any_output_is_no_more_than_a_part() -> None:
    story = opened()
    assert story.turn(inclusive(6110, 201), used=6311).usage_source == "agent"
    row = story.turn(Counters(73, 0, 73), used=73)  # what is left after a compaction
    assert (row.usage, row.usage_source) == (Usage(73), "partial")


def test_a_context_tells_whether_input_holds_the_caches_that_a_total_counts_twice() -> None:
    story = opened()
    row = story.turn(Counters(6110, 201, 6110 + 201 + 5010, None, 5010), used=6311)
    assert (row.usage, row.usage_source) == (Usage(1100, 5010, 0, 201), "agent")
    row = story.turn(Counters(12_700, 400, 12_700 + 400 + 10_100, None, 10_100), tool_calls=1)
    assert row.usage == Usage(2600, 10_100, 0, 400)


def test_the_users_word_on_caches_stands_against_what_a_context_seems_to_tell() -> None:
    story = Story(UNKNOWN_AGENT, profiles={"my-agent": ProfileOverride("turn", "excludes_cache")})
    story.open()
    row = story.turn(Counters(6110, 201, 6110 + 201 + 5010, None, 5010), used=6311)
    assert row.usage == Usage(6110, 5010, 0, 201)


# -- usage that is told in mid-turn


def told_in_turn(prompts: list[int], tool_calls: int) -> tuple[int, str]:
    story = opened()
    turn = story.begin()
    for number, prompt in enumerate(prompts, 1):
        story.update(turn, qwen_call(prompt, 100 * number), EMPTY)
    row = story.end(turn, tool_calls=tool_calls)[-1]
    return row.usage.prompt, row.usage_source


def test_usage_of_the_turn_so_far_that_is_told_again_and_again_is_not_summed() -> None:
    assert told_in_turn([6000, 12_300, 19_000], 2) == (19_000, "partial")


def test_usage_that_is_told_more_often_than_calls_were_made_is_not_summed() -> None:
    assert told_in_turn([6000, 6000, 6000], 1) == (6000, "partial")


def test_usage_of_calls_each_of_which_sends_what_came_before_it_is_summed() -> None:
    assert told_in_turn([6000, 6150, 6300], 2) == (18_450, "agent")

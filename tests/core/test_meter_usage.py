"""Which tokens a turn used, by how its agent counts."""

from __future__ import annotations

from decimal import Decimal

import pytest
from msgspec.structs import replace

from acp_proxy.core.agents import UNKNOWN, InputCounts, Profile, ProfileOverride
from acp_proxy.core.counters import Cumulative, partition
from acp_proxy.core.entry import SessionState
from acp_proxy.core.events import Counters, Implementation, Initialized, ModelCounters, ModelSelected, Opening
from acp_proxy.core.usage import NOTHING, Usage
from tests.core.story import (
    CLINE,
    CODEX,
    COPILOT,
    FAST,
    GEMINI,
    GOOSE,
    HERMES,
    KIMI,
    NANOCODER,
    OPENCODE,
    OPENHANDS,
    QWEN,
    STRANGER,
    VIBE,
    ZED_CLAUDE,
    ZED_CODEX,
    Story,
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
    reading = partition(counters, UNKNOWN)
    assert reading.usage == usage
    assert reading.certain


def test_counters_that_no_identity_holds_for_are_read_as_the_least_that_they_can_mean() -> None:
    reading = partition(Counters(10, 5, 1000, 1, 4, 0), UNKNOWN)
    assert reading.usage == Usage(6, 4, 0, 4, 1)
    assert not reading.certain


@pytest.mark.parametrize(
    ("input", "usage"), [("excludes_cache", Usage(10, 4, 0, 5)), ("includes_cache", Usage(6, 4, 0, 5))]
)
def test_without_an_identity_the_agents_row_decides(input: InputCounts, usage: Usage) -> None:
    reading = partition(Counters(10, 5, None, None, 4), Profile("turn", input))
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
def test_without_a_total_nobody_knows_where_a_strangers_parts_belong(part: str) -> None:
    assert partition(Counters(10, 5), UNKNOWN).certain
    assert not partition(replace(Counters(10, 5), **{part: 3}), UNKNOWN).certain


def test_where_the_user_tells_of_caches_the_total_tells_of_thinking() -> None:
    profile = Profile("turn", "excludes_cache", decided=True)
    assert partition(Counters(10, 5, 10 + 5 + 3 + 2 + 7, 7, 3, 2), profile).usage == Usage(10, 3, 2, 5, 7)


def test_the_users_word_on_caches_is_not_overruled_by_an_identity() -> None:
    profile = Profile("turn", "includes_cache", decided=True)
    assert partition(Counters(10, 5, 10 + 5 + 4, None, 4), profile).usage == Usage(6, 4, 0, 5)


def test_cached_input_above_an_inclusive_input_leaves_none_uncached() -> None:
    assert partition(Counters(3, 5, 8, None, 4), Profile("turn", "includes_cache")).usage == Usage(0, 4, 0, 5)


def test_contradicting_counters_of_an_unknown_agent_have_no_price() -> None:
    story = Story()
    story.open(model="mock")
    row = story.turn(Counters(10, 5, 1000, 1, 4, 0))
    assert (row.usage_source, row.cost_source, row.costs) == ("partial", "unknown", ())
    assert row.unpriced


# -- scope session


def test_cumulative_counters_are_taken_as_differences() -> None:
    story = Story(COPILOT)
    story.open()
    assert story.turn(inclusive(1610, 207, 510, 21)).usage == Usage(1100, 510, 0, 186, 21)
    assert story.turn(inclusive(3330, 421, 1030, 43)).usage == Usage(1200, 520, 0, 192, 22)
    assert story.metered.state.counters == inclusive(3330, 421, 1030, 43)


def test_a_counter_that_falls_has_restarted_and_counts_in_full() -> None:
    counters = Cumulative()
    assert counters.advance(inclusive(100, 10)) == inclusive(100, 10)
    assert counters.advance(inclusive(150, 5)) == inclusive(150, 5)
    assert counters.advance(inclusive(160, 9)) == inclusive(10, 4)


def test_a_turn_of_which_a_cumulative_agent_tells_nothing_is_in_the_next_difference() -> None:
    story = Story(COPILOT)
    story.open()
    story.turn(inclusive(100, 10))
    silent = story.turn(output_chars=40)
    assert (silent.usage_source, silent.detail) == ("none", "the agent reported no usage of this turn")
    assert story.turn(inclusive(300, 30)).usage.total == 220


def test_zeros_between_counters_of_a_session_are_a_gap_and_no_restart() -> None:
    story = Story(COPILOT)
    story.open()
    story.turn(inclusive(1610, 207, 510, 21))
    assert story.turn(inclusive(0, 0, 0, 0)).usage_source == "none"
    assert story.turn(inclusive(3330, 421, 1030, 43)).usage == Usage(1200, 520, 0, 192, 22)


def test_counters_that_persist_go_on_from_what_the_ledger_knows() -> None:
    first = Story(VIBE)
    first.open()
    first.turn(inclusive(19330, 2171, 5030))
    second = Story(VIBE)
    second.open("load")
    second.restore(first.metered.state)
    assert second.turn(inclusive(20940, 2378, 5540)).usage == Usage(1100, 510, 0, 207)


def test_counters_that_restart_in_a_new_process_do_not_go_on_from_the_ledger() -> None:
    first = Story(COPILOT)
    first.open()
    first.turn(inclusive(100, 10))
    second = Story(COPILOT)
    second.open("load")
    second.restore(first.metered.state)
    assert second.turn(inclusive(5000, 300)).usage == Usage(5000, 0, 0, 300)


def test_zeros_after_a_load_do_not_say_where_persistent_counters_stood() -> None:
    story = Story(OPENHANDS)
    story.open("load")
    story.turn(inclusive(0, 0))
    row = story.turn(inclusive(5000, 100))
    assert (row.usage, row.usage_source) == (NOTHING, "none")
    assert story.turn(inclusive(6000, 110)).usage.total == 1010


def test_a_counter_that_one_report_leaves_out_stays_where_it_stood() -> None:
    tokens = Cumulative()
    tokens.advance(Counters(100, 10, None, 5))
    tokens.advance(Counters(150, 15))
    assert tokens.advance(Counters(200, 20, None, 7)) == Counters(50, 5, None, 2)


def test_a_counter_that_is_told_later_than_the_others_counts_from_nothing() -> None:
    tokens = Cumulative()
    tokens.advance(Counters(100, 10))
    assert tokens.advance(Counters(150, 25, None, 5)) == Counters(50, 15, None, 5)


def test_where_persistent_counters_stood_is_not_guessed() -> None:
    story = Story(OPENHANDS)
    story.open("load")
    turn = story.begin()
    story.update(turn, openhands(9000, 500))
    row = story.end(turn)[-1]
    assert (row.usage, row.usage_source) == (NOTHING, "none")
    turn = story.begin()
    story.update(turn, openhands(9500, 520))
    assert story.end(turn)[-1].usage == Usage(500, 0, 0, 20)


def test_a_ledger_that_is_slower_than_the_first_turn_says_what_it_had_used() -> None:
    story = Story(OPENHANDS)
    story.open("load")
    turn = story.begin()
    story.update(turn, openhands(9000, 500))
    assert story.end(turn)[-1].usage_source == "none"
    (late,) = story.restore(SessionState(counters=Counters(8000, 400)))
    assert (late.kind, late.usage, late.usage_source) == ("autonomous", Usage(1000, 0, 0, 100), "agent")


def test_hermes_counts_from_zero_after_another_model_is_chosen() -> None:
    story = Story(HERMES)
    story.open(model="mock")
    story.turn(inclusive(100, 10))
    story.tell(ModelSelected(story.now(), "s", "other"))
    assert story.turn(inclusive(300, 30)).usage == Usage(300, 0, 0, 30)


def test_a_crashed_turn_of_a_cumulative_agent_has_what_its_updates_told() -> None:
    story = Story(VIBE)
    story.open()
    turn = story.begin()
    story.report(turn, used=1817, meta={"promptTokens": 1610, "completionTokens": 207, "cachedTokens": 510})
    row = story.end(turn, stop="crashed")[-1]
    assert (row.usage, row.usage_source) == (Usage(1100, 510, 0, 207), "partial")


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
    story.update(turn, {"usage": {"inputTokens": "6110", "outputTokens": 201, "totalTokens": 6311}})
    story.update(turn, qwen_call(6220, 202, 5020))
    row = story.end(turn, tool_calls=1)[-1]
    assert (row.usage, row.usage_source) == (Usage(1200, 5020, 0, 403), "partial")


def test_a_call_between_turns_is_work_of_its_own() -> None:
    story = Story(QWEN)
    story.open(model="mock")
    (row,) = story.update(None, qwen_call(100, 10))
    assert (row.kind, row.usage, row.cost_source) == ("autonomous", Usage(100, 0, 0, 10), "computed")


# -- agents that say little or nothing


def test_an_agent_that_reports_nothing_is_estimated_from_characters() -> None:
    story = Story(KIMI)
    story.open(model="mock")
    row = story.turn(chars=40, output_chars=41, thought_chars=4, tool_chars=8)
    assert (row.usage, row.usage_source, row.cost_source) == (Usage(12, 0, 0, 11, 1), "estimated", "estimated")


def test_estimates_can_be_turned_off() -> None:
    story = Story(KIMI, estimate=False)
    story.open(model="mock")
    row = story.turn(chars=40, output_chars=41)
    assert (row.usage, row.usage_source, row.cost_source, row.costs) == (NOTHING, "none", "unknown", ())


def test_a_later_gemini_that_tells_thinking_and_caches_loses_nothing() -> None:
    story = Story(GEMINI)
    story.open(model="mock")
    row = story.turn(Counters(6220, 150, 6420, 50, 600))
    assert (row.usage, row.usage_source, row.detail) == (Usage(5620, 600, 0, 150, 50), "agent", "")


def test_zeros_beside_an_answer_are_believed_of_an_agent_that_tells_all_and_of_no_other() -> None:
    for agent, source in ((CODEX, "agent"), (GEMINI, "none")):
        story = Story(agent)
        story.open()
        row = story.turn(Counters(0, 0, 0), output_chars=80)
        assert (row.usage, row.usage_source) == (NOTHING, source)


def test_gemini_loses_thinking_and_caches_so_its_turns_are_at_least_that() -> None:
    story = Story(GEMINI)
    story.open()
    row = story.turn(quota=Counters(6220, 150))
    assert (row.usage, row.usage_source) == (Usage(6220, 0, 0, 150), "partial")


def test_fast_agent_writes_its_usage_as_text() -> None:
    story = Story(FAST)
    story.open()
    turn = story.begin()
    for line in ("1,200 in, 9 out", "3,770 in, 449 out, 1 tools"):
        story.update(turn, {"field_meta": {"openhands.dev/metrics": {"status_line": line}}})
    row = story.end(turn, tool_calls=1)[-1]
    assert (row.usage, row.usage_source) == (Usage(3770, 0, 0, 449), "agent")


def test_usage_as_text_is_told_in_mid_turn_when_it_has_moved() -> None:
    story = Story(FAST)
    story.open()
    turn = story.begin()
    for line in ("1,200 in, 9 out", "1,200 in, 9 out", "3,770 in, 449 out, 1 tools"):
        story.update(turn, {"field_meta": {"openhands.dev/metrics": {"status_line": line}}})
    assert [change.least.total for change in story.changes] == [1209, 4219]


def openhands(input: int, output: int, read: int = 0, cost: object = None) -> dict[str, object]:
    metrics = {"input_tokens": input, "output_tokens": output, "cache_read_tokens": read, "cost": cost}
    return {"field_meta": {"openhands.dev/metrics": metrics}}


def test_openhands_counts_in_words_of_its_own() -> None:
    story = Story(OPENHANDS)
    story.open()
    for total in (1, 2):
        turn = story.begin()
        story.update(turn, openhands(1000 * total, 100 * total, 400 * total))
        assert story.end(turn)[-1].usage == Usage(600, 400, 0, 100)


def test_openhands_begins_a_session_at_zero_and_replays_a_loaded_one_without_counters() -> None:
    story = Story(OPENHANDS)
    story.open()
    turn = story.begin()
    story.update(turn, openhands(0, 0, cost=Decimal("0.0")))
    story.update(turn, openhands(6110, 201, 5010, Decimal("0.0")))
    assert story.end(turn)[-1].usage == Usage(1100, 5010, 0, 201)
    again = Story(OPENHANDS)
    again.open("load")
    assert again.update(None, {"field_meta": None}, replayed=True) == []
    again.restore(story.metered.state)
    turn = again.begin()
    again.update(turn, openhands(12330, 403, 10030, Decimal("0.0")))
    assert again.end(turn)[-1].usage == Usage(1200, 5020, 0, 202)


def test_counters_in_the_history_of_a_loaded_session_are_no_work() -> None:
    story = Story(OPENHANDS)
    story.open("load")
    for total in (1, 2, 3):
        assert story.update(None, openhands(1000 * total, 100 * total, cost=Decimal(total)), replayed=True) == []
    turn = story.begin()
    story.update(turn, openhands(4000, 400, cost=Decimal(5)))
    row = story.end(turn)[-1]
    assert (row.usage, row.costs) == (Usage(1000, 0, 0, 100), (usd("2"),))


def test_an_agent_that_tells_what_its_provider_does_is_estimated_until_it_has_told_something() -> None:
    story = Story(NANOCODER)
    story.open()
    assert story.turn(chars=40, output_chars=40).usage_source == "estimated"
    assert story.turn(inclusive(6411, 201)).usage == Usage(6411, 0, 0, 201)
    assert story.turn(chars=40, output_chars=40).usage_source == "none"


# -- estimates


def test_each_context_that_a_silent_agent_tells_in_a_turn_is_one_call_of_it() -> None:
    story = Story(ZED_CODEX)
    story.open()
    turn = story.begin(chars=40)
    for used in (6612, 6724, 6724):  # the last one is repeated
        story.report(turn, used=used, size=258_400)
    row = story.end(turn, tool_calls=1, output_chars=40, thought_chars=8, tool_chars=400)[-1]
    assert (row.usage, row.usage_source) == (Usage(13336 - 12, 0, 0, 10, 2), "estimated")
    assert "by the context of each call" in row.detail


def test_a_context_that_is_repeated_from_before_the_turn_is_no_call() -> None:
    story = Story(ZED_CODEX)
    story.open()
    story.turn(used=6612, output_chars=40)
    row = story.turn(used=6612, chars=8, output_chars=4)
    assert (row.usage, row.usage_source) == (Usage(2, 0, 0, 1), "estimated")


def test_a_call_that_was_cut_short_sent_the_context_before_it() -> None:
    story = Story(ZED_CODEX)
    story.open()
    story.turn(used=6612, output_chars=40)
    row = story.turn(used=6612, stop="cancelled", chars=20, output_chars=60)
    assert (row.usage, row.usage_source) == (Usage(6617, 0, 0, 15), "estimated")
    assert "as one call with the context before it" in row.detail


def test_a_turn_in_which_the_model_said_nothing_is_no_call_with_the_context_before_it() -> None:
    story = Story(KIMI)
    story.open(model="mock")
    story.turn(chars=12, output_chars=32)
    story.report(used=1817, size=128_000)
    assert story.turn(chars=16).usage == Usage(4)


def test_a_context_told_before_a_failure_proves_a_call() -> None:
    story = Story(ZED_CODEX)
    story.open()
    row = story.turn(used=6612, stop="error", output_chars=40)
    assert (row.usage, row.usage_source) == (Usage(6602, 0, 0, 10), "estimated")


def test_an_agent_that_tells_its_context_after_its_turns_sent_at_least_that_with_the_next() -> None:
    story = Story(KIMI)
    story.open(model="mock")
    assert story.turn(chars=12, output_chars=32).usage == Usage(3, 0, 0, 8)  # nothing is known yet
    story.report(used=1817, size=128_000)
    assert story.turn(chars=16, output_chars=32).usage == Usage(1821, 0, 0, 8)


def test_a_cancelled_turn_of_an_agent_whose_usage_told_its_context_is_not_guessed_from_characters_alone() -> None:
    story = Story(GEMINI)
    story.open()
    story.turn(quota=Counters(6220, 150))
    row = story.turn(stop="cancelled", chars=20, output_chars=64)
    assert (row.usage, row.usage_source) == (Usage(6375, 0, 0, 16), "estimated")


def test_a_context_that_was_itself_only_guessed_is_no_ground_for_more() -> None:
    story = Story(CLINE)
    story.open()
    for _ in range(3):
        assert story.turn(chars=40, output_chars=40).usage == Usage(10, 0, 0, 10)


def test_a_context_that_the_ledger_knows_is_that_before_the_first_turn() -> None:
    story = Story(KIMI)
    story.open("load")
    story.restore(SessionState(context_used=2753, context_size=128_000))
    assert story.turn(chars=40, output_chars=40).usage == Usage(2763, 0, 0, 10)


def test_after_a_restart_a_context_that_is_told_too_late_is_what_it_was_before_and_a_turn_more() -> None:
    story = Story(KIMI)
    story.open()
    story.turn(chars=12, output_chars=32)
    story.report(used=1817, size=128_000)
    story.turn(chars=16, output_chars=32)
    known = story.metered.state
    assert (known.context_used, known.context_estimated) == (1829, True)
    story = Story(KIMI)
    story.open("load")
    story.restore(known)
    assert story.turn(chars=40, output_chars=40).usage == Usage(1839, 0, 0, 10)


def test_the_context_of_an_earlier_session_of_the_same_id_is_not_that_of_a_new_one() -> None:
    story = Story(KIMI)
    story.open("new")
    story.restore(SessionState(context_used=2753, context_size=128_000))
    assert story.turn(chars=40, output_chars=40).usage == Usage(10, 0, 0, 10)


def test_a_session_that_has_the_id_of_one_before_it_begins_anew() -> None:
    silent, cumulative = Story(KIMI), Story(HERMES)
    hows: tuple[Opening, ...] = ("new", "new", "fork", "fork")
    for how in hows:
        for story in (silent, cumulative):
            story.open(how, parent="other" if how == "fork" else None)
        assert silent.turn(chars=40, output_chars=40).usage == Usage(10, 0, 0, 10)
        silent.report(used=2753, size=128_000)
        assert cumulative.turn(inclusive(100, 10)).usage.total == 110


def test_a_context_that_grows_while_a_turn_runs_is_one_call_with_the_largest() -> None:
    story = Story(CLINE)
    story.open()
    turn = story.begin(chars=40)
    for used in (6000, 6100):
        story.report(turn, used=used, size=200_000)
    assert story.end(turn, output_chars=40)[-1].usage.total == 6100


def test_a_cancelled_turn_in_which_the_model_only_thought_is_estimated() -> None:
    story = Story(CODEX)
    story.open(model="mock")
    row = story.turn(stop="cancelled", chars=8, thought_chars=80)
    assert (row.usage, row.usage_source) == (Usage(2, 0, 0, 0, 20), "estimated")


def test_an_estimate_is_never_more_than_the_window_holds() -> None:
    told, before, nothing = Story(ZED_CODEX), Story(KIMI), Story(CLINE)
    for story in (told, before, nothing):
        story.open(model="mock")  # a window of 200,000
    assert told.turn(used=300_000, output_chars=40).usage == Usage(199_990, 0, 0, 10)
    before.report(used=150_000)
    assert before.turn(chars=400_000, output_chars=40).usage == Usage(199_990, 0, 0, 10)
    assert nothing.turn(tool_chars=4_000_000, tool_calls=1, output_chars=40).usage.total == 400_000


def test_an_estimate_says_that_the_prompt_is_not_in_it() -> None:
    story = Story(KIMI)
    story.open()
    assert "without the prompt" in story.turn(output_chars=40).detail
    assert "without the prompt" not in story.turn(chars=4, output_chars=40).detail


def test_of_an_agent_that_nobody_described_several_contexts_in_a_turn_may_be_one_growing_call() -> None:
    story = Story(STRANGER)
    story.open()
    turn = story.begin(chars=40)
    for used in (6412, 6500, 6612):
        story.report(turn, used=used, size=200_000)
    row = story.end(turn, output_chars=40)[-1]
    assert (row.usage, row.usage_source) == (Usage(6612, 0, 0, 10), "estimated")


# -- agents that nobody described


def test_an_unknown_agent_counts_per_turn_and_its_rows_say_that_this_is_a_guess() -> None:
    story = Story(STRANGER)
    story.open()
    row = story.turn(disjoint(1000, 50, 0, 100), used=1150)
    assert row.usage == Usage(1000, 50, 0, 100)
    assert "unknown agent" in row.detail
    assert "caches beside input" in row.detail


def test_an_unknown_agent_that_tells_no_parts_is_not_said_to_have_them_beside() -> None:
    story = Story(STRANGER)
    story.open()
    assert story.turn(Counters(1000, 100, 1100)).detail.endswith("neither caches nor thinking are told apart")


def test_a_sum_over_the_calls_of_a_turn_with_tools_does_not_mark_an_agent_as_cumulative() -> None:
    story = Story(STRANGER)
    story.open()
    for calls, context in ((1, 1000), (2, 1200), (4, 1400), (1, 1500)):
        row = story.turn(inclusive(calls * context - 100, 100), used=context, tool_calls=calls - 1)
        assert (row.usage.prompt, row.usage_source) == (calls * context - 100, "agent")


def test_more_than_the_calls_of_a_turn_with_tools_can_have_sent_marks_an_agent_as_cumulative() -> None:
    story = Story(STRANGER)
    story.open()
    story.turn(inclusive(1900, 200), used=1000, tool_calls=1)
    row = story.turn(inclusive(4200, 400), used=1200, tool_calls=1)
    assert row.usage == Usage(2300, 0, 0, 200)


def test_a_context_that_is_only_guessed_hides_no_cumulative_counters() -> None:
    story = Story(STRANGER)
    story.open()
    story.turn(inclusive(1610, 207), used=8665)
    assert story.turn(inclusive(6800, 800), used=8908, tool_calls=1).usage == Usage(5190, 0, 0, 593)


def test_a_turn_after_one_that_was_cancelled_with_zeros_does_not_mark_an_agent_as_cumulative() -> None:
    story = Story(STRANGER)
    story.open()
    story.turn(inclusive(1000, 100), used=1100)
    story.turn(inclusive(0, 0), used=1100, stop="cancelled")
    for total in (1200, 1300):
        assert story.turn(inclusive(total, 100), used=total + 100).usage.prompt == total


def test_of_an_unknown_agent_usage_that_one_call_can_have_had_is_at_least_that_after_tools() -> None:
    story = Story(STRANGER)
    story.open()
    row = story.turn(inclusive(1000, 100), used=1100, tool_calls=1)
    assert (row.usage.total, row.usage_source) == (1100, "partial")
    assert row.detail.endswith("no more than one of several model calls")


def test_the_first_counters_after_a_load_are_not_the_turns_when_it_cannot_have_sent_so_much() -> None:
    story = Story(STRANGER)
    story.open("load")
    row = story.turn(inclusive(21_000, 2300), used=1817, output_chars=40)
    assert (row.usage, row.usage_source) == (NOTHING, "none")
    assert story.turn(inclusive(22_900, 2400), used=1920).usage == Usage(1900, 0, 0, 100)


def test_counters_that_outgrow_the_context_mark_an_unknown_agent_as_cumulative() -> None:
    story = Story(STRANGER)
    story.open()
    story.turn(inclusive(1000, 100), used=1100)
    row = story.turn(inclusive(2200, 220), used=1320)
    assert row.usage == Usage(1200, 0, 0, 120)
    assert "cumulative" in row.detail
    assert story.turn(inclusive(3600, 360), used=1540).usage == Usage(1400, 0, 0, 140)


def test_what_a_cancelled_turn_used_comes_with_the_next_counters_of_an_agent_that_was_found_to_be_cumulative() -> None:
    story = Story(STRANGER)
    story.open()
    story.turn(inclusive(1000, 100), used=1100)
    story.turn(inclusive(2200, 220), used=1320)
    assert story.turn(used=1320, stop="cancelled", output_chars=40).usage_source == "none"
    assert story.turn(inclusive(5000, 500), used=1600).usage == Usage(2800, 0, 0, 280)


def test_after_a_load_counters_go_on_from_the_turn_before_and_not_from_another_process() -> None:
    story = Story(STRANGER)
    story.open("load")
    story.restore(SessionState(counters=inclusive(21_000, 2300), context_used=1800))
    story.turn(inclusive(1000, 100), used=1900)
    row = story.turn(inclusive(2100, 220), used=2000)
    assert (row.usage, "cumulative" in row.detail) == (Usage(1100, 0, 0, 120), True)
    assert story.turn(inclusive(3400, 360), used=2100).usage == Usage(1300, 0, 0, 140)


def test_a_cancelled_turn_of_an_unknown_agent_that_has_the_counters_of_the_one_before_repeats_them() -> None:
    story = Story(STRANGER)
    story.open()
    rows = (ModelCounters("mock", inclusive(1000, 100)),)
    for _ in range(2):  # two turns may well use the same
        assert story.turn(inclusive(1000, 100), model_usage=rows).usage.total == 1100
    story.turn(inclusive(1000, 100), model_usage=rows, stop="cancelled")
    assert [(row.usage.total, row.usage_source) for row in story.rows[2:]] == [(0, "none")]


def test_who_tells_its_counters_by_model_too_has_retried_a_stream_and_is_not_cumulative() -> None:
    story = Story(STRANGER)
    story.open()
    story.turn(disjoint(1000, output=100), used=1100)
    once = ModelCounters("mock", disjoint(1200, output=100))
    row = story.turn(disjoint(2400, output=110), used=1300, model_usage=(once,))
    assert (row.usage, "per turn" in row.detail) == (Usage(1200, 0, 0, 100), True)


def test_counters_that_grow_as_the_context_does_stay_per_turn() -> None:
    story = Story(STRANGER)
    story.open()
    for total in (1000, 1200, 1400):
        assert story.turn(inclusive(total, 100), used=total + 100).usage == Usage(total, 0, 0, 100)


def test_counters_that_fall_take_the_guess_back() -> None:
    story = Story(STRANGER)
    story.open()
    story.turn(inclusive(1000, 100), used=1100)
    story.turn(inclusive(9000, 900), used=1500)
    for _ in range(2):
        assert story.turn(inclusive(1600, 100), used=1700).usage == Usage(1600, 0, 0, 100)


def test_an_unknown_agent_that_tells_what_gemini_tells_leaves_out_its_thinking_too() -> None:
    story = Story(STRANGER)
    story.open()
    row = story.turn(quota=Counters(6220, 150))
    assert (row.usage, row.usage_source) == (Usage(6220, 0, 0, 150), "partial")


def test_an_unknown_agent_that_tells_each_call_as_qwen_does_is_summed() -> None:
    story = Story(STRANGER)
    story.open()
    turn = story.begin()
    for prompt in (6110, 6220):
        story.update(turn, qwen_call(prompt, 201, 5010), {"content": {"type": "text", "text": ""}})
    story.update(turn, qwen_call(9, 9), {"content": {"type": "text", "text": "said"}})
    row = story.end(turn, tool_calls=1)[-1]
    assert (row.usage, row.usage_source) == (Usage(2310, 10020, 0, 402), "agent")
    assert row.detail == "unknown agent: usage told call by call"


def test_what_an_unknown_agent_tells_of_the_turn_stands_for_what_it_told_of_calls() -> None:
    story = Story(STRANGER)
    story.open()
    turn = story.begin()
    story.update(turn, qwen_call(6110, 201), {"content": {"type": "text", "text": ""}})
    assert story.end(turn, inclusive(6110, 201))[-1].usage == Usage(6110, 0, 0, 201)


def test_the_configuration_says_what_cannot_be_guessed() -> None:
    story = Story(STRANGER, profiles={"my-agent": ProfileOverride("session", "includes_cache")})
    story.open()
    story.turn(Counters(1000, 100, None, None, 600))
    assert story.turn(Counters(2200, 220, None, None, 1300)).usage == Usage(500, 700, 0, 120)


def test_the_users_name_for_an_agent_wins_over_its_own() -> None:
    story = Story(("wrapper", "9.9"), agent_name="Copilot")
    story.open()
    story.turn(inclusive(100, 10))
    assert story.turn(inclusive(300, 30)).usage == Usage(200, 0, 0, 20)


# -- turns that failed, or ended early


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


def test_what_is_reported_while_two_prompts_wait_belongs_to_the_older() -> None:
    story = Story(OPENCODE)
    story.open()
    first, second = story.begin(), story.begin()
    story.report(first, used=100, cost="0.5")
    refused = story.end(second, stop="error", updates=0, behind=True)[-1]
    assert (refused.costs, refused.usage) == ((), NOTHING)
    row = story.end(first, Counters(80, 20, 100))[-1]
    assert (row.costs[0].text, row.usage_source) == ("0.5", "agent")  # nothing waits any more

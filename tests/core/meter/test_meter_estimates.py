"""Turns of agents that say little or nothing: what they must have used, as far as anything shows it."""

from __future__ import annotations

from decimal import Decimal

from acp_proxy.core.entry import SessionState
from acp_proxy.core.events import Counters, Opening
from acp_proxy.core.usage import NOTHING, Usage
from tests.core.story import (
    BOX,
    CLINE,
    CODEX,
    CROW,
    FAST,
    GEMINI,
    HERMES,
    KIMI,
    NANOCODER,
    NOOA,
    OPENHANDS,
    PRICES,
    UNKNOWN_AGENT,
    ZED_CODEX,
    LongContext,
    Story,
    inclusive,
    openhands,
    usd,
)


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


def test_usage_as_text_without_digits_is_told_as_nothing() -> None:
    story = Story(FAST)
    story.open()
    turn = story.begin()
    story.update(turn, {"field_meta": {"openhands.dev/metrics": {"status_line": ", in, 9 out"}}})
    assert story.end(turn)[-1].usage == Usage(output=9)


def test_usage_as_text_is_told_in_mid_turn_when_it_has_moved() -> None:
    story = Story(FAST)
    story.open()
    turn = story.begin()
    for line in ("1,200 in, 9 out", "1,200 in, 9 out", "3,770 in, 449 out, 1 tools"):
        story.update(turn, {"field_meta": {"openhands.dev/metrics": {"status_line": line}}})
    assert [change.lower_bound.total for change in story.changes] == [1209, 4219]


def test_an_estimated_turn_is_one_call_when_the_price_of_long_ones_is_chosen() -> None:
    for chars, times in ((100_000, 1), (2_000_000, 2)):
        story = Story(UNKNOWN_AGENT, LongContext(PRICES.rates))
        story.open(model="mock")
        story.report(size=1_000_000)
        row = story.turn(chars=chars, output_chars=40)
        price = PRICES.price("mock", row.usage, 1).cost
        assert price
        assert ([cost.nano for cost in row.costs], row.usage_source) == ([price.nano * times], "estimated")


def test_box_agent_tells_what_a_turn_has_used_as_the_output_of_a_tool() -> None:
    story = Story(BOX)
    story.open()
    turn = story.begin()
    for calls in (1, 2):
        used = {"promptTokens": 6000 * calls, "completionTokens": 200 * calls, "totalTokens": 6200 * calls}
        story.update(turn, {}, {"rawOutput": {"type": "turn_usage", "tokenUsage": used}})
    story.update(turn, {}, {"rawOutput": {"type": "other", "tokenUsage": {"promptTokens": 1, "completionTokens": 1}}})
    row = story.end(turn, tool_calls=1)[-1]
    assert (row.usage, row.usage_source) == (Usage(12_000, output=400), "agent")
    assert [change.lower_bound.total for change in story.changes] == [6200, 12_400]


def test_zeros_of_box_agent_stand_for_a_provider_that_tells_nothing() -> None:
    story = Story(BOX)
    story.open()
    turn = story.begin()
    nothing = {"promptTokens": 0, "completionTokens": 0, "totalTokens": 0}
    story.update(turn, {}, {"rawOutput": {"type": "turn_usage", "tokenUsage": nothing}})
    row = story.end(turn, output_chars=80)[-1]
    assert (row.usage.output, row.usage_source) == (20, "estimated")


def test_half_of_what_box_agent_tells_is_at_least_that() -> None:
    story = Story(BOX)
    story.open()
    turn = story.begin()
    story.update(turn, {}, {"rawOutput": {"type": "turn_usage", "tokenUsage": {"promptTokens": 6000}}})
    row = story.end(turn)[-1]
    assert (row.usage, row.usage_source) == (Usage(6000), "partial")


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


def test_the_tokens_of_an_agent_that_tells_its_contexts_and_its_cost_alone_are_estimated() -> None:
    """As NOOA does: a budget in tokens would never end of what costs money and counts nothing."""
    story = Story(UNKNOWN_AGENT)
    story.open(model="mock")
    row = story.turn(used=6110, cost="0.25", output_chars=400)
    assert (row.usage, row.usage_source) == (Usage(6110, 0, 0, 100, 0), "estimated")
    assert (row.costs, row.cost_source) == ((usd("0.25"),), "agent")
    assert row.detail == "the agent tells its cost, not its tokens: as one call with the context that it told"


def test_a_cost_is_all_that_is_known_of_a_turn_that_was_cut_short_or_may_not_be_guessed() -> None:
    for estimate, stop in ((True, "cancelled"), (False, "end_turn")):
        story = Story(UNKNOWN_AGENT, estimate=estimate)
        story.open(model="mock")
        row = story.turn(used=6110, cost="0.25", output_chars=400, stop=stop)
        assert (row.usage, row.usage_source, row.costs) == (NOTHING, "partial", (usd("0.25"),))


def test_contexts_of_an_agent_that_never_tells_usage_prove_calls_of_a_turn_that_was_cut_short_and_cost() -> None:
    story = Story(NOOA)
    story.open(model="mock")
    turn = story.begin()
    story.report(turn, used=6110, cost="0.25")
    story.report(turn, used=6220, cost="0.5")
    (row,) = story.end(turn, stop="cancelled")
    assert (row.usage, row.usage_source, row.costs) == (Usage(12330), "estimated", (usd("0.5"),))


def test_an_unknown_agent_that_has_told_usage_once_and_now_only_its_cost_is_not_guessed_at() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open(model="mock")
    story.turn(inclusive(3000, 50), used=3000, cost="0.1", output_chars=200)
    row = story.turn(used=3300, cost="0.25", output_chars=400)
    assert (row.usage, row.usage_source, row.costs) == (NOTHING, "partial", (usd("0.15"),))


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


def test_a_first_turn_of_which_nothing_is_told_or_guessed_has_no_context() -> None:
    """What passed is the smallest part of what a model was sent, and no ground for what an editor shows."""
    for story in (Story(CODEX), Story(CLINE, estimate=False)):
        story.open(model="mock")
        row = story.turn(chars=60, output_chars=80)
        assert (row.usage_source, row.context_used) == ("none", None)
        assert story.metered.state.context_used is None


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
    row = story.end(turn, tool_calls=1, output_chars=40)[-1]
    assert row.usage.total == 6100
    assert row.detail.endswith("as one call with the context that it told")


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
    story = Story(UNKNOWN_AGENT)
    story.open()
    turn = story.begin(chars=40)
    for used in (6412, 6500, 6612):
        story.report(turn, used=used, size=200_000)
    row = story.end(turn, output_chars=40)[-1]
    assert (row.usage, row.usage_source) == (Usage(6612, 0, 0, 10), "estimated")
    assert row.detail.endswith("as one call with the context that it told")


def test_of_an_agent_that_nobody_described_contexts_are_of_a_call_more_than_tools_at_most() -> None:
    for tool_calls, calls in ((1, 2), (2, 3), (9, 3)):
        story = Story(UNKNOWN_AGENT)
        story.open()
        turn = story.begin(chars=40)
        for used in (6400, 6500, 6600):
            story.report(turn, used=used, size=200_000)
        row = story.end(turn, tool_calls=tool_calls, output_chars=40)[-1]
        assert (row.usage, row.usage_source) == (Usage(6500 * calls, 0, 0, 10), "estimated")
        assert row.detail.endswith("by its contexts, as a call more than tools at most")


def test_an_agent_that_tells_its_calls_by_protocol_version_two_alone_is_estimated_by_contexts_in_version_one() -> None:
    story = Story(CROW)
    story.open()
    for _ in range(2):
        turn = story.begin(chars=40)
        for used in (6400, 6500):
            story.report(turn, used=used, size=190_000)
            story.report(turn, used=used, size=190_000)
        row = story.end(turn, tool_calls=1, output_chars=40)[-1]
        assert (row.usage, row.usage_source) == (Usage(12_890, 0, 0, 10), "estimated")


def test_an_estimate_has_no_more_output_and_thinking_than_its_context_holds() -> None:
    for output, thought, usage in (
        (4000, 0, Usage(output=100)),
        (0, 4000, Usage(thought=100)),
        (4000, 160, Usage(output=60, thought=40)),
    ):
        story = Story(ZED_CODEX)
        story.open(model="mock")
        row = story.turn(used=100, output_chars=output, thought_chars=thought)
        assert (row.usage, row.usage_source) == (usage, "estimated")

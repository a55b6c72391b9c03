"""Which rows an event makes, and what is known of the session after it."""

from __future__ import annotations

import pytest

from acp_proxy.core.entry import Entry, SessionState
from acp_proxy.core.events import (
    ChildSessionSeen,
    Compacted,
    Counters,
    ModelCounters,
    ModelSelected,
    SessionInfoChanged,
    Turn,
    TurnStarted,
    UpdateSeen,
)
from acp_proxy.core.meter.model_rows import Spread, spread
from acp_proxy.core.usage import NOTHING, Usage
from tests.core.story import (
    CLAUDE,
    CODEX,
    GEMINI,
    KIMI,
    OPENCODE,
    QWEN,
    UNKNOWN_AGENT,
    Story,
    disjoint,
    inclusive,
    qwen_call,
    usd,
)

OPUS = {"_claude/model": "claude-opus-5-5"}


def subagent(input: int, output: int, tools: int = 0) -> dict[str, object]:
    """What claude-agent-acp sends with the result of its tool `Agent`."""
    usage = {"input_tokens": input, "output_tokens": output, "cache_read_input_tokens": 0}
    response = {"agentId": "a1", "resolvedModel": "claude-opus-5-5", "totalToolUseCount": tools, "usage": usage}
    return {"claudeCode": {"toolName": "Agent", "toolResponse": response}}


# -- rows by model


def test_rows_that_add_up_to_the_usage_make_one_line_per_model() -> None:
    story = Story(CODEX)
    story.open()
    rows = (ModelCounters("claude-opus-5-5", disjoint(100, 0, 0, 10)), ModelCounters("haiku", disjoint(50, 0, 0, 5)))
    row = story.turn(disjoint(150, 0, 0, 15), model_usage=rows)
    assert [(line.model, line.usage.total) for line in row.lines] == [("claude-opus-5-5", 110), ("haiku", 55)]
    assert row.costs == (usd("0.000675"),)
    assert len(story.rows) == 1


def test_the_row_of_an_alias_belongs_to_the_concrete_model_beside_it() -> None:
    story = Story(GEMINI)
    story.open(model="auto")
    rows = (ModelCounters("auto", Counters(6330, 150)), ModelCounters("gemini-3.8-flash", Counters(6220, 150)))
    row = story.turn(quota=Counters(12550, 300), model_usage=rows)
    assert [(line.model, line.usage) for line in row.lines] == [("gemini-3.8-flash", Usage(12550, 0, 0, 300))]


def test_an_alias_alone_keeps_its_name_and_has_no_price() -> None:
    story = Story(GEMINI)
    story.open()
    row = story.turn(quota=Counters(100, 10), model_usage=(ModelCounters("auto", Counters(100, 10)),))
    assert (row.model, row.cost_source) == ("auto", "unknown")


def test_a_turn_that_used_nothing_is_one_of_the_model_that_its_rows_name() -> None:
    used = Usage(100, 0, 0, 10)
    assert spread(NOTHING, [("haiku", used)], None) == Spread((("haiku", NOTHING),), (("haiku", used),))
    assert spread(NOTHING, [("haiku", used)], "opus") == Spread((("opus", NOTHING),), (("haiku", used),))


def test_what_rows_hold_beyond_the_usage_is_a_row_beside_the_turn() -> None:
    story = Story(CLAUDE)
    story.open()
    turn = story.begin()
    story.report(turn, used=6724, cost="0.022281", meta=OPUS)
    rows = (ModelCounters("haiku", disjoint(10, 0, 0, 1)), ModelCounters("claude-opus-5-5", disjoint(230, 0, 0, 40)))
    side, own = story.end(turn, disjoint(120, 0, 0, 20), model_usage=rows)
    assert (own.kind, own.usage, own.costs) == ("turn", Usage(120, 0, 0, 20), (usd("0.022281"),))
    assert (side.kind, side.cost_source, side.costs, side.unpriced) == ("side", "parent", (), False)
    assert {line.model: line.usage.total for line in side.lines} == {"haiku": 11, "claude-opus-5-5": 130}


def test_the_turns_own_model_is_served_first_from_the_rows_however_large_others_are() -> None:
    story = Story(CLAUDE)
    story.open()
    turn = story.begin()
    story.report(turn, used=120, cost="0.01", meta=OPUS)
    rows = (ModelCounters("haiku", disjoint(9000, 0, 0, 90)), ModelCounters("claude-opus-5-5", disjoint(100, 0, 0, 20)))
    side, own = story.end(turn, disjoint(100, 0, 0, 20), model_usage=rows)
    assert [line.model for line in own.lines] == ["claude-opus-5-5"]
    assert [line.model for line in side.lines] == ["haiku"]


def test_rows_that_are_smaller_than_the_usage_are_right() -> None:
    story = Story(CLAUDE)
    story.open()
    rows = (ModelCounters("claude-opus-5-5", disjoint(1700, 5070, 307, 207)),)
    row = story.turn(disjoint(3300, 10130, 613, 208), cost="0.026124", model_usage=rows)
    assert row.usage == Usage(1700, 5070, 307, 207)
    assert "retried" in row.detail
    assert len(story.rows) == 1


def test_a_retried_stream_beside_a_suggestion_of_the_same_model_leaves_the_turn_at_least_what_both_tell() -> None:
    story = Story(CLAUDE)
    story.open()
    rows = (ModelCounters("claude-opus-5-5", disjoint(15800, 11380, 738, 538)),)
    side, own = story.end(story.begin(), disjoint(15900, 11390, 739, 271), model_usage=rows)
    assert (own.usage, own.usage_source) == (Usage(15800, 11380, 738, 271), "partial")
    assert (side.kind, side.usage) == ("side", Usage(0, 0, 0, 267))


def test_what_the_rows_leave_out_is_the_turns_all_the_same() -> None:
    story = Story(CLAUDE)
    story.open()
    rows = (ModelCounters("claude-opus-5-5", Counters(1700, 207)), ModelCounters("haiku", Counters(40, 5)))
    row = story.turn(disjoint(1740, 5070, 307, 212), cost="0.026124", model_usage=rows)
    assert {line.model: line.usage for line in row.lines} == {
        "claude-opus-5-5": Usage(1700, 5070, 307, 207),
        "haiku": Usage(40, 0, 0, 5),
    }
    assert len(story.rows) == 1
    assert "retried" not in row.detail


def test_a_row_that_only_names_a_model_takes_nothing_from_the_turn() -> None:
    story = Story(CLAUDE)
    story.open()
    row = story.turn(disjoint(1740, 5070, 307, 212), model_usage=(ModelCounters("haiku", Counters()),))
    assert [(line.model, line.usage) for line in row.lines] == [("haiku", Usage(1740, 5070, 307, 212))]


@pytest.mark.parametrize("told_by", ["usage", "rows"])
def test_thinking_that_only_the_usage_or_only_the_rows_tell_apart_is_the_turns(told_by: str) -> None:
    story = Story(CODEX)
    story.open()
    with_it, without = Counters(100, 60, 160, 40), Counters(100, 60, 160)
    usage, row = (with_it, without) if told_by == "usage" else (without, with_it)
    entry = story.turn(usage, model_usage=(ModelCounters("haiku", row),))
    assert [line.usage for line in entry.lines] == [Usage(100, 0, 0, 20, 40)]
    assert len(story.rows) == 1
    assert "retried" not in entry.detail


def test_thinking_of_a_title_is_not_the_turns_though_its_usage_tells_none_apart() -> None:
    story = Story(CLAUDE)
    story.open(model="claude-opus-5-5")
    rows = (ModelCounters("claude-opus-5-5", Counters(100, 60, 160)), ModelCounters("haiku", Counters(50, 30, 80, 20)))
    side, own = story.end(story.begin(), Counters(100, 60, 160), model_usage=rows)
    assert [(line.model, line.usage) for line in own.lines] == [("claude-opus-5-5", Usage(100, 0, 0, 60))]
    assert [(line.model, line.usage) for line in side.lines] == [("haiku", Usage(50, 0, 0, 10, 20))]


def test_rows_beside_a_cancelled_turn_are_not_its_own() -> None:
    story = Story(CLAUDE)
    story.open()
    rows = (ModelCounters("claude-opus-5-5", disjoint(1300, 5030, 303, 203)),)
    row = story.turn(disjoint(0), cost="0.011781", stop="cancelled", model_usage=rows)
    assert [entry.kind for entry in story.rows] == ["side", "turn"]
    assert row.usage.total == 0


# -- subagents


def test_a_subagent_is_not_booked_again_as_an_excess_of_the_rows() -> None:
    story = Story(CLAUDE)
    story.open()
    turn = story.begin()
    story.report(turn, cost="0.1", meta=OPUS)
    story.update(turn, subagent(1900, 209), {"toolCallId": "t1"})
    rows = (ModelCounters("claude-opus-5-5", disjoint(3800 + 1900 + 70, 0, 0, 418 + 209 + 7)),)
    helper, side, own = story.end(turn, disjoint(3800, 0, 0, 418), tool_calls=1, model_usage=rows)
    assert (helper.kind, helper.usage, helper.cost_source, helper.usage_source) == (
        "subagent",
        Usage(1900, 0, 0, 209),
        "parent",
        "agent",
    )
    assert (side.kind, side.usage) == ("side", Usage(70, 0, 0, 7))
    assert own.usage == Usage(3800, 0, 0, 418)


def test_of_a_subagent_with_tools_only_the_last_call_is_told() -> None:
    story = Story(CLAUDE)
    story.open()
    turn = story.begin()
    story.update(turn, subagent(1900, 209, tools=3), {"toolCallId": "t1"})
    helper, _ = story.end(turn, disjoint(1, 0, 0, 1), tool_calls=1)
    assert (helper.kind, helper.usage_source) == ("subagent", "partial")


def test_usage_of_a_tool_that_is_no_subagent_makes_no_row() -> None:
    story = Story(CLAUDE)
    story.open(model="claude-opus-5-5")
    turn = story.begin()
    response = {"usage": {"input_tokens": 100, "output_tokens": 10}}
    story.update(turn, {"claudeCode": {"toolResponse": response}}, {"toolCallId": "t1"})
    assert [row.kind for row in story.end(turn, disjoint(1100, 10), tool_calls=1)] == ["turn"]


def test_qwens_subagent_counts_once_though_it_is_told_twice() -> None:
    story = Story(QWEN)
    story.open(model="mock")
    turn = story.begin()
    call = {"inputTokens": 7320, "outputTokens": 212, "totalTokens": 7532, "cachedReadTokens": 5120}
    story.update(turn, {"usage": call, "parentToolCallId": "t1"})
    summary = {"inputTokens": 7320, "outputTokens": 212, "totalTokens": 7532, "cachedTokens": 5120}
    story.update(turn, {}, {"toolCallId": "t1", "rawOutput": {"executionSummary": summary}})
    story.update(turn, {"usage": {"inputTokens": 10, "outputTokens": 1, "totalTokens": 11}})
    helper, own = story.end(turn, tool_calls=1)
    assert (helper.kind, helper.usage, helper.cost_source) == ("subagent", Usage(2200, 5120, 0, 212), "computed")
    assert own.usage == Usage(10, 0, 0, 1)


def test_a_subagent_of_qwen_that_was_only_summed_up_counts_by_its_sum() -> None:
    story = Story(QWEN)
    story.open()
    turn = story.begin()
    summary = {"inputTokens": 100, "outputTokens": 10, "totalTokens": 110}
    story.update(turn, {}, {"toolCallId": "t1", "rawOutput": {"executionSummary": summary}})
    helper, _ = story.end(turn, tool_calls=1)
    assert (helper.kind, helper.usage) == ("subagent", Usage(100, 0, 0, 10))


def test_what_a_subagent_with_a_session_of_its_own_used_is_a_row_of_its_own() -> None:
    def idle(story: Story, turn: Turn | None, usage: dict[str, int]) -> list[Entry]:
        fields = {"state": "idle", "usage": usage}
        return story.tell(UpdateSeen(story.now(), "s", turn, "state_update", {}, fields, child="kid"))

    story = Story(CODEX)
    story.open(model="mock")
    turn = story.begin()
    for _ in range(2):
        assert idle(story, turn, {"inputTokens": 50, "outputTokens": 5, "totalTokens": 55}) == []
    child, own = story.end(turn, disjoint(100, 0, 0, 10))
    assert (child.kind, child.usage, child.costs) == ("subagent", Usage(100, 0, 0, 10), (usd("0.000002"),))
    assert own.usage == Usage(100, 0, 0, 10)
    (later,) = idle(story, None, {"inputTokens": 50, "outputTokens": 5})
    assert (later.kind, later.usage.total) == ("subagent", 55)


def test_a_childs_context_is_not_the_sessions() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open()
    story.report(used=9000, size=200_000)
    story.tell(ChildSessionSeen(story.now(), "s", "c"))
    story.report(used=300, size=200_000, child="c")
    assert story.turn(inclusive(100, 10), tool_calls=1).context_used == 9000


# -- work without a prompt


def test_a_cost_between_turns_is_work_without_a_prompt() -> None:
    story = Story(CLAUDE)
    story.open()
    story.turn(disjoint(1, 0, 0, 1), cost="0.058905")
    (row,) = story.report(used=7172, cost="0.071967", meta=OPUS | {"_claude/origin": {"kind": "task-notification"}})
    assert (row.kind, row.costs, row.cost_source, row.stop_reason) == ("autonomous", (usd("0.013062"),), "agent", None)
    assert (row.model, row.usage_source, row.usage.total) == ("claude-opus-5-5", "none", 0)
    assert story.metered.reported_cost


def test_a_background_tasks_cost_is_not_the_cost_of_the_prompt_that_waits() -> None:
    story = Story(CLAUDE)
    story.open()
    turn = story.begin()
    (row,) = story.report(turn, cost="0.013", meta={"_claude/origin": {"kind": "task-notification"}})
    assert (row.kind, row.costs) == ("autonomous", (usd("0.013"),))
    story.report(turn, cost="0.02", meta={"_claude/origin": {"kind": "human"}})
    assert story.end(turn, disjoint(1, 0, 0, 1))[-1].costs == (usd("0.007"),)


def test_a_background_tasks_cost_after_the_prompts_own_cannot_be_told_apart() -> None:
    story = Story(CLAUDE)
    story.open()
    turn = story.begin()
    story.report(turn, cost="0.01", meta={"_claude/origin": {"kind": "human"}})
    assert story.report(turn, cost="0.03", meta={"_claude/origin": {"kind": "task-notification"}}) == []
    assert story.end(turn, disjoint(1, 0, 0, 1))[-1].costs == (usd("0.03"),)


def test_a_run_without_a_prompt_is_its_own_row() -> None:
    story = Story(CLAUDE)
    story.open()
    turn = Turn("r", "s", "autonomous", story.now())
    story.tell(TurnStarted(turn.started_at, "s", turn))
    story.report(turn, cost="0.013", meta={"_claude/origin": {"kind": "task-notification"}})
    (row,) = story.end(turn, disjoint(10, 0, 0, 1))
    assert (row.id, row.kind, row.usage.total, row.costs) == ("r", "autonomous", 11, (usd("0.013"),))


def test_a_compaction_that_nobody_asked_for_is_a_row_once_it_cost_something() -> None:
    story = Story(CLAUDE)
    story.open()
    assert story.tell(Compacted(story.now(), "s", None, status="completed")) == []
    (row,) = story.report(used=2655, cost="0.03")
    assert row.kind == "compaction"
    (row,) = story.report(cost="0.04")
    assert row.kind == "autonomous"


def test_compact_as_a_prompt_is_a_turn() -> None:
    story = Story(CLAUDE)
    story.open()
    turn = story.begin()
    story.tell(Compacted(story.now(), "s", turn))
    assert [row.kind for row in story.end(turn, disjoint(0))] == ["turn"]


# -- identity of rows


def test_a_turns_row_has_the_turns_id_and_every_other_row_one_of_its_own() -> None:
    story = Story(CLAUDE)
    story.open()
    turn = story.begin()
    rows = (ModelCounters("claude-opus-5-5", disjoint(20, 0, 0, 2)),)
    side, own = story.end(turn, disjoint(10, 0, 0, 1), model_usage=rows)
    assert own.id == turn.id
    assert side.id not in ("", turn.id)
    assert (side.started_at, side.ended_at) == (own.started_at, own.ended_at) == (turn.started_at, story.metered.at)


def test_a_turn_during_which_the_clock_was_set_back_began_no_later_than_it_ended() -> None:
    story = Story(CLAUDE)
    story.open()
    turn = story.begin()
    story.at = 0
    own = story.end(turn, disjoint(10, 0, 0, 1))[-1]
    assert own.started_at == own.ended_at == story.metered.at < turn.started_at


def test_a_turn_takes_as_long_as_a_clock_says_that_cannot_be_set() -> None:
    second = 10**9
    for jump in (0, 2, -2, 293_000_000, -293_000_000):
        story = Story(CLAUDE)
        story.at = 300_000_000
        story.open()
        turn = story.begin()
        story.at += 4 + jump
        own = story.end(turn, disjoint(10, 0, 0, 1), duration=5 * second)[-1]
        assert own.ended_at - own.started_at == 5 * second
        back = 5 + jump < 0
        assert (own.started_at == turn.started_at) is not back
        assert not back or own.ended_at == story.metered.at


def test_the_clocks_of_a_long_turn_may_drift_apart() -> None:
    story = Story(CLAUDE)
    story.open()
    turn = story.begin()
    own = story.end(turn, disjoint(10, 0, 0, 1), duration=10**9 // 3)[-1]
    assert own.started_at == turn.started_at


# -- model


def test_a_model_that_is_chosen_while_a_turn_runs_is_for_the_next_one() -> None:
    story = Story(OPENCODE)
    story.open(model="mock")
    turn = story.begin()
    story.tell(ModelSelected(story.now(), "s", "haiku"))
    assert story.end(turn, Counters(100, 10, 110))[-1].model == "mock"
    assert story.metered.state.model == "haiku"
    assert story.turn(Counters(100, 10, 110)).model == "haiku"


def test_codexs_rows_name_the_model_chosen_last_though_the_turn_ran_on_the_one_before() -> None:
    story = Story(CODEX)
    story.open(model="claude-opus-5-5[low]")
    turn = story.begin()
    story.tell(ModelSelected(story.now(), "s", "haiku[high]"))
    rows = (ModelCounters("haiku", disjoint(100, 0, 0, 10)),)
    row = story.end(turn, disjoint(100, 0, 0, 10), model_usage=rows)[-1]
    assert [(line.model, line.cost) for line in row.lines] == [("claude-opus-5-5", usd("0.0006"))]
    assert story.turn(disjoint(100, 0, 0, 10), model_usage=rows).model == "haiku"


def test_a_call_that_is_told_is_one_of_the_model_that_was_chosen_when_its_turn_or_the_tools_before_it_ended() -> None:
    story = Story(QWEN)
    story.open(model="claude-opus-5-5")
    turn = story.begin()
    story.update(turn, qwen_call(100, 10))
    story.tell(ModelSelected(story.now(), "s", "haiku"))
    story.tell(UpdateSeen(story.now(), "s", turn, "tool_call_update", {"toolName": "read_file"}, {}))
    story.tell(ModelSelected(story.now(), "s", "mock"))  # while the next call runs
    story.update(turn, qwen_call(200, 20))
    (row,) = story.end(turn, tool_calls=1)
    assert [(line.model, line.usage, line.cost) for line in row.lines] == [
        ("claude-opus-5-5", Usage(100, output=10), usd("0.0006")),
        ("haiku", Usage(200, output=20), usd("0.0003")),
    ]
    assert row.usage_source == "agent"


def test_calls_of_an_alias_that_is_resolved_in_mid_turn_are_of_one_model() -> None:
    story = Story(QWEN)
    story.open(model="auto")
    turn = story.begin()
    story.update(turn, qwen_call(100, 10))
    story.tell(ModelSelected(story.now(), "s", "haiku"))
    story.tell(UpdateSeen(story.now(), "s", turn, "tool_call_update", {"toolName": "read_file"}, {}))
    story.update(turn, qwen_call(200, 20))
    assert [(line.model, line.usage.input) for line in story.end(turn, tool_calls=1)[-1].lines] == [("haiku", 300)]


def test_an_alias_that_is_resolved_while_a_turn_runs_is_that_turns_model() -> None:
    story = Story(OPENCODE)
    story.open(model="auto")
    turn = story.begin()
    story.tell(ModelSelected(story.now(), "s", "haiku"))
    assert story.end(turn, Counters(100, 10, 110))[-1].model == "haiku"


def test_the_model_is_what_usage_names_before_what_was_chosen() -> None:
    story = Story(CLAUDE)
    story.open(model="default")
    assert story.turn(disjoint(1, 0, 0, 1)).model == "default"
    turn = story.begin()
    story.report(turn, used=10, meta=OPUS)
    assert story.end(turn, disjoint(1, 0, 0, 1))[-1].model == "claude-opus-5-5"
    assert story.turn(disjoint(1, 0, 0, 1)).model == "claude-opus-5-5"
    story.tell(ModelSelected(story.now(), "s", "haiku"))
    assert story.turn(disjoint(1, 0, 0, 1)).model == "haiku"


def test_rows_name_the_model_more_exactly_than_the_option_does() -> None:
    story = Story(CODEX)
    story.open(model="gpt-6.1-sol[high]")
    rows = (ModelCounters("gpt-6.1-sol", disjoint(1, 0, 0, 1)),)
    assert story.turn(disjoint(1, 0, 0, 1), model_usage=rows).model == "gpt-6.1-sol"


# -- context


def test_the_context_is_what_the_agent_says() -> None:
    story = Story(CODEX)
    story.open()
    row = story.turn(disjoint(1100, 5010, 301, 201), used=6612)
    assert (row.context_used, row.context_size) == (6612, 200_000)
    assert not story.metered.state.context_estimated
    assert [(change.state.context_used, change.restored) for change in story.changes] == [(6612, False)]


def test_a_window_that_changes_is_the_one_that_was_told_last() -> None:
    story = Story(CODEX)
    story.open()
    turn = story.begin()
    for used, size in ((100, 200_000), (150, 1_000_000), (180, 128_000)):
        story.report(turn, used=used, size=size)
    row = story.end(turn, disjoint(100, 70, 0, 10))[-1]
    assert (row.context_used, row.context_size) == (180, 128_000)
    assert [change.state.context_size for change in story.changes] == [200_000, 1_000_000, 128_000]


def test_what_was_cached_is_in_the_context_too() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open(model="mock")
    assert story.turn(disjoint(100, 5000, 300, 20)).context_used == 5420


def test_between_turns_the_last_context_stands() -> None:
    story = Story(CODEX)
    story.open()
    story.turn(disjoint(100, 0, 0, 10), used=110)
    assert story.turn(stop="error", updates=0).context_used == 110


def test_zero_is_no_context() -> None:
    story = Story(OPENCODE)
    story.open()
    story.turn(inclusive(100, 10), used=110)
    assert story.turn(inclusive(0, 0), used=0, stop="cancelled").context_used == 110


def test_a_turn_of_one_call_leaves_the_context_at_its_total() -> None:
    story = Story(GEMINI)
    story.open(model="mock")
    row = story.turn(quota=Counters(6220, 150))
    assert (row.context_used, row.context_size) == (6370, 200_000)
    assert not story.metered.state.context_estimated


def test_after_several_calls_the_context_is_estimated_from_the_last_known_one() -> None:
    story = Story(GEMINI)
    story.open()
    story.turn(quota=Counters(6220, 150))
    row = story.turn(quota=Counters(13000, 300), tool_calls=1, chars=40, output_chars=20, tool_chars=20)
    assert row.context_used == 6370 + 20
    assert story.metered.state.context_estimated


def test_what_a_command_of_the_agents_own_shows_is_in_no_context() -> None:
    story = Story(GEMINI)
    story.open(model="mock")
    story.turn(quota=Counters(6220, 150))
    row = story.turn(output_chars=5000)  # `/help`
    assert (row.context_used, row.usage_source) == (6370, "none")
    assert not story.metered.state.context_estimated
    assert story.turn(output_chars=400, stop="cancelled").context_used == 6370 + 100


def test_the_context_of_a_silent_agent_is_estimated_and_a_later_word_of_its_own_wins() -> None:
    story = Story(KIMI)
    story.open(model="mock")
    assert story.turn(chars=40, output_chars=40).context_used == 20
    assert story.metered.state.context_estimated
    assert story.metered.reported_usage is False
    story.report(used=1817, size=128_000)
    assert story.changes[-1].state.context_used == 1817
    assert not story.changes[-1].state.context_estimated


def test_an_unknown_context_stays_unknown() -> None:
    story = Story(OPENCODE)
    story.open("load")
    row = story.turn(stop="cancelled", output_chars=400)
    assert (row.context_used, row.context_size) == (None, None)


def test_qwen_says_what_a_compression_leaves() -> None:
    story = Story(QWEN)
    story.open()
    story.turn(used=8090)
    for phase, left in ("failed", 8090), ("done", 783):
        turn = story.begin()
        story.update(turn, {"contextCompression": {"phase": phase, "newTokenCount": 783}})
        assert story.end(turn)[-1].context_used == left


# -- the session after it


def test_what_the_ledger_knows_is_shown_before_the_agent_speaks() -> None:
    story = Story(CLAUDE)
    story.open("load")
    state = SessionState(7732, 1_000_000, False, (usd("0.058226"),), usd("0.058226"), None, "claude-opus-5-5")
    story.restore(state)
    (change,) = story.changes
    assert change.restored
    assert change.state == state


def test_the_ledgers_word_is_older_than_the_agents() -> None:
    story = Story(CLAUDE)
    story.open("load")
    story.report(used=100, size=200_000)
    story.restore(SessionState(7732, 1_000_000, False, (usd("1"),)))
    assert (story.changes[-1].state.context_used, story.changes[-1].state.context_size) == (100, 200_000)
    assert story.changes[-1].state.costs == (usd("1"),)


def test_an_unknown_session_restores_nothing() -> None:
    story = Story(CLAUDE)
    story.open("load")
    assert story.restore(None) == []
    assert story.changes == []


def test_costs_add_up_over_processes() -> None:
    story = Story(CODEX)
    story.open("load", model="claude-opus-5-5")
    story.restore(SessionState(costs=(usd("1"),)))
    story.turn(disjoint(1000))
    assert story.metered.state.costs == (usd("1.004"),)


def test_a_later_answer_of_the_ledger_replaces_an_earlier_one_until_rows_are_booked_here() -> None:
    story = Story(CODEX)
    story.open("load", model="claude-opus-5-5")
    for total in ("1", "2"):
        story.restore(SessionState(costs=(usd(total),)))
        story.open("load", model="claude-opus-5-5")
    story.turn(disjoint(1000))
    story.restore(SessionState(costs=(usd("2.004"),)))
    story.turn(disjoint(1000))
    assert story.metered.state.costs == (usd("2.008"),)


def test_a_cost_in_mid_turn_is_in_the_state_before_its_row_is() -> None:
    story = Story(CLAUDE)
    story.open()
    turn = story.begin()
    story.report(turn, cost="0.5")
    assert story.changes[-1].state.costs == (usd("0.5"),)
    story.end(turn, disjoint(1, 0, 0, 1))
    assert story.metered.state.costs == (usd("0.5"),)


def test_a_context_that_nobody_told_of_a_turn_with_tools_is_a_guess() -> None:
    for tools, used, estimated in ((0, 1000, False), (3, 250, True)):
        story = Story(CODEX)
        story.open()
        story.turn(disjoint(900, 0, 0, 100), tool_calls=tools)
        state = story.metered.state
        assert (state.context_used, state.context_estimated) == (used, estimated)


def test_the_title_is_part_of_what_is_known() -> None:
    story = Story(CLAUDE)
    story.open()
    story.tell(SessionInfoChanged(story.now(), "s", "banana", None, {}))
    story.turn(disjoint(1, 0, 0, 1))
    assert story.metered.state.title == "banana"


def test_a_title_is_as_old_as_the_word_of_it() -> None:
    story = Story(CLAUDE)
    story.open()
    told_at = story.now()
    story.tell(SessionInfoChanged(told_at, "s", "banana", None, {}))
    story.turn(disjoint(1, 0, 0, 1))
    story.tell(SessionInfoChanged(story.now(), "s", "banana", "2026-11-21T12:00:00Z", {}, titled=False))
    story.turn(disjoint(1, 0, 0, 1))
    assert (story.metered.state.title, story.metered.state.titled_at) == ("banana", told_at)


def test_a_title_of_the_ledgers_is_not_told_to_it_again_as_if_it_were_news() -> None:
    story = Story(CODEX)
    story.open("load", model="claude-opus-5-5")
    story.restore(SessionState(title="banana"))
    story.turn(disjoint(1000))
    assert story.metered.state.title is None


def test_a_title_that_the_ledger_tells_late_is_not_part_of_it_either() -> None:
    story = Story(CODEX)
    story.open("load", model="claude-opus-5-5")
    story.turn(disjoint(1000))
    story.restore(SessionState(title="banana"))
    assert story.changes[-1].state.title is None


def test_a_row_says_whether_the_agent_itself_reported_in_its_turn() -> None:
    story = Story(CLAUDE)
    story.open()
    story.turn(disjoint(1, 0, 0, 1), used=5)
    assert (story.metered.reported_usage, story.metered.reported_cost) == (True, False)
    story.turn(disjoint(1, 0, 0, 1), used=6, cost="0.1")
    assert (story.metered.reported_usage, story.metered.reported_cost) == (True, True)
    story.turn(disjoint(1, 0, 0, 1))
    assert (story.metered.reported_usage, story.metered.reported_cost) == (False, False)

"""What breaks a naive counter: one test for each trap that released agents have set, with their own figures."""

from __future__ import annotations

from acp_proxy.core.entry import SessionState
from acp_proxy.core.events import Counters, ModelCounters, SessionRequested, UsageReported
from acp_proxy.core.usage import NOTHING, Usage
from tests.core.story import (
    CLAUDE,
    CODEX,
    COPILOT,
    GEMINI,
    GOOSE,
    KIMI,
    OPENCODE,
    QWEN,
    VIBE,
    ZED_CLAUDE,
    ZED_CODEX,
    Story,
    disjoint,
    inclusive,
    usd,
)

VIBE_2 = ("@mistralai/mistral-vibe", "2.26.1")  # a version that tells no caches with its usage
OPUS = {"_claude/model": "claude-opus-5-5"}


def vibe_so_far(prompt: int, completion: int, cached: int) -> dict[str, int]:
    return {
        "promptTokens": prompt,
        "completionTokens": completion,
        "cachedTokens": cached,
        "totalTokens": prompt + completion,
    }


def test_counters_persist_in_vibe_whose_baseline_comes_before_the_load_is_answered() -> None:
    story = Story(VIBE)
    story.open("load")
    assert story.report(used=2870, cost="0.025658", meta=vibe_so_far(19330, 2171, 5030)) == []
    turn = story.begin()
    story.report(turn, used=1817, cost="0.027844", meta=vibe_so_far(20940, 2378, 5540))
    row = story.end(turn, inclusive(20940, 2378, 5540))[-1]
    assert (row.usage, row.costs) == (Usage(1100, 510, 0, 207), (usd("0.002186"),))


def test_the_caches_that_vibe_2_leaves_out_of_its_usage_are_in_the_update_before_it() -> None:
    story = Story(VIBE_2)
    story.open()
    turn = story.begin()
    story.report(turn, used=6311, meta=vibe_so_far(6110, 201, 5010))
    assert story.end(turn, inclusive(6110, 201))[-1].usage == Usage(1100, 5010, 0, 201)
    assert story.report(used=6311, meta=vibe_so_far(6110, 201, 5010)) == []


def test_caches_that_are_only_told_after_the_turn_are_no_work() -> None:
    story = Story(VIBE_2)
    story.open()
    assert story.turn(inclusive(6110, 201)).usage == Usage(6110, 0, 0, 201)
    assert story.report(used=6311, meta=vibe_so_far(6110, 201, 5010)) == []


def test_a_session_of_vibe_that_was_rolled_back_before_it_is_loaded_stands_where_it_says() -> None:
    story = Story(VIBE)
    story.tell(SessionRequested(story.now(), "load", "s"))
    story.restore(SessionState(counters=inclusive(26430, 3041, 7130), agent_cost=usd("0.035218")))
    far = vibe_so_far(19330, 2171, 5030)
    story.tell(UsageReported(story.now(), "s", None, 2870, 102_400, usd("0.025658"), meta=far, replayed=True))
    turn = story.begin()
    story.report(turn, used=1817, cost="0.027844", meta=vibe_so_far(20940, 2378, 5540))
    story.end(turn, inclusive(20940, 2378, 5540))
    assert [(row.usage, row.costs) for row in story.rows] == [(Usage(1100, 510, 0, 207), (usd("0.002186"),))]


def test_counters_restart_in_copilot_when_a_session_is_loaded_in_a_new_process() -> None:
    story = Story(COPILOT)
    story.open("load")
    story.restore(SessionState(counters=Counters(18450, 2115, 20565, 225, 4950, 0)))
    assert story.turn(Counters(1610, 207, 1817, 21, 510, 0)).usage.total == 1817
    assert story.turn(Counters(5160, 642, 5802, 66, 1560, 0)).usage.total == 3985


def test_a_carried_over_cost_holds_what_was_spent_after_the_last_report() -> None:
    story = Story(CLAUDE)
    story.open("load")
    story.restore(SessionState(costs=(usd("0.058226"),), agent_cost=usd("0.058226")))
    turn = story.begin()
    story.report(turn, cost="0.084777", meta=OPUS)
    story.end(turn, disjoint(1100, 5010, 301, 201))
    assert {row.kind: row.costs for row in story.rows} == {
        "autonomous": (usd("0.015624"),),
        "turn": (usd("0.010927"),),
    }


def test_a_background_subagent_spends_when_no_prompt_is_open() -> None:
    story = Story(CLAUDE)
    story.open()
    story.turn(disjoint(2700, 10070, 607, 407), cost="0.058905")
    (row,) = story.report(used=7172, cost="0.071967", meta=OPUS | {"_claude/origin": {"kind": "task-notification"}})
    assert (row.kind, row.costs) == ("autonomous", (usd("0.013062"),))
    assert story.turn(disjoint(1, 0, 0, 1), cost="0.08").costs == (usd("0.008033"),)


def test_calls_replayed_by_a_load_are_history() -> None:
    story = Story(QWEN)
    story.open("load")
    usage = {"usage": {"inputTokens": 6110, "outputTokens": 201, "totalTokens": 6311}}
    assert story.update(None, usage, replayed=True) == []
    turn = story.begin()
    story.update(turn, usage)
    assert story.end(turn)[-1].usage.total == 6311


def test_a_call_that_ends_while_its_session_is_loaded_is_no_history_where_it_says_how_long_it_took() -> None:
    story = Story(QWEN)
    story.open()
    turn = story.begin()
    usage = {"usage": {"inputTokens": 6110, "outputTokens": 201, "totalTokens": 6311}}
    story.update(turn, usage, replayed=True)
    story.update(turn, usage | {"durationMs": 1858}, replayed=True)
    assert story.end(turn)[-1].usage.total == 6311


def test_a_usage_repeated_on_a_cancelled_turn_is_the_turn_befores() -> None:
    story = Story(GOOSE)
    story.open()
    story.turn(inclusive(1752, 214), used=1966, cost="0.007086")
    for stop in ("cancelled", "end_turn"):  # goose ends a turn that failed with `end_turn`
        row = story.turn(inclusive(1752, 214), used=1966, cost="0.007086", stop=stop, output_chars=400)
        assert (row.usage, row.usage_source, row.costs) == (NOTHING, "none", ())
    assert story.turn(inclusive(2196, 242), used=2438, cost="0.015819").usage.total == 2438


def test_codex_up_to_2_1_1_repeats_its_rows_with_its_usage_on_a_cancelled_turn() -> None:
    story = Story(("@agentclientprotocol/codex-acp", "1.10.0"))
    story.open(model="mock")
    last = disjoint(1805, 5050, output=205)
    rows = (ModelCounters("mock", last),)
    story.turn(last, used=7060, model_usage=rows)
    story.turn(last, used=7060, model_usage=rows, stop="cancelled")
    assert [(row.kind, row.usage.total, row.usage_source) for row in story.rows] == [
        ("turn", 7060, "agent"),
        ("turn", 0, "none"),
    ]


def test_a_usage_repeated_on_the_first_turn_after_a_load_is_of_another_process() -> None:
    story = Story(GOOSE)
    story.open("load")
    story.report(used=7844, size=1_000_000, cost="0.036171")
    row = story.turn(inclusive(7632, 212), used=7844, cost="0.036171", output_chars=60)
    assert (row.usage, row.usage_source, row.costs) == (NOTHING, "none", ())
    row = story.turn(inclusive(6411, 201), used=6612, cost="0.04511775")
    assert (row.usage.total, row.costs) == (6612, (usd("0.00894675"),))


def test_zeros_of_an_agent_whose_usage_comes_a_turn_late_are_not_believed() -> None:
    story = Story(ZED_CLAUDE)
    story.open()
    row = story.turn(disjoint(0), updates=0)
    assert (row.usage, row.usage_source, row.cost_source) == (NOTHING, "none", "unknown")


def test_zeros_of_a_cancelled_turn_are_no_usage_and_no_context() -> None:
    story = Story(OPENCODE)
    story.open()
    story.turn(Counters(1200, 192, 1934, 22, 520), used=1720, cost="0.002322")
    row = story.turn(Counters(0, 0, 0), used=0, cost="0.002322", stop="cancelled", output_chars=400)
    assert (row.usage_source, row.costs, row.context_used) == ("none", (), 1720)


def test_claudes_foreground_subagent_is_in_cost_and_rows_but_not_in_usage() -> None:
    story = Story(CLAUDE)
    story.open()
    turn = story.begin()
    usage = {
        "input_tokens": 1900,
        "cache_creation_input_tokens": 309,
        "cache_read_input_tokens": 5090,
        "output_tokens": 209,
    }
    response = {"agentId": "a", "resolvedModel": "claude-opus-5-5", "totalToolUseCount": 0, "usage": usage}
    story.update(turn, {"claudeCode": {"toolResponse": response}}, {"toolCallId": "t"})
    story.report(turn, cost="0.056518", meta=OPUS)
    rows = (ModelCounters("claude-opus-5-5", disjoint(7400, 20340, 1234, 834)),)
    story.end(turn, disjoint(3800, 10180, 618, 418), tool_calls=1, model_usage=rows)
    assert [(row.kind, row.usage) for row in story.rows] == [
        ("subagent", Usage(1900, 5090, 309, 209)),
        ("side", Usage(1700, 5070, 307, 207)),
        ("turn", Usage(3800, 10180, 618, 418)),
    ]
    assert story.booked() == "0.056518"


def test_the_cost_of_compact_comes_with_the_next_turn() -> None:
    story = Story(CLAUDE)
    story.open()
    story.turn(disjoint(2200, 5120, 312, 212), cost="0.159306")
    rows = (ModelCounters("claude-opus-5-5", disjoint(4700, 10270, 627, 427)),)
    compact = story.turn(disjoint(0), used=2655, tool_calls=1, model_usage=rows)
    assert (compact.kind, compact.usage, compact.costs, compact.context_used) == ("turn", NOTHING, (), 2655)
    side = story.rows[-2]
    assert (side.kind, side.usage.total, side.cost_source) == ("side", 16024, "parent")
    assert story.turn(disjoint(2500, 5150, 315, 215), cost="0.20874").costs == (usd("0.049434"),)


def test_a_cancel_in_mid_stream_is_never_silently_nothing() -> None:
    claude, codex = Story(CLAUDE), Story(CODEX)
    claude.open()
    codex.open(model="mock")
    told = claude.turn(disjoint(0), cost="0.022708", stop="cancelled", output_chars=100)
    untold = codex.turn(stop="cancelled", output_chars=100)
    assert (told.usage_source, told.costs) == ("partial", (usd("0.022708"),))
    assert (untold.usage_source, untold.usage.total) == ("estimated", 25)


def test_a_failure_comes_as_an_error_or_as_an_ordinary_end() -> None:
    gemini, codex = Story(GEMINI), Story(CODEX)
    gemini.open()
    codex.open()
    assert gemini.turn(stop="error", updates=0).usage_source == "agent"
    assert codex.turn(output_chars=60).usage_source == "none"


def test_a_stream_that_was_retried_is_in_the_usage_twice_and_in_the_rows_once() -> None:
    story = Story(CLAUDE)
    story.open()
    rows = (ModelCounters("claude-opus-5-5", disjoint(1700, 5070, 307, 207)),)
    row = story.turn(disjoint(3300, 10130, 613, 208), cost="0.026124", model_usage=rows)
    assert row.usage == Usage(1700, 5070, 307, 207)


def test_a_usage_update_may_come_after_the_response() -> None:
    story = Story(KIMI)
    story.open()
    story.turn(output_chars=40)
    assert story.report(used=1817, size=128_000) == []
    assert story.changes[-1].state.context_used == 1817


def test_a_usage_update_may_come_before_the_session_is_named() -> None:
    story = Story(VIBE)
    story.report(used=0, size=102_400, meta=vibe_so_far(0, 0, 0))
    story.open(model="mock")
    assert story.turn(inclusive(1610, 207, 510)).usage == Usage(1100, 510, 0, 207)
    assert story.metered.state.context_size == 102_400


def test_two_prompts_at_once_are_answered_with_the_same_usage_by_opencode() -> None:
    story = Story(OPENCODE)
    story.open()
    turns = [story.begin(), story.begin()]
    story.report(turns[0], cost="0.002322")
    for turn in turns:
        story.end(turn, Counters(1200, 192, 1934, 22, 520))
    assert [row.usage.total for row in story.rows] == [1934, 0]
    assert story.booked() == "0.002322"


def test_a_prompt_that_zeds_codex_never_answers_takes_nothing_from_those_after_it() -> None:
    story = Story(ZED_CODEX)
    story.open()
    first, _ = story.begin(), story.begin()
    story.report(first, used=6612, size=258_400)
    assert story.end(first, output_chars=40)[-1].usage.total == 6612
    for used in (6948, 7172):
        turn = story.begin()
        story.report(turn, used=used, size=258_400)
        assert story.end(turn, output_chars=40)[-1].usage.total == used


def test_the_model_is_an_alias_until_usage_names_it() -> None:
    story = Story(GEMINI)
    story.open(model="auto")
    rows = (ModelCounters("gemini-3.8-flash", Counters(6220, 150)), ModelCounters("auto", Counters(6330, 150)))
    assert story.turn(quota=Counters(12550, 300), model_usage=rows, tool_calls=1).model == "gemini-3.8-flash"
    assert story.metered.state.model == "gemini-3.8-flash"


def test_calls_that_no_agent_reports_make_a_turn_with_tools_at_least_what_is_told() -> None:
    story = Story(OPENCODE)
    story.open()
    row = story.turn(Counters(1500, 210, 2285, 25, 550), cost="0.005324", tool_calls=1)
    assert (row.usage_source, row.detail) == ("partial", "the last of several model calls")
    assert (row.costs, row.cost_source) == ((usd("0.005324"),), "agent")

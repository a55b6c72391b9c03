"""Counters of a whole session: a turn used the difference, whatever restarts, is missing, or was before."""

from __future__ import annotations

import pytest

from acp_proxy.core.entry import SessionState
from acp_proxy.core.events import Counters, ModelSelected
from acp_proxy.core.meter.counters import Cumulative
from acp_proxy.core.usage import NOTHING, Usage
from tests.core.story import (
    COPILOT,
    HERMES,
    OPENHANDS,
    VIBE,
    Story,
    inclusive,
    openhands,
)


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


def test_a_ledger_that_is_slower_than_a_turn_of_which_nothing_was_told_still_says_where_counters_stood() -> None:
    story = Story(OPENHANDS)
    story.open("load")
    story.turn(stop="cancelled")
    assert story.restore(SessionState(counters=inclusive(19330, 2171, 5030))) == []
    turn = story.begin()
    story.update(turn, openhands(20940, 2378, 5540))
    assert story.end(turn)[-1].usage == Usage(1100, 510, 0, 207)


def test_counters_that_persist_go_on_from_zero_if_the_sessions_first_process_was_told_none() -> None:
    first = Story(OPENHANDS)
    first.open()
    first.turn(stop="cancelled")
    for slowly in (False, True):
        second = Story(OPENHANDS)
        second.open("load")
        if not slowly:
            second.restore(first.metered.state)
        turn = second.begin()
        second.update(turn, openhands(20940, 2378, 5540))
        rows = second.end(turn)
        rows += second.restore(first.metered.state) if slowly else []
        assert rows[-1].usage == Usage(15400, 5540, 0, 2378)


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


def test_hermes_counts_from_zero_after_its_model_is_chosen_again_too() -> None:
    story = Story(HERMES)
    story.open(model="mock")
    story.turn(inclusive(100, 10))
    story.tell(ModelSelected(story.now(), "s", "mock", again=True))
    row = story.turn(inclusive(300, 30))
    assert (row.usage, row.lines[0].model) == (Usage(300, 0, 0, 30), "mock")


def test_a_turn_of_hermes_that_runs_goes_on_with_its_counters_while_another_model_is_chosen() -> None:
    story = Story(HERMES)
    story.open(model="mock")
    story.turn(inclusive(100, 10))
    turn = story.begin()
    story.tell(ModelSelected(story.now(), "s", "other"))
    (row,) = story.end(turn, inclusive(300, 30))
    assert (row.usage, row.lines[0].model) == (Usage(200, 0, 0, 20), "mock")
    assert story.turn(inclusive(400, 40)).usage == Usage(400, 0, 0, 40)


@pytest.mark.parametrize(
    ("told", "usage", "source"),
    [
        (inclusive(6330, 203), Usage(6330, 0, 0, 203), "agent"),  # no call sends as little as 220 tokens
        (inclusive(5000, 100), Usage(5000, 0, 0, 100), "agent"),
        (inclusive(13_000, 410), Usage(6890, 0, 0, 209), "partial"),
    ],
)
def test_counters_of_hermes_may_begin_at_zero_after_a_command(told: Counters, usage: Usage, source: str) -> None:
    story = Story(HERMES)
    story.open()
    story.turn(inclusive(6110, 201), used=12_604)
    story.turn(used=12_604, output_chars=100)
    story.turn(used=12_554, output_chars=30)  # `/reset`; after `/model` the context is that of before
    row = story.turn(told, used=12_607)
    assert (row.usage, row.usage_source) == (usage, source)
    assert story.turn(inclusive(20_000, 500), used=12_700).usage_source == "agent"


def test_a_prompt_of_hermes_that_failed_was_no_command() -> None:
    story = Story(HERMES)
    story.open()
    story.turn(inclusive(6110, 201), used=12_604)
    story.turn(used=12_621, output_chars=100)  # it is in the context, for the next call
    row = story.turn(inclusive(12_440, 404), used=12_700)
    assert (row.usage, row.usage_source) == (Usage(6330, 0, 0, 203), "agent")


def test_a_crashed_turn_of_a_cumulative_agent_has_what_its_updates_told() -> None:
    story = Story(VIBE)
    story.open()
    turn = story.begin()
    story.report(turn, used=1817, meta={"promptTokens": 1610, "completionTokens": 207, "cachedTokens": 510})
    row = story.end(turn, stop="crashed")[-1]
    assert (row.usage, row.usage_source) == (Usage(1100, 510, 0, 207), "partial")

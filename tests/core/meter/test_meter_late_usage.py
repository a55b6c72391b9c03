"""What becomes known when its turn, or its session's past, is over: answers that come late, corrections, histories."""

from __future__ import annotations

from acp_proxy.core.events import AnsweredLate, CostsCorrected, Implementation, Initialized, ModelSelected, UpdateSeen
from acp_proxy.core.meter import Meter
from acp_proxy.core.money import Money
from tests.cases import each_of
from tests.core.story import (
    CLAUDE,
    CODEX,
    OPENCODE,
    PRICES,
    QWEN,
    UNKNOWN_AGENT,
    VIBE,
    Story,
    inclusive,
    known,
    qwen_call,
    usd,
)

EMPTY = {"content": {"type": "text", "text": ""}}


def opened(agent: tuple[str, str]) -> Story:
    story = Story(agent)
    story.open()
    return story


def test_an_answer_that_comes_when_its_session_was_closed_is_booked_beyond_its_turn() -> None:
    story = opened(CLAUDE)
    turn = story.begin()
    assert story.end(turn, owed=True, stop="cancelled")[-1].usage.total == 0
    (late,) = story.tell(AnsweredLate(story.now(), "s", turn, inclusive(700, 30)))
    assert (late.kind, late.usage.total, late.usage_source) == ("autonomous", 730, "partial")
    assert story.tell(AnsweredLate(story.now(), "s", turn, inclusive(0, 0))) == []
    assert (late.costs, late.cost_source) == ((), "parent")  # in what the agent tells next
    assert (story.metered.reported_usage, story.metered.reported_cost) == (True, False)


def test_an_answer_that_comes_late_of_an_agent_that_tells_no_cost_is_priced() -> None:
    story = Story(CODEX)
    story.open(model="mock")
    turn = story.begin()
    story.end(turn, owed=True, stop="cancelled")
    (late,) = story.tell(AnsweredLate(story.now(), "s", turn, inclusive(700, 30)))
    assert (late.costs, late.cost_source) == ((usd("0.00001"),), "computed")


def test_an_answer_that_comes_late_is_booked_without_what_its_turns_row_has() -> None:
    story = opened(CODEX)
    turn = story.begin()
    assert story.end(turn, inclusive(500, 20), owed=True)[-1].usage.total == 520
    (late,) = story.tell(AnsweredLate(story.now(), "s", turn, inclusive(700, 30)))
    assert late.usage.total == 210


def test_a_correction_of_a_sessions_rows_is_in_its_cost_from_then_on() -> None:
    story = opened(CLAUDE)
    assert story.turn(inclusive(1000, 10), cost="0.5").costs == (usd("0.5"),)
    seen = len(story.changes)
    story.tell(CostsCorrected(story.now(), "s", (usd("0.25"),)))
    (change,) = story.changes[seen:]
    assert (change.state.costs, change.restored) == ((usd("0.75"),), True)
    story.tell(CostsCorrected(story.now(), "nobody", (usd("0.25"),)))
    assert len(story.changes) == seen + 1


@each_of([(None, False), ("0.5", True)])
def test_only_a_cost_says_that_the_work_of_a_turn_is_done(case: tuple[str | None, bool]) -> None:
    cost, done = case
    story = opened(CLAUDE)
    story.report(story.begin(), used=1000, cost=cost)
    assert story.changes[-1].done is done


def test_calls_in_the_history_of_a_session_are_of_no_turn_but_those_that_were_just_made_are() -> None:
    story = Story(QWEN)
    story.open("load")
    turn = story.begin()
    story.update(turn, qwen_call(700, 5), EMPTY, replayed=True)
    story.update(turn, qwen_call(900, 5) | {"durationMs": 3}, EMPTY, replayed=True)
    assert story.end(turn)[-1].usage.total == 905


def test_a_session_that_is_used_before_it_is_opened_goes_on_when_it_is_loaded() -> None:
    story = Story(VIBE)
    for prompt, used in ((1000, 1000), (1500, 500)):
        turn = story.begin()
        story.report(turn, meta={"promptTokens": prompt, "completionTokens": 10})
        assert story.end(turn)[-1].usage.prompt == used
        story.open("load")


def test_a_cost_of_nothing_is_no_promise_of_one() -> None:
    story = opened(OPENCODE)
    story.tell(ModelSelected(story.now(), "s", "mock"))
    turn = story.begin()
    story.report(turn, used=1000, cost=Money(0, "USD"))
    assert story.end(turn, inclusive(1000, 10))[-1].cost_source == "computed"


def test_a_fork_of_a_session_that_nobody_knows_may_go_on_from_its_counters() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open("fork", "t", parent="nobody")
    assert story.turn(inclusive(5000, 10), session="t").usage_source == "estimated"


def test_the_model_of_an_agent_that_names_none_is_the_one_that_the_user_gave_its_name() -> None:
    story = Story()
    story.meter = Meter(PRICES, lambda at: "row", aliases={"nameless": "mock"})
    story.tell(Initialized(story.now(), 1, Implementation(), Implementation("nameless", "1"), False))
    story.open()
    assert [line.model for line in story.turn(inclusive(1000, 10)).lines] == ["mock"]


def test_the_users_name_for_an_agent_says_its_model_before_the_agent_has_said_anything() -> None:
    story = Story()
    story.meter = Meter(PRICES, lambda at: "row", agent_name="nameless", aliases={"nameless": "mock"})
    story.open()
    assert [line.model for line in story.turn(inclusive(1000, 10)).lines] == ["mock"]


def test_what_the_ledger_says_of_a_session_that_was_used_here_and_never_loaded_is_no_news() -> None:
    story = opened(OPENCODE)
    story.turn(inclusive(1000, 10), cost="0.5")
    seen = len(story.events)
    assert story.restore(known("1", "1")) == []
    assert len(story.events) == seen


def test_an_update_of_a_turn_that_tells_nothing_is_no_change() -> None:
    story = opened(CLAUDE)
    turn = story.begin()
    seen = len(story.changes)
    story.tell(UpdateSeen(story.now(), "s", turn, "agent_message_chunk", {}, {}))
    assert len(story.changes) == seen

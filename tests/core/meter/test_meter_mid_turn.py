"""What there is to book of a turn that runs: the tokens that its agent told until now, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from acp_proxy.core.entry import UsageLine
from acp_proxy.core.events import Counters, ModelSelected, ToldSoFar, Turn, TurnStarted, UpdateSeen
from acp_proxy.core.unfinished import Unfinished
from acp_proxy.core.usage import NOTHING, Usage
from tests.cases import each_of
from tests.core.story import (
    CLAUDE,
    CODEX,
    FAST,
    OPENCODE,
    OPENHANDS,
    PRICES,
    QWEN,
    UNKNOWN_AGENT,
    VIBE,
    FixedPrices,
    LongContext,
    Story,
    openhands,
    qwen_call,
    usd,
)

VIBE_CALL = {"promptTokens": 1610, "completionTokens": 207, "cachedTokens": 510}


def told(story: Story) -> ToldSoFar | None:
    return story.changes[-1].told


@dataclass
class Running:
    """A session with a turn that runs."""

    story: Story
    turn: Turn

    def calls(self, *each: dict[str, object]) -> None:
        for meta in each:
            self.story.update(self.turn, meta)


def running(agent: tuple[str, str], model: str | None = "mock", **options: Any) -> Running:
    story = Story(agent, **options)
    story.open(model=model)
    return Running(story, story.begin())


def test_calls_are_added_up_and_priced() -> None:
    made = running(QWEN)
    made.calls(qwen_call(1000, 100), qwen_call(2000, 100, 500))
    line = UsageLine("mock", Usage(2500, 500, 0, 200), usd("0.0000455"), "fixed/mock")
    assert told(made.story) == ToldSoFar((line,), "computed")


def test_calls_of_two_models_are_two_lines() -> None:
    made = running(QWEN)
    made.calls(qwen_call(1000, 100))
    made.story.tell(ModelSelected(made.story.now(), "s", "haiku"))
    tool = UpdateSeen(made.story.now(), "s", made.turn, "tool_call_update", {"any": 1}, {})
    made.story.tell(tool)
    made.calls(qwen_call(1000, 10))
    found = told(made.story)
    assert found
    assert [(line.model, line.usage.total) for line in found.lines] == [("mock", 1100), ("haiku", 1010)]


def test_the_turn_so_far_holds_what_a_subagent_used() -> None:
    made = running(QWEN)
    made.calls(qwen_call(1000, 100), qwen_call(700, 70, parent="call-1"))
    found = told(made.story)
    assert found
    assert [(line.model, line.usage) for line in found.lines] == [("mock", Usage(1700, 0, 0, 170))]


def test_what_a_subagents_calls_used_is_all_that_it_used() -> None:
    made = running(QWEN)
    made.calls(qwen_call(1000, 100), qwen_call(700, 70, parent="call-1"))
    subagent, _ = made.story.end(made.turn)
    assert (subagent.kind, subagent.usage, subagent.usage_source, subagent.detail) == (
        "subagent",
        Usage(700, output=70),
        "agent",
        "",
    )


def test_a_subagent_alone_is_of_the_turns_model() -> None:
    made = running(QWEN)
    made.calls(qwen_call(700, 70, parent="call-1"))
    found = told(made.story)
    assert found
    assert [(line.model, line.usage.total) for line in found.lines] == [("mock", 770)]


def test_of_a_sessions_counters_it_is_what_came_since_the_turn_before() -> None:
    made = running(OPENHANDS)
    made.calls(openhands(1000, 100, cost=0))
    made.story.end(made.turn)
    made.turn = made.story.begin()
    made.calls(openhands(1500, 120, 200, cost=0))
    found = told(made.story)
    assert found
    assert [line.usage for line in found.lines] == [Usage(300, 200, 0, 20)]


def test_who_goes_on_after_counters_that_fell_in_mid_turn_counts_from_there() -> None:
    made = running(OPENHANDS)
    made.calls(openhands(1000, 100, cost=0))
    made.story.end(made.turn)
    made.turn = made.story.begin()
    made.calls(openhands(300, 30, cost=0))
    found = told(made.story)
    assert found
    assert [line.usage for line in found.lines] == [Usage(300, output=30)]
    after = Story(OPENHANDS)
    after.open("load")
    after.restore(made.story.changes[-1].state)
    turn = after.begin()
    after.update(turn, openhands(500, 50, cost=0))
    assert after.end(turn)[-1].usage == Usage(200, output=20)


def test_zeros_in_mid_turn_are_not_where_counters_stand_for_whoever_goes_on() -> None:
    made = running(OPENHANDS)
    made.calls(openhands(1000, 100, cost=0))
    made.story.end(made.turn)
    made.turn = made.story.begin()
    made.calls(openhands(0, 0, cost=0))
    after = Story(OPENHANDS)
    after.open("load")
    after.restore(made.story.changes[-1].state)
    turn = after.begin()
    after.update(turn, openhands(1500, 120, cost=0))
    assert after.end(turn)[-1].usage == Usage(500, output=20)


def test_a_turn_so_far_is_told_as_text() -> None:
    made = running(FAST)
    made.calls({"openhands.dev/metrics": {"status_line": "3,770 in, 449 out, 1 tools"}})
    found = told(made.story)
    assert found
    assert [(line.usage, line.cost) for line in found.lines] == [(Usage(3770, output=449), usd("0.0000826"))]
    assert found.detail == "cached input is not told, and priced in full"


def test_where_the_agent_tells_its_cost_with_them_that_is_what_they_cost() -> None:
    made = running(VIBE)
    made.story.report(made.turn, used=1817, cost="0.25", meta=VIBE_CALL)
    line = UsageLine("mock", Usage(1100, 510, 0, 207), usd("0.25"), "fixed/mock")
    assert told(made.story) == ToldSoFar((line,), "agent")


def test_a_price_of_the_users_wins_over_the_agents_cost() -> None:
    made = running(VIBE, prices=replace(PRICES, configured=frozenset({"mock"})))
    made.story.report(made.turn, used=1817, cost="0.25", meta=VIBE_CALL)
    found = told(made.story)
    assert found
    assert (found.lines[0].cost, found.cost_source) == (usd("0.00003221"), "computed")


def test_the_largest_context_so_far_without_what_was_written_decides_the_price_of_long_ones() -> None:
    prices = LongContext(PRICES.rates, frozenset({"mock"}))
    for used, cost in ((None, "0.00003221"), (200_207, "0.00003221"), (200_208, "0.00006442")):
        made = running(VIBE, prices=prices)
        made.story.report(made.turn, used=used, cost="0.25", meta=VIBE_CALL)
        found = told(made.story)
        assert found
        assert found.lines[0].cost == usd(cost)
    for used, cost in ((200_000, "0.00002"), (200_001, "0.00004")):
        made = running(QWEN, prices=prices)  # in its context is no answer yet
        made.story.report(made.turn, used=used)
        made.calls(qwen_call(1000, 100))
        found = told(made.story)
        assert found
        assert found.lines[0].cost == usd(cost)


@each_of(
    [(VIBE, 200_103, False), (VIBE, 200_104, True), (QWEN, 200_000, False), (QWEN, 200_001, True), (VIBE, 50, False)]
)
def test_of_a_turn_with_tools_the_largest_context_without_an_even_share_of_the_answers_decides(
    case: tuple[tuple[str, str], int, bool],
) -> None:
    """Of 207 tokens that two calls have written, one has written 103."""
    agent, used, is_long = case
    made = running(agent, prices=LongContext(PRICES.rates, frozenset({"mock"})))
    made.story.report(made.turn, used=used, meta=VIBE_CALL if agent is VIBE else None)
    if agent is QWEN:
        made.calls(qwen_call(1000, 207))
    row = made.story.end(made.turn, tool_calls=1)[-1]
    short = PRICES.price("mock", row.usage, 1).cost
    assert short
    assert row.costs == (short.plus(short) if is_long else short,)


def test_an_agent_that_tells_each_context_twice_has_used_at_least_half_of_their_sum() -> None:
    """What came since the first was in no cache."""
    made = running(CLAUDE)
    for used in (10_000, 12_000, 14_000, 16_000, 8_000):
        made.story.report(made.turn, used=used, size=200_000)
    assert [change.lower_bound for change in made.story.changes] == [
        Usage(cached_read=5000),
        Usage(2000, 9000),
        Usage(4000, 14_000),
        Usage(6000, 20_000),
        Usage(6000, 24_000),
    ]


def test_what_a_turn_has_used_at_least_is_nothing_before_a_context_that_proves_a_call() -> None:
    for agent, used in ((CLAUDE, None), (OPENCODE, 10_000)):
        made = running(agent)
        made.story.report(made.turn, used=used, cost="0.1")
        assert [change.lower_bound for change in made.story.changes] == [NOTHING]


def test_where_its_cost_is_still_to_come_no_price_stands_in_its_place() -> None:
    """Whoever goes on with the session will be told a cost that holds it."""
    made = running(VIBE)
    made.story.report(made.turn, used=1817, meta=VIBE_CALL)
    assert told(made.story) is None
    made.story.report(made.turn, used=1900, cost="0.25", meta={**VIBE_CALL, "promptTokens": 1700})
    assert told(made.story)


def test_a_model_without_a_price_has_tokens_all_the_same() -> None:
    made = running(QWEN, "nobody's")
    made.calls(qwen_call(1000, 100))
    assert told(made.story) == ToldSoFar((UsageLine("nobody's", Usage(1000, output=100)),), "unknown")


@pytest.mark.parametrize("agent", [CODEX, UNKNOWN_AGENT])
def test_contexts_and_figures_that_may_mean_anything_are_nothing_to_book(agent: tuple[str, str]) -> None:
    made = running(agent)
    made.story.report(made.turn, used=5000, size=200_000)
    assert told(made.story) is None
    made.calls(qwen_call(1000, 100))
    assert told(made.story) is None


def test_between_turns_there_is_none_to_book() -> None:
    made = running(OPENHANDS)
    made.calls(openhands(1000, 100, cost=0))
    made.story.end(made.turn)
    made.story.report(used=3000)
    assert told(made.story) is None


def test_what_a_slow_ledger_knew_is_none_of_the_turns() -> None:
    story = Story(OPENHANDS)
    story.open("load", model="mock")
    turn = story.begin()
    story.update(turn, openhands(9000, 500, cost=0))
    assert told(story) is None
    story.restore(replace(story.changes[-1].state, counters=Counters(8000, 400)))
    found = told(story)
    assert found
    assert [line.usage for line in found.lines] == [Usage(1000, output=100)]


class Resolved(FixedPrices, frozen=True):
    """With an alias that the user has resolved."""

    def is_alias(self, model: str | None) -> bool:
        return model != "default" and FixedPrices.is_alias(self, model)

    def concrete(self, model: str | None) -> str | None:
        return "mock" if model == "default" else FixedPrices.concrete(self, model)


def test_an_alias_that_is_known_is_its_model_also_where_only_a_cost_is_told() -> None:
    """Else a budget for the model would be charged nothing of a turn whose proxy is killed."""
    story, unfinished = Story(OPENCODE, Resolved(PRICES.rates)), Unfinished()
    story.open(model="default")
    turn = story.begin()
    unfinished.on_event(TurnStarted(turn.started_at, "s", turn))
    story.report(turn, cost="0.5")
    row = unfinished.on_event(story.changes[-1])
    assert row is not None
    assert row.lines == (UsageLine("mock", NOTHING, usd("0.5")),)
    story.tell(ModelSelected(story.now(), "s", "haiku"))
    story.report(turn, cost="0.6")
    assert (story.changes[-1].state.model, story.changes[-1].left) == ("haiku", ("mock",))
    assert [line.model for line in story.end(turn)[-1].lines] == ["mock"]
    assert story.metered.state.model == "haiku"

"""What turns cost, and by whose word."""

from __future__ import annotations

from decimal import Decimal

import pytest
from msgspec.structs import replace

from acp_proxy.core.events import ModelCounters, SessionClosed
from acp_proxy.core.money import Money
from tests.core.story import (
    AGENTPOOL,
    CALL,
    CLAUDE,
    CLAUDE_049,
    GOOSE,
    OPENCODE,
    OPENHANDS,
    PRICES,
    UNKNOWN_AGENT,
    Story,
    disjoint,
    inclusive,
    known,
    openhands,
    usd,
)


def test_a_cumulative_cost_is_booked_as_increases_that_add_up_to_it() -> None:
    story = Story(OPENCODE)
    story.open()
    for value in ("0.002322", "0.0047799999999999995", "0.010103999999999998"):
        assert story.turn(inclusive(100, 10), cost=value).cost_source == "agent"
    assert [row.costs[0].text for row in story.rows] == ["0.002322", "0.002458", "0.005324"]
    assert story.booked() == "0.010104"
    assert story.metered.state.costs == (usd("0.010104"),)


def used_elsewhere(agent: tuple[str, str], *, told_before: bool = False) -> Story:
    """A session that costs 0.01 here, then 0.04 in another process, then 0.02 here; its agent tells all of it."""
    story = Story(agent)
    story.open()
    story.turn(inclusive(100, 10), cost="0.01")
    state = replace(story.metered.state, costs=(usd("0.05"),), agent_cost=usd("0.05"))
    turn = story.begin()
    if told_before:
        story.report(turn, cost="0.07")
    assert story.restore(state, again=True) == []
    story.report(turn, cost="0.07")
    story.end(turn, inclusive(100, 10))
    return story


@pytest.mark.parametrize("agent", [OPENCODE, ("Kilo", "7.7.9"), GOOSE], ids=lambda agent: agent[0])
def test_what_another_process_has_booked_of_a_session_meanwhile_is_not_booked_again(agent: tuple[str, str]) -> None:
    story = used_elsewhere(agent)
    assert [row.costs for row in story.rows] == [(usd("0.01"),), (usd("0.02"),)]
    assert story.turn(inclusive(100, 10), cost="0.08").costs == (usd("0.01"),)


def test_a_ledger_that_answers_after_the_agent_changes_no_cost_that_was_told() -> None:
    story = used_elsewhere(OPENCODE, told_before=True)
    assert [row.costs for row in story.rows] == [(usd("0.01"),), (usd("0.06"),)]


def test_an_older_word_of_the_ledger_moves_no_cost_back() -> None:
    story = Story(OPENCODE)
    story.open()
    story.turn(inclusive(100, 10), cost="0.01")
    state = story.metered.state
    story.turn(inclusive(100, 10), cost="0.03")
    turn = story.begin()
    for old in (state, None, replace(state, agent_cost=Money.of(Decimal(9), "EUR"))):
        assert story.restore(old, again=True) == []
    story.report(turn, cost="0.04")
    assert story.end(turn, inclusive(100, 10))[-1].costs == (usd("0.01"),)


def test_the_cost_of_an_agent_whose_processes_count_each_for_itself_is_left_where_it_stands() -> None:
    story = used_elsewhere(CLAUDE)
    assert [row.costs for row in story.rows] == [(usd("0.01"),), (usd("0.06"),)]


def test_a_cost_of_each_turn_is_booked_as_it_is_told_and_none_is_expected_later() -> None:
    story = Story(AGENTPOOL)
    story.open(model="mock")
    for value in ("0.5", "0.75", "0.75", "0.25"):
        turn = story.begin()
        for _ in range(2):
            story.report(turn, used=110, size=110, cost=value)
        row = story.end(turn, inclusive(100, 10))[-1]
        assert (row.cost_source, row.costs, row.context_used) == ("agent", (usd(value),), 110)
    assert story.turn(inclusive(200, 20)).cost_source == "computed"
    again = Story(AGENTPOOL)
    again.open("load")
    again.restore(story.metered.state)
    assert again.turn(inclusive(100, 10), cost="2").costs == (usd("2"),)


def test_a_cost_of_zero_of_a_turn_is_unknown_and_left_to_the_catalog() -> None:
    story = Story(AGENTPOOL)
    story.open(model="mock")
    told = [
        story.turn(inclusive(*tokens), cost=cost)
        for *tokens, cost in ((100, 10, "0"), (200, 20, "0.5"), (300, 30, "0"))
    ]
    assert [row.cost_source for row in told] == ["computed", "agent", "computed"]


def test_a_cost_of_openhands_that_is_no_number_is_none() -> None:
    for cost in (True, "one", [1], -1, None):
        story = Story(OPENHANDS)
        story.open(model="mock")
        turn = story.begin()
        story.update(turn, openhands(100, 10, cost=cost))
        assert story.end(turn)[-1].cost_source == "computed"


def test_a_turn_that_was_cut_short_is_guessed_where_a_cost_comes_with_its_turn_or_never() -> None:
    story = Story(AGENTPOOL)
    story.open(model="mock")
    row = story.turn(stop="cancelled", chars=40, output_chars=40)
    assert (row.usage_source, row.cost_source) == ("estimated", "estimated")


def test_agentpool_tells_a_turn_again_for_one_that_was_cancelled() -> None:
    story = Story(AGENTPOOL)
    story.open(model="mock")
    story.turn(inclusive(100, 10), cost="0.5")
    row = story.turn(inclusive(100, 10), stop="cancelled", output_chars=8)
    assert (row.usage_source, row.cost_source, row.usage.completion) == ("estimated", "estimated", 2)


def test_what_agentpool_calls_a_context_is_none() -> None:
    story = Story(AGENTPOOL)
    story.open(model="mock")
    story.report(story.begin(), used=3030, size=3030)
    assert story.changes == []
    row = story.turn(inclusive(3000, 30), tool_calls=2, cost="0.5", used=3030)
    assert (row.usage_source, row.context_used, row.context_size) == ("agent", 1010, PRICES.window("mock"))


def test_the_agents_own_cost_wins_over_the_catalog() -> None:
    story = Story(CLAUDE)
    story.open(model="claude-opus-5-5")
    row = story.turn(CALL, cost="0.5")
    assert (row.costs, row.cost_source) == ((usd("0.5"),), "agent")


def test_a_price_in_the_configuration_wins_over_the_agents_own_cost() -> None:
    story = Story(CLAUDE, replace(PRICES, configured=frozenset({"claude-opus-5-5"})))
    story.open(model="claude-opus-5-5")
    row = story.turn(CALL, cost="0.5")
    assert (row.costs, row.cost_source) == ((usd("0.010927"),), "computed")


def test_a_cost_of_zero_with_tokens_is_unknown_and_left_to_the_catalog() -> None:
    story = Story(OPENCODE)
    story.open(model="mock")
    row = story.turn(inclusive(100, 10), cost="0")
    assert (row.costs, row.cost_source) == ((usd("0.000002"),), "computed")
    assert story.metered.state.agent_cost is None


def test_an_unknown_price_is_unknown_and_never_zero() -> None:
    story = Story(OPENCODE)
    story.open(model="nobody/knows")
    row = story.turn(inclusive(100, 10), cost="0.0")
    assert (row.costs, row.cost_source, row.unpriced) == ((), "unknown", True)


def test_openhands_writes_its_cost_beside_its_counters() -> None:
    story = Story(OPENHANDS)
    story.open()
    for total in (1, 2):
        turn = story.begin()
        metrics = {"input_tokens": 100 * total, "output_tokens": total, "cost": Decimal("0.25") * total}
        story.update(turn, {"field_meta": {"openhands.dev/metrics": metrics}})
        assert story.end(turn)[-1].costs == (usd("0.25"),)


def test_a_cost_below_nothing_is_none_wherever_it_is_told() -> None:
    """Else one session could take away what others have spent."""
    story = Story(OPENHANDS)
    story.open(model="nobody/knows")
    for cost in (Decimal(-5), -7):
        turn = story.begin()
        metrics = {"input_tokens": 100, "output_tokens": 1, "cost": cost}
        story.update(turn, {"field_meta": {"openhands.dev/metrics": metrics}})
        assert story.end(turn)[-1].costs == ()


def test_a_cancelled_turn_costs_what_the_agent_says_though_its_tokens_are_not_told() -> None:
    story = Story(CLAUDE)
    story.open()
    row = story.turn(disjoint(0), cost="0.011781", stop="cancelled", output_chars=50)
    assert (row.usage.total, row.usage_source) == (0, "partial")
    assert (row.costs, row.cost_source) == ((usd("0.011781"),), "agent")


def test_money_that_the_agent_will_tell_later_is_not_estimated() -> None:
    story = Story(CLAUDE_049)
    story.open(model="mock")
    cancelled = story.turn(stop="cancelled", output_chars=400)
    assert (cancelled.usage_source, cancelled.costs) == ("none", ())
    (late,) = story.report(cost="0.25")
    assert (late.kind, late.costs, late.usage_source) == ("autonomous", (usd("0.25"),), "none")


def test_a_turn_priced_before_the_agent_told_its_cost_is_not_paid_twice() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open(model="claude-opus-5-5")
    story.turn(CALL, cost="0.02")
    assert story.turn(CALL).costs == (usd("0.010927"),)
    assert story.turn(CALL, cost="0.06").costs == (usd("0.029073"),)
    assert story.booked() == "0.06"


def test_several_turns_that_were_priced_before_the_agent_told_their_cost_are_not_paid_twice() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open(model="claude-opus-5-5")
    story.turn(CALL, cost="0.02")
    story.turn(CALL)
    story.turn(CALL)
    story.turn(CALL, cost="0.08")
    assert story.booked() == "0.08"


def test_a_turn_of_which_the_agent_told_a_cost_of_zero_by_mistake_is_not_paid_twice() -> None:
    story = Story(CLAUDE)
    story.open(model="claude-opus-5-5")
    story.turn(CALL, cost="0.02")
    assert story.turn(CALL, cost="0").costs == (usd("0.010927"),)
    assert story.turn(CALL, cost="0.06").costs == (usd("0.029073"),)
    assert story.booked() == "0.06"


def test_a_turn_after_which_an_unknown_agent_told_its_first_cost_is_not_paid_twice() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open(model="claude-opus-5-5")
    assert story.turn(CALL).costs == (usd("0.010927"),)
    (late,) = story.report(cost="0.05")
    assert (late.kind, late.costs) == ("autonomous", (usd("0.039073"),))
    assert story.booked() == "0.05"


def test_only_the_turn_that_has_just_ended_is_in_an_unknown_agents_first_cost() -> None:
    """Others may have run on a model whose price it does not know."""
    story = Story(UNKNOWN_AGENT)
    story.open(model="claude-opus-5-5")
    story.turn(CALL)
    story.turn(CALL)
    story.report(cost="0.05")
    assert story.booked() == "0.060927"


def test_an_unknown_agent_that_tells_a_first_cost_of_zero_does_not_know_what_the_turn_cost() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open(model="claude-opus-5-5")
    story.turn(CALL)
    story.report(cost="0")
    story.turn(CALL, cost="0.05")
    assert story.booked() == "0.060927"


def test_costs_that_each_come_while_the_next_prompt_runs_are_booked_once() -> None:
    story = Story(CLAUDE)
    story.open(model="claude-opus-5-5")
    story.turn(CALL)
    assert story.turn(CALL, cost="0.010927").costs == (usd("0.010927"),)  # that of the turn before
    assert story.turn(CALL, cost="0.021854").costs == (usd("0.010927"),)
    assert story.report(cost="0.032781") == []
    assert story.booked() == "0.032781"


def test_a_late_cost_is_not_added_to_the_users_price() -> None:
    story = Story(UNKNOWN_AGENT, replace(PRICES, configured=frozenset({"mock"})))
    story.open(model="mock")
    story.turn(inclusive(100, 10), cost="0.5")
    for cost in ("1", "1.5"):
        assert story.turn(inclusive(100, 10)).costs == (usd("0.000002"),)
        assert story.report(cost=cost) == []
    (other,) = story.report(cost="2")
    assert (other.kind, other.costs) == ("autonomous", (usd("0.5"),))
    assert story.booked() == "0.500006"


def test_a_first_cost_that_comes_late_is_not_added_to_the_users_price() -> None:
    story = Story(UNKNOWN_AGENT, replace(PRICES, configured=frozenset({"mock"})))
    story.open(model="mock")
    assert story.turn(inclusive(100, 10)).costs == (usd("0.000002"),)
    assert story.report(cost="0.5") == []
    assert story.booked() == "0.000002"


def test_the_users_price_of_one_of_a_turns_models_stands_against_the_agents_cost() -> None:
    story = Story(CLAUDE, replace(PRICES, configured=frozenset({"mock"})))
    story.open(model="claude-opus-5-5")
    rows = (ModelCounters("claude-opus-5-5", disjoint(1000)), ModelCounters("mock", disjoint(100)))
    row = story.turn(disjoint(1100), cost="0.5", model_usage=rows)
    assert (row.costs, row.cost_source) == ((usd("0.004001"),), "computed")


def test_the_users_price_is_that_of_what_a_turn_without_tokens_of_its_own_caused() -> None:
    """What a compaction cost, which its agent tells with the turn after it; and what stands beside a turn cut short."""
    story = Story(CLAUDE, replace(PRICES, configured=frozenset({"claude-opus-5-5"})))
    story.open(model="claude-opus-5-5")
    story.turn(CALL, cost="0.5")
    beside = (ModelCounters("claude-opus-5-5", CALL),)
    for stop, cost in (("end_turn", None), ("cancelled", "1.5")):
        row = story.turn(disjoint(0), stop=stop, cost=cost, model_usage=beside)
        side = story.rows[-2]
        assert (side.kind, side.costs, side.cost_source) == ("side", (usd("0.010927"),), "computed")
        assert (row.costs, row.cost_source) == ((), "computed")
    assert story.turn(CALL, cost="2").costs == (usd("0.010927"),)
    assert story.booked() == "0.043708"


def test_the_users_price_of_a_title_does_not_pay_for_the_turn_that_was_cut_short_beside_it() -> None:
    """Nor does that of the turn's own model, of which no tokens are told."""
    beside = (ModelCounters("haiku", CALL),)
    for configured in ({"haiku"}, {"haiku", "claude-opus-5-5"}):
        story = Story(CLAUDE, replace(PRICES, configured=frozenset(configured)))
        story.open(model="claude-opus-5-5")
        row = story.turn(disjoint(0), stop="cancelled", cost="1.5", model_usage=beside)
        assert (row.costs, row.cost_source, story.booked()) == ((usd("1.5"),), "agent", "1.5")


def test_what_a_small_model_compacted_is_paid_once_whichever_models_the_user_has_prices_for() -> None:
    beside = (ModelCounters("haiku", CALL),)
    for configured, cost in (({"haiku"}, "1.5"), ({"haiku", "claude-opus-5-5"}, "0.01365875")):
        story = Story(CLAUDE, replace(PRICES, configured=frozenset(configured)))
        story.open(model="claude-opus-5-5")
        story.turn(disjoint(0), model_usage=beside)
        story.turn(CALL, cost="1.5")
        assert story.booked() == cost


def test_a_late_cost_pays_only_what_was_not_booked_ahead() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open(model="claude-opus-5-5")
    story.turn(CALL, cost="0.01")
    story.turn(CALL)
    (late,) = story.report(cost="0.03")
    assert late.costs == (usd("0.009073"),)
    assert story.booked() == "0.03"


def test_a_cost_that_went_on_from_less_than_was_told_before_a_kill_is_priced_by_its_tokens() -> None:
    for told in ("0.010927", "0.015"):  # from 0, and from what a process before had saved
        story = Story(CLAUDE)
        story.open("load", model="claude-opus-5-5")
        story.restore(known("0.008", "0.008"))
        row = story.turn(CALL, cost=told)
        assert (row.costs, row.cost_source) == ((usd("0.010927"),), "computed")
        assert row.detail == "the agent's cost went on from an older value"
        assert story.turn(CALL, cost="0.03").costs == (usd("0.03").minus(usd(told)),)


def test_a_cost_that_an_agent_saves_at_once_is_believed_though_its_tokens_cost_more() -> None:
    story = Story(OPENCODE)
    story.open("load", model="claude-opus-5-5")
    story.restore(known("0.008", "0.008"))
    assert story.turn(CALL, cost="0.010927").costs == (usd("0.002927"),)


def test_a_cost_that_is_told_when_its_session_was_deleted_is_booked_as_it_grew() -> None:
    story = Story(OPENCODE)
    story.open()
    story.turn(cost="5")
    story.tell(SessionClosed(story.now(), "s", deleted=True))
    (late,) = story.report(None, cost="5.2")
    assert late.costs == (usd("0.2"),)
    story.open()  # another one, as agents reuse ids
    assert story.turn(cost="5.3").costs == (usd("5.3"),)
    assert story.metered.state.costs == (usd("5.3"),)


def test_a_new_session_has_cost_nothing_of_what_another_one_of_its_id_had() -> None:
    story = Story()
    story.open(model="claude-opus-5-5")
    first = story.turn(disjoint(1000, output=100))
    story.close()
    story.open(model="claude-opus-5-5")
    assert story.turn(disjoint(1000, output=100)).costs == first.costs
    assert story.metered.state.costs == first.costs


def test_a_cost_that_fell_although_it_goes_on_is_no_measure_of_its_turn() -> None:
    story = Story(OPENCODE)
    story.open(model="claude-opus-5-5")
    story.turn(CALL, cost="0.05")
    turn = story.begin()
    for cost in ("0.03", "0.035"):
        story.report(turn, cost=cost)
    row = story.end(turn, CALL)[-1]
    assert (row.costs, row.cost_source, row.detail) == (
        (usd("0.010927"),),
        "computed",
        "the agent's cost does not tell all of it",
    )

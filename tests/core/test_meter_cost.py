"""What turns cost, and by whose word."""

from __future__ import annotations

from decimal import Decimal

from msgspec.structs import replace

from acp_proxy.core.agent_cost import AgentCost, split, weights_of
from acp_proxy.core.agents import Profile
from acp_proxy.core.entry import SessionState
from acp_proxy.core.events import Counters, EarlierReport, ModelCounters, SessionClosed, UsageReported
from acp_proxy.core.money import Money
from acp_proxy.core.pricing import Priced
from acp_proxy.core.usage import Usage
from tests.core.story import (
    CLAUDE,
    CLAUDE_049,
    CODEX,
    GOOSE,
    OPENCODE,
    OPENHANDS,
    PRICES,
    STRANGER,
    VIBE,
    FixedPrices,
    Story,
    disjoint,
    inclusive,
    usd,
)

CALL = disjoint(1100, 5010, 301, 201)  # 0.010927 by PRICES
MODEL = {"_claude/model": "claude-opus-5-5"}


def known(cost: str | None = None, agent_cost: str | None = None) -> SessionState:
    """A session that the ledger knows."""
    return SessionState(
        costs=(usd(cost),) if cost else (), agent_cost=usd(agent_cost) if agent_cost else None, context_used=7000
    )


def test_a_cumulative_cost_is_booked_as_increases_that_add_up_to_it() -> None:
    story = Story(OPENCODE)
    story.open()
    for value in ("0.002322", "0.0047799999999999995", "0.010103999999999998"):
        assert story.turn(inclusive(100, 10), cost=value).cost_source == "agent"
    assert [row.costs[0].text for row in story.rows] == ["0.002322", "0.002458", "0.005324"]
    assert story.booked() == "0.010104"
    assert story.metered.state.costs == (usd("0.010104"),)


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
    story = Story(STRANGER)
    story.open(model="claude-opus-5-5")
    story.turn(CALL, cost="0.02")
    assert story.turn(CALL).costs == (usd("0.010927"),)
    assert story.turn(CALL, cost="0.06").costs == (usd("0.029073"),)
    assert story.booked() == "0.06"


def test_several_turns_that_were_priced_before_the_agent_told_their_cost_are_not_paid_twice() -> None:
    story = Story(STRANGER)
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


def test_costs_that_each_come_while_the_next_prompt_runs_are_booked_once() -> None:
    story = Story(CLAUDE)
    story.open(model="claude-opus-5-5")
    story.turn(CALL)
    assert story.turn(CALL, cost="0.010927").costs == (usd("0.010927"),)  # that of the turn before
    assert story.turn(CALL, cost="0.021854").costs == (usd("0.010927"),)
    assert story.report(cost="0.032781") == []
    assert story.booked() == "0.032781"


def test_a_late_cost_is_not_added_to_the_users_price() -> None:
    story = Story(STRANGER, replace(PRICES, configured=frozenset({"mock"})))
    story.open(model="mock")
    story.turn(inclusive(100, 10), cost="0.5")
    for cost in ("1", "1.5"):
        assert story.turn(inclusive(100, 10)).costs == (usd("0.000002"),)
        assert story.report(cost=cost) == []
    (other,) = story.report(cost="2")
    assert (other.kind, other.costs) == ("autonomous", (usd("0.5"),))
    assert story.booked() == "0.500006"


def test_the_users_price_of_one_of_a_turns_models_stands_against_the_agents_cost() -> None:
    story = Story(CLAUDE, replace(PRICES, configured=frozenset({"mock"})))
    story.open(model="claude-opus-5-5")
    rows = (ModelCounters("claude-opus-5-5", disjoint(1000)), ModelCounters("mock", disjoint(100)))
    row = story.turn(disjoint(1100), cost="0.5", model_usage=rows)
    assert (row.costs, row.cost_source) == ((usd("0.004001"),), "computed")


def test_a_late_cost_pays_only_what_was_not_booked_ahead() -> None:
    story = Story(STRANGER)
    story.open(model="claude-opus-5-5")
    story.turn(CALL, cost="0.01")
    story.turn(CALL)
    (late,) = story.report(cost="0.03")
    assert late.costs == (usd("0.009073"),)
    assert story.booked() == "0.03"


# -- the same session in another process


def test_a_carried_over_cost_goes_on_from_the_ledger_and_what_nobody_reported_is_a_row_of_its_own() -> None:
    story = Story(CLAUDE)
    story.open("load")
    story.restore(known("0.058226", "0.058226"))
    turn = story.begin()
    story.report(turn, used=6612, cost="0.08477699999999999", meta=MODEL)
    unseen, own = story.end(turn, CALL)
    assert (unseen.kind, unseen.costs, unseen.usage.total) == ("autonomous", (usd("0.015624"),), 0)
    assert (own.kind, own.costs, own.cost_source) == ("turn", (usd("0.010927"),), "agent")
    assert story.metered.state.costs == (usd("0.084777"),)
    assert story.turn(CALL, cost="0.096").costs == (usd("0.011223"),)


def test_a_carried_over_cost_that_only_rounds_otherwise_than_the_catalog_holds_nothing_unseen() -> None:
    story = Story(CLAUDE)
    story.open("load", model="claude-opus-5-5")
    story.restore(known("0.05", "0.05"))
    assert story.turn(CALL, cost="0.061").costs == (usd("0.011"),)
    assert [row.kind for row in story.rows] == ["turn"]


def test_a_carried_over_cost_without_a_known_price_belongs_to_the_turn() -> None:
    story = Story(OPENCODE)
    story.open("load", model="nobody/knows")
    story.restore(known("0.025794", "0.025794"))
    assert story.turn(inclusive(100, 10), cost="0.02798").costs == (usd("0.002186"),)
    assert len(story.rows) == 1


def test_a_session_that_the_ledger_does_not_know_is_priced_from_tokens_first() -> None:
    story = Story(CLAUDE)
    story.open("load", model="claude-opus-5-5")
    story.restore(None)
    first = story.turn(CALL, cost="5.5")
    assert (first.costs, first.cost_source) == ((usd("0.010927"),), "computed")
    assert story.turn(CALL, cost="5.52").costs == (usd("0.02"),)


def test_what_a_session_cost_before_anybody_metered_it_is_not_booked_after_a_first_turn_that_failed() -> None:
    first, second = Story(CLAUDE), Story(CLAUDE)
    first.open("load", model="claude-opus-5-5")
    first.restore(None)
    first.turn(stop="error", updates=0)
    second.open("load", model="claude-opus-5-5")
    second.restore(first.metered.state)
    assert second.turn(CALL, cost="20.010927").costs == (usd("0.010927"),)
    assert second.booked() == "0.010927"


def test_the_ledgers_answer_may_come_after_the_first_cost() -> None:
    story = Story(OPENCODE)
    story.open("load")
    turn = story.begin()
    story.report(turn, cost="0.02798")
    story.restore(known("0.025794", "0.025794"))
    assert story.end(turn, inclusive(100, 10))[-1].costs == (usd("0.002186"),)


def test_a_ledger_that_is_slower_than_the_first_turn_says_what_it_had_cost() -> None:
    story = Story(OPENCODE)
    story.open("load")
    assert story.turn(inclusive(100, 10), cost="0.02798").costs == ()
    (late,) = story.restore(known("0.025794", "0.025794"))
    assert (late.kind, late.usage.total, late.costs) == ("autonomous", 0, (usd("0.002186"),))
    assert story.metered.state.costs == (usd("0.02798"),)
    assert story.turn(inclusive(100, 10), cost="0.03").costs == (usd("0.00202"),)


def test_a_ledger_that_is_slower_than_the_second_turn_says_it_too() -> None:
    story = Story(OPENCODE)
    story.open("load")
    story.turn(inclusive(100, 10), cost="0.02798")
    story.turn(inclusive(100, 10), cost="0.03")
    (late,) = story.restore(known("0.025794", "0.025794"))
    assert late.costs == (usd("0.002186"),)


def test_a_ledger_that_knows_a_cost_in_another_currency_says_nothing_of_the_first() -> None:
    story = Story(OPENCODE)
    story.open("load")
    turn = story.begin()
    story.report(turn, cost=Money.of("0.5", "EUR"))
    story.restore(known("0.02", "0.02"))
    assert story.end(turn, inclusive(100, 10))[-1].costs == ()


def test_a_slow_ledger_adds_only_what_the_first_turn_was_not_priced_at() -> None:
    story = Story(CLAUDE)
    story.open("load", model="claude-opus-5-5")
    assert story.turn(CALL, cost="0.084777").costs == (usd("0.010927"),)
    story.tell(SessionClosed(story.now(), "s", deleted=True))
    (late,) = story.restore(known("0.058226", "0.058226"))
    assert late.costs == (usd("0.015624"),)
    assert story.metered.state.costs == (usd("0.084777"),)


def test_a_slow_ledger_adds_nothing_that_was_booked_beside_the_first_turn() -> None:
    story = Story(CLAUDE)
    story.open("load", model="claude-opus-5-5")
    rows = (ModelCounters("claude-opus-5-5", CALL), ModelCounters("haiku", disjoint(100, 0, 0, 10)))
    story.turn(CALL, cost="0.069303", model_usage=rows)
    assert [row.costs for row in story.rows] == [(usd("0.00015"),), (usd("0.010927"),)]
    assert story.restore(known("0.058226", "0.058226")) == []


def test_a_slow_ledger_adds_nothing_to_the_users_price() -> None:
    story = Story(CLAUDE, replace(PRICES, configured=frozenset({"mock"})))
    story.open("load", model="mock")
    assert story.turn(inclusive(100, 10), cost="0.084777").costs == (usd("0.000002"),)
    assert story.restore(known("0.058226", "0.058226")) == []


def test_a_later_answer_of_the_ledger_is_nothing_once_rows_were_booked_here() -> None:
    story = Story(OPENCODE)
    story.open("load")
    story.restore(None)
    story.turn(inclusive(100, 10), cost="0.02798")
    story.open("load")
    assert story.restore(known("0.025794", "0.025794")) == []
    assert story.turn(inclusive(100, 10), cost="0.03").costs == (usd("0.00202"),)


def test_what_the_agents_first_cost_after_a_load_pays_beside_the_turn_was_not_spent_before() -> None:
    story = Story(CLAUDE)
    story.open("load", model="claude-opus-5-5")
    story.restore(known("0.05", "0.05"))
    rows = (ModelCounters("claude-opus-5-5", CALL), ModelCounters("haiku", disjoint(100, 0, 0, 10)))
    story.turn(CALL, cost="0.061077", model_usage=rows)
    assert [row.kind for row in story.rows] == ["side", "turn"]
    assert story.booked() == "0.011077"


def test_a_cost_that_restarts_in_a_new_process_counts_in_full() -> None:
    story = Story(CLAUDE_049)
    story.open("load")
    story.restore(known("0.01", "0.01"))
    assert story.turn(CALL, cost="0.02").costs == (usd("0.02"),)
    assert story.metered.state.costs == (usd("0.03"),)


def test_a_cost_that_no_process_before_was_told_begins_at_zero() -> None:
    story = Story(OPENCODE)
    story.open("load", model="claude-opus-5-5")
    story.restore(known("1"))
    story.turn(CALL, cost="0.02")
    assert story.booked() == "0.02"


def test_a_cost_in_the_history_of_an_agent_that_goes_on_is_what_it_has_cost() -> None:
    story = Story(OPENCODE)
    story.open("load")
    story.restore(known("0.01", "0.01"))
    story.tell(UsageReported(story.now(), "s", None, 6612, 200_000, usd("0.03"), replayed=True))
    assert story.booked() == "0.02"


def test_a_cost_in_the_history_of_an_agent_that_restarts_is_no_spend() -> None:
    story = Story(CLAUDE_049)
    story.open("load")
    story.tell(UsageReported(story.now(), "s", None, 6612, 200_000, usd("0.03"), replayed=True))
    assert story.rows == []
    assert story.turn(CALL, cost="0.02").costs == (usd("0.02"),)


def test_a_cost_of_which_only_its_figures_tell_goes_on_unless_it_fell() -> None:
    for value, cost in (("0.061", "0.011"), ("0.02", "0.02")):
        story = Story((CLAUDE[0], "0.75.0"))
        story.open("load")
        story.restore(known("0.05", "0.05"))
        assert story.turn(CALL, cost=value).costs == (usd(cost),)
        cancelled = story.turn(stop="cancelled", output_chars=400)
        assert cancelled.usage_source == "none"


def test_a_cost_that_restarts_after_close_and_resume_counts_in_full() -> None:
    story = Story(CLAUDE_049)
    story.open()
    story.turn(CALL, cost="0.01")
    story.close()
    story.open("resume")
    assert story.turn(CALL, cost="0.02").costs == (usd("0.02"),)


def test_what_a_counter_that_has_restarted_did_not_tell_is_not_awaited_any_more() -> None:
    story = Story(CLAUDE_049)
    story.open(model="claude-opus-5-5")
    assert story.turn(CALL).costs == (usd("0.010927"),)
    story.close()
    story.open("resume")
    assert story.turn(CALL, cost="0.02").costs == (usd("0.02"),)


def test_a_load_in_the_same_process_changes_nothing() -> None:
    story = Story(CLAUDE)
    story.open()
    story.turn(CALL, cost="0.04627")
    story.open("load")
    assert story.turn(CALL, cost="0.07581").costs == (usd("0.02954"),)
    assert [row.kind for row in story.rows] == ["turn", "turn"]


def test_a_cost_of_goose_goes_on_in_a_new_process_which_repeats_the_last_one_first() -> None:
    story = Story(GOOSE)
    story.open("load")
    story.restore(known("0.036171", "0.036171"))
    assert story.report(used=7844, size=1_000_000, cost="0.036171") == []
    row = story.turn(inclusive(6411, 201), used=6612, cost="0.04511775")
    assert (row.costs, row.cost_source) == ((usd("0.00894675"),), "agent")
    assert [row.kind for row in story.rows] == ["turn"]
    assert story.metered.state.costs == (usd("0.04511775"),)


def test_a_cost_of_goose_that_no_ledger_knows_goes_on_from_what_it_repeats_at_load() -> None:
    story = Story(GOOSE)
    story.open("load")
    story.report(used=7844, size=1_000_000, cost="0.036171")
    assert story.turn(inclusive(6411, 201), used=6612, cost="0.04511775").costs == (usd("0.00894675"),)


def test_a_new_session_of_an_id_that_the_ledger_knows_begins_at_zero() -> None:
    story = Story(GOOSE)
    story.open("new", "20261121_1")
    story.restore(known("0.036171", "0.036171"), "20261121_1")
    assert story.turn(inclusive(1752, 214), session="20261121_1", cost="0.007086").costs == (usd("0.007086"),)
    assert story.turn(inclusive(1974, 228), session="20261121_1", cost="0.0401").costs == (usd("0.033014"),)


def test_a_new_session_of_an_id_that_was_had_here_begins_at_zero() -> None:
    story = Story(GOOSE)
    for _ in range(2):
        story.open()
        assert story.turn(inclusive(1752, 214), cost="0.007086").costs == (usd("0.007086"),)
    assert story.booked() == "0.014172"


def test_goose_prices_a_call_whose_stream_broke() -> None:
    story = Story(GOOSE)
    story.open()
    story.turn(inclusive(6966, 206), used=7172, cost="0.03005775")
    row = story.turn(inclusive(7077, 1), used=7078, cost="0.037845000000000004", output_chars=60)
    assert (row.usage.total, row.usage_source, row.costs) == (7078, "agent", (usd("0.00778725"),))


def test_of_a_retried_stream_claude_tells_the_cost_but_zero_tokens() -> None:
    story = Story(CLAUDE_049)
    story.open()
    story.turn(CALL, cost="0.030358749999999997")
    row = story.turn(disjoint(0), used=6948, cost="0.04687875", output_chars=100)
    assert (row.usage.total, row.usage_source, row.detail) == (0, "partial", "the agent tells its cost, not its tokens")
    assert (row.costs, row.cost_source) == ((usd("0.01652"),), "agent")


def test_a_late_update_that_repeats_the_cost_after_a_cancel_is_no_spend() -> None:
    story = Story(CLAUDE_049)
    story.open()
    story.turn(CALL, cost="0.01491125")
    turn = story.begin()
    story.report(turn, used=6523, size=1_000_000)
    row = story.end(turn, stop="cancelled", output_chars=80)[-1]
    assert (row.usage_source, row.cost_source, row.costs) == ("none", "unknown", ())
    assert story.report(used=6523, size=1_000_000, cost="0.01491125") == []
    assert story.turn(CALL, cost="0.030895").costs == (usd("0.01598375"),)


def test_a_cost_of_zero_after_a_carried_one_is_a_gap_and_no_new_baseline() -> None:
    story = Story(OPENCODE)
    story.open()
    story.turn(inclusive(100, 10), cost="0.25")
    assert story.turn(inclusive(0, 0), cost="0", stop="cancelled").costs == ()
    assert story.turn(inclusive(100, 10), cost="0.3").costs == (usd("0.05"),)


def test_a_cost_of_zero_of_an_agent_that_nobody_described_is_a_gap_until_less_than_before_is_told() -> None:
    for after, booked in (("0.3", "0.3"), ("0.1", "0.35")):
        story = Story(STRANGER)
        story.open()
        for cost in ("0.25", "0", after):
            story.turn(inclusive(100, 10), cost=cost)
        assert story.booked() == booked


def test_a_cost_of_zero_after_a_load_is_no_baseline_either() -> None:
    for state, first in ((None, "0.000002"), (known("0.25", "0.25"), "0.05")):
        story = Story(OPENCODE)
        story.open("load", model="mock")
        assert story.report(used=0, size=128_000, cost="0") == []
        story.restore(state)
        story.turn(inclusive(100, 10), cost="0.3")
        assert story.booked() == first
        assert story.turn(inclusive(100, 10), cost="0.32").costs == (usd("0.02"),)


def test_what_several_calls_cost_of_which_only_the_last_is_told_is_not_taken_for_unseen_spend() -> None:
    story = Story(OPENCODE)
    story.open("load", model="mock")
    story.restore(known("0.25", "0.25"))
    story.turn(inclusive(100, 10), cost="0.26", tool_calls=1)
    assert [(row.kind, row.costs) for row in story.rows] == [("turn", (usd("0.01"),))]


def test_a_cost_that_fell_has_restarted() -> None:
    story = Story(STRANGER)
    story.open()
    story.turn(inclusive(100, 10), cost="0.279")
    assert story.turn(inclusive(110, 10), cost="0.0286").costs == (usd("0.0286"),)


def test_a_carried_cost_that_fell_all_the_same_is_only_a_new_baseline() -> None:
    story = Story(OPENCODE)
    story.open(model="mock")
    story.turn(inclusive(100, 10), cost="0.279")
    row = story.turn(inclusive(100, 10), cost="0.0286")
    assert (row.costs, row.cost_source) == ((usd("0.000002"),), "computed")
    assert story.turn(inclusive(100, 10), cost="0.03").costs == (usd("0.0014"),)


def test_a_fork_of_opencode_begins_with_its_parents_cost() -> None:
    story = Story(OPENCODE)
    story.open()
    story.turn(inclusive(100, 10), cost="0.035354")
    story.open("fork", "f", parent="s")
    assert story.turn(inclusive(100, 10), session="f", cost="0.038084").costs == (usd("0.00273"),)
    assert story.metered.state.costs == (usd("0.00273"),)


def test_a_fork_of_a_session_that_only_the_ledger_knows_begins_there_too() -> None:
    story = Story(OPENCODE)
    story.open("fork", "f", parent="s")
    story.restore(known("0.035354", "0.035354"), "f", parent="s")
    assert story.turn(inclusive(100, 10), session="f", cost="0.038084").costs == (usd("0.00273"),)
    assert story.metered.state.costs == (usd("0.00273"),)


def test_what_a_fork_is_said_to_have_cost_before_it_is_named_is_no_spend() -> None:
    story = Story(VIBE)
    so_far = {"promptTokens": 1610, "completionTokens": 207, "totalTokens": 1817}
    story.tell(UsageReported(story.now(), "f", None, 1817, 102_400, usd("0.002186"), meta=so_far, replayed=True))
    story.open("fork", "f", parent="s")
    assert story.rows == []
    row = story.turn(inclusive(3440, 428), session="f", cost="0.00529")
    assert (row.usage.total, row.costs) == (2051, (usd("0.003104"),))


def test_the_fork_of_another_agent_begins_at_zero() -> None:
    story = Story(CLAUDE)
    story.open()
    story.turn(CALL, cost="0.04")
    story.open("fork", "f", parent="s")
    assert story.turn(CALL, session="f", cost="0.016051").costs == (usd("0.016051"),)


def test_vibes_cost_moves_with_the_model_without_anything_being_spent() -> None:
    story = Story(VIBE)
    story.open()
    before = {"promptTokens": 1610, "completionTokens": 207, "cachedTokens": 510, "totalTokens": 1817}
    after = {"promptTokens": 3440, "completionTokens": 428, "cachedTokens": 1040, "totalTokens": 3868}
    turn = story.begin()
    story.report(turn, cost="0.002186", meta=before)
    story.end(turn, Counters(1610, 207, 1817, None, 510))
    assert story.report(cost="0.00529", meta=before) == []
    turn = story.begin()
    story.report(turn, cost="0.00529", meta=before)
    story.report(turn, cost="0.0113", meta=after)
    assert story.end(turn, Counters(3440, 428, 3868, None, 1040))[-1].costs == (usd("0.00601"),)


def test_vibes_cost_moves_with_the_model_after_a_load_too() -> None:
    meta = {"promptTokens": 1610, "completionTokens": 207, "cachedTokens": 510, "totalTokens": 1817}
    story = Story(VIBE)
    story.open("load")
    story.restore(replace(known("0.002186", "0.002186"), counters=Counters(1610, 207, 1817, None, 510)))
    assert story.report(cost="0.00529", meta=meta) == []


def test_counters_that_are_replayed_without_a_cost_say_nothing_of_it() -> None:
    story = Story(OPENHANDS)
    story.open("load")
    story.restore(known("0.01", "0.01"))
    metrics: dict[str, object] = {"input_tokens": 100, "output_tokens": 1}
    story.update(None, {"field_meta": {"openhands.dev/metrics": metrics}}, replayed=True)
    turn = story.begin()
    metrics = {"input_tokens": 200, "output_tokens": 2, "cost": Decimal("0.03")}
    story.update(turn, {"field_meta": {"openhands.dev/metrics": metrics}})
    assert story.end(turn)[-1].costs == (usd("0.02"),)


def test_what_vibe_spent_while_it_told_no_cost_comes_with_its_next_cost() -> None:
    story = Story(VIBE)
    story.open()
    before = {"promptTokens": 1610, "completionTokens": 207, "cachedTokens": 510, "totalTokens": 1817}
    after = {"promptTokens": 3440, "completionTokens": 428, "cachedTokens": 1040, "totalTokens": 3868}
    for cost, meta, counters in (("0.002186", before, (1610, 207, 510)), (None, after, (3440, 428, 1040))):
        turn = story.begin()
        story.report(turn, used=1817, cost=cost, meta=meta)
        story.end(turn, inclusive(*counters))
    (late,) = story.report(cost="0.004644", meta=after)
    assert (late.costs, story.booked()) == ((usd("0.002458"),), "0.004644")


def test_what_a_killed_turn_is_booked_with_is_not_booked_again_when_its_session_goes_on() -> None:
    so_far = [
        {"promptTokens": prompt, "completionTokens": written, "totalTokens": prompt + written}
        for prompt, written in ((1610, 207), (3440, 428), (5380, 656))
    ]
    story = Story(VIBE)
    story.open()
    turn = story.begin()
    story.report(turn, cost="0.002186", meta=so_far[0])
    story.end(turn, inclusive(1610, 207))
    story.report(story.begin(), cost="0.004644", meta=so_far[1])
    later = Story(VIBE)
    later.open("load")
    later.restore(story.changes[-1].state)
    assert later.report(cost="0.004644", meta=so_far[1]) == []
    turn = later.begin()
    later.report(turn, cost="0.007238", meta=so_far[2])
    row = later.end(turn, inclusive(5380, 656))[-1]
    assert (row.usage.total, row.costs) == (2168, (usd("0.002594"),))


# -- money by itself


def test_parts_of_an_amount_add_up_to_it() -> None:
    assert [part.nano for part in split(Money(100, "USD"), [1, 1, 1])] == [34, 33, 33]
    assert [part.nano for part in split(Money(7, "USD"), [0, 0])] == [7, 0]


def test_lines_share_a_cost_by_price_where_all_prices_are_known_else_by_tokens() -> None:
    usages = [Usage(100), Usage(300)]
    assert weights_of([usd("0.000000002"), usd("0.000000001")], usages) == [2, 1]
    assert weights_of([usd("1"), None], usages) == [100, 300]


def test_a_turn_of_two_models_splits_the_agents_cost_by_their_prices() -> None:
    story = Story(CLAUDE)
    story.open()
    rows = (
        ModelCounters("claude-opus-5-5", disjoint(100, 0, 0, 10)),  # 0.0006
        ModelCounters("haiku", disjoint(100, 0, 0, 20)),  # 0.0002
    )
    row = story.turn(disjoint(200, 0, 0, 30), cost="0.008", model_usage=rows)
    assert {line.model: line.cost for line in row.lines} == {"claude-opus-5-5": usd("0.006"), "haiku": usd("0.002")}


def test_currencies_are_never_mixed() -> None:
    story = Story(STRANGER)
    story.open()
    turn = story.begin()
    story.report(turn, cost=usd("0.5"))
    story.report(turn, cost=Money.of("3", "credits"))
    row = story.end(turn, inclusive(100, 10))[-1]
    assert row.costs == (usd("0.5"), Money.of("3", "credits"))


def test_each_currency_has_a_counter_of_its_own() -> None:
    story = Story(STRANGER)
    story.open()
    for cost in (usd("0.5"), Money.of("3", "credits"), usd("0.7"), Money.of("4", "credits")):
        turn = story.begin()
        story.report(turn, cost=cost)
        story.end(turn, inclusive(100, 10))
    assert (story.booked(), story.booked(currency="credits")) == ("0.7", "4")


def test_a_counter_taken_twice_is_empty_the_second_time() -> None:
    cost = AgentCost(Profile("turn", cost="unknown"))
    cost.report(usd("1"))
    assert cost.take().amounts == (usd("1"),)
    assert cost.take().amounts == ()


class LongContext(FixedPrices, frozen=True):
    """Twice the price for a request of more than 200,000 tokens."""

    def price(self, model: str | None, usage: Usage, at: int, context: int | None = None) -> Priced:
        priced = FixedPrices.price(self, model, usage, at)
        if priced.cost is None or context is None or context <= 200_000:
            return priced
        return replace(priced, cost=priced.cost.plus(priced.cost))


def test_calls_of_a_tool_that_does_not_show_are_priced_by_their_context_and_not_by_their_sum() -> None:
    for contexts, cost in (((150_000, 160_000), "0.0032"), ((310_000,), "0.0064")):
        story = Story(CODEX, LongContext(PRICES.rates))
        story.open(model="mock")
        turn = story.begin()
        for used in contexts:
            story.report(turn, used=used, size=400_000)
        assert story.end(turn, disjoint(310_000, 0, 0, 1000))[-1].costs == (usd(cost),)


def test_several_calls_of_which_nobody_tells_the_largest_have_the_price_of_short_ones() -> None:
    for tools, cost in ((0, "0.0064"), (3, "0.0032")):
        story = Story(STRANGER, LongContext(PRICES.rates))
        story.open(model="mock")
        assert story.turn(disjoint(310_000, 0, 0, 1000), tool_calls=tools).costs == (usd(cost),)


def test_input_of_which_the_cached_part_is_not_told_is_said_to_be_priced_in_full_unless_the_agent_prices_it() -> None:
    for cost, said in ((None, True), ("0.5", False)):
        story = Story(GOOSE)
        story.open(model="mock")
        row = story.turn(inclusive(100, 10), used=110, cost=cost)
        assert ("cached input is not told, and priced in full" in row.detail) is said


def test_costs_of_several_currencies_that_come_between_turns_are_all_booked() -> None:
    story = Story(STRANGER)
    story.open()
    earlier = (EarlierReport(10, Money(5, "EUR")),)
    (row,) = story.tell(UsageReported(story.now(), "s", None, 20, 100, usd("1"), earlier=earlier))
    assert sorted(row.costs, key=lambda cost: cost.currency) == [Money(5, "EUR"), usd("1")]


def test_a_cost_is_shared_by_the_largest_remainders() -> None:
    assert split(Money(1, "USD"), [1, 2]) == [Money(0, "USD"), Money(1, "USD")]
    assert split(Money(10, "USD"), [3, 2, 2]) == [Money(4, "USD"), Money(3, "USD"), Money(3, "USD")]


def test_codex_is_priced_from_the_catalog_for_it_reports_no_cost() -> None:
    story = Story(CODEX)
    story.open(model="claude-opus-5-5")
    row = story.turn(CALL, used=6612)
    assert (row.costs, row.cost_source, row.lines[0].price_row) == (
        (usd("0.010927"),),
        "computed",
        "fixed/claude-opus-5-5",
    )

"""What a session cost that another process had before: nothing is booked twice, and nothing is lost."""

from __future__ import annotations

import itertools
from decimal import Decimal

from msgspec.structs import replace

from acp_proxy.core.entry import SessionState
from acp_proxy.core.events import Counters, ModelCounters, SessionClosed, UsageReported
from acp_proxy.core.money import Money
from tests.core.story import (
    CALL,
    CLAUDE,
    CLAUDE_049,
    GOOSE,
    MODEL,
    OPENCODE,
    OPENHANDS,
    PRICES,
    UNKNOWN_AGENT,
    VIBE,
    Story,
    disjoint,
    inclusive,
    known,
    usd,
)


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


def test_what_a_first_turn_cost_that_was_cancelled_comes_with_the_next_one_in_another_process() -> None:
    for agent in (CLAUDE, UNKNOWN_AGENT):
        first = Story(agent, estimate=False)
        first.open(model="claude-opus-5-5")
        assert first.turn(stop="cancelled").costs == ()
        for _ in range(2):  # however many processes follow that hear no cost either
            later = Story(agent, estimate=False)
            later.open("load", model="claude-opus-5-5")
            later.restore(first.metered.state)
            assert later.turn(stop="cancelled").costs == ()
        last = Story(agent)
        last.open("load", model="claude-opus-5-5")
        last.restore(later.metered.state)
        last.turn(CALL, cost="0.026551")
        assert last.booked() == "0.026551"


def test_a_cost_that_was_not_told_yet_is_still_to_come_in_another_process() -> None:
    """What is cancelled there is in it, and so is what had a price before it came."""
    held = (usd("0.01"),)
    began = SessionState(from_zero=True), SessionState(from_zero=True, costs=held, presumed=held)
    for agent, state, late in itertools.product((CLAUDE, OPENCODE), began, (False, True)):
        story = Story(agent)
        story.open("load", model="claude-opus-5-5")
        story.restore(state)
        assert story.turn(stop="cancelled", output_chars=4000).costs == ()
        story.turn(CALL, cost=None if late else "0.05")
        story.report(cost="0.05")
        assert story.booked() == ("0.04" if state.presumed else "0.05")


def test_a_turn_after_which_an_unknown_agent_told_its_first_cost_is_not_paid_twice_in_another_process_either() -> None:
    story = Story(UNKNOWN_AGENT)
    story.open("load", model="claude-opus-5-5")
    story.restore(SessionState(from_zero=True))
    assert story.turn(CALL).costs == (usd("0.010927"),)
    story.report(cost="0.05")
    assert story.booked() == "0.05"


def test_a_ledger_that_is_slower_than_the_first_cost_says_that_it_began_at_zero() -> None:
    for currency in ("USD", "EUR"):
        story = Story(OPENCODE)
        story.open("load")
        turn = story.begin()
        story.report(turn, cost=Money.of("0.02798", currency))
        story.restore(SessionState(from_zero=True))
        assert story.end(turn, inclusive(100, 10))[-1].costs == (Money.of("0.02798", currency),)
    story = Story(CLAUDE)
    story.open("load", model="claude-opus-5-5")
    story.turn(CALL, cost="0.026551")
    (late,) = story.restore(SessionState(from_zero=True))
    assert late.costs == (usd("0.015624"),)


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


def test_of_a_turn_whose_proxy_died_the_larger_of_what_it_held_and_what_its_agent_tells_is_booked() -> None:
    for held, beyond in (("0.01", [usd("0.005624")]), ("0.02", []), ("0.015624", [])):
        story = Story(CLAUDE)
        story.open("load", model="claude-opus-5-5")
        story.restore(replace(known("0.058226", "0.058226"), presumed=(usd(held),)))
        story.turn(CALL, cost="0.084777")
        *unseen, own = story.rows
        assert [row.costs[0] for row in unseen] == beyond
        assert own.costs == (usd("0.010927"),)
        assert story.turn(CALL, cost="0.096").costs == (usd("0.011223"),)


def test_what_a_turn_held_whose_proxy_died_is_not_taken_from_turns_of_which_nothing_is_known_but_a_cost() -> None:
    story = Story(OPENCODE)
    story.open("load", model="nobody/knows")
    story.restore(replace(known("0.025794", "0.025794"), presumed=(usd("0.01"),)))
    assert story.turn(inclusive(100, 10), cost="0.02798").costs == (usd("0.002186"),)


def test_what_an_agent_tells_between_turns_of_one_whose_proxy_died_is_booked_as_far_as_it_is_more() -> None:
    for held, beyond in (("0.001", "0.001186"), ("0.01", "0")):
        story = Story(OPENCODE)
        story.open("load")
        story.restore(replace(known("0.025794", "0.025794"), presumed=(Money.of("7", "EUR"), usd(held))))
        story.report(None, cost="0.02798")
        assert [(row.costs, row.cost_source) for row in story.rows] == [((usd(beyond),), "agent")]
        assert story.turn(inclusive(100, 10), cost="0.03").costs == (usd("0.00202"),)


def test_a_slow_ledger_adds_nothing_that_a_turn_held_whose_proxy_died() -> None:
    for held, beyond in (("0.001", "0.001186"), ("0.01", "0")):
        story = Story(OPENCODE)
        story.open("load")
        story.turn(inclusive(100, 10), cost="0.02798")
        (late,) = story.restore(replace(known("0.025794", "0.025794"), presumed=(usd(held),)))
        assert (late.costs, late.cost_source) == ((usd(beyond),), "agent")


def test_a_slow_ledger_adds_only_what_the_first_turn_was_not_priced_at() -> None:
    story = Story(CLAUDE)
    story.open("load", model="claude-opus-5-5")
    assert story.turn(CALL, cost="0.084777").costs == (usd("0.010927"),)
    story.tell(SessionClosed(story.now(), "s", deleted=True))
    (late,) = story.restore(known("0.058226", "0.058226"))
    assert late.costs == (usd("0.015624"),)
    assert story.metered.state.costs == (usd("0.084777"),)


def test_a_slow_ledger_adds_all_that_was_spent_before_a_turn_of_which_the_agent_told_twice() -> None:
    story = Story(CLAUDE)
    story.open("load", model="claude-opus-5-5")
    turn = story.begin()
    for cost in ("0.08", "0.084777"):
        story.report(turn, cost=cost)
    assert story.end(turn, CALL)[-1].costs == (usd("0.010927"),)
    (late,) = story.restore(known("0.058226", "0.058226"))
    assert late.costs == (usd("0.015624"),)


def test_a_ledger_that_is_slower_than_a_turn_of_which_nothing_was_told_still_says_where_the_cost_stood() -> None:
    for told_before_it in (False, True):
        story = Story(CLAUDE)
        story.open("load", model="claude-opus-5-5")
        assert story.turn(stop="cancelled").costs == ()
        turn = story.begin()
        if told_before_it:
            story.report(turn, cost="0.084777")
        assert story.restore(known("0.058226", "0.058226")) == []
        story.report(turn, cost="0.084777")
        unseen, own = story.end(turn, CALL)
        assert (unseen.kind, unseen.costs) == ("autonomous", (usd("0.015624"),))
        assert own.costs == (usd("0.010927"),)
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


def test_a_cost_of_which_only_its_figures_tell_goes_on_unless_it_fell() -> None:
    for value, cost in (("0.061", "0.011"), ("0.02", "0.02")):
        story = Story(UNKNOWN_AGENT)
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


def test_what_goose_wrote_into_a_cache_after_a_load_is_the_turns_and_only_what_is_more_was_spent_before() -> None:
    for cost, unseen in (("0.053076", []), ("0.153076", ["0.1"])):  # 6411 tokens written, 201 tokens of output
        story = Story(GOOSE)
        story.open("load", model="claude-opus-5-5")
        story.restore(known("0.017001", "0.017001"))
        row = story.turn(inclusive(6411, 201), used=6612, cost=cost)
        assert row.costs == (usd("0.036075"),)
        assert [cost.text for row in story.rows if row.kind == "autonomous" for cost in row.costs] == unseen


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
        story = Story(UNKNOWN_AGENT)
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
    story = Story(UNKNOWN_AGENT)
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


def test_where_a_cost_of_claude_began_at_zero_with_a_cleared_context_the_turn_has_the_price_of_its_tokens() -> None:
    for before, meanwhile, after, cost, source in (
        ("0.5", "0.510927", "0.021854", "0.032781", "computed"),  # it fell
        ("0.010927", "0.021854", "0.032781", "0.032781", "computed"),  # it has caught up, and grew by too little
        ("0.010927", "0.021854", "0.054635", "0.043708", "agent"),  # nothing shows that it began anew
    ):
        story = Story(CLAUDE)
        story.open(model="claude-opus-5-5")
        story.turn(CALL, cost=before)
        turn = story.begin()
        story.report(turn, used=6612, size=1_000_000, cost=meanwhile)
        story.report(turn, used=0, size=1_000_000)
        story.report(turn, used=6700, size=1_000_000, cost=after)
        (row,) = story.end(turn, disjoint(3300, 15030, 903, 603))
        assert (row.costs, row.cost_source) == ((usd(cost),), source)
        assert story.turn(CALL, cost=str(Decimal(after) + Decimal("0.01"))).costs == (usd("0.01"),)


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

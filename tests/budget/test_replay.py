"""What budgets would have said to past turns: a replay against what is known to happen to a running proxy's turns."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.budget import simulation
from acp_proxy.budget.replay import Outcome, Replay, reaches_back, replay
from acp_proxy.core.budget import Budget
from acp_proxy.core.entry import UsageSource
from acp_proxy.core.scope import Scope
from acp_proxy.ledger import Row
from harness.rows import ALICE, BOB, MINUTE, NOON, line, row
from tests.core.accounts import budget, instant, usd

HOUR = 60 * MINUTE
DAY = 24 * HOUR


def played(rows: list[Row], *budgets: Budget, since: int | None = None) -> Replay:
    return replay(sorted(rows, key=lambda row: row.entry.started_at), budgets, since)


def outcome(rows: list[Row], *budgets: Budget, since: int | None = None) -> Outcome:
    """Of the first budget."""
    return played(rows, *budgets, since=since).outcomes[0]


def turns(count: int, cost: str = "1", at: int = NOON, apart: int = 2 * MINUTE) -> list[Row]:
    return [row(line(cost=cost), at=at + number * apart) for number in range(count)]


def test_a_turn_is_refused_once_the_budget_is_spent() -> None:
    found = played(turns(5), budget("3 USD", hold=usd("1")))
    assert (found.turns, found.refused, found.first) == (5, 2, NOON)
    assert found.outcomes[0].first_refused == NOON + 3 * 2 * MINUTE


def test_what_was_refused_is_not_spent() -> None:
    rows = [*turns(3), row(line(cost="9"), at=NOON + HOUR), row(line(cost="0.5"), at=NOON + 2 * HOUR)]
    assert outcome(rows, budget("3.5 USD", hold=usd("0.5"))).refused == 1


def test_a_new_window_begins_with_nothing_spent() -> None:
    rows = [*turns(3), *turns(3, at=NOON + DAY)]
    assert outcome(rows, budget("2 USD", hold=usd("1"))).refused == 2
    assert outcome(rows, budget("2 USD", "month", hold=usd("1"))).refused == 4


def test_a_window_is_that_of_the_budgets_zone() -> None:
    before_midnight = instant("2026-11-21T22:30")
    rows = turns(4, at=before_midnight, apart=20 * MINUTE)  # two before, two after 23:00 UTC
    assert outcome(rows, budget("2 USD", hold=usd("1"), zone="Europe/Berlin")).refused == 0
    assert outcome(rows, budget("2 USD", hold=usd("1"))).refused == 2


def test_a_rolling_window_comes_free_as_time_passes() -> None:
    rows = turns(6, apart=HOUR)
    assert outcome(rows, budget("2 turns", "rolling:3h")).refused == 2
    assert outcome(rows, budget("2 turns", "rolling:1h")).refused == 0


def test_what_began_a_whole_rolling_window_ago_still_counts_and_a_nanosecond_earlier_no_longer() -> None:
    hour = budget("1 turns", "rolling:1h")
    assert outcome(turns(2, apart=HOUR), hour).refused == 1
    assert outcome(turns(2, apart=HOUR + 1), hour).refused == 0


def test_turns_at_the_same_time_hold_what_they_may_cost() -> None:
    together = turns(4, apart=0)
    assert outcome(together, budget("3 USD", hold=usd("1.5"))).refused == 2
    assert outcome(turns(4), budget("3 USD", hold=usd("1.5"))).refused == 1


def test_a_turn_without_a_model_holds_what_turns_of_its_agent_take() -> None:
    dear = row(line(None, "9"), origin=ALICE, at=NOON)
    cheap = [row(line(None, "0.1"), origin=BOB, at=NOON + after) for after in (2 * MINUTE, HOUR, HOUR)]
    assert outcome([dear, *cheap], budget("10 USD")).refused == 1  # of the two at once: 0.9 is left, and held


def test_a_turn_holds_what_its_users_own_turns_of_the_model_took() -> None:
    rows = [row(line(cost="9"), origin=BOB), *turns(1, "0.1", at=NOON + HOUR)]
    at_once = turns(2, "0.1", at=NOON + 2 * HOUR, apart=0)
    assert outcome([*rows, *at_once], budget("10 USD")).refused == 0  # of the agent's turns one alone holds all


def test_a_turn_of_several_models_says_what_one_of_each_of_them_takes() -> None:
    both = row(line("opus", "9", input=1000), line("haiku", "1"), at=NOON - HOUR)
    others = [row(line("haiku", "0.1"), origin=BOB, at=NOON + number * 2 * MINUTE) for number in range(19)]
    at_once = [row(line("haiku", "0.1"), session="s2", at=NOON + DAY) for _ in range(10)]
    assert outcome([both, *others, *at_once], budget("100 USD", "total")).refused == 1  # 88.1 are left for 10 each


def test_what_turns_took_is_looked_back_on_in_the_unit_of_the_budget() -> None:
    rows = [*turns(1), *turns(3, at=NOON + HOUR, apart=0)]  # of 110 tokens each
    assert outcome(rows, budget("330 tokens")).refused == 1


def test_only_the_last_fifty_turns_say_what_one_takes() -> None:
    rows = [*turns(10, "10"), *turns(50, "0.1", at=NOON + HOUR), *turns(2, "0.1", at=NOON + 5 * HOUR, apart=0)]
    assert outcome(rows, budget("115 USD")).refused == 0


@pytest.mark.parametrize(
    "before",
    [row(line(cost="9"), kind="autonomous"), row(line(cost="9"), line("another", None))],
    ids=["no prompt began it", "it is known in part"],
)
def test_what_says_nothing_of_the_cost_of_a_turn_makes_no_hold(before: Row) -> None:
    assert outcome([before, *turns(2, "0.1", at=NOON + HOUR, apart=0)], budget("10 USD")).refused == 0


@pytest.mark.parametrize(
    ("tokens", "source"), [(0, "agent"), (1, "none")], ids=["its agent tells costs alone", "nobody told"]
)
def test_turns_of_no_known_tokens_say_nothing_of_how_many_one_takes(tokens: int, source: UsageSource) -> None:
    before = [row(line(input=tokens), at=NOON + number * HOUR, usage_source=source) for number in range(9)]
    at_once = [row(line(input=100), at=NOON + DAY) for _ in range(3)]
    limit = budget("1009 tokens", "total")
    assert outcome([row(line(input=400), at=NOON - HOUR), *before, *at_once], limit).refused == 1


def test_a_turn_that_ends_when_another_begins_holds_nothing_any_more() -> None:
    assert outcome(turns(2, apart=MINUTE), budget("3 USD", hold=usd("3"))).refused == 0
    assert outcome(turns(2, apart=MINUTE - 1), budget("3 USD", hold=usd("3"))).refused == 1


def test_rows_before_the_question_are_spent_and_not_asked() -> None:
    rows = [*turns(3), *turns(3, at=NOON + HOUR)]
    found = played(rows, budget("4 USD", hold=usd("1")), since=NOON + HOUR)
    assert (found.turns, found.refused) == (3, 2)
    assert played(rows, budget("4 USD"), since=NOON + HOUR + 1).turns == 2
    assert outcome(rows, budget("6 USD", thresholds=(50, 100)), since=NOON + HOUR).warned == 1


def test_what_no_prompt_began_is_spent_and_never_refused() -> None:
    rows = [row(line(cost="5"), kind="autonomous"), *turns(2, at=NOON + HOUR)]
    found = outcome(rows, budget("3 USD"))
    assert (found.turns, found.refused) == (2, 2)


def test_each_user_has_their_own() -> None:
    rows = [replace(each, origin=origin) for each in turns(3) for origin in (ALICE, BOB)]
    assert outcome(rows, budget("2 USD", per="user", hold=usd("1"))).refused == 2
    assert outcome(rows, budget("2 USD", hold=usd("1"))).refused == 4


def test_a_sessions_budget_counts_what_it_did_before_it_had_a_team() -> None:
    rows = turns(3)
    rows[0] = replace(rows[0], origin=replace(ALICE, team=None))
    found = outcome(rows, budget("2 USD", "session", per="team", hold=usd("1")))
    assert (found.turns, found.refused) == (2, 1)


def test_only_turns_in_scope_are_asked_about_and_only_their_models_are_charged() -> None:
    rows = [row(line("opus", "1"), line("haiku", "5")), row(line("haiku", "1"), at=NOON + HOUR, session="s2")]
    found = outcome(
        [*rows, *turns(1, at=NOON + 2 * HOUR)], budget("2 USD", scope=Scope(model=("opus*",)), hold=usd("1"))
    )
    assert (found.turns, found.refused) == (2, 0)


def test_the_model_at_admission_is_the_last_of_the_session() -> None:
    rows = [row(line("opus")), row(line("haiku"), at=NOON + HOUR), row(line("haiku"), at=NOON + 2 * HOUR)]
    assert outcome(rows, budget("5 USD", scope=Scope(model=("opus",)))).turns == 2


def test_what_another_session_uses_is_not_the_model_at_admission() -> None:
    two = [("opus", "s1"), ("haiku", "s2"), ("opus", "s1"), ("haiku", "s2")]
    rows = [row(line(model), session=of, at=NOON + hour * HOUR) for hour, (model, of) in enumerate(two)]
    assert outcome(rows, budget("5 USD", scope=Scope(model=("opus",)))).turns == 2


def test_a_session_keeps_its_model_over_a_turn_that_names_none() -> None:
    rows = [row(line(model), at=NOON + hour * HOUR) for hour, model in enumerate(("opus", None, "opus"))]
    assert outcome(rows, budget("5 USD", scope=Scope(model=("opus",)))).turns == 3


def test_other_modes_than_enforce_let_all_turns_go_on() -> None:
    for mode in ("warn", "shadow"):
        found = played(turns(5), budget("3 USD", mode=mode, hold=usd("1")))
        assert (found.refused, found.outcomes[0].refused) == (0, 2)


def test_people_are_told_of_each_budget_what_it_would_have_said_and_when() -> None:
    budgets = [budget("2 USD", hold=usd("1"), name=mode, mode=mode) for mode in ("enforce", "shadow")]
    few = budget("9 USD", hold=usd("1"), name="few", zone="Europe/Berlin", thresholds=(10,), mode="warn")
    found = played(turns(3), *budgets, few)
    told = simulation.plain(found).splitlines()
    assert told[0] == "1 of 3 turns would have been refused."
    cells = {line.split()[0]: re.split(r" {2,}", line) for line in told[2:6]}
    assert cells["enforce"][-2:] == ["1", "2026-11-21 12:04 UTC"]
    assert cells["shadow"][-2:] == ["(1)", "2026-11-21 12:04 UTC"]
    assert cells["few"] == ["few", "warn", "day", "$9.00", "3", "1", "2026-11-21 13:01 CET", "0"]
    assert told[-1] == "(…) beyond the limit, but let through: only mode enforce refuses"
    each = json.loads(simulation.as_json(found))["budgets"]
    assert [(one["refused"], one["let_through"]) for one in each] == [(1, 0), (0, 1), (0, 0)]
    last = each[-1]
    assert (last["first_warned_at"], last["first_refused_at"]) == ("2026-11-21T12:01:00Z", None)


def test_where_nothing_is_refused_that_is_said_and_nothing_else() -> None:
    for mode in ("enforce", "warn"):
        summary, _, *table = simulation.plain(played(turns(2), budget("3 USD", mode=mode))).splitlines()
        assert (summary, len(table)) == ("None of 2 turns would have been refused.", 2)


def test_each_threshold_warns_once_a_window() -> None:
    found = outcome([*turns(4), *turns(2, at=NOON + DAY)], budget("4 USD", thresholds=(50, 100), hold=usd("1")))
    assert (found.warned, found.first_warned) == (3, NOON + 3 * MINUTE)
    assert outcome(turns(4), budget("4 USD", mode="shadow")).warned == 0


def test_a_threshold_of_a_rolling_window_that_is_reached_again_within_its_length_warns_once() -> None:
    amounts = {-115: "1", 1: "1", 2: "0.1", 4: "0.1", 7: "1"}  # at 5 minutes the first one leaves the window
    rows = [row(line(cost=cost), at=NOON + minute * MINUTE) for minute, cost in amounts.items()]
    assert outcome(rows, budget("4 USD", "rolling:2h", thresholds=(50,), hold=usd("0.01"))).warned == 1


def test_a_model_without_a_price_is_refused_where_the_budget_says_so() -> None:
    rows = [row(line("unpriced", None))]
    assert outcome(rows, budget("5 USD", on_unpriced="deny")).refused == 1
    assert outcome(rows, budget("5 USD")).refused == 0


def test_a_turn_without_a_price_is_charged_its_hold_where_the_budget_estimates() -> None:
    rows = [row(line("unpriced", None), at=NOON + number * HOUR) for number in range(3)]
    assert outcome(rows, budget("2 USD", on_unpriced="estimate", hold=usd("1"))).refused == 1
    assert outcome(rows, budget("2 USD", hold=usd("1"))).refused == 0


def test_several_budgets_refuse_a_turn_once() -> None:
    found = played(turns(3), budget("1 USD", hold=usd("1")), budget("2 turns", name="turns"))
    assert found.refused == 2
    assert [each.refused for each in found.outcomes] == [2, 0]


def test_rows_are_wanted_from_the_start_of_the_longest_window_that_has_one() -> None:
    day, month = budget(), budget(window="month")
    assert reaches_back([day, month], NOON) == instant("2026-11-01T00:00")
    for window in ("turn", "session", "total"):
        assert reaches_back([day, budget(window=window)], NOON) == instant("2026-11-21T00:00")
        assert reaches_back([budget(window=window)], NOON) == NOON
    assert reaches_back([day], None) is None
    assert reaches_back([], NOON) == NOON


@pytest.mark.parametrize("window", ["day", "rolling:5h"])
@given(
    begun=st.lists(st.tuples(st.integers(0, 3 * 24 * 60), st.integers(1, 100)), max_size=30),
    cents=st.integers(0, 300),
)
def test_where_nothing_runs_at_the_same_time_it_is_a_sum(window: str, begun: list[tuple[int, int]], cents: int) -> None:
    """With a hold of next to nothing a turn begins wherever anything is left of its window."""
    begun = sorted(dict(begun).items())
    limit = budget(f"{cents / 100:.2f} USD", window, hold=1)
    spent: list[tuple[int, int]] = []
    refused = 0
    for minute, cost in begun:
        at = NOON + minute * MINUTE
        start = at - at % DAY if window == "day" else at - 5 * HOUR
        if sum(amount for when, amount in spent if when >= start) < cents:
            spent.append((at, cost))
        else:
            refused += 1
    rows = [row(line(cost=f"{cost / 100:.2f}"), at=NOON + minute * MINUTE) for minute, cost in begun]
    assert outcome(rows, limit).refused == refused

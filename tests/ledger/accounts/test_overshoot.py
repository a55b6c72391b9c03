"""By how much turns exceed what budgets allow: counted once, by whoever appends, on a real database of each backend."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.windows import HOUR
from acp_proxy.ledger import OpenTurn, Query
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger, Grant, Overshoot
from acp_proxy.ledger.owners import Owner
from harness.rows import ALICE, BOB, NOON, line, row
from tests.core.accounts import budget, usd
from tests.ledger.conftest import AND_HUB, Open
from tests.ledger.holds import CAP, ELSEWHERE, GONE, account, hold, overshot

pytestmark = AND_HUB


def test_only_what_is_above_the_limit_counts(ledger: BudgetLedger) -> None:
    hold(ledger, "a", (CAP, "0.6"))
    ledger.append([row(line(cost="0.9"), id="a")])
    assert ledger.overshoots("default") == []
    hold(ledger, "b", (CAP, "0.1"))
    ledger.append([row(line(cost="0.4"), id="b")])
    assert ledger.overshoots("default") == [Overshoot("user", "daily", "USD", usd("0.3"))]
    assert ledger.overshoots("other") == []


def test_of_each_turn_at_most_its_own_charge_counts(ledger: BudgetLedger) -> None:
    for turn in "ab":
        hold(ledger, turn, (CAP, "0.1"))
    ledger.append([row(line(cost="1.5"), id="a")])
    ledger.append([row(line(cost="0.2"), id="b")])
    assert overshot(ledger) == {"daily": usd("0.7")}


def test_turns_that_are_booked_together_count_what_they_overspent_together(ledger: BudgetLedger) -> None:
    for turn in "ab":
        hold(ledger, turn, (CAP, "0.1"))
    ledger.append([row(line(cost="0.7"), id="a"), row(line(cost="0.7"), id="b"), row(line(cost="0.05"), kind="side")])
    assert overshot(ledger) == {"daily": usd("0.45")}


def test_a_row_that_comes_again_counts_nothing_more(ledger: BudgetLedger, another: Open) -> None:
    other = another()  # before the hold: who opens a ledger books what expired long ago by the clock
    hold(ledger, "a", (CAP, "0.1"))
    again = row(line(cost="3"), id="a")
    for each in (ledger, ledger, other):
        each.append([again, again])
    hold(ledger, "a", (CAP, "0.1"))
    ledger.append([again])
    assert overshot(ledger) == {"daily": usd("2")}


def test_a_turn_of_a_dead_owner_counts_when_it_is_booked(ledger: BudgetLedger, another: Open) -> None:
    small = account(budget("0.5 USD", name="small"))
    ledger.append([row(line(cost="0.4"))])
    hold(ledger, "a", (CAP, "0.5"), (small, "0.1"), owner=GONE)
    ledger.append([row(line(cost="0.3"), id="another")])  # which held nothing
    assert overshot(another()) == {"small": usd("0.1"), "daily": usd("0.2")}


def test_every_budget_of_a_turn_counts_in_its_own_unit(ledger: BudgetLedger) -> None:
    tokens, turns = account(budget("100 tokens", name="tokens")), account(budget("9 turns", name="turns"))
    hold(ledger, "a", (tokens, 10), (turns, 1), (CAP, "0.1"))
    ledger.append([row(line(cost="1.25", input=120), id="a")])
    assert overshot(ledger) == {"daily": usd("0.25"), "tokens": 20}


def test_a_budget_that_only_warns_counts_turns_that_it_would_have_refused(ledger: BudgetLedger) -> None:
    warning = account(budget("1 USD", mode="warn"))
    ledger.append([row(line(cost="1"))])
    assert hold(ledger, "a", (warning, "0.1")).verdict.holds == ()
    ledger.append([row(line(cost="0.3"), id="a")])
    assert overshot(ledger) == {"daily": usd("0.3")}


def test_grants_count_that_held_when_the_turn_ended(ledger: BudgetLedger) -> None:
    def granted(until: int) -> Grant:
        return Grant(f"until {until}", "default", "user", "daily", None, usd("1"), "USD", NOON, until, "carol", "why")

    ledger.grant(granted(NOON + HOUR))
    for turn, at in (("a", NOON), ("b", NOON + HOUR)):
        hold(ledger, turn, (CAP, "0.1"), now=NOON, owner=ELSEWHERE)
        ledger.append([row(line(cost="1.5"), id=turn, at=at)])
    assert overshot(ledger) == {"daily": usd("1.5")}


def test_a_turn_within_its_hold_counts_what_another_one_had_taken(ledger: BudgetLedger) -> None:
    hold(ledger, "a", (CAP, "0.5"))
    hold(ledger, "b", (CAP, "0.5"))
    ledger.append([row(line(cost="0.8"), id="b")])
    assert overshot(ledger) == {}
    ledger.append([row(line(cost="0.5"), id="a")])
    assert overshot(ledger) == {"daily": usd("0.3")}


def test_a_turn_within_its_hold_counts_what_a_row_without_one_had_taken(ledger: BudgetLedger) -> None:
    for turn in "abc":
        hold(ledger, turn, (CAP, "0.3"))
    ledger.append([row(line(cost="0.3"), id="a"), row(line(cost="0.2"), kind="side")])
    ledger.append([row(line(cost="0.3"), id="b")])
    ledger.append([row(line(cost="0.3"), id="c"), row(line(cost="0.2"), kind="side")])
    assert overshot(ledger) == {"daily": usd("0.3")}


def test_a_turn_within_its_hold_counts_what_a_grant_had_let_others_take(ledger: BudgetLedger) -> None:
    hold(ledger, "a", (CAP, "0.5"), owner=ELSEWHERE)
    grant = Grant("g", "default", "user", "daily", None, usd("1"), "USD", NOON, NOON + HOUR, "carol", "why")
    ledger.grant(grant)
    hold(ledger, "b", (CAP, "1.2"), owner=ELSEWHERE)
    ledger.append([row(line(cost="1.2"), id="b")])
    ledger.append([row(line(cost="0.5"), id="a", at=NOON + HOUR)])
    assert overshot(ledger) == {"daily": usd("0.5")}


def test_a_turn_within_its_hold_counts_what_a_grant_gave_that_ended_before_it(ledger: BudgetLedger) -> None:
    """Also where only one of its budgets was granted more."""
    turns = account(budget("9 turns", name="turns"))
    ledger.grant(Grant("g", "default", "user", "daily", None, usd("1"), "USD", NOON, NOON + HOUR, "carol", "why"))
    hold(ledger, "a", (turns, 1), (CAP, "1.2"), owner=ELSEWHERE)
    ledger.append([row(line(cost="1.2"), id="a", at=NOON + HOUR)])
    assert overshot(ledger) == {"daily": usd("0.2")}


def test_a_turn_within_its_hold_counts_what_came_free_for_others_as_its_window_moved(ledger: BudgetLedger) -> None:
    turns, rolling = account(budget("9 turns", name="turns")), budget("1 USD", "rolling:1h", "rolling")
    later = NOON + 1  # before anything expires
    ledger.append([row(line(cost="0.5"), at=NOON - HOUR)])
    hold(ledger, "a", (turns, 1), (account(rolling), "0.5"))
    assert hold(ledger, "b", (turns, 1), (account(rolling, at=later), "0.5"), now=later).admitted
    ledger.append([row(line(cost="0.5"), id="b", at=later)])
    assert overshot(ledger) == {}
    ledger.append([row(line(cost="0.5"), id="a")])
    assert overshot(ledger) == {"rolling": usd("0.5")}


def test_a_turn_within_its_hold_counts_when_that_had_expired(ledger: BudgetLedger) -> None:
    hold(ledger, "a", (CAP, "0.7"), owner=ELSEWHERE)
    later = NOON + 2 * EXPIRY
    hold(ledger, "b", (CAP, "0.7"), now=later, owner=ELSEWHERE)
    ledger.append([row(line(cost="0.7"), id="b", at=later)])
    ledger.append([row(line(cost="0.7"), id="a")])
    assert overshot(ledger) == {"daily": usd("0.4")}


def test_a_turn_within_its_hold_counts_what_a_raised_limit_had_let_others_take(ledger: BudgetLedger) -> None:
    hold(ledger, "a", (CAP, "0.7"))
    hold(ledger, "b", (account(budget("2 USD")), "1"))
    ledger.append([row(line(cost="1"), id="b")])
    ledger.append([row(line(cost="0.7"), id="a")])
    assert overshot(ledger) == {"daily": usd("0.7")}


def test_a_turn_that_gave_its_hold_up_counts_nothing(ledger: BudgetLedger) -> None:
    hold(ledger, "a", (CAP, "0.1"))
    ledger.release("default", "a")
    ledger.append([row(line(cost="3"), id="a")])
    assert overshot(ledger) == {}


def test_models_out_of_scope_and_rows_of_another_window_count_nothing(ledger: BudgetLedger) -> None:
    opus = account(budget("1 USD", name="opus", scope=replace(CAP.filter.scope, model=("op*",))))
    hold(ledger, "a", (opus, "0.1"), (CAP, "0.1"))
    ledger.append([row(line("haiku", "3"), line("opus", "0.9"), id="a", at=NOON + 24 * HOUR)])
    hold(ledger, "b", (opus, "0.1"), (CAP, "0.1"))
    ledger.append([row(line("haiku", "3"), line("opus", "0.9"), id="b")])
    assert overshot(ledger) == {"daily": usd("2.9")}


def test_a_turn_without_a_price_counts_what_is_charged_for_it(ledger: BudgetLedger) -> None:
    estimating = account(budget("1 USD", name="estimating", on_unpriced="estimate"))
    ledger.append([row(line(cost="0.5"))])
    hold(ledger, "a", (estimating, "0.5"), owner=ELSEWHERE)
    ledger.append([row(line(cost="0.2"))])
    ledger.append([row(line(cost=None), id="a")])
    assert overshot(ledger) == {"estimating": usd("0.2")}


def test_no_amount_is_too_much_to_count(ledger: BudgetLedger) -> None:
    most = f"{2**63 // 10**9}.0"
    for turn in "abc":
        hold(ledger, turn, (account(budget(f"0.0{ord(turn)} USD", name="x")), "0.01"), owner=ELSEWHERE)
    for turn in "abc":
        ledger.append([row(line(cost=most), id=turn)])
    assert overshot(ledger)["x"] >= 2**62


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    costs=st.lists(st.integers(1, 90), max_size=8),
    together=st.integers(1, 3),
    limits=st.lists(st.integers(0, 200), min_size=2, max_size=2),
)
def test_while_nothing_else_is_charged_it_is_what_is_overspent(
    ledger: BudgetLedger, costs: list[int], together: int, limits: list[int]
) -> None:
    organisation = f"org {sum(1 for _ in ledger.sessions(Query()))}"
    origin = replace(ALICE, organisation=organisation)
    accounts = [
        account(budget(f"{amount} tokens", name=f"{n}", mode="warn"), origin) for n, amount in enumerate(limits)
    ]
    rows = [
        row(line(input=tokens), id=f"{organisation} {number}", origin=origin, session=organisation)
        for number, tokens in enumerate(costs)
    ]
    for each in rows:
        turn = OpenTurn(each.entry.id, origin, organisation, NOON, ELSEWHERE, "opus")
        ledger.hold(turn, [(one, HoldSize(5, 1)) for one in accounts], NOON, NOON + HOUR)
    for first in range(0, len(rows), together):
        ledger.append(rows[first : first + together])
    spent = sum(costs)
    beyond = {f"{number}": spent - limit for number, limit in enumerate(limits) if spent > limit}
    assert overshot(ledger, organisation) == beyond


def test_sums_over_users_are_right_beyond_what_a_column_holds(ledger: BudgetLedger) -> None:
    each = budget("1 USD", per="user")
    for origin in (ALICE, BOB):
        turn = OpenTurn(origin.user, origin, "s1", NOON, Owner.this(), "opus")
        ledger.hold(turn, [(account(each, origin), HoldSize(usd("0.1"), 1))], NOON, NOON + EXPIRY)
        ledger.append([row(line(cost="9000000000"), id=origin.user, origin=origin)])
    assert overshot(ledger) == {"daily": 2 * 2**62}

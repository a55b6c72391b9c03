"""How much a turn holds while it runs."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core.budget.hold_size import HoldSize, in_unit
from tests.core.accounts import budget, usd

AMOUNTS = st.integers(0, 10**12)
recents = st.lists(AMOUNTS, max_size=50)
limits = st.sampled_from(["0 USD", "0.005 USD", "30 USD", "3000 credits", "0 tokens", "2000000 tokens", "200 turns"])
holds = st.just("auto") | AMOUNTS


def cents(*amounts: int) -> list[int]:
    return [usd("0.01") * amount for amount in amounts]


def test_nine_of_ten_of_the_last_turns_would_have_fitted() -> None:
    recent = cents(*range(50, 0, -1))
    assert HoldSize.of(budget("30 USD"), recent).wanted == usd("0.45")


@given(st.lists(st.integers(usd("0.01"), usd("100")), min_size=1, max_size=50))
def test_a_hold_is_the_smallest_recent_amount_that_covers_nine_of_ten(recent: list[int]) -> None:
    wanted = HoldSize.of(budget("1000000 USD"), recent).wanted
    assert wanted in recent
    assert sum(amount <= wanted for amount in recent) >= ceil(0.9 * len(recent))
    assert sum(amount < wanted for amount in recent) < 0.9 * len(recent)


def test_turns_in_a_currency_with_a_rate_took_so_much_of_the_budgets_own() -> None:
    took = {"USD": cents(10, 20), "EUR": cents(7), "credits": cents(99)}
    rated = budget("30 EUR", rates=(("USD", 500_000_000),))
    assert in_unit(rated, lambda unit: took[unit]) == cents(7, 5, 10)
    assert in_unit(budget("30 USD"), lambda unit: took[unit]) == cents(10, 20)


def test_turns_of_the_same_agent_model_and_user_say_more_than_those_of_the_agent() -> None:
    own, agents = cents(20), cents(70)
    assert HoldSize.of(budget("30 USD"), own, agents).wanted == usd("0.2")
    assert HoldSize.of(budget("30 USD"), (), agents).wanted == usd("0.7")


def test_without_any_turn_a_hold_is_a_hundredth_of_the_limit() -> None:
    assert HoldSize.of(budget("30 USD")).wanted == usd("0.3")
    assert HoldSize.of(budget("2000000 tokens")).wanted == 20_000


@pytest.mark.parametrize(
    ("limit", "recent", "wanted", "floor"),
    [
        ("30 USD", 10**15, usd("3"), usd("0.01")),  # at most a tenth of the limit
        ("30 USD", 0, usd("0.01"), usd("0.01")),
        ("0.05 USD", usd("0.04"), usd("0.01"), usd("0.01")),  # the floor is above a tenth
        ("500 credits", 10**15, usd("50"), usd("0.01")),
        ("2000000 tokens", 10**9, 20_000, 1),
        ("2000000 tokens", 0, 1, 1),
        ("200 turns", 1, 1, 1),
    ],
)
def test_an_automatic_hold_stays_within_bounds(limit: str, recent: int, wanted: int, floor: int) -> None:
    assert HoldSize.of(budget(limit), [recent]) == HoldSize(wanted, floor)


def test_a_fixed_hold_is_taken_as_it_is_also_below_the_floor_of_automatic_ones() -> None:
    assert HoldSize.of(budget(hold=usd("7")), cents(1)) == HoldSize(usd("7"), usd("0.01"))
    assert HoldSize.of(budget(hold=usd("0.001"))) == HoldSize(usd("0.001"), usd("0.001"))
    assert HoldSize.of(budget("200 turns", hold=3)) == HoldSize(3, 1)
    assert HoldSize.of(budget("200 turns", hold=1)) == HoldSize(1, 1)


@pytest.mark.parametrize("hold", ["auto", usd("5")])
def test_any_hold_is_shrunk_to_what_is_left_and_refused_below_the_floor(hold: object) -> None:
    size = HoldSize.of(budget("30 USD", hold=hold), [10**15])
    assert size.within(usd("0.5")) == usd("0.5")
    assert size.within(usd("0.01")) == usd("0.01")
    assert size.within(usd("0.01") - 1) is None
    assert size.within(-usd("1")) is None


@given(limits, holds, recents, recents, st.integers(-(10**12), 10**12))
def test_what_is_held_is_above_0_and_never_more_than_is_left(
    limit: str, hold: object, own: list[int], agents: list[int], left: int
) -> None:
    size = HoldSize.of(budget(limit, hold=hold), own, agents)
    held = size.within(left)
    assert 1 <= size.floor <= size.wanted
    if held is None:
        assert left < size.floor
    else:
        assert 1 <= held <= min(left, size.wanted)

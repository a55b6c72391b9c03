"""What rows add to an account, and sums of that."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.core.budget.contribution import NOTHING, Contribution
from acp_proxy.core.entry import Entry, UsageLine
from acp_proxy.core.money import Money
from acp_proxy.core.scope import EVERYTHING, Scope
from acp_proxy.core.usage import Usage
from tests.core.accounts import NOW, account, budget, usd

OPUS = UsageLine("opus", Usage(100, 20, 3), Money.of("0.5", "USD"))
POINTS = UsageLine("opus", Usage(), Money.of("2", "points"))
UNPRICED = UsageLine("unknown", Usage(1000))
SILENT = UsageLine("silent", Usage())
ROW = Entry("t1", "s1", "turn", NOW, NOW + 1, "end_turn", (OPUS, POINTS), "agent", "computed")
OF_MODELS = Scope(model=("*",))

COUNTS = st.integers(0, 9)
CONTRIBUTIONS = st.just(NOTHING) | st.builds(
    Contribution, st.dictionaries(st.sampled_from(["USD", "EUR"]), COUNTS), COUNTS, COUNTS, COUNTS, COUNTS
)


def of(unit: str, *lines: UsageLine, scope: Scope = EVERYTHING, **rest: Any) -> Contribution:
    return Contribution.of(unit, scope, replace(ROW, lines=lines, **rest), lines)


def test_a_row_adds_what_the_unit_of_an_account_needs() -> None:
    assert of("turns", OPUS, POINTS) == Contribution(turns=1)
    assert of("turns", OPUS, kind="side") == NOTHING
    assert of("tokens", OPUS, UNPRICED) == Contribution(tokens=1123)
    assert of("USD", OPUS, OPUS, POINTS) == Contribution({"USD": usd("1"), "points": usd("2")})
    assert of("USD", OPUS, UNPRICED) == Contribution({"USD": usd("0.5")}, unpriced=1)
    assert of("USD") == of("turns") == of("tokens") == NOTHING


def test_where_only_some_models_count_each_of_them_may_lack_its_price() -> None:
    assert of("USD", OPUS, UNPRICED, UNPRICED, SILENT, scope=OF_MODELS).unpriced == 2
    assert of("USD", UsageLine("unknown", Usage(1)), SILENT, scope=OF_MODELS).unpriced == 1
    assert of("USD", OPUS, SILENT, scope=OF_MODELS).unpriced == 0
    assert of("USD", OPUS, UNPRICED, scope=OF_MODELS, cost_source="parent").unpriced == 0


def test_a_lower_bound_is_one_row_or_one_of_each_model() -> None:
    for unit in ("tokens", "USD"):
        assert of(unit, OPUS, OPUS, SILENT, usage_source="partial").untold == 1
        assert of(unit, OPUS, OPUS, SILENT, scope=OF_MODELS, usage_source="partial").untold == 2
        assert of(unit, OPUS).untold == 0


@given(CONTRIBUTIONS, CONTRIBUTIONS)
def test_what_is_added_and_taken_away_again_changes_nothing(one: Contribution, other: Contribution) -> None:
    """The sums that were added stay as they were, too."""
    before = dict(one.nano), dict(other.nano)
    both = one + other
    for name in ("tokens", "turns", "unpriced", "untold"):
        assert getattr(both, name) == getattr(one, name) + getattr(other, name)
    for currency in ("USD", "EUR"):
        assert both.nano.get(currency, 0) == one.nano.get(currency, 0) + other.nano.get(currency, 0)
    made = dict(both.nano)
    back = both - other
    assert (both + one + other, dict(both.nano)) == (both + (one + other), made)
    assert {name: nano for name, nano in back.nano.items() if nano} == {n: v for n, v in one.nano.items() if v}
    assert replace(back, nano={}) == replace(one, nano={})
    assert (dict(one.nano), dict(other.nano), dict(NOTHING.nano)) == (*before, {})


def test_an_account_needs_what_its_unit_does() -> None:
    all_of_it = Contribution({"USD": 1}, 2, 3, 4, 5)
    assert all_of_it.within("turns") == Contribution(turns=3)
    assert all_of_it.within("tokens") == Contribution(tokens=2, untold=5)
    assert all_of_it.within("USD") == Contribution({"USD": 1}, unpriced=4, untold=5)
    assert [all_of_it.counted(budget(f"9 {unit}")) for unit in ("turns", "tokens", "USD", "EUR")] == [3, 2, 1, 0]


def test_an_account_stands_at_what_is_spent_and_beyond_rows() -> None:
    """Spend in currencies that it has no rate for is told by itself."""
    of_dollars = account(budget("9 USD", rates=(("EUR", 2 * 10**9),)))
    spent = Contribution({"USD": 5, "points": 7, "EUR": 1, "credits": 6, "none": 0}, unpriced=1, untold=2)
    found = spent.standing(of_dollars, extra=10, held=3, granted=4)
    assert (found.account, found.spent, found.held, found.granted) == (of_dollars, 17, 3, 4)
    assert found.not_counted == (Money(6, "credits"), Money(7, "points"))
    assert (found.unpriced, found.untold) == (1, 2)
    nothing = Contribution()
    assert (nothing.tokens, nothing.turns, nothing.unpriced, nothing.untold) == (0, 0, 0, 0)
    plain = nothing.standing(of_dollars)
    assert (plain.spent, plain.held, plain.granted, plain.not_counted, plain.at_least) == (0, 0, 0, (), False)


@pytest.mark.parametrize(("spelled", "code"), [("usd", "USD"), ("USD", "USD"), ("credits", "credits")])
def test_what_rows_of_earlier_versions_cost_is_in_the_currency_that_was_meant(spelled: str, code: str) -> None:
    assert Contribution.of_cost(spelled, 7) == Contribution({code: 7})

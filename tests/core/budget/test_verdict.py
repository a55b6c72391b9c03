"""What budgets say of a prompt and of a running turn, against a simple model of a ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core.budget import Account, Budget, Standing
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.budget.verdict import Verdict, decide, mid_turn
from tests.core.accounts import accounts, budget, standing, usd

AMOUNTS = st.integers(0, 400)
BUDGETS = st.builds(
    lambda amount, unit, mode, hold, number: budget(f"{amount} {unit}", mode=mode, hold=hold, name=f"b{number}"),
    st.integers(0, 1000),
    st.sampled_from(["tokens", "turns"]),
    st.sampled_from(["enforce", "enforce", "warn", "shadow"]),
    st.just("auto") | st.integers(0, 300),
    st.integers(),
)


def decided(*standings: Standing, unpriced: bool = False) -> Verdict:
    sizes = [HoldSize.of(standing.account.budget) for standing in standings]
    return decide(standings, sizes, unpriced=unpriced)


def words(verdict: Verdict) -> list[str]:
    return [decision for _, decision in verdict.decisions]


def test_a_prompt_that_all_budgets_allow_holds_something_of_each() -> None:
    day, month = standing(budget("30 USD"), usd("1")), standing(budget("200 turns", window="month"), 7, 1)
    verdict = decided(day, month)
    assert verdict.admitted
    assert verdict.binding is None
    assert verdict.holds == ((day.account, usd("0.3")), (month.account, 1))
    assert words(verdict) == ["allow", "allow"]


def test_one_enforcing_budget_is_enough_to_refuse_and_then_nothing_is_held() -> None:
    full, free = standing(budget("5 USD"), usd("5")), standing(budget("200 turns", window="month"))
    verdict = decided(free, full)
    assert not verdict.admitted
    assert verdict.binding is full
    assert verdict.holds == ()
    assert words(verdict) == ["allow", "deny"]


@pytest.mark.parametrize(("mode", "word"), [("warn", "warn"), ("shadow", "shadow_deny")])
def test_a_budget_that_is_not_enforced_says_so_and_stands_in_nobodys_way(mode: str, word: str) -> None:
    verdict = decided(standing(budget("5 USD", mode=mode), usd("5")))
    assert verdict.admitted
    assert words(verdict) == [word]
    assert verdict.holds == ()


@pytest.mark.parametrize("unit", ["USD", "tokens", "turns"])
def test_a_limit_of_0_refuses_all(unit: str) -> None:
    assert not decided(standing(budget(f"0 {unit}"))).admitted
    assert not decided(standing(budget(f"0 {unit}", hold=0))).admitted


def test_a_limit_lowered_below_the_spend_refuses_and_one_raised_again_admits() -> None:
    assert not decided(standing(budget("5 USD"), usd("20"))).admitted
    assert decided(standing(budget("50 USD"), usd("20"))).admitted


def test_a_grant_admits_without_a_change_of_the_limit() -> None:
    assert not decided(standing(budget("5 USD"), usd("5"))).admitted
    assert decided(standing(budget("5 USD"), usd("5"), granted=usd("0.01"))).admitted


def test_holds_of_running_turns_refuse_as_spend_does() -> None:
    assert not decided(standing(budget("5 USD"), usd("4"), usd("0.991"))).admitted
    assert decided(standing(budget("5 USD"), usd("4"), usd("0.99"))).admitted


def test_of_several_refusals_the_one_that_lasts_longest_is_named_and_of_equal_ones_the_first() -> None:
    windows = ["rolling:24h", "day", "week", "month", "quarter", "total"]
    full = [standing(budget("5 USD", window=window, name=window), usd("5")) for window in windows]
    for number in range(2, len(full) + 1):
        assert decided(*full[:number]).binding is full[number - 1]
        assert decided(*reversed(full[:number])).binding is full[number - 1]
    one, other = (standing(budget("5 USD", name=name), usd("5")) for name in ("one", "other"))
    assert decided(one, other).binding is one


def test_a_cap_of_fifty_turns_admits_fifty_at_once_and_no_more() -> None:
    cap = budget("0.05 USD", hold=usd("0.001"))
    admitted, held = 0, 0
    for _ in range(60):
        verdict = decided(standing(cap, held=held))
        admitted += verdict.admitted
        held += sum(amount for _, amount in verdict.holds)
    assert (admitted, held) == (50, usd("0.05"))


@pytest.mark.parametrize(
    ("mode", "on_unpriced", "word"),
    [
        ("enforce", "deny", "deny"),
        ("warn", "deny", "warn"),
        ("shadow", "deny", "shadow_deny"),
        ("enforce", "warn", "allow"),
        ("enforce", "estimate", "allow"),
    ],
)
def test_a_model_without_a_price_is_refused_where_the_budget_says_so(mode: str, on_unpriced: str, word: str) -> None:
    now = standing(budget(mode=mode, on_unpriced=on_unpriced))
    assert words(decided(now, unpriced=True)) == [word]
    assert words(decided(now)) == ["allow"]


@pytest.mark.parametrize("unit", ["tokens", "turns"])
def test_a_budget_that_counts_no_money_needs_no_price(unit: str) -> None:
    assert decided(standing(budget(f"30 {unit}", on_unpriced="deny")), unpriced=True).admitted


def test_a_price_is_known_unless_it_is_said_not_to_be() -> None:
    now = standing(budget(on_unpriced="deny"))
    assert decide([now], [HoldSize.of(now.account.budget)]).admitted


@dataclass
class Ledger:
    """What a ledger does, one prompt after the other."""

    accounts: tuple[Account, ...]
    spent: dict[str, int] = field(default_factory=dict)
    holds: dict[int, Mapping[str, int]] = field(default_factory=dict)
    granted: int = 0

    def standings(self) -> list[Standing]:
        return [
            Standing(account, self.spent.get(account.key, 0), self._held(account.key), self.granted)
            for account in self.accounts
        ]

    def settle(self, turn: int, costs: Mapping[str, int]) -> None:
        del self.holds[turn]
        for key, cost in costs.items():
            self.spent[key] = self.spent.get(key, 0) + cost

    def _held(self, key: str) -> int:
        return sum(holds.get(key, 0) for holds in self.holds.values())


@given(st.lists(BUDGETS, min_size=1, max_size=4, unique_by=lambda budget: budget.name), st.data())
def test_spend_and_holds_stay_within_every_limit_and_nobody_is_refused_what_was_left(
    budgets: list[Budget], data: st.DataObject
) -> None:
    ledger = Ledger(accounts(*budgets))
    for turn in range(data.draw(st.integers(1, 25))):
        match data.draw(st.sampled_from(["prompt", "prompt", "settle", "grant"])):
            case "prompt":
                prompt(ledger, turn, data.draw(st.lists(AMOUNTS, max_size=5)))
            case "settle" if ledger.holds:
                ended = data.draw(st.sampled_from(sorted(ledger.holds)))
                share = data.draw(st.fractions(0, 1))
                ledger.settle(ended, {key: int(hold * share) for key, hold in ledger.holds[ended].items()})
            case "grant":
                ledger.granted += data.draw(AMOUNTS)
        for now in ledger.standings():
            assert not now.account.enforced or now.spent + now.held <= now.account.limit + now.granted


def prompt(ledger: Ledger, turn: int, recent: list[int]) -> None:
    """Ask, keep the holds, and compare with the contract's own words."""
    standings = ledger.standings()
    sizes = [HoldSize.of(now.account.budget, recent) for now in standings]
    verdict = decide(standings, sizes)
    full = [
        now.account
        for now, size in zip(standings, sizes, strict=True)
        if now.account.enforced and now.spent + now.held + size.floor > now.account.limit + now.granted
    ]
    assert verdict.admitted == (not full)
    assert [account for account, decision in verdict.decisions if decision == "deny"] == full
    if verdict.admitted:
        ledger.holds[turn] = {account.key: amount for account, amount in verdict.holds}
        assert {account.key for account in ledger.accounts if account.enforced} <= set(ledger.holds[turn])


def running(spent: str, others: str, own: str, **rest: Any) -> Standing:
    return standing(budget("5 USD", **{"on_exceed": "cancel", **rest}), usd(spent), usd(others) + usd(own))


@pytest.mark.parametrize("on_exceed", ["deny_next_tool", "cancel"])
def test_a_turn_that_costs_more_than_its_hold_and_all_that_is_left_gets_what_on_exceed_says(on_exceed: str) -> None:
    now = running("3", "1", "0.3", on_exceed=on_exceed)  # 0.7 is left
    assert mid_turn(now, usd("0.3"), usd("1")) == "nothing"
    assert mid_turn(now, usd("0.3"), usd("1") + 1) == on_exceed


@pytest.mark.parametrize("rest", [{"on_exceed": "finish_turn"}, {"mode": "warn"}, {"mode": "shadow"}])
def test_a_turn_is_left_alone_by_a_budget_that_lets_turns_finish_or_is_not_enforced(rest: dict[str, str]) -> None:
    assert mid_turn(running("5", "0", "0.3", **rest), usd("0.3"), usd("100")) == "nothing"


def test_a_turn_is_never_stopped_within_its_hold_also_when_the_limit_was_lowered() -> None:
    now = running("20", "1", "0.3")
    assert mid_turn(now, usd("0.3"), usd("0.3")) == "nothing"
    assert mid_turn(now, usd("0.3"), usd("0.3") + 1) == "cancel"


def test_a_grant_lets_a_turn_go_on() -> None:
    now = running("4.7", "0", "0.3")
    assert mid_turn(now, usd("0.3"), usd("1")) == "cancel"
    assert mid_turn(Standing(now.account, now.spent, now.held, usd("1")), usd("0.3"), usd("1")) == "nothing"


@given(AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS)
def test_a_turn_that_is_not_stopped_stays_within_the_limit_beside_the_holds_of_others(
    spent: int, others: int, own: int, so_far: int
) -> None:
    now = standing(budget("1000 tokens", on_exceed="cancel"), spent, others + own)
    within = spent + others + max(own, so_far) <= 1000
    assert (mid_turn(now, own, so_far) == "nothing") == (within or so_far <= own)

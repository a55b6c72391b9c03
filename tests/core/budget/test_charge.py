"""What a row adds to an account."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from acp_proxy.core.budget import Standing
from acp_proxy.core.budget.charge import PRESUMED, SoFar, charge, charge_so_far, uncounted
from acp_proxy.core.entry import Origin, UsageLine
from acp_proxy.core.money import Money
from acp_proxy.core.pricing import Priced
from acp_proxy.core.scope import Scope
from acp_proxy.core.usage import Usage
from harness.rows import row
from tests.core.accounts import ALICE, NOW, account, budget, instant, usd

ORIGIN = Origin("acme", "alice", "core", "shop", "laptop", "claude", "1.0", "zed")
OPUS = UsageLine("opus", Usage(100, 20, 3), Money.of("0.5", "USD"))
HAIKU = UsageLine("haiku", Usage(output=7), Money.of("0.25", "USD"))
UNPRICED = UsageLine("unknown", Usage(1000))
ROW = row(OPUS, HAIKU, id="t1", at=NOW, took=1).entry


@pytest.mark.parametrize(
    ("limit", "charged"), [("9 USD", usd("0.75")), ("9 tokens", 130), ("9 turns", 1), ("9 EUR", 0)]
)
def test_a_row_is_charged_in_the_unit_of_the_account(limit: str, charged: int) -> None:
    assert charge(account(budget(limit)), ORIGIN, ROW) == charged


def test_what_was_spent_in_a_currency_with_a_rate_counts_as_so_much_of_the_budgets_own() -> None:
    of = account(budget("9 EUR", rates=(("USD", 900_000_000), ("credits", 40_000_000))))
    cents = UsageLine("haiku", Usage(output=7), Money.of("0.1", "EUR"))
    others = [UsageLine("opus", Usage(), Money.of("5", currency)) for currency in ("credits", "points")]
    assert charge(of, ORIGIN, replace(ROW, lines=(*ROW.lines, cents, *others))) == usd("0.975")
    told = {"USD": usd("0.2"), "EUR": usd("0.1"), "points": usd("7")}
    assert charge_so_far(of, told, "opus", Usage(), None) == SoFar(usd("0.28"))
    priced = Priced(Money.of("0.5", "USD"))
    assert charge_so_far(of, {}, "opus", Usage(input=10), priced) == SoFar(usd("0.45"), estimated=True)


def test_only_the_lines_of_models_in_scope_are_charged_whatever_the_session_was_admitted_with() -> None:
    scope = Scope(model=("hai*",))
    haiku = replace(ALICE, model="haiku")
    charged = [
        charge(account(budget(f"9 {unit}", scope=scope), haiku), ORIGIN, ROW) for unit in ("USD", "tokens", "turns")
    ]
    assert charged == [usd("0.25"), 7, 1]
    none = account(budget("9 turns", scope=Scope(model=("gpt*",))), replace(ALICE, model="gpt-6"))
    assert charge(none, ORIGIN, ROW) == 0
    assert charge(none, ORIGIN, replace(ROW, lines=(UsageLine(None, Usage(5)),))) == 0


def test_a_row_counts_in_the_window_of_its_start() -> None:
    day = account(budget())
    over_midnight = replace(ROW, started_at=instant("2026-11-22") - 1, ended_at=instant("2026-11-22T01:00"))
    assert charge(day, ORIGIN, over_midnight) == usd("0.75")
    assert charge(day, ORIGIN, replace(ROW, started_at=instant("2026-11-22"))) == 0
    assert charge(account(budget(), at=instant("2026-11-22")), ORIGIN, over_midnight) == 0


def test_after_the_clock_was_set_back_a_rolling_window_still_counts_what_came_before() -> None:
    back = account(budget(window="rolling:1h"), at=NOW - 10**12)
    assert charge(back, ORIGIN, ROW) == usd("0.75")


@pytest.mark.parametrize("kind", ["autonomous", "subagent", "compaction", "side"])
def test_work_without_a_prompt_costs_but_is_no_turn(kind: str) -> None:
    row = replace(ROW, kind=kind)
    assert charge(account(budget("9 turns")), ORIGIN, row) == 0
    assert charge(account(budget("9 tokens")), ORIGIN, row) == 130


@pytest.mark.parametrize(
    "origin",
    [
        replace(ORIGIN, organisation="other"),
        replace(ORIGIN, user="bob"),
        replace(ORIGIN, team=None),
        replace(ORIGIN, project="site"),
        replace(ORIGIN, agent="codex"),
    ],
)
def test_rows_of_others_are_not_charged(origin: Origin) -> None:
    scope = Scope(user=("a*",), team=("core",), project=("shop",), agent=("claude",))
    assert charge(account(budget(scope=scope)), ORIGIN, ROW) == usd("0.75")
    assert charge(account(budget(scope=scope)), origin, ROW) == 0


def test_a_name_with_a_star_stands_for_itself_in_a_budget_per_user() -> None:
    star = account(budget(per="user"), replace(ALICE, user="a*"))
    assert charge(star, replace(ORIGIN, user="a*"), ROW) == usd("0.75")
    assert charge(star, ORIGIN, ROW) == 0


def test_budgets_of_a_session_a_turn_and_a_run_count_nothing_else() -> None:
    session, turn = account(budget(window="session")), account(budget(window="turn"))
    flag = account(budget(window="total", layer="flag"))
    assert [charge(only, ORIGIN, ROW, process="p1") for only in (session, turn, flag)] == [usd("0.75")] * 3
    assert charge(session, ORIGIN, replace(ROW, session="s2")) == 0
    assert charge(session, replace(ORIGIN, host="desktop"), ROW) == 0
    assert charge(turn, ORIGIN, replace(ROW, id="t2")) == 0
    assert charge(flag, ORIGIN, ROW, process="p2") == 0
    assert charge(flag, ORIGIN, ROW) == 0


@pytest.mark.parametrize(("on_unpriced", "charged"), [("warn", "0.5"), ("deny", "0.5"), ("estimate", "2")])
def test_an_unknown_price_adds_nothing_but_where_it_is_to_be_estimated_by_the_hold(
    on_unpriced: str, charged: str
) -> None:
    row = replace(ROW, lines=(OPUS, UNPRICED))
    assert charge(account(budget(on_unpriced=on_unpriced)), ORIGIN, row, hold=usd("2")) == usd(charged)


@pytest.mark.parametrize(
    ("limit", "hold", "charged"),
    [("9 USD", usd("2"), usd("2")), ("9 USD", usd("0.1"), usd("0.75")), ("9 tokens", 500, 500), ("9 turns", 1, 1)],
)
def test_of_a_row_that_is_only_presumed_each_account_bears_what_was_held_for_it(
    limit: str, hold: int, charged: int
) -> None:
    assert charge(account(budget(limit)), ORIGIN, replace(ROW, detail=PRESUMED), hold=hold) == charged


def test_what_an_account_does_not_count_of_a_row_is_told_apart() -> None:
    both = replace(ROW, lines=(OPUS, replace(HAIKU, cost=Money.of("2", "credits")), UNPRICED))
    dollars, opus = account(budget()), account(budget(scope=Scope(model=("op*",))), replace(ALICE, model="opus"))
    others = (Money.of("2", "credits"),)
    assert uncounted(dollars, ORIGIN, both) == Standing(dollars, not_counted=others, unpriced=1)
    assert uncounted(opus, ORIGIN, both) == Standing(opus)
    rated = account(budget(rates=(("credits", 10),)))
    assert uncounted(rated, ORIGIN, both) == Standing(rated, unpriced=1)
    for limit in ("9 tokens", "9 turns"):
        assert uncounted(account(budget(limit)), ORIGIN, both) == Standing(account(budget(limit)))
    free = replace(ROW, lines=(replace(OPUS, cost=Money.of("0", "credits")),))
    assert uncounted(dollars, ORIGIN, free) == Standing(dollars)


@pytest.mark.parametrize(
    ("limit", "changed", "untold"),
    [
        ("9 USD", {}, 1),
        ("9 tokens", {}, 1),
        ("9 turns", {}, 0),
        ("9 USD", {"stop_reason": "cancelled"}, 0),
        ("9 USD", {"usage_source": "agent"}, 0),
        ("9 USD", {"lines": (UsageLine("opus", Usage(1)),), "usage_source": "partial"}, 0),
    ],
)
def test_a_turn_of_which_nobody_told_anything_is_no_turn_that_cost_nothing(
    limit: str, changed: dict[str, Any], untold: int
) -> None:
    silent = replace(ROW, lines=(UsageLine("opus", Usage()),), usage_source="none", cost_source="unknown")
    assert uncounted(account(budget(limit)), ORIGIN, replace(silent, **changed)).untold == untold


def test_an_estimate_is_never_below_what_is_known_nor_made_where_nothing_is_missing() -> None:
    estimating = account(budget(on_unpriced="estimate"))
    assert charge(estimating, ORIGIN, replace(ROW, lines=(OPUS, UNPRICED)), hold=usd("0.1")) == usd("0.5")
    assert charge(estimating, ORIGIN, ROW, hold=usd("2")) == usd("0.75")
    subagent = replace(ROW, kind="subagent", cost_source="parent", lines=(UNPRICED,))
    assert charge(estimating, ORIGIN, subagent, hold=usd("2")) == 0
    nothing_used = replace(ROW, cost_source="unknown", lines=(UsageLine(None, Usage()),))
    assert charge(estimating, ORIGIN, nothing_used, hold=usd("2")) == 0
    in_tokens = account(budget("9 tokens", on_unpriced="estimate"))
    assert charge(in_tokens, ORIGIN, replace(ROW, lines=(UNPRICED,)), hold=5000) == 1000


@pytest.mark.parametrize(
    ("limit", "told", "configured", "expected"),
    [
        ("9 USD", {}, False, SoFar(usd("0.5"), estimated=True)),
        ("9 USD", {"USD": usd("0.2")}, False, SoFar(usd("0.2"))),
        ("9 USD", {"EUR": usd("2")}, False, SoFar(usd("0.5"), estimated=True)),
        ("9 USD", {"USD": usd("0.2")}, True, SoFar(usd("0.5"), estimated=True)),
        ("9 EUR", {"USD": usd("0.2")}, False, SoFar(0, estimated=True)),
        ("9 tokens", {"USD": usd("0.2")}, False, SoFar(30, estimated=True)),
        ("9 turns", {"USD": usd("0.2")}, False, SoFar(0)),
    ],
)
def test_in_mid_turn_the_agents_cost_counts_else_what_its_tokens_cost_at_least(
    limit: str, told: dict[str, int], configured: bool, expected: SoFar
) -> None:
    priced = Priced(Money(usd("0.5"), "USD"), configured=configured)
    assert charge_so_far(account(budget(limit)), told, "opus", Usage(input=10, cached_read=20), priced) == expected


def test_in_mid_turn_a_model_without_a_price_proves_no_money() -> None:
    assert charge_so_far(account(budget()), {}, "opus", Usage(input=10), Priced(None)).amount == 0
    assert charge_so_far(account(budget()), {}, "opus", Usage(), None).amount == 0


@pytest.mark.parametrize(("limit", "amount"), [("9 USD", usd("0.5")), ("9 tokens", 10)])
def test_what_a_model_out_of_scope_has_used_at_least_is_nothing_in_mid_turn(limit: str, amount: int) -> None:
    opus = account(budget(limit, scope=Scope(model=("opus",))))
    priced = Priced(Money.of("0.5", "USD"))
    amounts = [charge_so_far(opus, {}, model, Usage(input=10), priced).amount for model in ("opus", "haiku")]
    assert amounts == [amount, 0]


def test_a_turn_that_was_lost_before_it_told_anything_is_charged_what_it_held() -> None:
    """What it told of either unit is what is known of it."""
    dollars, tokens, turns = (account(budget(f"9 {unit}")) for unit in ("USD", "tokens", "turns"))
    lost = replace(ROW, stop_reason="crashed", lines=(UsageLine("opus", Usage()),), cost_source="unknown")
    assert [charge(of, ORIGIN, lost, hold=7) for of in (dollars, tokens, turns)] == [7, 7, 1]
    assert [charge(of, ORIGIN, lost) for of in (dollars, tokens)] == [0, 0]
    with_cost = replace(lost, lines=(UsageLine("opus", Usage(), Money(5, "USD")),))
    assert [charge(of, ORIGIN, with_cost, hold=7) for of in (dollars, tokens)] == [5, 7]
    with_tokens = replace(lost, lines=(UsageLine("opus", Usage(3)),))
    assert [charge(of, ORIGIN, with_tokens, hold=7) for of in (dollars, tokens)] == [0, 3]
    assert charge(tokens, ORIGIN, replace(lost, stop_reason="end_turn"), hold=7) == 0


def test_a_budget_of_money_leaves_out_what_plans_cover_even_of_a_lost_turn() -> None:
    of_tokens = account(budget(scope=Scope(without_plans=True)))
    lost = replace(ROW, stop_reason="crashed", lines=(UsageLine("opus", Usage()),), cost_source="unknown")
    for each in (ROW, lost):
        assert charge(of_tokens, replace(ORIGIN, billing="plan"), each, hold=7) == 0
    assert charge(of_tokens, replace(ORIGIN, billing="tokens"), lost, hold=7) == 7

"""What a user reads."""

from __future__ import annotations

import shlex
from datetime import UTC
from itertools import product
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core.budget import Standing
from acp_proxy.core.budget.refusal import (
    refusal_text,
    reset_text,
    stop_text,
    unchecked_text,
    uncounted_text,
    unreachable_text,
    warning_text,
)
from acp_proxy.core.money import NANO, Money
from tests.cases import each_of
from tests.core.accounts import NOW, account, budget, standing, usd

BERLIN = ZoneInfo("Europe/Berlin")
MINUTE = 60 * 10**9
WINDOWS = ["turn", "session", "day", "week", "month", "quarter", "total", "rolling:24h"]


def test_a_refusal_says_which_budget_used_limit_reset_and_how_to_get_more() -> None:
    mine = budget("30 USD", name="developer-daily", per="user", zone="Europe/Berlin")
    now = standing(mine, usd("29.99"), usd("0.0035"))
    assert refusal_text(now, NOW, BERLIN) == (
        'Not sent to the agent: budget "developer-daily" (user alice) has too little left. '
        "Used: $29.99 of $30.00, and running turns hold $0.0035, some of which may come free. "
        "A prompt needs at least $0.01. It resets on 2026-11-22 at 00:00 Europe/Berlin, in 13 h 0 min. "
        'To go on now, run `acp-proxy budget grant developer-daily --amount 20 --for 2h --reason "…"` '
        "and send the prompt again."
    )


@pytest.mark.parametrize(
    ("limit", "spent", "granted", "figures"),
    [
        ("300 USD", usd("241.2549"), 0, "Used: $241.25 of $300.00."),
        ("30 USD", usd("24.12345"), 0, "Used: $24.1234 of $30.00."),
        ("30 USD", usd("31"), usd("5"), "Used: $31.00 of $35.00 ($5.00 of it granted)."),
        ("5 USD", usd("1.25005"), 0, "Used: $1.25 of $5.00."),
        ("5 USD", usd("4.99996"), 0, "Used: $5.00 of $5.00."),
        ("0.002 USD", usd("0.001999"), 0, "Used: $0.001999 of $0.002."),
        ("0 USD", 0, 0, "Used: $0.00 of $0.00."),
        ("100 credits", usd("99.5"), 0, "Used: 99.50 of 100.00 credits."),
        ("200 turns", 200, 0, "Used: 200 of 200 turns."),
        ("2000000 tokens", 1_999_999, 0, "Used: 1,999,999 of 2,000,000 tokens."),
    ],
)
def test_figures_are_as_exact_as_the_limit_asks_for(limit: str, spent: int, granted: int, figures: str) -> None:
    assert figures in refusal_text(standing(budget(limit), spent, granted=granted), NOW, UTC)


def test_the_least_that_others_hold_is_told() -> None:
    assert "running turns hold 1," in refusal_text(standing(budget("2 turns"), 1, 1), NOW, UTC)


@pytest.mark.parametrize(
    ("limit", "spent", "amount"),
    [
        ("0.06 USD", usd("0.058"), "0.05"),
        ("0.002 USD", usd("0.002"), "0.01"),  # what a prompt needs
        ("5 USD", usd("5"), "5"),
        ("2000 credits", usd("2000"), "1000"),
        ("5 USD", usd("65"), "100"),
        ("5 USD", usd("9.99"), "5"),  # so much is missing to what a prompt needs
        ("5 USD", usd("9.99") + 1, "10"),
        ("0 USD", 0, "0.01"),
        ("2000000 tokens", 2_000_000, "1000000"),
        ("1 turns", 1, "1"),
        ("200 turns", 350, "200"),
    ],
)
def test_the_grant_that_is_advised_is_of_the_limits_size_and_lets_a_prompt_go(
    limit: str, spent: int, amount: str
) -> None:
    now = standing(budget(limit), spent)
    for text in (refusal_text(now, NOW, UTC), stop_text(now, NOW, UTC, cancelled=True)):
        assert f"--amount {amount} --for" in text


@pytest.mark.parametrize(
    ("limit", "hold", "least"),
    [("1 USD", "auto", "$0.01"), ("0.005 USD", "auto", "$0.01"), ("1 USD", usd("0.005"), "$0.005")],
)
def test_where_a_little_is_left_it_is_said_how_much_a_prompt_needs(limit: str, hold: Any, least: str) -> None:
    mine = budget(limit, hold=hold)
    text = refusal_text(standing(mine, mine.limit.amount - 1), NOW, UTC)
    assert f". A prompt needs at least {least}. It resets" in text
    assert "needs" not in refusal_text(standing(mine, mine.limit.amount), NOW, UTC)


@pytest.mark.parametrize(
    ("window", "text"),
    [
        ("day", "It resets on 2026-11-22 at 00:00 UTC, in 14 h 0 min."),
        ("week", "It resets on 2026-11-23 at 00:00 UTC, in 1 d 14 h."),
        ("month", "It resets on 2026-12-01 at 00:00 UTC, in 9 d 14 h."),
        ("total", "It does not reset."),
        ("turn", "It is for each turn by itself."),
        ("session", "It is for this session: a new one starts at 0."),
        ("rolling:5h", "It is for the last 5 h, and comes free as they pass."),
    ],
)
def test_the_reset_is_told_in_the_words_of_the_window(window: str, text: str) -> None:
    assert reset_text(account(budget(window=window)), NOW, UTC) == text


@pytest.mark.parametrize(
    ("before", "text"), [(1, "1 min"), (MINUTE, "1 min"), (MINUTE + 1, "2 min"), (60 * MINUTE, "1 h 0 min")]
)
def test_the_time_to_a_reset_is_rounded_up(before: int, text: str) -> None:
    day = account(budget())
    assert day.bounds.end is not None
    assert reset_text(day, day.bounds.end - before, UTC).endswith(f", in {text}.")


def test_a_budget_given_as_a_flag_is_raised_by_the_flag() -> None:
    text = refusal_text(standing(budget(window="total", layer="flag"), usd("30")), NOW, UTC)
    assert text.endswith("It does not reset. To go on, start the agent with a larger --budget.")
    assert "grant" not in text


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=10))
def test_the_command_in_a_refusal_can_be_pasted_into_a_shell(name: str) -> None:
    text = refusal_text(standing(budget(name=f"{name} {name}"), usd("30")), NOW, UTC)
    command = text[text.index("run `") + 5 : text.rindex("`")]
    assert shlex.split(command)[:4] == ["acp-proxy", "budget", "grant", f"{name} {name}"]


def test_who_is_refused_because_of_the_ledger_is_told_what_says_why() -> None:
    assert "`acp-proxy doctor` says why" in unreachable_text(account(budget()), leased="process")
    assert "set aside for this machine" in unreachable_text(account(budget()), leased="machine")
    assert "set aside" not in unreachable_text(account(budget()), leased=None)


def test_a_model_without_a_price_is_named_as_the_reason() -> None:
    text = refusal_text(standing(budget(on_unpriced="deny")), NOW, UTC, unpriced_model="big-model")
    assert text.startswith('Not sent to the agent: budget "daily" allows no model without a known price, and big-model')
    assert "Used" not in text


def test_a_warning_says_how_much_is_used_and_what_comes_after_all_of_it() -> None:
    assert warning_text(standing(budget("30 USD"), usd("24.12")), 80, NOW, UTC) == (
        '80 % of budget "daily" is reached. Used: $24.12 of $30.00. '
        "It resets on 2026-11-22 at 00:00 UTC, in 14 h 0 min."
    )
    assert "will be refused" in warning_text(standing(budget("30 USD"), usd("30")), 100, NOW, UTC)
    assert "will be refused" not in warning_text(standing(budget("30 USD"), usd("29.99")), 99, NOW, UTC)
    assert "will be refused" not in warning_text(standing(budget("30 USD", mode="warn"), usd("30")), 100, NOW, UTC)


def test_who_has_each_turn_for_itself_is_not_told_that_others_will_be_refused() -> None:
    text = warning_text(standing(budget("1 USD", window="turn"), usd("1.2")), 100, NOW, UTC)
    assert text == '100 % of budget "daily" is reached. Used: $1.20 of $1.00. It is for each turn by itself.'


def test_of_a_window_that_ended_while_the_turn_ran_it_is_said_that_it_is_over() -> None:
    now = standing(budget("1 USD"), usd("1.2"))
    assert now.account.bounds.end is not None
    for later in (0, 90 * 10**9):
        at = now.account.bounds.end + later
        over = "Used: $1.20 of $1.00. It was reset on 2026-11-22 at 00:00 UTC."
        assert warning_text(now, 100, at, UTC) == f'100 % of budget "daily" is reached. {over}'
        assert (
            stop_text(now, at, UTC, cancelled=True)
            == f'The agent was told to stop: budget "daily" is used up. {over} Send the prompt again to go on.'
        )


def test_what_a_budget_cannot_count_is_told() -> None:
    other = (Money.of("4.2", "EUR"), Money.of("7", "credits"))
    assert uncounted_text(standing(budget(), not_counted=other, unpriced=3)) == (
        'Not counted by budget "daily", which counts USD: €4.20, 7.00 credits, '
        "the cost of 3 turns without a known price."
    )
    assert "the cost of 1 turn without" in (uncounted_text(standing(budget(), unpriced=1)) or "")
    assert uncounted_text(standing(budget(on_unpriced="estimate"), unpriced=3)) == (
        'Not counted by budget "daily", which counts USD: the cost of 3 turns without a known price, '
        "beyond what they held."
    )
    assert uncounted_text(standing(budget("5 USD", rates=(("EUR", NANO),)), not_counted=other[1:])) == (
        'Not counted by budget "daily", which counts USD and EUR: 7.00 credits.'
    )
    assert uncounted_text(standing(budget("9 tokens")), silent=True) == (
        'Not counted by budget "daily", which counts tokens: a turn of which the agent told nothing, for '
        "`run.estimate` is false."
    )
    assert uncounted_text(standing(budget(), usd("1"))) is None


@each_of(product(["USD", "turns", "credits"], WINDOWS, ["admin", "user", "flag"]))
def test_no_text_holds_words_that_clients_take_for_another_error(case: tuple[str, str, str]) -> None:
    unit, window, layer = case
    now = standing(budget(f"30 {unit}", window, layer=layer, per="user"), 40, 5, 3, unpriced=2)
    for text in texts(now):
        assert "context" not in text.lower()
        assert "token" not in text.lower()


@pytest.mark.parametrize("window", WINDOWS)
def test_each_text_is_one_paragraph(window: str) -> None:
    for text in texts(standing(budget(window=window), usd("30"), 5, 3, unpriced=2)):
        assert text == " ".join(text.split())
        assert text.endswith(".")


def texts(now: Standing) -> list[str]:
    return [
        refusal_text(now, NOW, UTC),
        refusal_text(now, NOW, UTC, unpriced_model="big-model"),
        warning_text(now, 80, NOW, UTC),
        warning_text(now, 100, NOW, UTC),
        uncounted_text(now) or "",
        unreachable_text(now.account, leased="process"),
        unchecked_text(now.account),
    ]

"""Figures as people read them, and names that cannot hurt a terminal."""

from __future__ import annotations

import time
from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core.money import Money
from acp_proxy.text.figures import (
    aligned,
    clean,
    context_level,
    cost_text,
    cut,
    cut_apart,
    decimals_of,
    percent_text,
    tokens_text,
    width_of,
)


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (0, "0"),
        (20_672, "20,672"),
        (999_999, "999,999"),
        (1_000_000, "1.00M"),
        (9_994_999, "9.99M"),
        (9_999_999, "10.0M"),
        (99_990_000, "100M"),
        (999_499_999, "999M"),
        (999_500_000, "1.00B"),
        (45_600_000_000, "45.6B"),
    ],
)
def test_tokens_are_exact_below_a_million_and_short_above(tokens: int, text: str) -> None:
    assert tokens_text(tokens) == text


@given(st.integers(0, 10**14))
def test_tokens_never_take_more_than_eight_columns(tokens: int) -> None:
    assert len(tokens_text(tokens)) <= 8


def usd(amount: str) -> Money:
    return Money.of(amount, "USD")


@pytest.mark.parametrize(
    ("amount", "decimals", "text"),
    [
        ("0.045989", 4, "$0.0460"),
        ("0.00005", 4, "<$0.0001"),
        ("0.00015", 4, "$0.0002"),
        ("1234.565", 2, "$1,234.56"),
        ("0.001", 2, "<$0.01"),
        ("0", 4, "$0.0000"),
        ("-0.5", 2, "-$0.50"),
    ],
)
def test_money_is_rounded_half_even_and_never_to_nothing(amount: str, decimals: int, text: str) -> None:
    assert cost_text([usd(amount)], decimals) == text


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from((1, 2, 4)))
def test_money_is_rounded_as_decimals_are(nano: int, decimals: int) -> None:
    exact = (Decimal(nano) / 10**9).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_EVEN)
    shown = cost_text([Money(nano, "USD")], decimals)
    assert shown.startswith("<") or shown == f"{'-' if nano < 0 else ''}${abs(exact):,.{decimals}f}"
    assert shown.startswith("<") == (nano != 0 and exact == 0)


def test_currencies_stand_side_by_side_and_a_lower_bound_says_so() -> None:
    costs = [usd("1"), Money.of("2", "credits"), Money.of("3", "EUR")]
    assert cost_text(costs, 2, at_least=True) == "≥ €3.00 + $1.00 + 2.00 credits"
    assert cost_text([Money.of("1", "\x1b[31mgold")], 2) == "1.00 gold"


def test_a_part_is_never_rounded_to_nothing_or_to_all() -> None:
    parts = {0: "0%", 1: "<1%", 9: "<1%", 10: "1%", 125: "12%", 135: "14%", 994: "99%", 996: ">99%", 1000: "100%"}
    assert {part: percent_text(part, 1000) for part in parts} == parts
    assert percent_text(0, 0) == "-"


def test_an_unknown_cost_is_no_zero() -> None:
    assert cost_text([], at_least=True) == "?"
    assert cost_text([]) == "-"


def test_small_amounts_get_four_decimals_and_a_column_one_precision() -> None:
    assert decimals_of([usd("0.1"), usd("9.99")]) == 4
    assert decimals_of([usd("0.1"), usd("10")]) == 2
    assert decimals_of([]) == 4


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jgone", "gone"),
        ("\x1bPdevice\x1b\\after", "after"),
        ("a\nb\tc\rd", "a b c d"),
        ("left\u202eright", "left right"),
        ("bell\x07 del\x7f nul\0", "bell del nul"),
        ("日本語", "日本語"),
        ("\ud800", ""),
    ],
)
def test_names_lose_what_controls_a_terminal(text: str, shown: str) -> None:
    assert clean(text) == shown


@given(st.text())
def test_a_clean_name_is_printable_and_stays_as_it_is(text: str) -> None:
    assert clean(text).isprintable()
    assert clean(clean(text)) == clean(text)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C"])), st.integers(1, 20))
def test_a_cut_name_fits_and_says_that_it_was_cut(text: str, width: int) -> None:
    assert width_of(cut(text, width)) <= width
    assert (cut(text, width) == text) == (width_of(text) <= width)


@pytest.mark.parametrize(
    ("name", "width", "left"),
    [
        ("@agentclientprotocol/claude-agent-acp", 20, "…/claude-agent-acp"),
        ("@agentclientprotocol/codex-acp", 20, "…/codex-acp"),
        ("a/b/c/model", 9, "…/c/model"),
        ("a/b/c/model", 8, "…/model"),
        ("openrouter/anthropic/claude-opus-5", 12, "…/claude-op…"),
        ("/a-single-directory", 9, "/a-singl…"),
        ("a-name-that-ends-so/", 9, "a-name-t…"),
        ("Mend src/app.py and more", 12, "Mend src/ap…"),
    ],
)
def test_a_name_with_a_path_loses_its_front_first(name: str, width: int, left: str) -> None:
    assert cut(name, width) == left


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["C"])), max_size=5), st.integers(0, 20))
def test_names_that_are_cut_apart_fit_and_stay_whole_where_they_can(names: list[str], width: int) -> None:
    for name, shown in zip(names, cut_apart(names, width), strict=True):
        assert width_of(shown) <= width
        assert (shown == name) == (width_of(name) <= width)


def test_names_that_would_look_the_same_show_how_they_begin() -> None:
    claudes = ["@agentclientprotocol/claude-agent-acp", "@zed-industries/claude-agent-acp"]
    assert cut_apart([*claudes, "gemini-cli"], 20) == ["@agent…ude-agent-acp", "@zed-i…ude-agent-acp", "gemini-cli"]
    assert cut_apart([claudes[0], claudes[0]], 20) == ["…/claude-agent-acp"] * 2
    assert cut_apart(["日本語日本語日本語甲", "日本語日本語日本語乙"], 10) == ["日…本語甲", "日…本語乙"]


def test_a_long_name_is_cut_in_one_pass() -> None:
    assert cut("/a" * 100_000, 6) == "…/a/a"
    begin = time.process_time()
    assert cut("日" * 100_000, 20) == "日" * 9 + "…"
    assert time.process_time() - begin < 2  # 20 ms; a sign at a time it was minutes


def test_wide_signs_take_two_columns() -> None:
    assert width_of("日本e\u0301") == 5
    assert width_of("\u0e17\u0e35\u0e48") == 1  # Thai: a vowel and a tone above one letter
    assert width_of("\u26a0\ufe0f") == 2  # a sign that is shown as an emoji
    assert aligned([["日本", "1"], ["a", "22"]], [False, True]) == "日本   1\na     22\n"


@pytest.mark.parametrize(
    ("used", "level"),
    [(0, "normal"), (149, "normal"), (150, "yellow"), (179, "yellow"), (180, "orange"), (190, "orange"), (191, "red")],
)
def test_a_context_is_yellow_from_75_percent_orange_from_90_and_red_above_95(used: int, level: str) -> None:
    assert context_level(used, 200) == level

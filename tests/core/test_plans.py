"""A plan's window: what is news of it, whether it is over, and when it will be used up at its pace."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.core.plans import FULL, PlanState, PlanWindow, is_news, length_of
from acp_proxy.core.windows import DAY, HOUR, SECOND

BEGIN = 1_795_262_400 * SECOND
END = BEGIN + 5 * HOUR
WINDOW = PlanWindow("five_hour", FULL // 2, "allowed", END, None, BEGIN + HOUR)


def state(told: PlanWindow = WINDOW, first_at: int = BEGIN, first_used: int | None = 0) -> PlanState:
    return PlanState("alice", "claude", told, first_at, first_used)


def test_what_is_used_of_a_window_that_was_reset_is_unknown() -> None:
    assert state().used(END - 1) == FULL // 2
    assert state().used(END) is None
    assert state(replace(WINDOW, resets_at=None)).used(END + DAY) == FULL // 2


def test_a_window_of_known_length_is_full_at_its_pace_since_it_began() -> None:
    assert state(first_at=BEGIN + HOUR // 2, first_used=FULL // 2).full_at(BEGIN + HOUR) == BEGIN + 2 * HOUR


def test_a_window_of_unknown_length_is_full_at_its_pace_since_it_was_seen_first() -> None:
    told = replace(WINDOW, window="lunar_month")
    assert state(told, BEGIN, FULL // 4).full_at(BEGIN + HOUR) == BEGIN + 3 * HOUR
    assert state(told, WINDOW.seen_at, FULL // 2).full_at(BEGIN + HOUR) is None  # seen once


def test_a_window_that_is_reset_before_is_never_full() -> None:
    slow = replace(WINDOW, used=FULL // 5)
    assert state(slow).full_at(BEGIN + HOUR) is None
    assert state(replace(slow, used=FULL // 5 + 1)).full_at(BEGIN + HOUR) is not None
    assert state(replace(WINDOW, used=0)).full_at(BEGIN + HOUR) is None
    assert state(replace(WINDOW, used=None)).full_at(BEGIN + HOUR) is None
    assert state().full_at(END) is None


def test_a_full_window_is_full_since_it_was_seen() -> None:
    assert state(replace(WINDOW, used=FULL)).full_at(END - 1) == WINDOW.seen_at


@given(
    st.integers(0, 2 * FULL), st.integers(1, 8 * DAY // SECOND), st.sampled_from(["five_hour", "seven_day", "other"])
)
def test_what_is_foreseen_is_ahead_of_what_was_seen_and_before_the_reset(used: int, left: int, name: str) -> None:
    told = PlanWindow(name, used, None, BEGIN + left * SECOND, None, BEGIN)
    full = state(told, BEGIN - HOUR, 0).full_at(BEGIN)
    assert full is None or BEGIN <= full < BEGIN + left * SECOND


@pytest.mark.parametrize(
    ("name", "length"),
    [("five_hour", 5 * HOUR), ("seven_day", 7 * DAY), ("seven_day_opus", 7 * DAY), ("overage", None), ("", None)],
)
def test_how_long_a_window_is_follows_from_its_name(name: str, length: int | None) -> None:
    assert length_of(name) == length


@pytest.mark.parametrize(
    ("used", "reached"), [(None, None), (0, None), (749_999, None), (750_000, 75), (949_999, 90), (2 * FULL, 95)]
)
def test_the_highest_threshold_that_is_reached_counts(used: int | None, reached: int | None) -> None:
    assert state(replace(WINDOW, used=used)).reached() == reached


def test_news_are_a_hundredth_more_or_less_and_any_other_change() -> None:
    later = replace(WINDOW, seen_at=WINDOW.seen_at + 1)
    assert not is_news(later, WINDOW)
    assert not is_news(replace(later, used=FULL // 2 + 9_999, resets_at=END + SECOND), WINDOW)
    assert is_news(later, None)
    for other in ({"used": FULL // 2 + 10_000}, {"used": 490_000}, {"used": None}, {"status": "rejected"}):
        assert is_news(replace(later, **other), WINDOW)
    for other in ({"overage": "in_use"}, {"resets_at": END + HOUR}, {"resets_at": None}):
        assert is_news(replace(later, **other), WINDOW)

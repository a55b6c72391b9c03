"""A plan's window: what is news of it, whether it is over, and when it will be used up at its pace."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.core import plans
from acp_proxy.core.plans import FULL, OVERAGE, PlanState, PlanWindow, billed_as, followed, is_news, length_of
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
    once = replace(WINDOW, window="lunar_month", used=FULL)
    assert state(once, WINDOW.seen_at, FULL).full_at(END - 1) == WINDOW.seen_at


def test_a_pace_is_known_by_the_least_growth_in_the_least_time() -> None:
    told = replace(WINDOW, window="lunar_month", resets_at=None)
    slow = state(replace(told, used=1), BEGIN, 0)
    assert slow.full_at(BEGIN + HOUR) == WINDOW.seen_at + (FULL - 1) * HOUR
    quick = state(told, WINDOW.seen_at - 1, 0)
    assert quick.full_at(BEGIN + HOUR) == WINDOW.seen_at + 1
    assert state(told, WINDOW.seen_at, 0).full_at(BEGIN + HOUR) is None  # in no time at all
    assert state(told, BEGIN, None).full_at(BEGIN + HOUR) == BEGIN + 2 * HOUR  # what was used at first is not known
    assert state(replace(told, used=1), BEGIN - 2 * HOUR, 0).full_at(BEGIN) is None  # beyond what a ledger holds


def test_a_window_has_begun_its_length_before_its_reset_or_when_it_was_seen_first() -> None:
    assert state(first_at=BEGIN + 7).begun_at == BEGIN
    assert state(replace(WINDOW, resets_at=None), BEGIN + 7).begun_at == BEGIN + 7
    assert state(replace(WINDOW, window="lunar_month"), BEGIN + 7).begun_at == BEGIN + 7


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
    ("used", "reached"),
    [(None, None), (0, None), (749_999, None), (750_000, 75), (949_999, 90), (950_000, 95), (2 * FULL, 95)],
)
def test_the_highest_threshold_that_is_reached_counts(used: int | None, reached: int | None) -> None:
    assert state(replace(WINDOW, used=used)).reached((75, 95, 90)) == reached


def test_people_are_told_at_three_quarters_and_twice_near_the_end() -> None:
    assert plans.THRESHOLDS == (75, 90, 95)


def test_news_are_a_hundredth_more_or_less_and_any_other_change() -> None:
    later = replace(WINDOW, seen_at=WINDOW.seen_at + 1)
    assert not is_news(later, WINDOW)
    assert not is_news(replace(later, used=FULL // 2 + 9_999, resets_at=END + SECOND), WINDOW)
    assert is_news(later, None)
    for other in ({"used": FULL // 2 + 10_000}, {"used": 490_000}, {"used": None}, {"status": "rejected"}):
        assert is_news(replace(later, **other), WINDOW)
    for other in ({"overage": "in_use"}, {"resets_at": END + HOUR}, {"resets_at": None}):
        assert is_news(replace(later, **other), WINDOW)


class TestAMessageAboutAWindow:
    before = state(first_at=BEGIN + 1, first_used=7)

    def follow(self, before: PlanState | None = before, **told: object) -> PlanState:
        later = {"seen_at": WINDOW.seen_at + 1, **told}
        return followed(before, "alice", "claude", replace(WINDOW, **later))

    def test_that_is_the_first_begins_it(self) -> None:
        told = replace(WINDOW, seen_at=WINDOW.seen_at + 1)
        assert self.follow(None) == PlanState("alice", "claude", told, told.seen_at, told.used)

    @pytest.mark.parametrize("age", [0, 1, HOUR])
    def test_that_is_no_newer_says_nothing(self, age: int) -> None:
        assert self.follow(seen_at=WINDOW.seen_at - age, used=FULL, status="rejected") is self.before

    def test_tells_how_it_stands_now(self) -> None:
        now = self.follow(used=FULL, status="rejected", overage=OVERAGE)
        told = replace(WINDOW, used=FULL, status="rejected", overage=OVERAGE, seen_at=WINDOW.seen_at + 1)
        assert now == replace(self.before, told=told)

    def test_may_leave_out_what_is_known(self) -> None:
        now = self.follow(used=None, resets_at=None)
        assert (now.told.used, now.told.resets_at, now.first_used) == (WINDOW.used, END, 7)

    def test_may_tell_what_was_not_known(self) -> None:
        unknown = state(replace(WINDOW, used=None, resets_at=None), BEGIN, None)
        now = self.follow(unknown)
        assert (now.told.used, now.told.resets_at) == (WINDOW.used, END)
        assert (now.first_at, now.first_used) == (WINDOW.seen_at + 1, WINDOW.used)  # its pace begins with it
        assert self.follow(unknown, used=None).first_used is None

    @pytest.mark.parametrize(("off", "same"), [(599, True), (-599, True), (600, False), (-600, False)])
    def test_has_its_reset_about_where_it_was(self, off: int, same: bool) -> None:
        now = self.follow(resets_at=END + off * SECOND, used=0)
        assert now.told.resets_at == (END if same else END + off * SECOND)
        assert (now.first_at == self.before.first_at) is same

    @pytest.mark.parametrize(("seen_at", "same"), [(END - 1, True), (END, False), (END + 1, False)])
    def test_from_its_reset_on_is_about_the_next(self, seen_at: int, same: bool) -> None:
        now = self.follow(seen_at=seen_at, resets_at=None)
        assert (now.first_at, now.told.resets_at) == ((self.before.first_at, END) if same else (seen_at, None))

    @pytest.mark.parametrize(("used", "same"), [(490_001, True), (490_000, False), (0, False), (FULL, True)])
    def test_of_unknown_reset_is_about_the_next_where_a_hundredth_less_is_used(self, used: int, same: bool) -> None:
        before = state(replace(WINDOW, resets_at=None), BEGIN + 1, 7)
        now = self.follow(before, used=used, resets_at=None)
        assert now.told.used == used
        assert (now.first_at == before.first_at) is same


def test_who_tells_of_windows_has_a_plan_until_what_is_used_now_is_paid_beside_it() -> None:
    beside = replace(WINDOW, overage=OVERAGE)
    assert billed_as([WINDOW]) == billed_as([beside, WINDOW]) == "plan"
    assert billed_as([beside]) == billed_as([WINDOW, beside]) == "tokens"
    assert billed_as([replace(WINDOW, overage="allowed")]) == "plan"

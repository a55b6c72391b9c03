"""From which use of a plan's window on a budget refuses, for which reason, and until when."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from acp_proxy.core.budget.plan_limits import PlanBudget, PlanStanding, binding, ends_at, standing_of
from acp_proxy.core.plans import FULL, OVERAGE, PlanState, PlanWindow
from acp_proxy.core.scope import Scope
from acp_proxy.core.windows import DAY, HOUR
from tests.core.accounts import ALICE, NOW

KEEP = PlanBudget("keep", "user", "five_hour", 80)
UNPAID = PlanBudget("unpaid", "user", "seven_day_opus", 100, on_overage="deny")
SOON, LATER = NOW + HOUR, NOW + DAY


def window(name: str, percent: int | None, resets_at: int | None = SOON, seen_at: int = NOW, **rest: str) -> PlanState:
    used = None if percent is None else percent * FULL // 100
    told = PlanWindow(name, used, rest.get("status"), resets_at, rest.get("overage"), seen_at)
    return PlanState("alice", "claude", told, seen_at, used)


def standing(budget: PlanBudget, *states: PlanState, now: int = NOW) -> PlanStanding:
    return standing_of(budget, "alice", "claude", states, now)


def told(budget: PlanBudget, *states: PlanState) -> tuple[str | None, int | None]:
    found = standing(budget, *states)
    return found.reason, found.until


def test_a_budget_is_used_up_from_its_percent_on_until_the_window_is_reset() -> None:
    free = standing(KEEP, window("seven_day", 100, LATER), window("five_hour", 79))
    assert (free.decision, free.reason, free.until, free.used, free.left) == ("allow", None, None, 790_000, 10_000)
    full = standing(KEEP, window("five_hour", 80))
    assert (full.decision, full.reason, full.until, full.left) == ("deny", "used", SOON, 0)
    nearly = window("five_hour", 79)
    nearly = replace(nearly, told=replace(nearly.told, used=799_999))
    assert standing(KEEP, nearly).decision == "allow"
    beyond = standing(KEEP, window("five_hour", 81))
    assert (beyond.decision, beyond.left) == ("deny", -10_000)
    assert (full.user, full.agent, full.budget) == ("alice", "claude", KEEP)
    assert standing(replace(KEEP, percent=100), window("five_hour", 100)).decision == "deny"


def test_a_window_that_takes_no_prompt_is_used_up_whatever_is_told_of_its_use() -> None:
    for percent in (None, 10):
        assert told(KEEP, window("five_hour", percent, status="rejected")) == ("used", SOON)
    assert told(KEEP, window("five_hour", None, status="allowed")) == (None, None)


def test_what_is_not_known_of_a_window_refuses_nobody() -> None:
    for states in ([], [window("seven_day", 100, LATER)], [window("five_hour", 100, NOW)]):
        found = standing(KEEP, *states)
        assert (found.decision, found.state, found.used, found.left) == ("allow", None, None, None)
    unknown = standing(KEEP, window("five_hour", None))
    assert (unknown.decision, unknown.used, unknown.left) == ("allow", None, None)


@pytest.mark.parametrize(("mode", "decision"), [("warn", "warn"), ("shadow", "shadow_deny"), ("enforce", "deny")])
def test_only_an_enforced_budget_of_a_plan_refuses(mode: str, decision: str) -> None:
    full = standing(replace(KEEP, mode=mode), window("five_hour", 90))
    assert full.decision == decision
    assert (binding([full]) is full) is (mode == "enforce")


def test_a_refusal_names_the_budget_that_refuses_for_the_longest_time() -> None:
    short, long = standing(KEEP, window("five_hour", 90)), standing(UNPAID, window("seven_day_opus", 100, LATER))
    assert binding([short, long]) is long
    assert binding([long, short]) is long
    assert binding([standing(KEEP, window("five_hour", 1))]) is None


@pytest.mark.parametrize(
    ("name", "holds"), [("five_hour", 5 * HOUR), ("seven_day_opus", 7 * DAY), ("a_new_one", 5 * HOUR)]
)
def test_what_is_told_without_a_reset_holds_as_long_as_such_a_window_is(name: str, holds: int) -> None:
    assert ends_at(window(name, 10, None)) == NOW + holds
    assert ends_at(window(name, 10, LATER)) == LATER


def test_a_budget_of_a_plan_is_for_who_and_what_is_in_its_scope() -> None:
    assert KEEP.matches(ALICE)
    assert replace(KEEP, scope=Scope(user=("al*",), agent=("claude",))).matches(ALICE)
    assert not replace(KEEP, scope=Scope(user=("al*",), agent=("codex",))).matches(ALICE)


def test_what_is_paid_beside_the_plan_is_refused_until_the_first_window_is_reset() -> None:
    """Nobody tells which of them is full. What was told last counts."""
    states = [window("five_hour", 20, SOON, overage=OVERAGE), window("seven_day", 99, LATER, NOW - 1)]
    assert told(UNPAID, *states) == ("overage", SOON)
    assert told(UNPAID, *reversed(states)) == ("overage", SOON)
    assert told(replace(UNPAID, on_overage="allow"), *states) == (None, None)
    # Of one that was reset before that was told nothing waits, but of the one that tells it.
    assert told(
        UNPAID, window("seven_day", 99, LATER, overage=OVERAGE), window("five_hour", 100, NOW - 1, NOW - 2)
    ) == (
        "overage",
        LATER,
    )
    over = window("five_hour", 100, NOW, NOW, overage=OVERAGE)
    assert told(UNPAID, over, window("seven_day", 99, LATER, NOW - 1)) == (None, None)  # its reset has come


def test_what_was_told_of_payments_before_the_last_word_counts_no_more() -> None:
    before, now = window("five_hour", 20, SOON, NOW - 1, overage=OVERAGE), window("seven_day", 30, LATER)
    assert told(UNPAID, before, now) == (None, None)


@pytest.mark.parametrize(
    ("states", "until"),
    [
        ([("five_hour", 100, SOON)], SOON),
        ([("five_hour", 99, SOON)], None),
        ([("five_hour", 100, SOON), ("seven_day", 100, LATER)], LATER),
        ([("seven_day_sonnet", 100, SOON)], None),  # of other models
        ([("five_hour", 100, NOW)], None),  # reset since
        ([], None),
    ],
)
def test_after_a_full_window_of_all_models_everything_is_paid(
    states: list[tuple[str, int, int]], until: int | None
) -> None:
    found = [window(*state) for state in states]
    assert told(UNPAID, *found) == ((None, None) if until is None else ("overage", until))


def test_a_plan_that_takes_no_prompt_when_it_is_full_lets_nobody_pay() -> None:
    assert told(UNPAID, window("five_hour", 100, overage="rejected")) == (None, None)
    assert told(UNPAID, window("five_hour", 100, overage="allowed")) == ("overage", SOON)


def test_a_budget_of_a_model_looks_at_the_window_of_that_model_too() -> None:
    lower = replace(UNPAID, percent=120)
    assert told(lower, window("seven_day_opus", 100, LATER)) == ("overage", LATER)

"""Windows of a plan in a rollout of Codex: as its server told them, and nothing where it told none."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.books.codex_plans import windows
from acp_proxy.core.plans import FULL, PlanWindow
from acp_proxy.core.windows import HOUR
from harness.rows import NOON
from tests.books.rollouts import FIVE, told

DATA = Path(__file__).parent / "data/codex"


def test_both_windows_are_told_as_other_agents_call_them() -> None:
    assert list(windows([told()])) == [
        PlanWindow("five_hour", FULL * 625 // 1000, "allowed", NOON + 2 * HOUR, "rejected", NOON),
        PlanWindow("seven_day", FULL * 34 // 100, "allowed", NOON + 48 * HOUR, "rejected", NOON),
    ]


def test_a_window_that_refuses_says_so_and_whether_more_could_be_paid() -> None:
    full = {"primary": FIVE | {"used_percent": 100.0}, "rate_limit_reached_type": "rate_limit_reached"}
    five, week = windows([told(**full, credits={"has_credits": True})])
    assert (five.status, five.overage) == ("rejected", "allowed")
    assert week.status == "allowed"


def test_other_lengths_and_limits_have_names_of_their_own() -> None:
    day = {"used_percent": 1, "window_minutes": 1440, "resets_in_seconds": 3600}
    (one,) = windows([told(limit_id="gpt-5-codex-mini", primary=day, secondary=None)])
    assert (one.window, one.resets_at) == ("1440_minutes_gpt-5-codex-mini", NOON + HOUR)
    (one,) = windows([told(primary={"used_percent": 1}, secondary=None, credits=None)])
    assert (one.window, one.resets_at, one.overage) == ("primary", None, None)


@pytest.mark.parametrize("path", sorted(DATA.rglob("*.jsonl"), key=str), ids=lambda path: path.stem[-12:])
def test_with_an_api_key_there_is_no_plan(path: Path) -> None:
    with path.open("rb") as lines:
        assert list(windows(lines)) == []


@given(st.binary(max_size=300), st.integers(0, 400))
def test_no_bytes_make_it_raise(some: bytes, cut: int) -> None:
    list(windows([some, told()[:cut], b'{"rate_limits"' + some]))

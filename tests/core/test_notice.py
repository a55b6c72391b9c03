"""What a notice is known by: the same wherever the same thing is noticed, another for anything else."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from acp_proxy.core.budget.plan_limits import PlanBudget, PlanStanding
from acp_proxy.core.budget.requests import Wish
from acp_proxy.core.entry import Origin, UsageLine
from acp_proxy.core.money import Money
from acp_proxy.core.notice import (
    Notice,
    a_test,
    ledger_is,
    more_asked,
    plan_reached,
    refused,
    refused_by_plan,
    stopped,
    threshold_reached,
    unpriced,
)
from acp_proxy.core.plans import FULL, PlanState, PlanWindow
from acp_proxy.core.scope import Scope
from acp_proxy.core.usage import Usage
from acp_proxy.core.windows import DAY, HOUR
from harness.rows import row
from tests.core.accounts import ALICE as SUBJECT
from tests.core.accounts import NOW, account, budget, standing

ALICE = Origin("acme", "alice", "core", "shop", "laptop", "claude", "1", "zed")
BOB = replace(ALICE, user="bob")


def test_a_threshold_is_the_same_whatever_was_spent_and_whenever_it_was_seen() -> None:
    one, other = standing(budget(), 5), standing(budget(), 6)
    assert threshold_reached(one, 80, NOW).id == threshold_reached(other, 80, NOW + 1).id
    assert threshold_reached(one, 80, NOW).id != threshold_reached(one, 90, NOW).id
    assert threshold_reached(one, 80, NOW).id != threshold_reached(standing(budget(name="b")), 80, NOW).id


@pytest.mark.parametrize(
    ("window", "later", "same"),
    [
        ("day", HOUR, True),
        ("day", DAY, False),
        ("month", DAY, True),
        ("total", 400 * DAY, True),
        ("rolling:5h", HOUR // 60, True),
        ("rolling:5h", 5 * HOUR, False),
    ],
)
def test_each_window_of_a_budget_has_notices_of_its_own(window: str, later: int, same: bool) -> None:
    of = budget(window=window)
    first, second = (replace(standing(of), account=account(of, at=at)) for at in (NOW, NOW + later))
    assert (threshold_reached(first, 80, NOW).id == threshold_reached(second, 80, NOW + later).id) is same
    assert (refused(first, ALICE, "m", NOW).id == refused(second, ALICE, "m", NOW + later).id) is same


def test_a_budget_of_each_turn_is_one_of_each_day_here() -> None:
    of = budget(window="turn")
    first, second = (replace(standing(of), account=account(of, turn=turn)) for turn in ("t1", "t2"))
    assert refused(first, ALICE, "m", NOW).id == refused(second, ALICE, "m", NOW + 1).id
    assert refused(first, ALICE, "m", NOW).id != refused(second, ALICE, "m", NOW + DAY).id


def test_of_budgets_of_each_turn_each_user_and_each_owner_has_their_own() -> None:
    each = budget(window="turn", per="user")
    subjects = (SUBJECT, replace(SUBJECT, user="bob"))
    of = [replace(standing(each), account=account(each, subject)) for subject in subjects]
    for owner in ("carol", "dave"):
        own = budget(window="turn", scope=Scope(user=(owner,)))
        of.append(replace(standing(each), account=account(own, replace(SUBJECT, user=owner))))
    assert len({threshold_reached(one, 80, NOW).id for one in of}) == 4


def test_who_asks_for_more_says_for_what_and_why() -> None:
    wish = Wish("w1", "user", "daily", "user", "alice\ud800", 5, "USD", "a release")
    notice = more_asked("acme", "alice", None, wish, "https://hub/requests/w1", NOW)
    assert notice == Notice(
        notice.id,
        "request",
        "acme",
        NOW,
        budget="daily",
        layer="user",
        per="user",
        value="alice?",
        unit="USD",
        user="alice",
        request="w1",
        amount=5,
        why="a release",
        link="https://hub/requests/w1",
    )
    assert more_asked("acme", "bob", "core", wish, None, NOW + 1).id == notice.id
    assert more_asked("acme", "alice", None, replace(wish, id="w2"), None, NOW).id != notice.id
    assert len(notice.id) == 32


def test_refusals_and_stops_are_told_apart_by_user_and_reason() -> None:
    one = standing(budget())
    ids = {
        refused(one, ALICE, "m", NOW).id,
        refused(one, BOB, "m", NOW).id,
        refused(one, ALICE, "m", NOW, unpriced=True).id,
        refused(one, ALICE, "n", NOW, unpriced=True).id,
        stopped(one, ALICE, "m", NOW, "cancel").id,
        stopped(one, ALICE, "m", NOW, "deny_next_tool").id,
        threshold_reached(one, 80, NOW).id,
    }
    assert len(ids) == 7
    assert refused(one, ALICE, "m", NOW).id == refused(one, ALICE, "another", NOW).id


def test_an_outage_has_a_beginning_and_an_end_on_each_host() -> None:
    ids = {ledger_is(what, "acme", host, NOW, NOW).id for what in ("away", "back") for host in ("a", "b")}
    assert len(ids) == 4
    assert ledger_is("away", "acme", "a", NOW, NOW).id == ledger_is("away", "acme", "a", NOW, NOW + 9).id


def test_a_model_without_a_price_is_told_once_a_day_for_whatever_it_was_used() -> None:
    lines = UsageLine("new", Usage(5)), UsageLine("known", Usage(5), Money(1, "USD")), UsageLine("unused", Usage())
    turn = row(*lines, UsageLine("new", Usage(9)), at=NOW, took=0, cost_source="unknown").entry
    (notice,) = unpriced(ALICE, turn)
    assert (notice.kind, notice.organisation, notice.model, notice.user) == ("unpriced", "acme", "new", "alice")
    later, tomorrow = (replace(turn, id="t2", ended_at=NOW - NOW % DAY + after) for after in (DAY - 1, DAY))
    assert [each.id for each in unpriced(BOB, later)] == [notice.id]
    assert [each.id for each in unpriced(BOB, tomorrow)] != [notice.id]


@pytest.mark.parametrize(
    "changed", [{"lines": (UsageLine("known", Usage(5), Money(1, "USD")),)}, {"cost_source": "parent"}]
)
def test_nothing_is_told_of_models_whose_cost_is_known(changed: dict[str, Any]) -> None:
    turn = row(UsageLine("new", Usage(5)), at=NOW, took=0, cost_source="unknown").entry
    assert list(unpriced(ALICE, replace(turn, **changed))) == []


def test_names_are_cut_and_can_be_kept_by_any_ledger() -> None:
    of = budget(per="user")
    strange = replace(SUBJECT, user="\ud800" + "x" * 999)
    notice = refused(replace(standing(of), account=account(of, strange)), ALICE, "m\udfff" * 999, NOW)
    for name in (notice.value, notice.model):
        assert name is not None
        assert name.encode()
        assert len(name) == 200


def test_a_refusal_by_a_plan_tells_of_its_window_and_why() -> None:
    of = PlanStanding(PlanBudget("weekly", "user", "seven_day", 80), "alice", "claude", None, "used", NOW + DAY)
    notice = refused_by_plan(of, ALICE, "m", NOW)
    assert notice == Notice(
        notice.id,
        "refusal",
        "acme",
        NOW,
        detail="used_up",
        budget="weekly",
        layer="user",
        percent=80,
        mode="enforce",
        window="seven_day",
        resets_at=NOW + DAY,
        user="alice",
        team="core",
        project="shop",
        agent="claude",
        model="m",
    )
    assert not notice.count_plans
    beside = refused_by_plan(replace(of, reason="overage"), ALICE, "m", NOW)
    assert (beside.detail, beside.id == notice.id) == ("overage", False)
    assert refused_by_plan(of, ALICE, "another", NOW + 1).id == notice.id
    for other in (replace(of, until=NOW + 2 * DAY), replace(of, agent="codex")):
        assert refused_by_plan(other, ALICE, "m", NOW).id != notice.id
    assert refused_by_plan(of, BOB, "m", NOW).id != notice.id


def test_a_threshold_of_a_plan_is_told_once_in_each_window() -> None:
    told = PlanWindow("seven_day", FULL * 9 // 10, None, NOW + DAY, None, NOW)
    state = PlanState("alice", "claude", told, NOW - HOUR, 0)
    notice = plan_reached("acme", state, 90)
    assert (notice.kind, notice.organisation, notice.at, notice.percent) == ("plan", "acme", NOW, 90)
    assert (notice.window, notice.resets_at, notice.user, notice.agent) == ("seven_day", NOW + DAY, "alice", "claude")
    assert plan_reached("acme", replace(state, first_at=NOW), 90).id == notice.id  # its reset is what it is known by
    assert plan_reached("acme", replace(state, told=replace(told, resets_at=NOW + 8 * DAY)), 90).id != notice.id
    unknown = replace(state, told=replace(told, resets_at=None))
    assert plan_reached("acme", unknown, 90).id != plan_reached("acme", replace(unknown, first_at=NOW), 90).id
    assert plan_reached("acme", state, 75).id != notice.id


def test_each_test_of_a_channel_is_another_notice() -> None:
    notice = a_test("acme", "laptop", NOW, "one")
    assert (notice.kind, notice.organisation, notice.at, notice.host) == ("test", "acme", NOW, "laptop")
    assert a_test("acme", "laptop", NOW, "two").id != notice.id

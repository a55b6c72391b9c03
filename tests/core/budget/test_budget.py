"""Which accounts a subject has, what makes two of them the same, and how an account stands."""

from __future__ import annotations

import json
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.core.budget import Per, Standing
from acp_proxy.core.scope import Dimension, Scope, Subject
from acp_proxy.core.windows import HOUR, Bounds, Window
from tests.core.accounts import ALICE, NOW, account, accounts, budget, instant, limit, standing, usd

BOB = replace(ALICE, user="bob")
AMOUNTS = st.integers(0, 10**6)
names = st.text(max_size=5)


def test_every_budget_that_matches_has_an_account_in_the_order_of_the_budgets() -> None:
    mine, others, all_of_us = budget(name="b", per="user"), budget(scope=Scope(user=("bob",))), budget(name="a")
    assert [account.budget for account in accounts(mine, others, all_of_us)] == [mine, all_of_us]


def test_accounts_of_one_budget_differ_by_the_value_it_is_per_and_by_nothing_else() -> None:
    each, together = budget(per="user"), budget(scope=Scope(user=("*",)))
    assert account(each).key != account(each, BOB).key
    assert (account(each).value, account(each, BOB).value) == ("alice", "bob")
    assert account(together) == account(together, BOB)
    elsewhere = replace(ALICE, host="desktop", agent="codex", project="site", model=None, session="s2", process="p2")
    assert account(each) == account(each, elsewhere, turn="t2")


def test_who_is_in_no_team_has_no_budget_per_team() -> None:
    assert accounts(budget(per="team"), budget(per="project"), subject=replace(ALICE, team=None, project=None)) == ()
    assert len(accounts(budget(per="team"), budget(per="project"))) == 2


def test_a_budget_may_match_whatever_a_value_is_that_is_not_known() -> None:
    model: tuple[Dimension, ...] = ("model",)
    of_alice, per_team = budget(scope=Scope(user=("alice",), model=("opus",))), budget(per="team")
    assert not of_alice.matches(replace(ALICE, model=None))
    assert of_alice.may_match(replace(ALICE, model=None), model)
    assert not of_alice.may_match(replace(BOB, model=None), model)
    assert not per_team.may_match(replace(ALICE, team=None), model)
    assert per_team.may_match(replace(ALICE, team=None), (*model, "team"))


@given(st.sampled_from([ALICE, BOB, replace(ALICE, team=None, model=None)]), st.sampled_from([None, "team", "agent"]))
def test_where_all_is_known_a_budget_may_match_whom_it_matches(subject: Subject, per: Per | None) -> None:
    for scope in (Scope(), Scope(user=("a*",)), Scope(team=("core",)), Scope(model=("*",))):
        one = budget(scope=scope, per=per)
        assert one.may_match(subject, ()) is one.matches(subject)


def test_an_account_counts_the_rows_of_its_organisation_value_and_scope() -> None:
    only = account(budget(per="team", scope=Scope(model=("opus",))))
    assert only.filter.where == (("organisation", "acme"), ("team", "core"))
    assert only.filter.scope == Scope(model=("opus",))
    assert account(budget(), replace(ALICE, organisation="other")).key != account(budget()).key


def test_an_account_has_the_bounds_of_its_window_in_the_zone_of_the_budget() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    at = instant("2026-11-21T23:30")
    assert account(budget(), at=at).bounds == Bounds(instant("2026-11-21"), instant("2026-11-22"))
    expected = Bounds(instant("2026-11-22", berlin), instant("2026-11-23", berlin))
    assert account(budget(zone="Europe/Berlin"), at=at).bounds == expected


def test_a_session_is_told_from_one_with_the_same_id_elsewhere() -> None:
    mine = budget(window="session")
    same = account(mine, replace(ALICE, model=None, process="p2"), at=NOW + 10**18, turn="t2")
    assert same == account(mine)
    others = [replace(ALICE, **{part: "other"}) for part in ("organisation", "user", "host", "agent", "session")]
    assert len({account(mine, other).key for other in others} | {same.key}) == 6
    assert dict(same.filter.where)["session"] == "s1"


def test_a_budget_of_a_turn_has_an_account_for_each() -> None:
    one, other = account(budget(window="turn")), account(budget(window="turn"), turn="t2")
    assert one.key != other.key
    assert one.filter.where == (("organisation", "acme"), ("turn", "t1"))


def test_a_budget_given_as_a_flag_counts_one_run_of_the_proxy() -> None:
    flag = budget(window="total", layer="flag")
    assert account(flag).filter.where == (("organisation", "acme"), ("process", "p1"))
    assert account(flag, replace(ALICE, process="p2")).key != account(flag).key
    assert account(flag, replace(ALICE, session="s2")) == account(flag)


def test_the_next_window_is_another_account_and_the_clock_set_back_finds_the_old_one() -> None:
    today, tomorrow = account(budget()), account(budget(), at=NOW + 24 * HOUR)
    assert today.key != tomorrow.key
    assert account(budget(), at=NOW - HOUR) == today


def test_a_budget_renamed_moved_to_another_file_or_to_another_window_or_unit_is_another_account() -> None:
    changed = [budget(name="other"), budget(layer="admin"), budget(window="week"), budget(zone="Europe/Berlin")]
    changed += [budget("30 EUR"), budget("30 tokens")]
    assert len({account(other).key for other in [budget(), *changed]}) == 7


def test_a_user_has_a_budget_to_themselves_that_is_for_them_alone_whatever_others_call_theirs() -> None:
    mine, his = budget(scope=Scope(user=("alice",))), budget(scope=Scope(user=("bob",)))
    assert (mine.owner, his.owner) == ("alice", "bob")
    assert len({account(mine).key, account(his, BOB).key, account(budget()).key}) == 3
    assert account(mine).filter.where == account(budget()).filter.where  # its scope says which rows it counts
    per_project = [replace(each, per="project") for each in (mine, his)]
    assert account(per_project[0]).key != account(per_project[1], BOB).key


def test_a_budget_for_several_users_or_of_the_administrator_is_the_same_in_all_files() -> None:
    shared = [budget(scope=Scope(user=users)) for users in ((), ("*",), ("al*",), ("alice", "bob"))]
    shared += [budget(scope=Scope(team=("core",))), budget(scope=Scope(project=("shop",)))]
    assert {each.owner for each in shared} == {None}
    assert {account(each).key for each in shared} == {account(budget()).key}
    of_admin = budget(layer="admin", scope=Scope(user=("alice",)))
    assert account(of_admin).key == account(budget(layer="admin")).key


def test_a_budget_whose_weeks_begin_on_another_day_is_another_account() -> None:
    weekly = budget(window="week")
    from_sunday = replace(weekly, window=Window("week", week_start="sunday"))
    for days in range(7):
        at = NOW + days * 24 * HOUR
        assert account(weekly, at=at).key != account(from_sunday, at=at).key
        assert account(weekly, at=at).notice_key != account(from_sunday, at=at).notice_key


def test_editing_anything_else_of_a_budget_keeps_the_account() -> None:
    edited = budget("5 USD", mode="warn", thresholds=(10,), hold=usd("1"), on_exceed="cancel", on_unpriced="deny")
    assert account(edited).key == account(budget()).key


def test_a_rolling_window_keeps_its_key_while_it_moves_and_may_warn_again_after_its_length() -> None:
    rolling = budget(window="rolling:24h")
    now, soon, later = (account(rolling, at=NOW + hours * HOUR) for hours in (0, 1, 24))
    assert now.key == soon.key == later.key
    assert (now.bounds, later.bounds) == (Bounds(NOW - 24 * HOUR, NOW + HOUR), Bounds(NOW, NOW + 25 * HOUR))
    assert (now.moves, now.resets_at) == (True, None)
    assert now.notice_key != later.notice_key
    notices = {account(rolling, at=NOW + hours * HOUR).notice_key for hours in range(240)}
    assert 10 <= len(notices) <= 11


def test_other_windows_warn_under_their_key() -> None:
    for window in ("turn", "session", "day", "total"):
        assert account(budget(window=window)).notice_key == account(budget(window=window)).key


def test_keys_are_the_same_in_every_version_for_proxies_of_two_versions_share_a_ledger() -> None:
    keys = [
        account(budget(per="user", name='dev "é"')).key,
        account(budget(window="rolling:5h", layer="admin")).key,
        account(budget(window="week")).key,
        account(budget(window="total", scope=Scope(user=("alice",)))).key,
        account(budget(window="session", per="user")).key,
        account(budget(window="total", layer="flag")).key,
    ]
    assert keys == [
        r'["user","dev \"\u00e9\"","day","USD",1795219200000000000,{"organisation":"acme","user":"alice"}]',
        '["admin","daily","rolling:5h","USD",null,{"organisation":"acme"}]',
        '["user","daily","week","USD",1794787200000000000,{"organisation":"acme"}]',
        '["user","daily","total","USD",null,{"organisation":"acme","user":"alice"}]',
        '["user","daily","session","USD",null,{"organisation":"acme","user":"alice","host":"laptop","agent":"claude",'
        '"session":"s1"}]',
        '["flag","daily","total","USD",null,{"organisation":"acme","process":"p1"}]',
    ]


@given(names, names, names, names)
def test_names_that_hold_separators_are_not_mixed_up(name: str, user: str, other: str, other_user: str) -> None:
    one = account(budget(name=name, per="user"), replace(ALICE, user=user)).key
    two = account(budget(name=other, per="user"), replace(ALICE, user=other_user)).key
    assert (one == two) == ((name, user) == (other, other_user))
    assert json.loads(one)[1] == name


def test_a_user_name_that_is_no_unicode_has_a_key_that_any_ledger_keeps() -> None:
    assert account(budget(per="user"), replace(ALICE, user="al\udcffice")).key.isascii()


def test_what_is_left_is_the_limit_and_grants_without_what_is_spent_and_held() -> None:
    now = standing(budget("30 USD"), usd("20"), usd("1.5"), usd("5"))
    assert (now.allowed, now.left) == (usd("35"), usd("13.5"))


def test_a_limit_lowered_below_the_spend_leaves_less_than_nothing() -> None:
    assert standing(budget("5 USD"), usd("20")).left == -usd("15")
    assert standing(budget("5 USD"), usd("20")).percent == 400


@pytest.mark.parametrize(
    ("spent", "granted", "percent"),
    [("0", "0", 0), ("14.99", "0", 49), ("15", "0", 50), ("29.999999999", "0", 99), ("30", "0", 100), ("30", "30", 50)],
)
def test_percent_of_what_is_allowed_is_rounded_down(spent: str, granted: str, percent: int) -> None:
    assert standing(budget("30 USD"), usd(spent), granted=usd(granted)).percent == percent


def test_of_a_limit_of_0_all_is_spent() -> None:
    nothing = standing(budget("0 USD"))
    assert (nothing.percent, nothing.left) == (100, 0)


def test_the_first_spend_reaches_all_thresholds_of_a_limit_of_0() -> None:
    nothing = standing(budget("0 tokens", mode="warn"))
    assert nothing.crossed(0, 0) == ()
    assert nothing.crossed(0, 1) == (50, 80, 90, 100)
    assert nothing.crossed(1, 2) == ()


@pytest.mark.parametrize(
    ("before", "after", "crossed"),
    [
        (0, 499, ()),
        (0, 500, (50,)),
        (499, 500, (50,)),
        (500, 501, ()),
        (100, 950, (50, 80, 90)),
        (999, 1200, (100,)),
        (1200, 1300, ()),
        (900, 600, ()),
    ],
)
def test_a_threshold_is_crossed_by_the_spend_that_reaches_it(before: int, after: int, crossed: tuple[int, ...]) -> None:
    assert standing(budget("1000 tokens")).crossed(before, after) == crossed


def test_thresholds_are_of_what_is_allowed_with_grants() -> None:
    assert standing(budget("1000 tokens"), granted=1000).crossed(0, 1000) == (50,)


def test_shadow_budgets_warn_nobody() -> None:
    assert standing(budget("1000 tokens", mode="shadow")).crossed(0, 2000) == ()


@given(st.lists(AMOUNTS, min_size=1), st.integers(1, 10**6))
def test_each_threshold_is_crossed_once_however_spend_grows(costs: list[int], amount: int) -> None:
    now = standing(budget(f"{amount} tokens"))
    crossed: list[int] = []
    spent = 0
    for cost in costs:
        crossed += now.crossed(spent, spent + cost)
        spent += cost
    reached = Standing(now.account, spent).percent
    assert crossed == [percent for percent in (50, 80, 90, 100) if percent <= reached]


@pytest.mark.parametrize(("unit", "money"), [("USD", True), ("credits", True), ("tokens", False), ("turns", False)])
def test_what_is_neither_tokens_nor_turns_is_money(unit: str, money: bool) -> None:
    assert limit(f"5 {unit}").is_money is money


@pytest.mark.parametrize(("mode", "enforced"), [("shadow", False), ("warn", False), ("enforce", True)])
def test_only_the_mode_enforce_is_enforced(mode: str, enforced: bool) -> None:
    assert account(budget(mode=mode)).enforced is enforced


@pytest.mark.parametrize("on_exceed", ["finish_turn", "deny_next_tool", "cancel"])
@pytest.mark.parametrize("mode", ["shadow", "warn", "enforce"])
def test_only_an_enforced_budget_that_is_to_stop_turns_stops_any(mode: str, on_exceed: str) -> None:
    stops = budget(mode=mode, on_exceed=on_exceed).stops_turns
    assert stops is (mode == "enforce" and on_exceed != "finish_turn")


@pytest.mark.parametrize(("unpriced", "untold", "at_least"), [(0, 0, False), (1, 0, True), (0, 1, True)])
def test_what_lacks_a_price_or_is_told_in_part_is_spent_at_least(unpriced: int, untold: int, at_least: bool) -> None:
    assert standing(budget(), unpriced=unpriced, untold=untold).at_least is at_least

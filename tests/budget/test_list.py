"""How budgets stand, over a real ledger: which accounts there are, and what people and programs are told of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from acp_proxy.budget import listing
from acp_proxy.budget.accounts import accounts_of
from acp_proxy.core.budget import Budget, Standing
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.scope import Scope, Subject
from acp_proxy.core.windows import Window
from acp_proxy.ledger import OpenTurn, open_ledger
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger, Grant
from acp_proxy.ledger.owners import Owner
from acp_proxy.system.ids import uuid7
from acp_proxy.text.figures import width_of
from harness.rows import ALICE, BOB, MINUTE, NOON, line, row
from tests.core.accounts import budget, usd

ME = Subject("default", "alice", "core", "web", "laptop", "")
NOW = NOON + 10 * MINUTE


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[BudgetLedger]:
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())
    yield ledger
    ledger.close()


def standings(ledger: BudgetLedger, *budgets: Budget, own: Subject = ME, now: int = NOW) -> list[Standing]:
    return ledger.standing(accounts_of(ledger, budgets, own, now), now)


def whose(ledger: BudgetLedger, *budgets: Budget, own: Subject = ME) -> list[str | None]:
    return [standing.account.value for standing in standings(ledger, *budgets, own=own)]


def told(ledger: BudgetLedger, *budgets: Budget) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(listing.as_json(standings(ledger, *budgets)))["budgets"]
    return found


def hold(ledger: BudgetLedger, budget: Budget, amount: str) -> None:
    """A turn of alice's that runs."""
    (account,) = accounts_of(ledger, [budget], ME, NOW)
    turn = OpenTurn(uuid7(NOW), ALICE, "s9", NOW, Owner.this())
    size = HoldSize(usd(amount), 1)
    assert ledger.hold(turn, [(account, size)], NOW, NOW + EXPIRY).admitted


def grant(ledger: BudgetLedger, name: str, amount: str, value: str | None = None) -> None:
    until = NOON + 100 * MINUTE
    ledger.grant(Grant(uuid7(NOON), "default", "user", name, value, usd(amount), "USD", NOON, until, "root", "why not"))


def test_the_json_is_as_documented(ledger: BudgetLedger) -> None:
    daily = budget("5 USD", zone="Europe/Berlin", scope=Scope(team=("core", "plat*")))
    ledger.append([row(line(cost="1.25")), row(line(cost="2", currency="EUR"))])
    hold(ledger, daily, "0.1")
    assert told(ledger, daily) == [
        {
            "name": "daily",
            "layer": "user",
            "scope": {"team": ["core", "plat*"]},
            "window": "day",
            "window_start": "2026-11-20T23:00:00Z",
            "resets_at": "2026-11-21T23:00:00Z",
            "unit": "USD",
            "mode": "enforce",
            "limit": "5",
            "granted": "0",
            "spent": "1.25",
            "held": "0.1",
            "left": "3.65",
            "at_least": False,
            "not_counted": {"EUR": "2"},
        }
    ]


def test_a_week_from_another_day_is_known_by_its_start_and_its_reset(ledger: BudgetLedger) -> None:
    weekly = replace(budget("5 USD", zone="Europe/Berlin"), window=Window("week", week_start="sunday"))
    (found,) = told(ledger, weekly)
    assert [found[name] for name in ("window", "window_start", "resets_at")] == [
        "week",
        "2026-11-14T23:00:00Z",
        "2026-11-21T23:00:00Z",
    ]
    assert " week " in (text := listing.plain(standings(ledger, weekly)))
    assert "22 Nov 00:00 CET" in text


def test_turns_without_a_price_are_not_counted_and_that_is_said(ledger: BudgetLedger) -> None:
    ledger.append([row(line(cost=None)), row(line(cost=None)), row(line(cost="2", currency="EUR"))])
    money, tokens = told(ledger, budget("5 USD"), budget("1000 tokens", name="tokens"))
    assert (money["spent"], money["not_counted"]) == ("0", {"EUR": "2", "turns": "2"})
    assert tokens["not_counted"] == {}


def test_what_an_agent_told_in_part_or_not_at_all_is_at_least_that(ledger: BudgetLedger) -> None:
    budgets = budget("5 USD"), budget("1000 tokens", name="tokens"), budget("9 turns", name="turns")
    ledger.append([row(line(cost="1"), usage_source="partial", cost_source="agent")])
    assert [found["at_least"] for found in told(ledger, *budgets)] == [False, True, False]
    ledger.append([row(line(cost="1"), usage_source="partial"), row(line(None, None, input=0), usage_source="none")])
    assert [found["at_least"] for found in told(ledger, *budgets)] == [True, True, False]
    text = listing.plain(standings(ledger, *budgets))
    assert [line.split()[2:4] for line in text.splitlines()[1:3]] == [["≥", "$2.00"], ["≥", "220"]]
    assert [line for line in text.splitlines() if line.startswith("≥")] == [
        '≥ at least: agents reported only a part of "daily" 2 turns; "tokens" 3 turns · docs/budgets.md'
    ]


def test_one_turn_without_a_price_is_enough_to_say_at_least(ledger: BudgetLedger) -> None:
    ledger.append([row(line(cost="1")), row(line(None, None))])
    money, turns = told(ledger, budget("5 USD"), budget("9 turns", name="turns"))
    assert (money["spent"], money["not_counted"], money["at_least"]) == ("1", {"turns": "1"}, True)
    assert (turns["spent"], turns["at_least"]) == ("2", False)


def test_counts_are_decimal_strings_too_and_a_window_without_end_is_null(ledger: BudgetLedger) -> None:
    ledger.append([row(line(input=70, output=30))])
    (tokens, turns) = told(ledger, budget("1000 tokens", "total"), budget("5 turns", "rolling:24h", name="turns"))
    assert (tokens["unit"], tokens["spent"], tokens["left"]) == ("tokens", "100", "900")
    assert (tokens["window_start"], tokens["resets_at"]) == (None, None)
    assert (turns["limit"], turns["spent"], turns["window"]) == ("5", "1", "rolling:24h")


def test_a_grant_stands_beside_the_limit(ledger: BudgetLedger) -> None:
    grant(ledger, "daily", "2.5")
    (found,) = told(ledger, budget("5 USD"))
    assert (found["limit"], found["granted"], found["left"]) == ("5", "2.5", "7.5")


def test_an_overshoot_leaves_less_than_nothing(ledger: BudgetLedger) -> None:
    ledger.append([row(line(cost="7"))])
    assert told(ledger, budget("5 USD"))[0]["left"] == "-2"


def test_a_budget_for_each_has_an_account_for_all_who_were_seen_and_for_oneself(ledger: BudgetLedger) -> None:
    assert whose(ledger, budget(per="user")) == ["alice"]
    ledger.append([row(origin=BOB)])
    assert whose(ledger, budget(per="user")) == ["alice", "bob"]
    assert whose(ledger, budget(per="project")) == ["infra", "web"]
    assert whose(ledger, budget(per="agent")) == ["claude-agent-acp"]


def test_a_budget_for_each_turn_is_listed_once_and_not_for_all_who_were_seen(ledger: BudgetLedger) -> None:
    ledger.append([row(line(cost="1"), origin=BOB)])
    assert whose(ledger, budget(window="turn", per="user")) == ["alice"]


@pytest.mark.parametrize("of", [budget(per="user"), budget(window="session")], ids=["user", "session"])
def test_who_is_of_another_organisation_is_not_listed(ledger: BudgetLedger, of: Budget) -> None:
    other = replace(ALICE, organisation="other", user="eve")
    ledger.append([row(line(cost="1"), origin=other), row(line(cost="1"), session="mine")])
    assert [dict(standing.account.filter.where)["user"] for standing in standings(ledger, of)] == ["alice"]


def test_hundreds_of_users_are_listed_like_two(ledger: BudgetLedger) -> None:
    ledger.append([row(line(cost="0.5"), origin=replace(ALICE, user=f"user-{number:03}")) for number in range(400)])
    found = standings(ledger, budget(per="user"), budget(name="month", window="month"))
    assert [standing.spent for standing in found] == [0, *[usd("0.5")] * 400, usd("200")]


def test_only_those_in_scope_have_an_account(ledger: BudgetLedger) -> None:
    ledger.append([row(origin=BOB), row(line("haiku"))])
    assert whose(ledger, budget(per="user", scope=Scope(team=("core",)))) == ["alice"]
    assert whose(ledger, budget(per="user", scope=Scope(user=("b*",)))) == ["bob"]
    assert whose(ledger, budget(per="user", scope=Scope(model=("opus",)))) == ["alice", "bob"]
    assert whose(ledger, budget(per="team")) == ["core"]


def test_a_budget_for_all_is_listed_though_nobody_in_its_scope_was_seen(ledger: BudgetLedger) -> None:
    assert whose(ledger, budget(scope=Scope(model=("opus*",)))) == [None]


def test_a_budget_for_each_session_shows_the_last_one_of_a_day(ledger: BudgetLedger) -> None:
    each = budget("2 USD", "session")
    ledger.append([row(line(cost="1"), session="s1"), row(line(cost="0.5"), session="s2", at=NOON + MINUTE)])
    (found,) = told(ledger, each)
    assert (found["scope"], found["spent"], found["resets_at"]) == ({"session": ["s2"]}, "0.5", None)
    ledger.append([row(line(cost="0.1"), session="s1", at=NOON + 2 * MINUTE)])
    assert told(ledger, each)[0]["scope"] == {"session": ["s1"]}


def test_a_budget_for_each_session_shows_none_out_of_its_scope(ledger: BudgetLedger) -> None:
    ledger.append([row(session="hers"), row(session="his", origin=BOB)])
    for scope in (Scope(team=("core",)), Scope(project=("web",)), Scope(model=("opus",), user=("alice",))):
        assert [found["scope"]["session"] for found in told(ledger, budget(window="session", scope=scope))] == [
            ["hers"]
        ]


def test_without_a_session_of_that_day_it_shows_what_a_new_one_has_and_names_nobody(ledger: BudgetLedger) -> None:
    ledger.append([row(line(cost="1"), session="s1", at=NOW - 48 * 60 * MINUTE)])
    for each in (budget("2 USD", "session"), budget("2 USD", "session", per="agent")):
        (found,) = told(ledger, each)
        assert (found["scope"], found["spent"], found["left"]) == ({}, "0", "2")


def test_what_only_one_run_of_the_proxy_can_spend_is_not_listed(ledger: BudgetLedger) -> None:
    assert standings(ledger, budget(layer="flag", window="total")) == []


def test_plain_text_is_aligned_rounded_and_says_what_it_misses(ledger: BudgetLedger) -> None:
    daily = budget("5 USD", zone="Europe/Berlin", per="user")
    rows = [row(line(cost="1.2549")), row(line("unpriced", None)), row(line(cost="3", currency="EUR"), origin=BOB)]
    ledger.append(rows)
    hold(ledger, budget("5 USD", zone="Europe/Berlin", per="user", scope=Scope(user=("alice",))), "0.1")
    assert listing.plain(standings(ledger, daily, budget("2000000 tokens", "month", name="month", mode="warn"))) == (
        "budget  for    mode     window     used   %   held          left  limit  resets\n"
        "daily   alice  enforce  day     ≥ $1.25  25  $0.10         $3.65  $5.00  22 Nov 00:00 CET\n"
        "daily   bob    enforce  day       $0.00   0                $5.00  $5.00  22 Nov 00:00 CET\n"
        "month          warn     month       330   0         2.00M tokens  2.00M  01 Dec 00:00 UTC\n"
        "\n"
        'not counted: "daily" €3.00, 1 turn without a known price · docs/budgets.md\n'
    )


def test_columns_that_say_nothing_are_left_out(ledger: BudgetLedger) -> None:
    assert listing.plain(standings(ledger, budget("5 USD", "total"))) == (
        "budget  window   used  %   left  limit  resets\n"  # nobody's own, nothing held or granted, all enforced
        "daily   total   $0.00  0  $5.00  $5.00  never\n"
    )


@pytest.mark.parametrize("width", [20, 60, 80, 120, 200])
def test_a_table_fits_its_terminal(ledger: BudgetLedger, width: int) -> None:
    ledger.append([row(line(cost="12345.6789")), row(line("x", None), origin=BOB)])
    long = budget("30 USD", per="user", name="日本語-a-name-of-a-budget-that-goes-on-and-on", zone="Europe/Berlin")
    shown = listing.coloured(standings(ledger, long, budget("5 turns", mode="shadow")), width, {})
    assert max(width_of(line) for line in _uncoloured(shown).splitlines()) <= width


def test_a_narrow_terminal_shows_what_is_left(ledger: BudgetLedger) -> None:
    ledger.append([row(line(cost="1.25"))])
    daily = budget("5 USD", name="developer-daily", per="user", mode="warn")
    grant(ledger, "developer-daily", "2", "alice")
    text = listing.coloured(standings(ledger, daily), 40, {"NO_COLOR": "1"})
    assert ("$1.25" in text, "$5.75" in text) == (True, True)


def test_a_narrow_terminal_tells_budgets_and_users_by_their_names(ledger: BudgetLedger) -> None:
    ledger.append([row(line(cost="125")), row(line(cost="1234.5"), line("x", None), origin=BOB)])
    budgets = [budget("30 USD", name="developer-daily", per="user"), budget("2000 USD", "month", name="team-month")]
    head, *lines = listing.coloured(standings(ledger, *budgets), 40, {"NO_COLOR": "1"}).splitlines()[:4]
    assert head.split() == ["budget", "for", "%", "left"]
    assert [each.split()[:2] for each in lines] == [
        ["developer-daily", "alice"],
        ["developer-daily", "bob"],
        ["team-month", "67"],
    ]


def test_a_narrow_terminal_keeps_units_and_says_what_is_not_enforced(ledger: BudgetLedger) -> None:
    ledger.append([row(line(input=1200)) for _ in range(3)])
    names = {"opus-turns-of-the-team": ("2 turns", "shadow"), "tokens-of-a-month": ("9000000 tokens", "warn")}
    budgets = [budget(amount, "month", name=name, mode=mode) for name, (amount, mode) in names.items()]
    found = standings(ledger, budget("1234 USD", name="of-all-developers", per="user"), *budgets)
    wide, narrow = (listing.coloured(found, width, {"NO_COLOR": "1"}) for width in (120, 50))
    assert ("mode" in wide.splitlines()[0], "mode" in narrow.splitlines()[0]) == (True, False)
    assert ("-1 turns" in narrow, "9.00M tokens" in narrow) == (True, True)
    assert "Not enforced" not in wide
    assert " ".join(narrow.split("\n\n")[1].split()) == (
        "Not enforced: opus-turns-of-the-team (shadow), tokens-of-a-month (warn)."
    )


def test_a_narrow_terminal_gets_how_much_is_used_in_place_of_a_bar(ledger: BudgetLedger) -> None:
    ledger.append([row(line(cost="12.5"))])
    text = listing.coloured(standings(ledger, budget("50 USD", name="developer-daily")), 40, {"NO_COLOR": "1"})
    assert ("%" in text, "·" in text) == (True, False)
    assert re.search(r"\$12\.50 +25 +\$37\.50", text)


def test_a_bar_is_as_full_as_the_budget_is_used_and_held(ledger: BudgetLedger) -> None:
    half, over = budget("10 USD"), budget("2 USD", name="over")
    ledger.append([row(line(cost="5"))])
    hold(ledger, half, "2.5")
    first, second = listing.coloured(standings(ledger, half, over), 120, {"NO_COLOR": "1"}).splitlines()[1:]
    assert [first.count(sign) for sign in "█▒·"] == [12, 6, 6]
    assert [second.count(sign) for sign in "█▒·"] == [24, 0, 0]


def test_a_budget_is_coloured_by_how_much_is_used(ledger: BudgetLedger) -> None:
    (account,) = accounts_of(ledger, [budget("100 tokens")], ME, NOW)
    found = [Standing(account, spent=percent) for percent in (74, 75, 89, 90, 99, 100)]
    bars = [re.findall(r"\x1b\[([\d;]+)m(█+)", each) for each in listing.coloured(found, 120, {}).splitlines()[1:]]
    assert [colour for ((colour, _),) in bars] == ["36", "33", "33", "38;5;208", "38;5;208", "31"]
    assert [len(bar) for ((_, bar),) in bars][-2:] == [23, 24]  # it is full when nothing is left


def test_a_bar_has_no_more_held_than_there_is_room_for(ledger: BudgetLedger) -> None:
    """As when a limit was lowered while turns run."""
    (account,) = accounts_of(ledger, [budget("100 tokens")], ME, NOW)
    bar = listing.coloured([Standing(account, spent=50, held=80)], 120, {"NO_COLOR": "1"}).splitlines()[1]
    assert [bar.count(sign) for sign in "█▒·"] == [12, 12, 0]


def test_names_bring_no_escape_sequences_into_the_terminal(ledger: BudgetLedger) -> None:
    evil = "x\x1b]0;title\x07\x1b[2J\u202e"
    own = Subject("default", evil, None, None, "laptop", "")
    ledger.append([row(line(None, None))])
    found = ledger.standing(accounts_of(ledger, [budget(name=evil, per="user")], own, NOW), NOW)
    for text in (listing.plain(found), listing.coloured(found, 100, {"NO_COLOR": "1"})):
        assert not set(text) & set("\x1b\x07\u202e")


def _uncoloured(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)

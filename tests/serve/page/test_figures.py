"""What the page shows is what the commands print."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace
from playwright.sync_api import Page, expect

from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import open_ledger
from acp_proxy.text.figures import AT_LEAST, cost_text, counted, decimals_of, percent_text, tokens_text
from harness.rows import ALICE, BOB, NOON, line, row
from tests.ledger.holds import CAP, GONE, hold
from tests.serve.house import Home
from tests.serve.page.conftest import ZONE, Open

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.xdist_group("page")]

RANGES = {
    "today": "today",
    "week": "this week",
    "month": "this month",
    "last-month": "last month",
    "year": "this year",
    "all": "in all",
}
CARDS = ("today", "week", "month", "all")


@pytest.mark.parametrize("by", ["model", "agent", "project", "kind"])
def test_the_table_of_a_month_is_the_report_by_that_key(home: Home, address: str, open_page: Open, by: str) -> None:
    page = open_page(f"{address}#/month/{by}")
    report = reported(home, "month", by)
    decimals = decimals_of(money for each in report["rows"] for money in moneys(each))
    shown = {
        cells[0]: cells[1:]
        for cells in page.locator("#spend-table tbody tr").evaluate_all(
            "rows => rows.map(row => [row.querySelector('bdi').textContent.replace(/^no project$/, 'none'),"
            " [...row.querySelectorAll('.cost .amount')].map(cell => cell.textContent).join(' + '),"
            " ...[...row.querySelectorAll('td')].slice(2).map(cell => cell.textContent)])"
        )
    }
    assert shown == {
        each["key"]: [
            spent(moneys(each), decimals, at_least=is_at_least(each)),
            f"{each['turns']:,}",
            tokens_text(prompt_of(each)),
            percent_text(each["tokens"]["cached_read"], prompt_of(each)),
            tokens_text(each["tokens"]["output"] + each["tokens"]["thought"]),
        ]
        for each in report["rows"]
    }


def test_totals_and_cards_are_those_of_the_report(home: Home, address: str, open_page: Open) -> None:
    page = open_page(address)
    for period, words in RANGES.items():
        page.locator(f"input[value={period}]").check()
        expect(page.locator("#total-of")).to_have_text(f"Spent {words}")
        total = reported(home, period, "agent")["total"]
        costs = moneys(total)
        shown = spent(costs, decimals_of(costs), at_least=is_at_least(total))
        assert amounts(page, "#total") == shown
        if period in CARDS:
            assert amounts(page, f"#cards li:nth-child({CARDS.index(period) + 1})") == shown
        facts = page.locator("#total-facts").inner_text()
        assert facts.startswith(f"{total['turns']:,} turn")
        assert f" {tokens_text(total['tokens']['total'])} tokens " in facts


def test_budgets_are_those_of_budget_list(home: Home, address: str, open_page: Open) -> None:
    page = open_page(address)
    listed = home.json("budget", "list")["budgets"]
    items = page.locator("#budget-list li")
    assert items.locator(".title > bdi").all_inner_texts() == [budget["name"] for budget in listed]
    assert {budget["at_least"] for budget in listed} == {True, False}
    for place, budget in enumerate(listed):
        spent, left = (amount_of(budget, budget[name].removeprefix("-")) for name in ("spent", "left"))
        text = items.nth(place).inner_text()
        assert f"{AT_LEAST if budget['at_least'] else ''}{spent} spent" in text
        assert f"{left} {'over' if budget['left'].startswith('-') else 'left'}" in text


def test_sessions_are_those_of_the_report_the_latest_first(home: Home, address: str, open_page: Open) -> None:
    page = open_page(f"{address}#/all/agent")
    sessions = home.json("report", "--by", "session")["rows"]
    latest = sorted(sessions, key=lambda session: session["ended_at"], reverse=True)[:20]
    rows = page.locator("#session-list tbody tr")
    names = rows.locator("th a bdi").all_inner_texts()
    assert [name for name, each in zip(names, latest, strict=True) if each["title"] not in (name, None)] == []
    untitled = [name for name, each in zip(names, latest, strict=True) if not each["title"]]
    assert all(each["session"] not in names for each in latest)
    assert untitled
    assert all(re.fullmatch(r".+ · (.+ · )?\d+ \w{3} \d\d:\d\d", name) for name in untitled)
    percents = [f"{each['context_used'] * 100 // each['context_size']}%" for each in latest]
    assert rows.locator(".percent").all_inner_texts() == percents


def test_a_session_has_the_turns_that_the_command_lists(home: Home, address: str, open_page: Open) -> None:
    page = open_page(address)
    page.get_by_role("link", name="Untangle the order states").click()
    page.locator("#turn-table tbody tr").first.wait_for()
    session = home.json("session", page.url.rpartition("/")[2])
    costs = [money for turn in session["turns"] for money in moneys(turn)]
    rows = page.locator("#turn-table tbody tr")
    assert rows.locator(".cost").all_inner_texts() == [spent([cost], decimals_of(costs)) for cost in costs]
    marked = [turn["compacted"] for turn in session["turns"]]
    assert True in marked
    assert rows.evaluate_all("rows => rows.map(row => row.className === 'compaction')") == marked


def test_the_plot_has_its_figures_in_a_table(home: Home, address: str, open_page: Open) -> None:
    page = open_page(f"{address}#/month/project")
    page.get_by_text("Figures of the plot").click()
    shown = page.locator("#spend-over-time td").all_inner_texts()
    sums = [Money.of(text[1:].replace(",", ""), "USD") for text in shown if text.startswith("$")]
    (dollars,) = [money for money in moneys(reported(home, "month", "project")["total"]) if money.currency == "USD"]
    assert abs(sum(money.nano for money in sums) - dollars.nano) <= len(sums) * 5_000_000  # each is rounded to a cent


def test_currencies_stand_side_by_side_the_commonest_first_and_the_least_is_not_nothing(
    empty_home: Home, open_page: Open
) -> None:
    now = time.time_ns()
    empty_home.append(
        [
            row(line("a", "1234"), at=now - 180 * 10**9),
            row(line("a", "0.5"), at=now - 180 * 10**9),
            row(line("b", "3", "credits"), at=now - 180 * 10**9),
            row(line("c", "0.00001", "EUR"), at=now - 180 * 10**9),
            row(line("d", None), at=now - 180 * 10**9, cost_source="unknown"),
        ]
    )
    with empty_home.serving() as served:
        page = open_page(f"{served.address}#/all/model")
        assert amounts(page, "#total") == "≥ $1,234.50 + ≥ <€0.01 + ≥ 3.00 credits"
        expect(page.locator("#spend-plots h3")).to_have_text(["USD", "EUR", "credits"])
        assert amounts(page, "#spend-table tbody tr:last-child") == "?"
        assert "1 without a price" in page.locator("#spend-table").inner_text()
        page.goto("about:blank")


def test_a_session_says_why_its_cost_is_not_known(empty_home: Home, open_page: Open) -> None:
    at = time.time_ns() - 180 * 10**9
    nothing = replace(line("d", None), usage=Usage())
    empty_home.append(
        [
            row(line("d", None), at=at, cost_source="unknown"),
            row(nothing, at=at + 1, cost_source="unknown", usage_source="none"),
        ]
    )
    (session,) = empty_home.json("report", "--by", "session")["rows"]
    with empty_home.serving() as served:
        page = open_page(f"{served.address}#/session/{session['key']}", "#session-figures:not([hidden])")
        assert amounts(page, "#session-total") == "?"
        expect(page.locator("#session-facts .flag")).to_have_text(["1 without a price", "1 without usage"])
        expect(page.locator("#turn-table .flag")).to_have_text(["exact, no price", "without usage"])
        page.goto("about:blank")


def test_a_turn_is_as_sure_in_its_session_as_in_the_total(empty_home: Home, open_page: Open) -> None:
    with closing(open_ledger(empty_home.url, journals=())) as ledger:
        hold(ledger, "killed", (CAP, "0.6"), owner=GONE)
        ledger.settle_dead(NOON)  # at the money that it held: nobody knows of any tokens
    at = NOON + 3600 * 10**9
    nothing = replace(line("opus", None), usage=Usage())
    others = [
        row(line("opus", "0.1"), at=at),
        row(line("opus", "0.1"), at=at + 1, usage_source="partial"),
        row(line("opus", "0.1"), at=at + 2, usage_source="partial", cost_source="estimated"),
        row(line("opus", None), at=at + 3, cost_source="unknown"),
        row(nothing, at=at + 4, usage_source="none", cost_source="unknown"),
    ]
    empty_home.append(others)
    (session,) = empty_home.json("report", "--by", "session")["rows"]
    with empty_home.serving() as served:
        page = open_page(f"{served.address}#/all/model")
        sure = ["1 exact", "1 partial", "2 estimated", "1 without a price", "1 without usage"]
        expect(page.locator("#sources li")).to_have_text(sure)
        missed = ["1 without a price", "2 partial", "2 estimated", "2 without usage"]  # a row may miss several things
        expect(page.locator("#spend-table .flag")).to_have_text(missed)
        page = open_page(f"{served.address}#/session/{session['key']}", "#session-figures:not([hidden])")
        expect(page.locator("#session-facts .flag")).to_have_text(missed)
        turns = {
            "without usage, estimated": "estimated",
            "exact, computed": "exact",
            "partial, computed": "partial",
            "partial, estimated": "estimated",
            "exact, no price": "unknown",
            "without usage": "unknown",
        }
        expect(page.locator("#turn-table .flag")).to_have_text([*turns])
        looks = page.locator("#turn-table .swatch").evaluate_all("all => all.map(one => one.classList[1])")
        assert looks == [*turns.values()]


def test_two_agents_that_end_alike_do_not_look_alike(empty_home: Home, open_page: Open) -> None:
    agents = ["@one/codex-acp", "@two/codex-acp", "@one/claude-agent-acp"]
    at = time.time_ns() - 180 * 10**9
    empty_home.append(
        [
            row(line("a", "1"), at=at - place * 10**9, origin=replace(ALICE, agent=agent))
            for place, agent in enumerate(agents)
        ]
    )
    with empty_home.serving() as served:
        page = open_page(served.address)
        shown = page.locator("#session-list tbody tr td:nth-child(3)")
        expect(shown).to_have_text([*agents[:2], "claude-agent-acp"])
        page.goto("about:blank")


def test_teams_users_and_kinds_are_offered_where_there_is_more_than_one(empty_home: Home, open_page: Open) -> None:
    at = time.time_ns() - 180 * 10**9
    empty_home.append([row(line("a", "1"), at=at)])
    with empty_home.serving() as served:
        page = open_page(served.address)
        offered = page.locator("#by label:visible")
        expect(offered).to_have_text(["Agent", "Model", "Project"])
        empty_home.append([row(line("a", "2"), at=at, origin=BOB)])
        expect(offered).to_have_text(["Agent", "Model", "Project", "Team", "User"])
        page.locator("#by label", has_text="Team").click()
        rows = page.locator("#spend-table tbody tr")
        expect(rows.locator("bdi")).to_have_text(["no team", str(ALICE.team)])
        expect(rows.locator(".cost")).to_have_text(["$2.0000", "$1.0000"])
        page.goto("about:blank")


def test_a_budget_tells_whole_percents_and_what_it_does_not_count(empty_home: Home, open_page: Open) -> None:
    empty_home.configure('[[budget]]\nname = "all"\nwindow = "total"\nlimit = { amount = "30", currency = "USD" }\n')
    at = time.time_ns() - 180 * 10**9
    others = [row(line("b", "3", "credits"), at=at), row(line("d", None), at=at, cost_source="unknown")]
    empty_home.append([row(line("a", "8.70"), at=at), *others])
    with empty_home.serving() as served:
        page = open_page(served.address)
        budget = page.locator("#budget-list li")
        expect(budget).to_contain_text("29% used")  # 8.70 / 30 is less in doubles
        expect(budget).to_contain_text("Not counted: 3.00 credits + 1 turn without a price")
        page.goto("about:blank")


@cache
def reported(home: Home, period: str, by: str) -> Any:
    since = since_of(period)
    until = since_of("month") if period == "last-month" else None
    bounds = [word for option, at in (("--since", since), ("--until", until)) if at for word in (option, at)]
    return home.json("report", "--by", by, "--tz", ZONE, *bounds)


def name_of(team: str | None) -> str:
    return "none" if team is None else team


def amount_of(budget: Mapping[str, Any], text: str) -> str:
    if budget["unit"] == "turns":
        return counted(int(text), "turn")
    return spent([Money.of(text, budget["unit"])], 2)


def since_of(period: str) -> str | None:
    today = datetime.now(ZoneInfo(ZONE)).date()
    match period:
        case "week":
            today -= timedelta(days=today.weekday())
        case "month":
            today = today.replace(day=1)
        case "last-month":
            today = (today.replace(day=1) - timedelta(days=1)).replace(day=1)
        case "year":
            today = today.replace(month=1, day=1)
        case "all":
            return None
    return today.isoformat()


def moneys(sums: Mapping[str, Any]) -> list[Money]:
    return [Money.of(amount, currency) for currency, amount in sums["cost"].items()]


def is_at_least(sums: Mapping[str, Any]) -> bool:
    """As the ledger of ten weeks has it: what is partial has no cost of the agent."""
    return bool(sums["unpriced_turns"] or sums["partial_turns"] or sums["turns_without_usage"])


def prompt_of(sums: Mapping[str, Any]) -> int:
    tokens: Mapping[str, int] = sums["tokens"]
    return tokens["input"] + tokens["cached_read"] + tokens["cached_write"]


def spent(costs: Sequence[Money], decimals: int, *, at_least: bool = False) -> str:
    """As columns have it, but for the dash where there was nothing to spend: early in a day, there may be none."""
    each = [[cost] for cost in sorted(costs, key=lambda cost: cost.currency)] or [[]]
    text = " + ".join(cost_text(cost, decimals, at_least=at_least) for cost in each)
    return "–" if text == "-" else text


def amounts(page: Page, within: str) -> str:
    found: Sequence[str] = page.locator(f"{within} .amount").all_inner_texts()
    return " + ".join(found)

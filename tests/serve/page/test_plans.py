"""Windows of plans on the page and beside a session; what a plan covered is called a list price wherever it stands."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from msgspec.structs import replace
from playwright.sync_api import Page, expect

from acp_proxy.core.plans import FULL, PlanWindow
from acp_proxy.core.windows import DAY, HOUR
from acp_proxy.ledger import open_ledger
from harness.rows import ALICE, MINUTE, line, row
from tests.serve.house import Home
from tests.serve.page.conftest import Open

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.xdist_group("page")]

AGENT = "@agentclientprotocol/claude-agent-acp"
SEATED = replace(ALICE, agent=AGENT, billing="plan")
BUDGETS = """
[identity]
user = "alice"

[[budget]]
name = "keep-some"
limit = { plan = "five_hour", percent = 80 }
"""


def told(now: int) -> list[PlanWindow]:
    """Half an hour ago, 20 minutes ago and now: the last with all windows."""
    end, paid = now + 2 * HOUR, "rejected"
    five = [
        PlanWindow("five_hour", FULL * used // 100, "allowed", end, paid, now - ago * MINUTE)
        for used, ago in ((30, 90), (57, 20), (83, 1))
    ]
    week = PlanWindow("seven_day", FULL * 34 // 100, "allowed", now + 3 * DAY, paid, now - MINUTE)
    opus = PlanWindow("seven_day_opus", FULL, "rejected", now + 3 * DAY, "in_use", now - MINUTE)
    return [*five, week, opus]


@pytest.fixture
def seated(empty_home: Home) -> Iterator[str]:
    """The address of a ledger of somebody on a plan, with one turn that was billed."""
    now = time.time_ns()
    empty_home.configure(BUDGETS)
    listed, billed = line("claude-sonnet-5", "1.5"), line("gpt-5", "0.5")
    with closing(open_ledger(empty_home.url, journals=())) as ledger:
        codex = replace(ALICE, agent="codex")
        ledger.append([row(listed, origin=SEATED, session="seated", at=now - 5 * MINUTE)])
        ledger.append([row(billed, origin=codex, session="billed", at=now - 4 * MINUTE)])
        for window in told(now):
            ledger.note_plan(SEATED, [window])
    with empty_home.serving() as served:
        yield served.address


def texts(page: Page, selector: str) -> list[str]:
    return [" ".join(text.split()) for text in page.locator(selector).all_inner_texts()]


def test_each_window_has_what_is_used_until_when_and_when_it_is_full(seated: str, open_page: Open) -> None:
    page = open_page(f"{seated}#/all/agent", "#plans:not([hidden])")
    opus, five, week = texts(page, "#plan-list > li")
    assert opus.startswith("week (opus)claude-agent-acp 100% used until ")
    assert "The agent says: rejected" in opus
    assert "What is used now is paid beside the plan." in opus
    assert five.startswith("5 hclaude-agent-acp 83% used until ")
    assert " at this pace seen " in five
    assert week.startswith("weekclaude-agent-acp 34% used until ")
    assert page.locator("#plan-list svg").count() == 1  # of others there is no history


def test_a_budget_on_a_plan_says_that_it_refuses(seated: str, open_page: Open) -> None:
    page = open_page(f"{seated}#/all/agent", "#budgets:not([hidden])")
    (budget,) = texts(page, "#budget-list > li")
    assert budget.startswith("keep-somefive_hour · claude-agent-acp prompts are refused 80% of the plan’s window are")
    assert "83% is used" in budget


def test_what_a_plan_covered_is_a_list_price_wherever_it_stands(seated: str, open_page: Open) -> None:
    page = open_page(f"{seated}#/all/agent")
    said = "$1.5000 list price, not billed: used under a plan"
    expect(page.locator("#total-listed")).to_have_text(said)
    expect(page.locator("#spend-listed")).to_have_text(said)
    assert texts(page, "#cards li:last-child .quiet")[1] == "$1.5000 list price, not billed"
    assert texts(page, "#spend-table .cost") == ["$1.5000 list price", "$0.5000"]
    assert texts(page, "#session-list .cost") == ["$0.5000", "$1.5000 list price"]
    page.locator("#by label", has_text="Billing").click()
    expect(page.locator("#spend-table th bdi")).to_have_text(["plan", "unknown"])
    with page.expect_download() as download:
        page.get_by_role("button", name="Download spend as CSV").click()
    header, plan, _ = download.value.path().read_text().splitlines()
    assert header.endswith(",not_billed_USD")
    assert plan.endswith(",1.5")


def test_a_session_shows_the_windows_of_its_agent_and_what_its_turns_are_billed(seated: str, open_page: Open) -> None:
    page = open_page(f"{seated}#/all/agent")
    page.locator("#session-list a", has_text="claude").first.click()
    expect(page.locator("#session-listed")).to_have_text("list price, not billed: used under a plan")
    expect(page.locator("#session-plan-list > li")).to_have_count(3)
    assert texts(page, "#turn-table .cost") == ["$1.5000 list price"]
    page.locator("#back").click()
    page.locator("#session-list a", has_text="codex").first.click()
    expect(page.locator("#session-listed")).to_have_text("")
    expect(page.locator("#session-plans")).to_be_hidden()


def test_it_is_told_to_programs_with_its_history(empty_home: Home) -> None:
    now = time.time_ns()
    with closing(open_ledger(empty_home.url, journals=())) as ledger:
        for window in told(now):
            ledger.note_plan(SEATED, [window])
        ledger.note_plan(SEATED, [PlanWindow("old", FULL, None, now - 2 * DAY, None, now - 3 * DAY)])
        ledger.note_plan(replace(SEATED, user="bob"), [PlanWindow("five_hour", None, "allowed", None, None, now)])
    with empty_home.serving() as served:
        found = served.json("/api/plans")
        assert [each["used"] for each in found["plans"]] == [1, 0.83, 0.34, None]
        assert [each["used"] for each in found["plans"][1]["history"]] == [0.3, 0.57, 0.83]
        assert found["omitted"] == 0
        (bob,) = served.json("/api/plans?user=bob")["plans"]
        assert (bob["name"], bob["history"]) == ("5 h", [])
        assert served.json("/api/plans?agent=codex")["plans"] == []
        assert json.loads(served.ask("/api/plans?tz=UTC").body) == {"error": "unknown parameter; expected agent, user"}

"""What is chosen on the page is in its address, so that a view can be sent; and what is shown can be taken away."""

from __future__ import annotations

import csv
import io
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from playwright.sync_api import Page, expect

from harness.rows import ALICE, BOB, line, row
from tests.serve.house import Home
from tests.serve.page.conftest import ZONE, Open

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.xdist_group("page-views")]

CLAUDE = "@agentclientprotocol/claude-agent-acp"


def keys(page: Page) -> list[str]:
    return page.locator("#spend-table tbody th bdi").all_inner_texts()


def costs(page: Page) -> list[str]:
    return page.locator("#session-list td.cost").all_inner_texts()


def test_a_click_on_a_name_shows_that_alone_and_a_chip_takes_it_away(home: Home, address: str, open_page: Open) -> None:
    page = open_page(f"{address}#/all/agent")
    page.locator("#spend-table a.pick", has_text="claude-agent-acp").click()
    expect(page.locator("#filters")).to_contain_text(f"agent {CLAUDE}")
    expect(page.locator("#spend-table th").first).to_have_text("model")  # by agent there would be one line
    said = home.json("report", "--by", "model", "--agent", CLAUDE, "--tz", ZONE)["rows"]
    assert keys(page) == [each["key"] for each in said]
    page.locator("#session-list a.pick", has_text="payments-api").first.click()
    expect(page.locator("#filters li")).to_have_count(3)  # and one that removes both
    assert page.url.partition("#")[2] == (
        "/all/model?agent=%40agentclientprotocol%2Fclaude-agent-acp&project=payments-api"
    )
    page.get_by_role("link", name=f"Remove the filter agent {CLAUDE}").click()
    expect(page.locator("#filters li")).to_have_count(1)
    page.go_back()
    expect(page.locator("#filters li")).to_have_count(3)
    page.get_by_role("link", name="Remove all").click()
    expect(page.locator("#filters")).to_be_hidden()


def test_rows_without_a_project_can_be_chosen_too(home: Home, address: str, open_page: Open) -> None:
    page = open_page(f"{address}#/all/project")
    page.locator("#spend-table a.pick", has_text="no project").click()
    expect(page.locator("#spend-table th").first).to_have_text("agent")
    said = home.json("report", "--by", "agent", "--project", "none")["rows"]
    assert keys(page) == [each["key"] for each in said]


def test_any_dates_can_be_chosen_and_named_ranges_tell_theirs(home: Home, address: str, open_page: Open) -> None:
    last = datetime.now(UTC).date() - timedelta(days=8)
    first = last - timedelta(days=20)
    page = open_page(f"{address}#/all/agent")
    page.get_by_label("From").fill(str(first))
    expect(page).to_have_url(f"{address}#/{first}../agent")
    page.get_by_label("to", exact=True).fill(str(last))
    expect(page).to_have_url(f"{address}#/{first}..{last}/agent")
    expect(page.locator("#total-of")).to_have_text("Spent in these days")
    until = str(last + timedelta(days=1))
    said = home.json("report", "--by", "agent", "--since", str(first), "--until", until, "--tz", ZONE)
    expect(page.locator("#total-facts")).to_contain_text(f"{said['total']['turns']:,} turn")
    assert keys(page) == [each["key"] for each in said["rows"]]
    assert page.locator("#range input:checked").count() == 0
    page.locator("#range label", has_text="Last month").click()
    expect(page.get_by_label("From")).not_to_have_value(str(first))
    assert page.get_by_label("From").input_value().endswith("-01")


def test_an_address_restores_filter_dates_order_and_search(address: str, open_page: Open) -> None:
    page = open_page(f"{address}#/all/model?project=payments-api&sort=cost&find=the")
    expect(page.get_by_label("Sort by")).to_have_value("cost")
    expect(page.get_by_label("Find by title, user or project")).to_have_value("the")
    expect(page.locator("#filters")).to_contain_text("project payments-api")
    expect(page.get_by_role("radio", name="All")).to_be_checked()
    shown = costs(page)
    page.reload()
    expect(page.locator("#session-list td.cost").first).to_have_text(shown[0])
    assert costs(page) == shown
    page.locator("#session-list th a[id]").first.click()
    expect(page.locator("#session-title")).to_be_visible()
    page.get_by_role("link", name="All sessions").click()
    expect(page).to_have_url(f"{address}#/all/model?project=payments-api&sort=cost&find=the")


def test_sessions_can_be_sorted_by_a_head_and_by_a_list(address: str, open_page: Open) -> None:
    page = open_page(f"{address}#/all/agent?agent={CLAUDE}")
    page.get_by_role("link", name="cost", exact=True).click()
    expect(page.locator("#session-list [aria-sort=descending]")).to_have_text("cost")
    amounts = [float(text.removeprefix("$")) for text in costs(page)]
    assert amounts == sorted(amounts, reverse=True)
    page.get_by_label("Sort by").select_option("turns")
    expect(page.locator("#session-list [aria-sort=descending]")).to_have_text("turns")
    assert page.url.endswith("&sort=turns")


def test_what_is_shown_can_be_taken_away_as_a_report_has_it(home: Home, address: str, open_page: Open) -> None:
    page = open_page(f"{address}#/all/model?project=web-shop")
    told = ("--project", "web-shop", "--tz", ZONE)
    assert taken(page, "spend as CSV") == home.run("report", "--by", "model", *told, "--csv").stdout
    rows = home.json("report", "--by", "model", *told)["rows"]
    found = json.loads(taken(page, "spend as JSON"))["rows"]
    assert [{name: each[name] for name in rows[0]} for each in found] == rows
    sessions = in_csv(taken(page, "sessions as CSV"))
    reported = {each["key"]: each for each in in_csv(home.run("report", "--by", "session", *told, "--csv").stdout)}
    assert len(sessions) == 20
    assert all(each == {name: reported[each["key"]][name] for name in each} for each in sessions)
    page.locator("#session-list th a[id]").first.click()
    expect(page.locator("#session-figures")).to_be_visible()
    turns, key = in_csv(taken(page, "turns as CSV")), page.url.rpartition("/")[2]
    of_session = {each["key"]: each for each in in_csv(home.run("report", "--by", "turn", *told, "--csv").stdout)}
    assert turns
    assert all(each == {name: of_session[each["key"]][name] for name in each} for each in turns)
    assert len(turns) == len(home.json("session", key)["turns"])


def test_no_cell_of_a_download_is_a_formula(empty_home: Home, open_page: Open) -> None:
    at = time.time_ns() - 120 * 10**9
    evil = replace(ALICE, agent='=HYPERLINK("http://x"),a', project="@SUM(1)", user="-1+1")
    empty_home.append([row(line("opus", "1"), at=at, origin=evil), row(line("opus", "2", "EUR"), at=at, origin=BOB)])
    with empty_home.serving() as served:
        page = open_page(f"{served.address}#/all/agent")
        assert taken(page, "spend as CSV") == empty_home.run("report", "--by", "agent", "--csv").stdout
        said = empty_home.run("report", "--by", "session", "--csv").stdout.splitlines()
        assert set(taken(page, "sessions as CSV").splitlines()) == set(said)
        page.goto("about:blank")


@pytest.mark.parametrize(
    ("used", "told", "marks"),
    [
        (40_000, "The plot ends at 5% of the window of 1.00M tokens.", ["compaction"]),
        (300_000, "The plot ends at 50% of the window of 1.00M tokens.", ["compaction"]),
        (900_000, "The plot ends at the window of 1.00M tokens.", ["75%", "90%", "95%", "window", "compaction"]),
    ],
)
def test_the_plot_of_a_context_ends_where_it_was_used(
    empty_home: Home, open_page: Open, used: int, told: str, marks: list[str]
) -> None:
    at = time.time_ns() - 300 * 10**9
    empty_home.append(
        row(at=at + part, context_used=used // 10 * part, context_size=1_000_000) for part in range(1, 11)
    )
    (session,) = empty_home.json("report", "--by", "session")["rows"]
    with empty_home.serving() as served:
        page = open_page(f"{served.address}#/session/{session['key']}", "#session-figures:not([hidden])")
        expect(page.locator("#context-scale")).to_have_text(told)
        expect(page.locator("#context-marks li:visible")).to_have_text(marks)
        page.goto("about:blank")


@pytest.mark.parametrize("address_of", ["#/2026-99-99..x/agent", "#/month/price?sort=size", "#/..//?project="])
def test_an_address_that_makes_no_sense_shows_the_month(address: str, open_page: Open, address_of: str) -> None:
    page = open_page(f"{address}{address_of}")
    expect(page.get_by_role("radio", name="Month", exact=True)).to_be_checked()
    expect(page.locator("#trouble")).to_have_text("")


def taken(page: Page, what: str) -> str:
    with page.expect_download() as download:
        page.get_by_role("button", name=f"Download {what}").click()
    path: Any = download.value.path()
    return Path(path).read_bytes().decode()


def in_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))

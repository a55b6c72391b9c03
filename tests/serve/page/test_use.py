"""The page in somebody's hands: every control by mouse and by keyboard, an empty ledger, a server that goes away."""

from __future__ import annotations

import re
import time

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, Page, expect

from acp_proxy.core.entry import ToolSum, Work
from harness.ports import free_port
from harness.rows import ALICE, line, row
from tests.serve.house import Home
from tests.serve.page.conftest import ZONE, Open

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.xdist_group("page-use")]


def test_every_range_and_key_can_be_chosen_and_is_in_the_address(address: str, open_page: Open) -> None:
    page = open_page(address)
    for label, words in (("Today", "today"), ("Week", "this week"), ("Year", "this year"), ("All", "in all")):
        page.locator("#range label", has_text=label).click()
        expect(page.locator("#total-of")).to_have_text(f"Spent {words}")
    for label in ("Agent", "Project", "Model"):
        page.locator("#by label", has_text=label).click()
        expect(page.locator("#spend-table th").first).to_have_text(label.lower())
    assert page.url.endswith("#/all/model")
    page.go_back()
    expect(page.locator("#spend-table th").first).to_have_text("project")
    page.reload()
    expect(page.locator("#spend-table th").first).to_have_text("project")
    expect(page.get_by_role("radio", name="Project")).to_be_checked()


def test_a_session_opens_by_click_anywhere_in_its_row(address: str, open_page: Open) -> None:
    page = open_page(address)
    page.locator("#session-list tbody tr").first.locator("td.cost").click()
    expect(page.locator("#session-title")).to_have_text("Untangle the order states")
    expect(page.locator("#context-plot canvas")).to_be_visible()
    expect(page).to_have_title("Session – acp-proxy")
    page.get_by_role("link", name="All sessions").click()
    expect(page.locator("#overview")).to_be_visible()


def test_the_command_for_a_terminal_is_that_of_what_is_shown(address: str, home: Home, open_page: Open) -> None:
    page = open_page(address)
    page.locator("#session-list tbody tr").first.click()
    expect(page.locator("#terminal")).to_have_text(re.compile(r"acp-proxy session \w{16}"))
    key = page.locator("#terminal").inner_text().split()[-1]
    assert home.json("session", key)["session"]["key"] == key == page.url.rpartition("/")[2]
    page.get_by_role("link", name="All sessions").click()
    expect(page.locator("#terminal")).to_have_text("acp-proxy report")


def test_a_long_session_shows_its_latest_turns_and_the_context_of_all(empty_home: Home, open_page: Open) -> None:
    now = time.time_ns()
    empty_home.append(row(at=now + number, context_used=number + 1, context_size=2000) for number in range(1203))
    with empty_home.serving() as served:
        page = open_page(served.address)
        page.locator("#session-list tbody tr").first.click()
        expect(page.locator("#session-omitted")).to_have_text("203 earlier rows not listed.")
        expect(page.locator("#context-thinned")).to_have_text("Each point is the fullest of 4 rows.")
        expect(page.locator("#turn-table tbody tr")).to_have_count(1000)
        expect(page.locator("#turn-table tbody tr").last).to_contain_text("1203 · ")
        page.locator("#context-plot .u-over").hover()
        expect(page.locator("#context-plot")).to_contain_text("of 2,000")


def test_older_sessions_are_shown_when_asked_for_and_found_by_title(address: str, open_page: Open) -> None:
    page = open_page(f"{address}#/all/agent")
    rows = page.locator("#session-list tbody tr")
    expect(rows).to_have_count(20)
    page.get_by_role("button", name="Show older sessions").click()
    expect(rows).to_have_count(40)
    page.get_by_label("Find by title, user or project").fill("double CHARGE")
    expect(rows.first).to_contain_text("Trace the double charge")
    assert set(rows.locator("th a").all_inner_texts()) == {"Trace the double charge"}
    page.get_by_label("Find by title, user or project").fill("payments")
    expect(rows.first.locator("td").first).to_have_text("payments-api")
    page.get_by_label("Find by title, user or project").fill("no such title")
    expect(page.get_by_text("No session of this range has this in its title, user or project.")).to_be_visible()


def test_of_many_budgets_and_keys_the_fullest_come_first(empty_home: Home, open_page: Open) -> None:
    each = '[[budget]]\nname = "each"\nper = "user"\nwindow = "total"\nlimit = { turns = 40 }\n'
    tried = '[[budget]]\nname = "tried"\nwindow = "total"\nlimit = { turns = 1 }\nmode = "shadow"\n'
    empty_home.configure(tried + each)
    at = time.time_ns() - 300 * 10**9
    empty_home.append(
        [
            row(line(f"model-{number}", f"0.{number:02}"), origin=replace(ALICE, user=f"user-{number}"), at=at)
            for number in range(1, 31)
            for _ in range(number)
        ]
    )
    with empty_home.serving() as served:
        page = open_page(f"{served.address}#/month/model")
        budgets = page.locator("#budget-list li")
        assert [text.split("\n")[0] for text in budgets.locator(".title").all_inner_texts()] == [
            f"eachtotal · user user-{number}" for number in range(30, 18, -1)
        ]
        page.get_by_role("button", name="Show all 32").click()
        expect(budgets).to_have_count(32)  # alice, whose ledger it is, has spent nothing
        keys = page.locator("#spend-table tbody tr")
        expect(keys).to_have_count(12)
        page.get_by_role("button", name="Show all 30").click()
        expect(keys).to_have_count(30)
        expect(page.locator("#spend-over-time thead")).to_contain_text("22 others")
        expect(page.locator("#session-list th")).to_contain_text(["session", "user", "project"])
        expect(page.locator("#session-list tbody tr").first.locator("td").first).to_contain_text("user-")
        page.goto("about:blank")


def test_the_keyboard_reaches_everything(address: str, open_page: Open) -> None:
    page = open_page(address)
    page.keyboard.press("Tab")
    expect(page.locator("#skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.name || ''"))
        if reached[-1].startswith("session-"):
            break
        outline = "getComputedStyle(document.activeElement.matches('.switch input') ? "
        outline += "document.activeElement.nextElementSibling : document.activeElement).outlineStyle"
        assert page.evaluate(outline) == "solid", reached
    controls = ("range", "from", "to", "by", "sort", "find")  # a date has several stops
    assert tuple(dict.fromkeys(name for name in reached if name in controls)) == controls
    page.keyboard.press("Enter")
    expect(page.locator("#session")).to_be_visible()
    expect(page.locator("#back")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(f"#{reached[-1]}")).to_be_focused()


def test_arrows_change_the_range(address: str, open_page: Open) -> None:
    page = open_page(address)
    page.get_by_role("radio", name="Month", exact=True).focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#total-of")).to_have_text("Spent last month")
    expect(page.get_by_role("radio", name="Last month")).to_be_focused()


def test_the_pointer_gets_the_figures_of_a_step(address: str, open_page: Open) -> None:
    page = open_page(f"{address}#/all/agent")
    box = page.locator("#spend-plots .u-over").first.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 40)
    expect(page.locator(".note").first).to_contain_text("claude-agent-acp$")


@pytest.mark.parametrize("width", [360, 800, 1600])
def test_nothing_is_wider_than_the_screen(address: str, open_page: Open, width: int) -> None:
    page = open_page(address, width=width)
    assert fits(page)
    page.locator("#session-list th a[id]").first.click()
    page.locator("#turn-table tbody tr").first.wait_for()
    assert fits(page)


def test_an_empty_ledger_says_what_to_do_and_goes_on_by_itself(empty_home: Home, open_page: Open) -> None:
    with empty_home.serving() as served:
        page = open_page(served.address, until="#welcome:not([hidden])")
        expect(page.locator("#welcome")).to_contain_text("acp-proxy setup zed")
        page.set_viewport_size({"width": 360, "height": 800})
        assert page.locator("#welcome pre").evaluate("pre => pre.scrollWidth <= pre.clientWidth")
        expect(page.locator("#figures")).to_be_hidden()
        empty_home.append([row(line("opus", "0.25"), at=time.time_ns() - 120 * 10**9)])
        expect(page.locator("#total")).to_have_text("$0.2500")
        expect(page.locator("#welcome")).to_be_hidden()
        page.goto("about:blank")


def test_where_nothing_was_spent_this_month_all_is_shown(empty_home: Home, open_page: Open) -> None:
    empty_home.append([row(line("opus", "0.25"), at=time.time_ns() - 40 * 86_400 * 10**9)])
    with empty_home.serving() as served:
        page = open_page(served.address)
        expect(page.locator("#total")).to_have_text("$0.2500")
        expect(page.get_by_role("radio", name="All")).to_be_checked()
        expect(page.locator("#spend-table tbody bdi")).to_have_text(ALICE.agent)
        page.locator("#range label", has_text="Week").click()
        expect(page.get_by_text("Nothing was spent in this range.")).to_be_visible()
        page.goto("about:blank")


def test_a_new_row_is_shown_without_a_reload_and_the_focus_stays(empty_home: Home, open_page: Open) -> None:
    empty_home.append([row(line("opus", "0.25"), at=time.time_ns() - 120 * 10**9)])
    with empty_home.serving() as served:
        page = open_page(served.address)
        page.locator("#session-list th a[id]").focus()
        focused = page.evaluate("document.activeElement.id")
        box = page.locator("#spend-plots .u-over").bounding_box()
        assert box
        page.mouse.move(box["x"] + box["width"] - 20, box["y"] + 40)
        expect(page.locator(".note")).to_contain_text("$0.2500")
        empty_home.append([row(line("opus", "0.5"), at=time.time_ns() - 60 * 10**9)])
        expect(page.locator("#total")).to_have_text("$0.7500")
        assert page.evaluate("document.activeElement.id") == focused
        expect(page.locator(".note")).to_contain_text("$0.7500")
        page.goto("about:blank")


def test_who_reads_a_table_by_keyboard_stays_in_it_when_it_changes(empty_home: Home, open_page: Open) -> None:
    empty_home.append([row(line("opus", "0.25"), at=time.time_ns() - 120 * 10**9)])
    with empty_home.serving() as served:
        page = open_page(served.address)
        for place, total in (("#spend-table", "$0.7500"), ("#session-list", "$1.2500")):
            page.locator(f"{place} .wide").focus()
            empty_home.append([row(line("opus", "0.5"), at=time.time_ns() - 60 * 10**9)])
            expect(page.locator("#total")).to_have_text(total)
            expect(page.locator(f"{place} .wide")).to_be_focused()
        page.goto("about:blank")


def test_when_the_server_is_gone_a_line_says_so_until_it_is_back(empty_home: Home, browser: Browser) -> None:
    empty_home.append([row(line("opus", "0.25"), at=time.time_ns() - 120 * 10**9)])
    context = browser.new_context(timezone_id=ZONE)
    page = context.new_page()
    port = str(free_port())  # which nobody else gets meanwhile
    with empty_home.serving("--port", port) as served:
        page.goto(served.address)
        expect(page.locator("#total")).to_have_text("$0.2500")
    expect(page.locator("#trouble")).to_have_text("acp-proxy serve does not answer. Trying again …")
    expect(page.locator("#total")).to_have_text("$0.2500")
    with empty_home.serving("--port", port):
        expect(page.locator("#trouble")).to_have_text("")
        context.close()


def test_what_the_server_refuses_is_told_in_its_words(address: str, browser: Browser) -> None:
    context = browser.new_context(timezone_id=ZONE)
    page = context.new_page()
    page.goto(f"{address}#/session/0000000000000000")
    expect(page.locator("#trouble")).to_have_text(re.compile("^no session of this key"))
    expect(page.locator("#terminal")).to_have_text("acp-proxy report")  # a link does not say what people should type
    expect(page.locator("#session-figures")).to_be_hidden()
    page.get_by_role("link", name="All sessions").click()
    expect(page.locator("#total")).to_contain_text("$")
    expect(page.locator("#trouble")).to_have_text("")
    page.locator("#session-list th a[id]").first.click()
    expect(page.locator("#session-title")).to_have_text("Untangle the order states")
    page.goto(f"{address}#/session/0000000000000000")
    expect(page.locator("#session-title")).to_be_hidden()
    context.close()


def test_a_token_may_stand_in_the_address(empty_home: Home, browser: Browser) -> None:
    empty_home.append([row(line("opus", "0.25"), at=time.time_ns() - 120 * 10**9)])
    context = browser.new_context(timezone_id=ZONE)
    page = context.new_page()
    with empty_home.serving("--token-file", str(empty_home.token())) as served:
        page.goto(served.address.replace("http://", "http://alice:let-me-in@"))
        expect(page.locator("#total")).to_have_text("$0.2500")
        context.close()


def test_who_looks_on_with_a_token_that_was_replaced_is_told_what_to_do(empty_home: Home, browser: Browser) -> None:
    empty_home.append([row(line("opus", "0.25"), at=time.time_ns() - 120 * 10**9)])
    context = browser.new_context(timezone_id=ZONE, http_credentials={"username": "alice", "password": "let-me-in"})
    page = context.new_page()
    with empty_home.serving("--token-file", str(empty_home.token())) as served:
        page.goto(served.address)
        expect(page.locator("#total")).to_have_text("$0.2500")
        empty_home.token("another-one\n")
        expect(page.locator("#trouble")).to_have_text("A token is needed, or a new one: load this page again.")
        expect(page.locator("#total")).to_have_text("$0.2500")
        context.close()


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_a_session_shows_where_the_time_of_its_turns_went(empty_home: Home, open_page: Open) -> None:
    calls = (ToolSum("execute", 3, 1, 90_000), ToolSum("read", 20, 0, 4_000))
    work = Work(None, (), calls, busy=30_000, waited=12_000)
    empty_home.append([row(at=time.time_ns(), session="busy", work=work), row(at=time.time_ns(), session="busy")])
    with empty_home.serving() as served:
        page = open_page(served.address)
        page.locator("#session-list tbody tr").first.click()
        said = "tools 0:30: 3 execute 1:30 (1 failed), 20 read 0:04 · waited for permission 0:12"
        expect(page.locator("#session-work")).to_have_text(said)
        took = page.locator("#turn-table tbody tr").first.locator("td").nth(1)
        expect(took).to_have_attribute("title", said)
        widths = took.locator(".filled").evaluate_all("found => found.map(({ style }) => style.width)")
        assert widths == ["50%", "20%"]
        expect(page.locator("#turn-table .bar.work")).to_have_count(1)

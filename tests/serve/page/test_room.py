"""What is wide or long is whole all the same: on a phone, beside a plot, on paper; and what needs a script says so."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, Page, expect

from tests.ledger.rows import ALICE, line, row
from tests.serve.house import Home
from tests.serve.page.conftest import Open

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("page")]

AGENT = "@agentclientprotocol/claude-agent-acp"
CURRENCIES = {"USD": "123456.78", "credits": "2077.79", "EUR": "12.5", "BTC": "0.25", "GBP": "7", "JPY": "125000"}
BUDGETS = '[[budget]]\nname = "each"\nper = "project"\nwindow = "total"\nlimit = { turns = 40 }\n'


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An agent of a long name, large amounts in many currencies, a thousand turns without a price, many projects."""
    home = Home(tmp_path_factory.mktemp("wide"))
    home.configure(BUDGETS)
    at = time.time_ns() - 300 * 10**9
    agent = replace(ALICE, agent=AGENT)
    rows = [row(line("m", amount, currency), origin=agent, at=at) for currency, amount in CURRENCIES.items()]
    rows += [row(line("n", None), at=at, cost_source="unknown") for _ in range(1000)]
    rows += [row(origin=replace(ALICE, project=f"project-{n}"), session=f"s{n}", at=at) for n in range(30)]
    home.append(rows)
    with home.serving() as served:
        yield served.address


def test_paper_has_whole_lists_and_no_buttons(wide: str, open_page: Open) -> None:
    page = open_page(f"{wide}#/all/project")
    rows, budgets = page.locator("#spend-table tbody tr"), page.locator("#budget-list li")
    assert (rows.count(), budgets.count()) == (12, 12)
    print_it(page)
    assert (rows.count(), budgets.count()) == (31, 32)  # the server's own project has a budget, and no row
    expect(page.get_by_text("Show all").filter(visible=True)).to_have_count(0)
    expect(page.get_by_text("Show older sessions")).to_be_hidden()
    expect(page.get_by_text("Older sessions are not shown.")).to_be_visible()
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert (rows.count(), budgets.count()) == (12, 12)
    expect(page.get_by_text("Older sessions are not shown.")).to_be_hidden()
    page.goto("about:blank")


def test_a_browser_without_scripts_is_not_told_to_wait(address: str, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    expect(page.get_by_text("The same in a terminal")).to_be_visible()
    expect(page.get_by_text("Reading the ledger")).to_be_hidden()
    context.close()


def print_it(page: Page) -> None:
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")

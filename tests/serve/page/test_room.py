"""What is wide or long is whole all the same: on a phone, beside a plot, on paper; and what needs a script says so."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, Page, expect

from harness.rows import ALICE, line, row
from tests.serve.house import Home
from tests.serve.page.conftest import Open

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.xdist_group("page")]

AGENT = "@agentclientprotocol/claude-agent-acp"
CURRENCIES = {"USD": "123456.78", "credits": "2077.79", "EUR": "12.5", "BTC": "0.25", "GBP": "7", "JPY": "125000"}
BUDGETS = '[[budget]]\nname = "each"\nper = "project"\nwindow = "total"\nlimit = { turns = 40 }\n'

# Where each line of each run of text begins, and how far it reaches.
LINES = """element => {
    const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT), found = [];
    while (texts.nextNode()) {
        const range = document.createRange();
        range.selectNodeContents(texts.currentNode);
        const lines = [...range.getClientRects()].map(({left}) => Math.round(left));
        found.push({text: texts.currentNode.data, lines});
    }
    return found;
}"""


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


def test_a_name_on_a_phone_is_broken_behind_its_slash(address: str, open_page: Open) -> None:
    page = open_page(f"{address}#/all/agent", width=360)
    name = page.locator("#spend-table bdi").filter(has_text=AGENT)
    expect(name).to_have_text(AGENT)
    assert {each["text"]: len(each["lines"]) for each in name.evaluate(LINES)} == {
        "@agentclientprotocol/": 1,
        "claude-agent-acp": 1,
    }


def test_no_table_has_to_be_moved_sideways_on_a_phone_and_shares_stand_below_names(wide: str, open_page: Open) -> None:
    page = open_page(f"{wide}#/all/agent", width=360)
    for table in page.locator("#spend-table .wide, #session-list .wide").all():
        assert table.evaluate("table => table.scrollWidth <= table.clientWidth")
    shares = page.locator("#spend-table small:visible").filter(has_text="6 turns")
    expect(shares).to_contain_text("100% of all BTC · ")
    expect(shares).to_contain_text(">99% of all USD · ")
    page.set_viewport_size({"width": 700, "height": 900})
    expect(shares).not_to_contain_text("of all", use_inner_text=True)  # they have a column
    page.goto("about:blank")


@pytest.mark.parametrize("width", [600, 1280])
def test_amounts_in_a_second_line_begin_where_those_in_the_first_do(wide: str, open_page: Open, width: int) -> None:
    page = open_page(f"{wide}#/all/agent", width=width)
    lines = page.locator("#total").evaluate(LINES)
    assert len(lines) == len(CURRENCIES)
    left = page.locator("#total-of").bounding_box()
    assert left
    tops = page.locator("#total .amount").evaluate_all("all => all.map(one => one.offsetTop)")
    firsts = [each["lines"][0] for each, top, before in zip(lines, tops, [None, *tops], strict=False) if top != before]
    assert len(firsts) > 1
    assert set(firsts) == {round(left["x"])}
    beyond = "all => all[0].parentElement.getBoundingClientRect().left - all[0].getBoundingClientRect().left"
    assert page.locator("#total .amount").evaluate_all(beyond) >= 1.5  # or rounding puts a line before it on paper
    page.goto("about:blank")


def test_a_total_that_no_line_has_room_for_is_whole(empty_home: Home, open_page: Open) -> None:
    empty_home.append([row(line("m", "1234567890", "W" * 12), at=time.time_ns() - 300 * 10**9)])
    with empty_home.serving() as served:
        page = open_page(f"{served.address}#/all/agent", width=600)
        assert page.locator("#total").evaluate("total => total.scrollWidth <= total.clientWidth")
        page.goto("about:blank")


def test_no_figure_beside_a_plot_is_cut_off(wide: str, open_page: Open) -> None:
    page = open_page(f"{wide}#/all/agent")
    inked = "plot => plot.getContext('2d').getImageData(0, 0, 1, plot.height).data.some(Boolean)"
    plots = page.locator("#spend-plots canvas")
    expect(plots).to_have_count(len(CURRENCIES))
    assert [plot.evaluate(inked) for plot in plots.all()] == [False] * len(CURRENCIES)
    page.goto("about:blank")


def test_paper_has_whole_lists_and_no_buttons(wide: str, open_page: Open) -> None:
    page = open_page(f"{wide}#/all/project")
    rows, budgets = page.locator("#spend-table tbody tr"), page.locator("#budget-list li")
    assert (rows.count(), budgets.count()) == (12, 12)
    print_it(page)
    assert (rows.count(), budgets.count()) == (31, 31)
    expect(page.get_by_text("Show all").filter(visible=True)).to_have_count(0)
    expect(page.get_by_text("Show older sessions")).to_be_hidden()
    expect(page.get_by_text("Older sessions are not shown.")).to_be_visible()
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert (rows.count(), budgets.count()) == (12, 12)
    expect(page.get_by_text("Older sessions are not shown.")).to_be_hidden()
    page.goto("about:blank")


def test_on_paper_bars_are_whole_and_lines_have_their_colours(address: str, open_page: Open) -> None:
    page = open_page(address)
    page.emulate_media(media="print")
    for mark in ("::before", "::after"):  # what is clear in an image over a bar is white on Firefox's paper
        image = f"bar => getComputedStyle(bar, '{mark}').backgroundImage"
        assert page.locator("#budget-list .bar").first.evaluate(image) == "none"
    page.locator("#session-list th a[id]").first.evaluate("link => link.click()")
    rules = page.locator("#context .rule")
    expect(rules.first).to_be_visible()
    assert {rule.evaluate("rule => getComputedStyle(rule).printColorAdjust") for rule in rules.all()} == {"exact"}
    page.emulate_media(media="screen")


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

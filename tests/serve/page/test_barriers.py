"""axe-core finds no barrier, in light and dark, on a phone and on a desk; motion and colour can be done without."""

from __future__ import annotations

import time

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # it has none
from playwright.sync_api import Page, expect

from harness.rows import line, row
from tests.serve.house import Home
from tests.serve.page.conftest import Open

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.xdist_group("page")]


@pytest.mark.parametrize("width", [360, 1280])
def test_axe_finds_no_barrier(address: str, open_page: Open, width: int) -> None:
    page = open_page(f"{address}#/all/model?project=payments-api&sort=cost", width=width, color_scheme="light")
    page.get_by_text("Figures of the plot").click()
    assert barriers(page) == barriers_in_the_dark(page) == []
    page.locator("#session-list th a[id]").first.click()
    page.locator("#turn-table tbody tr").first.wait_for()
    assert barriers(page) == barriers_in_the_dark(page) == []


def test_axe_finds_no_barrier_where_there_is_nothing_yet(empty_home: Home, open_page: Open) -> None:
    with empty_home.serving() as served:
        page = open_page(served.address, until="#welcome:not([hidden])", color_scheme="light")
        assert barriers(page) == barriers_in_the_dark(page) == []
        page.goto("about:blank")


def test_axe_would_find_one(address: str, open_page: Open) -> None:
    page = open_page(address)
    page.evaluate("document.documentElement.removeAttribute('lang')")
    assert barriers(page) == ["html-has-lang: <html>"]


def test_axe_would_find_one_in_the_dark(address: str, open_page: Open) -> None:
    page = open_page(address, color_scheme="light")
    page.evaluate("document.getElementById('as-of').style.color = '#333'")
    assert barriers(page, runOnly=["color-contrast"]) == []
    (found,) = barriers_in_the_dark(page)
    assert found.startswith('color-contrast: <p id="as-of"')


def test_how_sure_figures_are_is_told_in_words(address: str, open_page: Open) -> None:
    page = open_page(f"{address}#/all/agent")
    words = [text.split()[-1] for text in page.locator("#sources li").all_inner_texts()]
    assert words == ["exact", "partial", "estimated", "price", "usage"]
    looks = page.locator("#sources .swatch").evaluate_all(
        "all => all.map(one => getComputedStyle(one).backgroundImage)"
    )
    assert len(set(looks[:3])) == 3


def test_paper_is_white_also_where_the_screen_is_dark(address: str, open_page: Open) -> None:
    page = open_page(address, color_scheme="dark")
    expect(page.locator("#total")).to_have_css("color", "rgb(230, 233, 239)")
    page.emulate_media(media="print")
    expect(page.locator("#total")).to_have_css("color", "rgb(23, 26, 33)")
    expect(page.locator(".panel").last).to_have_css("background-color", "rgb(255, 255, 255)")
    expect(page.locator("#range")).to_be_hidden()
    page.emulate_media(media="screen")


def test_a_plot_is_drawn_for_paper_as_for_a_light_screen(address: str, open_page: Open) -> None:
    drawn = "document.querySelector('#spend-plots canvas').toDataURL()"
    light, dark = (open_page(f"{address}#/all/agent", color_scheme=scheme) for scheme in ("light", "dark"))
    on_light, on_dark = light.evaluate(drawn), dark.evaluate(drawn)
    dark.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert dark.evaluate(drawn) == on_light != on_dark
    dark.evaluate("dispatchEvent(new Event('afterprint'))")
    assert dark.evaluate(drawn) == on_dark


def test_a_page_of_paper_is_filled_and_its_plots_are_whole(address: str, open_page: Open) -> None:
    page = open_page(f"{address}#/all/model", width=1440)
    box = "element => element.getBoundingClientRect().right"
    page.emulate_media(media="print")
    page.locator("main").evaluate("main => main.style.width = '680px'")  # uPlot hears of it in the next frame only
    panel = page.locator("#figures .panel").first
    assert page.locator("#spend-plots canvas").first.evaluate(box) < panel.evaluate(box) < 1000
    expect(panel).to_have_css("break-inside", "auto")
    page.emulate_media(media="screen")


def test_heads_on_paper_are_no_larger_than_what_they_are_above(address: str, open_page: Open) -> None:
    page = open_page(f"{address}#/all/agent")
    page.emulate_media(media="print")
    size = "element => parseFloat(getComputedStyle(element).fontSize)"
    text = page.locator("body").evaluate(size)
    for head in ("#spend-table th", "#session-list th", ".card h2", ".card small", "#terminal"):
        for each in page.locator(head).all():
            assert each.evaluate(size) <= text, head
    page.emulate_media(media="screen")


def test_nothing_moves_for_those_who_do_not_want_it(empty_home: Home, open_page: Open) -> None:
    empty_home.append([row(line(), at=time.time_ns() - 120 * 10**9)])
    with empty_home.serving() as served:
        page = open_page(served.address, reduced_motion="reduce")
        page.evaluate(
            "document.getElementById('cards').append(Object.assign(document.createElement('b'), {className: 'pulse'}))"
        )
        expect(page.locator(".pulse")).to_have_css("animation-name", "none")
        page.goto("about:blank")


def barriers(page: Page, **options: object) -> list[str]:
    found = Axe().run(page, options=options).response["violations"]
    return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]


def barriers_in_the_dark(page: Page) -> list[str]:
    """Only colours are others."""
    page.emulate_media(color_scheme="dark")
    found = barriers(page, runOnly=["color-contrast"])
    page.emulate_media(color_scheme="light")
    return found


def test_on_a_phone_no_amount_touches_the_words_beside_it(address: str, open_page: Open) -> None:
    page = open_page(address, width=390)
    apart = page.locator(".card").evaluate_all(
        "cards => cards.map(card => card.querySelector('.amount').parentElement.getBoundingClientRect().left"
        " - card.querySelector('.quiet').getBoundingClientRect().right)"
    )
    assert len(apart) == 4
    assert min(apart) >= 8

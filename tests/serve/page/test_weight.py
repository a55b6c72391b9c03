"""How much comes over the wire and how soon something is seen; that nothing comes from elsewhere."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.pace import slower
from tests.serve.page.conftest import ZONE

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.xdist_group("page")]

MOST = 120 * 1024  # bytes
SOON = 3000  # ms; some 100 on an idle machine, but tests share theirs, and it may be slow


def test_the_page_is_light_soon_there_and_all_its_own(address: str, browser: Browser) -> None:
    context = browser.new_context(timezone_id=ZONE)
    page = context.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(address)
    page.locator("#figures:not([hidden])").wait_for()
    wire = page.evaluate(
        "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
        ".map(({name, transferSize}) => [name, transferSize])"
    )
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    context.close()
    assert [url for url in requests if not url.startswith(address)] == []
    assert sum(size for _, size in wire) <= MOST, wire
    assert len(wire) == len(requests)
    assert paint <= SOON * slower()


def test_a_second_look_costs_only_the_figures(address: str, browser: Browser) -> None:
    context = browser.new_context(timezone_id=ZONE)
    page = context.new_page()
    page.goto(address)
    page.locator("#figures:not([hidden])").wait_for()
    statuses: dict[str, int] = {}
    page.on("response", lambda response: statuses.update({response.url: response.status}))
    page.reload()
    page.locator("#figures:not([hidden])").wait_for()
    context.close()
    fetched = {url.removeprefix(address).partition("?")[0] for url, status in statuses.items() if status == 200}
    assert {"api/live", "api/spend"} <= fetched

"""The page in a real browser: signing in, figures, and the way out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # it has none
from playwright.sync_api import Browser, Page, expect

from tests.hub.page.house import Hub
from tests.serve.page.browser import chromium

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.xdist_group("chromium of the hub")]
PATIENCE = 60_000  # ms on a busy machine
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """The console has to be clean at the end, but for what the server refuses."""
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    complaints: list[str] = []
    page = context.new_page()
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    context.close()
    assert [each for each in complaints if "status of 40" not in each] == []


def sign_in(page: Page, hub: Hub, token: str) -> None:
    page.goto(hub.url)
    page.get_by_label("token").fill(token)
    page.get_by_role("button", name="Sign in").click()


def test_a_developer_signs_in_sees_their_own_and_leaves(hub: Hub, page: Page) -> None:
    sign_in(page, hub, hub.token("mallory", "developer", "red"))
    expect(page.locator("#signed-in")).to_have_text("mallory")
    page.goto(f"{hub.url}/#/all/project")
    expect(page.locator("#spend-table")).to_contain_text("project-of-mallory")
    expect(page.locator("body")).not_to_contain_text("bob")
    assert page.evaluate("document.cookie") == ""
    assert Axe().run(page).violations_count == 0
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.goto(hub.url)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_what_was_revoked_meanwhile_shows_no_more_figures(hub: Hub, page: Page) -> None:
    token = hub.token("mallory", "developer", "red")
    sign_in(page, hub, token)
    expect(page.locator("#signed-in")).to_have_text("mallory")
    hub.store(lambda store: [store.tokens.revoke(each.id, "test", hub.now()) for each in store.tokens.all()])
    expect(page.locator("#trouble")).to_contain_text("load this page again")
    page.reload()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()

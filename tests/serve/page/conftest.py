"""One Chromium and one ledger of ten weeks for all tests, which only read it; every test has a page of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright

from tests.serve.house import Home
from tests.serve.page import weeks
from tests.serve.page.browser import launched

# Neither the server's nor that of the times in the ledger.
ZONES = ("America/Los_Angeles", "Asia/Kolkata", "Pacific/Auckland")
ZONE = min(ZONES, key=lambda zone: abs(datetime.now(ZoneInfo(zone)).hour - 12))  # today there is hours old, and goes on

PATIENCE = 60_000  # ms that anything may take on a busy machine

Open = Callable[..., Page]

expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    with launched(playwright) as browser:
        yield browser


@pytest.fixture(scope="package")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """With ten weeks of work, and budgets."""
    home = Home(tmp_path_factory.mktemp("home"))
    home.configure(weeks.BUDGETS.replace('"month"', '"rolling:720h"'))  # no month that has only begun
    home.append(weeks.rows(time.time_ns()))
    return home


@pytest.fixture(scope="package")
def address(home: Home) -> Iterator[str]:
    with home.serving() as served:
        yield served.address


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Opens an address, and waits until there are figures. The console has to be clean at the end."""
    contexts = []
    complaints: list[str] = []

    def open_page(address: str, until: str = "#figures:not([hidden])", width: int = 1280, **options: Any) -> Page:
        viewport = {"width": width, "height": 900}
        context = browser.new_context(viewport=viewport, timezone_id=ZONE, **options)  # type: ignore[arg-type]  # a TypedDict of its own
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        page.locator(until).first.wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def empty_home(tmp_path: Path) -> Home:
    return Home(tmp_path)

"""A real Chromium, apt's, for tests and pictures of the page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

CHROMIUM = "/usr/bin/chromium"
_WITHOUT_SANDBOX = "--no-sandbox"  # root has none in a container; only our own page is opened


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[_WITHOUT_SANDBOX])
        yield browser
        browser.close()

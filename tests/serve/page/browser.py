"""A real Chromium, apt's, for tests and pictures of the page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

CHROMIUM = "/usr/bin/chromium"
_OPTIONS = (
    "--no-sandbox",  # root has none in a container; only our own page is opened
    # Where no graphics processor is, one is emulated, in a process of its own: a fifth of what a page takes.
    "--disable-gpu",
    "--disable-software-rasterizer",
    "--in-process-gpu",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_OPTIONS)
        yield browser
        browser.close()

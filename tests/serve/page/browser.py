"""A real Chromium, apt's, for tests and pictures of the page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Playwright, sync_playwright

WHOLE = "/usr/bin/chromium"  # as people have it, whether or not its windows are seen
# The same engine, of the same source and version, with nothing around it: a third of what the whole takes for a page.
ENGINE = "/usr/bin/chromium-headless-shell"
_OPTIONS = (
    "--no-sandbox",  # root has none in a container; only our own page is opened
    # Where no graphics processor is, one is emulated, in a process of its own: a fifth of what a page takes.
    "--disable-gpu",
    "--disable-software-rasterizer",
    "--in-process-gpu",
)


@contextmanager
def chromium(program: str = ENGINE) -> Iterator[Browser]:
    with sync_playwright() as playwright, launched(playwright, program) as browser:
        yield browser


@contextmanager
def launched(playwright: Playwright, program: str = ENGINE) -> Iterator[Browser]:
    """The whole where its engine alone is not installed."""
    found = program if Path(program).exists() else WHOLE
    browser = playwright.chromium.launch(executable_path=found, args=_OPTIONS)
    yield browser
    browser.close()

"""Titles and model names come from agents and models: whatever they hold, the page shows it as text."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import Browser, expect

from acp_proxy.core.entry import Origin, SessionState
from harness.rows import line, row
from tests.serve.house import Home
from tests.serve.page.conftest import Open

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.xdist_group("page")]

IMAGE = '<img src=x onerror="document.title=1">'
SCRIPT = "</script><script>document.title=2</script>"
TURNED = "safe\u202egpj.exe\u2066\u0007\u001b[31m\nname"
LONG = "x" * 10_000
WIDE = "W" * 40
PAIRED = "a" + "\N{OCTOPUS}" * 20  # two units of UTF-16 each: none is to be cut in two
NAMES = [IMAGE, SCRIPT, TURNED, LONG, WIDE, PAIRED, "{{7*7}}", "javascript:alert(1)", "constructor", "__proto__"]


@pytest.fixture
def hostile(empty_home: Home) -> Home:
    now = time.time_ns() - 600 * 10**9
    for place, name in enumerate(NAMES):
        origin = Origin("default", "alice", name, name, "laptop", name, None, None)
        state = SessionState(title=name)
        spent = line(name, "0.01", name[:60])
        empty_home.append([row(spent, origin=origin, session=f"s{place}", at=now + place * 10**9, state=state)])
    return empty_home


def test_what_agents_call_things_is_only_text(hostile: Home, open_page: Open) -> None:
    with hostile.serving() as served:
        page = open_page(f"{served.address}#/all/model", width=360)
        for by in ("model", "agent", "project", "team"):
            page.locator(f"#by input[value={by}]").check()
            expect(page.locator("#spend-table caption")).to_have_text(f"Spend by {by}")
            shown = page.locator("#spend-table tbody bdi").all_inner_texts()
            assert sorted(shown) == sorted(map(as_shown, NAMES))
        links = page.locator("#session-list tbody th a")
        assert sorted(links.all_inner_texts()) == sorted(map(as_shown, NAMES))
        assert page.locator("main img, main script, main iframe").count() == 0
        for place in range(len(NAMES)):
            links.nth(place).click()
            title = page.locator("#session-title")
            expect(title).to_have_text(as_shown(NAMES[-1 - place]))
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert page.evaluate("document.body.innerText.isWellFormed()")
            page.go_back()
            links.first.wait_for()
        assert page.title() == "acp-proxy"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.goto("about:blank")


def test_a_hostile_address_shows_only_a_line(address: str, browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    for part in ("#/session/%3Cimg%20src=x%3E", "#/session/%", '#/"]/x', "#/month/constructor", "#/session/../.."):
        page.goto(f"{address}{part}")
        page.reload()
        expect(page.locator("#figures, #trouble:not(:empty)").filter(visible=True).first).to_be_visible()
        assert page.locator("main img").count() == 0
    context.close()


def as_shown(name: str) -> str:
    if name == TURNED:
        return "safe gpj.exe [31m name"
    return name if len(name) <= 120 else name[:119] + "…"

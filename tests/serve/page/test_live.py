"""In a whole Chromium: while a turn runs the page shows it, with a clock; when it ends its row is in the figures."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Playwright, expect

from harness.rows import ALICE, BOB
from harness.rows import row as ledger_row
from tests.agents.client import line, python, running, send, send_and_close
from tests.serve.house import Home
from tests.serve.page.browser import WHOLE, launched
from tests.serve.page.conftest import Open

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.xdist_group("page-use")]

AGENT = """
import json, sys
def say(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def update(**update): say(method="session/update", params={"sessionId": "s", "update": update})
for line in sys.stdin:
    match json.loads(line):
        case {"method": "initialize", "id": id}:
            say(id=id, result={"protocolVersion": 1, "agentInfo": {"name": "x-agent", "version": "1"}})
        case {"method": "session/new", "id": id}: say(id=id, result={"sessionId": "s"})
        case {"method": "session/prompt", "id": id}:
            update(sessionUpdate="usage_update", used=150, size=200, cost={"amount": 0.25, "currency": "USD"})
            say(method="working", params={})
        case {"method": "session/cancel"}:
            update(sessionUpdate="usage_update", used=160, size=200, cost={"amount": 0.75, "currency": "USD"})
            usage = {"totalTokens": 110, "inputTokens": 100, "outputTokens": 10}
            say(id=id, result={"stopReason": "end_turn", "usage": usage})
"""
COMMAND = (sys.executable, "-m", "acp_proxy", "run", "--no-summary", "--project", "shop", "--", *python(AGENT))


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    with launched(playwright, WHOLE) as browser:
        yield browser


def test_a_running_turn_comes_and_goes(empty_home: Home, open_page: Open) -> None:
    with empty_home.serving() as served, running(*COMMAND, env=empty_home.environ) as proxy:
        page = open_page(served.address, until="#welcome:not([hidden])")
        expect(page.locator("#live")).to_be_hidden()
        ask(proxy, "initialize", protocolVersion=1)
        ask(proxy, "session/new", cwd="/", mcpServers=[])

        ask(proxy, "session/prompt", sessionId="s", prompt=[{"type": "text", "text": "Go on."}])
        row = page.locator("#live tbody tr")
        expect(row).to_contain_text("x-agent")
        expect(row).to_contain_text("~ $0.2500")
        expect(row.locator("time")).to_have_text(re.compile(r"^0:\d\d$"))
        expect(page.get_by_role("status").filter(has_text="1 turn running")).to_be_visible()
        began = row.locator("time").inner_text()
        expect(row.locator("time")).not_to_have_text(began)
        expect(row).not_to_contain_text("alice")

        empty_home.append([ledger_row(origin=who, at=time.time_ns() - 120 * 10**9) for who in (ALICE, BOB)])
        expect(row).to_contain_text("alice · x-agent")
        row.evaluate("row => row.dataset.seen = 'yes'")
        for _ in range(2):  # who selects a name, or hears it read, is not disturbed every two seconds
            page.wait_for_event("response", lambda response: response.url.endswith("/api/live"))
        expect(row).to_have_attribute("data-seen", "yes")

        say(proxy, "session/cancel", sessionId="s")
        expect(page.locator("#live")).to_be_hidden()
        expect(page.locator("#total")).to_have_text("$0.7700")
        expect(page.locator("#session-list tbody tr").first).to_contain_text("active")
        send_and_close(proxy.stdin, b"")
        page.goto("about:blank")


def ask(proxy: Any, method: str, **params: Any) -> None:
    """Returns with the answer, or the first sign that the agent works."""
    send(proxy.stdin, json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}).encode() + b"\n")
    while True:
        message = json.loads(line(proxy.stdout))
        if message.get("id") == method or message.get("method") == "working":
            return


def say(proxy: Any, method: str, **params: Any) -> None:
    send(proxy.stdin, json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n")

"""The card of coverage: shares by agent, what is not known, and figures by day."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from playwright.sync_api import expect

from acp_proxy.core.entry import IMPORT
from acp_proxy.core.windows import DAY
from harness.rows import ALICE, NOON, line, row
from tests.serve.house import Home
from tests.serve.page.conftest import Open

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.xdist_group("page-use")]

CLAUDE = replace(ALICE, agent="@agentclientprotocol/claude-agent-acp")
BESIDE = replace(ALICE, agent="claude-code", client=IMPORT)


def test_an_agent_shows_how_much_went_through_and_how_much_around(empty_home: Home, open_page: Open) -> None:
    relayed = [row(line(cost="3", input=3000), origin=CLAUDE, at=NOON + day * DAY) for day in range(3)]
    around = [row(line(cost="1", input=1000), origin=BESIDE, kind="call", at=NOON + day * DAY) for day in range(2)]
    other = [row(line(input=700), origin=replace(ALICE, agent="other-agent"))]
    empty_home.append([*relayed, *around, *other])
    with empty_home.serving() as served:
        dates = f"{served.address}#/2026-11-01..2026-11-30/agent"
        page = open_page(dates, until="#coverage:not([hidden])")
        claude, unknown = page.locator("#coverage-list > li").all()
        expect(claude.locator("b")).to_have_text("82% of the tokens")
        expect(claude).to_contain_text("relayed: 9,000 tokens, $9.0000")
        expect(claude).to_contain_text("around it: 2,000 tokens, $2.0000")
        expect(unknown.locator("b")).to_have_text("not known")
        expect(unknown).to_contain_text("nothing was imported")
        expect(page.locator("#coverage .day")).to_have_count(3)
        expect(page.locator("#coverage .day.unknown")).to_have_count(1)
        page.get_by_text("Figures by day").click()
        rows = page.locator("#coverage tbody tr")
        expect(rows.first.locator("td")).to_have_text(["3,000", "1,000", "75%"])
        expect(rows.last.locator("td")).to_have_text(["3,000", "?", "?"])


def test_where_nothing_was_imported_there_is_no_card(address: str, open_page: Open) -> None:
    expect(open_page(address).locator("#coverage")).to_be_hidden()

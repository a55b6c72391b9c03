"""The card of bills: shares, days and differences as they stand in the ledger."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from harness.daemons import until
from tests.reconcile.provider import KEY, Reply, serving
from tests.serve.bills import bill
from tests.serve.house import Home
from tests.serve.page.conftest import Open

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.xdist_group("page-use")]


def test_a_bill_says_how_much_was_metered_when_and_why_not_the_rest(empty_home: Home, open_page: Open) -> None:
    bill(empty_home)
    with empty_home.serving() as served:
        page = open_page(f"{served.address}#/all/agent", until="#bills:not([hidden])")
        card = page.locator("#bill-list > li")
        expect(card.locator("b")).to_have_text("95% of the tokens")
        expect(card).to_contain_text("2026-11-01 to 2026-11-30")
        expect(card.locator(".causes li")).to_have_count(2)
        expect(card.locator(".causes")).to_contain_text("claude-haiku-5-5")
        expect(card.locator(".days .slot")).to_have_count(29)
        card.get_by_text("Figures by day").click()
        first = card.locator("tbody tr").first
        expect(first.locator("td")).to_have_text(["7,000", "3,500", "50%", "$0.02", "$0.01", "50%"])


def test_a_provider_that_gave_none_is_named_with_the_reason(empty_home: Home, open_page: Open) -> None:
    with serving(lambda *_: Reply(401)) as api:
        empty_home.configure(f'[bills.openai]\nkey = "${{ADMIN_KEY}}"\nurl = "{api.url}"\n')
        bill(empty_home)
        with empty_home.serving(environ={"ADMIN_KEY": KEY}) as served:
            until(lambda: any(each["trouble"] for each in served.json("/api/bills")["sources"]), "the key was refused")
            page = open_page(f"{served.address}#/all/agent", until="#bills:not([hidden])")
            cards = page.locator("#bill-list > li")
            expect(cards).to_have_count(2)
            kept, awaited = cards.nth(0), cards.nth(1)
            expect(kept.locator(".amiss")).to_have_count(0)
            expect(awaited.locator("b")).to_have_text("no bill yet")
            expect(awaited.locator(".amiss")).to_contain_text("refused the key (401)")
            expect(awaited.locator(".amiss")).to_contain_text("again from")


def test_without_a_bill_there_is_no_card(address: str, open_page: Open) -> None:
    expect(open_page(address).locator("#bills")).to_be_hidden()

"""The page in a real browser: signing in, figures, and the way out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # it has none
from playwright.sync_api import Browser, Page, expect

from acp_proxy.hub.identity import Role
from tests.hub.page.house import Hub, ask_for_more
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


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("role", ["administrator", "lead"])
def test_administration_is_accessible_in_each_width_and_colour(
    hub: Hub, browser: Browser, width: int, scheme: Literal["light", "dark"], role: Role
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    cookie = hub.cookie("ada", role, "red", ("red",))
    context.add_cookies([{"name": "acp-proxy", "value": cookie[10:], "url": hub.url}])
    page = context.new_page()
    page.goto(f"{hub.url}/administration")
    expect(page.locator("#audit table" if role == "administrator" else "#grants p")).to_be_visible()
    expect(page.locator("section:visible")).to_have_count(8 if role == "administrator" else 3)
    for each in page.locator("details:visible").all():
        each.locator("summary").click()
    assert Axe().run(page).violations_count == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()


def test_an_administrator_makes_a_token_and_ends_it(own_hub: Hub, page: Page) -> None:
    page.on("dialog", lambda dialog: dialog.accept())
    sign_in(page, own_hub, own_hub.token("ada", "administrator"))
    page.get_by_role("link", name="Administration").click()
    page.get_by_text("Make a token").click()
    page.locator("#new-token [name=name]").fill("of bob")
    page.locator("#new-token [name=user]").fill("bob")
    page.get_by_role("button", name="Make it").click()
    secret = page.locator("code.secret")
    expect(secret).to_have_text(re.compile("^acp_"))
    assert own_hub.sign_in(secret.inner_text()).status == 303
    page.get_by_role("button", name="Revoke: of bob").click()
    expect(page.locator("#tokens tr", has_text="of bob")).to_contain_text("revoked")
    expect(page.locator("#audit tbody tr").first).to_contain_text("token.revoked")
    page.locator("#audit-filter [name=action]").fill("token.made")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("#audit")).not_to_contain_text("token.revoked")
    page.reload()
    expect(page.locator("#tokens")).to_contain_text("of bob")
    expect(page.locator("code.secret")).to_have_count(0)


def test_an_administrator_sets_a_budget_that_a_developer_then_sees(own_hub: Hub, page: Page) -> None:
    page.on("dialog", lambda dialog: dialog.accept())
    sign_in(page, own_hub, own_hub.token("ada", "administrator"))
    page.goto(f"{own_hub.url}/administration")
    page.get_by_text("Set a budget", exact=True).click()
    for name, value in {"name": "red month", "amount": "10", "team": "red, green"}.items():
        page.locator(f"#budget [name={name}]").fill(value)
    page.get_by_role("button", name="Set it").click()
    expect(page.locator("#budgets tbody")).to_contain_text("team red, green")
    page.get_by_role("button", name="Change: red month").click()
    page.locator("#budget [name=amount]").fill("12.50")
    page.get_by_role("button", name="Set it").click()
    expect(page.locator("#budgets tbody")).to_contain_text("$12.50")
    page.locator("summary", has_text="History of budgets").click()
    expect(page.locator("#budget-history tbody tr")).to_have_count(2)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    sign_in(page, own_hub, own_hub.token("mallory", "developer", "red"))
    expect(page.locator("#budget-list")).to_contain_text("for all who share it · $1.17 yours")
    expect(page.locator("#budget-list")).to_contain_text("$9.06 left")


def test_an_administrator_sets_a_price_a_budget_on_a_plan_and_a_grant(own_hub: Hub, page: Page) -> None:
    page.on("dialog", lambda dialog: dialog.accept())
    sign_in(page, own_hub, own_hub.token("ada", "administrator"))
    page.goto(f"{own_hub.url}/administration")
    page.get_by_text("Set the price of a model").click()
    for name, value in {"model": "opus", "input": "5", "output": "25"}.items():
        page.locator(f"#price [name={name}]").fill(value)
    page.locator("#price button").click()
    expect(page.locator("#prices tbody")).to_contain_text("opus")
    page.get_by_role("button", name="Change: opus").click()
    page.locator("#price [name=cached_read]").fill("0.50")
    page.locator("#price button").click()
    expect(page.locator("#prices tbody")).to_contain_text("0.50")
    page.get_by_text("Set a budget on a plan").click()
    page.locator("#plan-budget [name=name]").fill("share")
    page.locator("#plan-budget [name=on_overage]").select_option("deny")
    page.locator("#plan-budget button").click()
    expect(page.locator("#budgets tbody")).to_contain_text("80 % of five_hour")
    page.get_by_role("button", name="Change: share").click()
    page.locator("#plan-budget [name=percent]").fill("60")
    page.locator("#plan-budget button").click()
    expect(page.locator("#budgets tbody")).to_contain_text("60 % of five_hour")
    page.get_by_text("Set a budget", exact=True).click()
    for name, value in {"name": "seats", "amount": "10"}.items():
        page.locator(f"#budget [name={name}]").fill(value)
    page.locator("#budget [name=per]").select_option("user")
    page.locator("#budget button").click()
    expect(page.locator("#budgets tbody")).to_contain_text("each user")
    page.get_by_text("Grant more").click()
    for name, value in {"value": "ruby", "amount": "2.50", "why": "the release"}.items():
        page.locator(f"#grant [name={name}]").fill(value)
    page.locator("#grant button").click()
    expect(page.locator("#grants tbody")).to_contain_text("$2.50")
    page.get_by_role("button", name="Remove: opus").click()
    expect(page.locator("#prices")).to_contain_text("No model has a price of your own")
    document = own_hub.ask("/api/administration/policy", own_hub.cookie("ada", "administrator")).json["document"]
    assert [each["name"] for each in document["budgets"]] == ["share", "seats"]
    assert document["budgets"][0]["on_overage"] == "deny"


def test_changing_a_budget_in_the_form_keeps_what_the_form_does_not_show(own_hub: Hub, page: Page) -> None:
    scope = {"model": "*opus*", "team": "red"}
    budget = {"window": "day", "limit": {"turns": 5}, "scope": scope, "thresholds": [75], "timezone": "Europe/Paris"}
    own_hub.change(
        "/api/administration/policy", own_hub.cookie("ada", "administrator"), {"version": 0, "budgets": {"few": budget}}
    )
    sign_in(page, own_hub, own_hub.token("ada", "administrator"))
    page.goto(f"{own_hub.url}/administration")
    page.get_by_role("button", name="Change: few").click()
    page.locator("#budget [name=amount]").fill("7")
    page.locator("#budget button").click()
    expect(page.locator("#budgets tbody")).to_contain_text("7 turns")
    found = own_hub.ask("/api/administration/policy", own_hub.cookie("ada", "administrator")).json
    assert found["document"]["budgets"] == [
        budget | {"name": "few", "mode": "enforce", "limit": {"turns": 7}, "scope": scope | {"team": ["red"]}}
    ]


def test_a_lead_sets_a_budget_of_their_team_which_is_named_after_it(own_hub: Hub, page: Page) -> None:
    daily = {"window": "day", "limit": {"turns": 5}}
    own_hub.change(
        "/api/administration/policy", own_hub.cookie("ada", "administrator"), {"version": 0, "budgets": {"all": daily}}
    )
    sign_in(page, own_hub, own_hub.token("lea", "lead", "red", leads=("red",)))
    page.get_by_role("link", name="Budgets and grants").click()
    page.get_by_text("Set a budget", exact=True).click()
    for name, value in {"name": "daily", "amount": "10"}.items():
        page.locator(f"#budget [name={name}]").fill(value)
    page.locator("#budget button").click()
    expect(page.locator("#budgets tbody")).to_contain_text("red/daily")
    expect(page.get_by_role("button", name="Change: red/daily")).to_be_visible()
    expect(page.get_by_role("button", name="Change: all")).to_have_count(0)
    expect(page.get_by_text("Make a token")).to_be_hidden()


def test_a_lead_is_led_to_decide_on_what_their_team_asks_for(own_hub: Hub, page: Page) -> None:
    ask_for_more(own_hub)
    sign_in(page, own_hub, own_hub.token("lea", "lead", "red", leads=("red",)))
    expect(page.locator("#requests li", has_text="ruby")).to_contain_text("$2.00 more of each · reasons of ruby")
    expect(page.locator("#requests")).not_to_contain_text("bob")
    expect(page.locator("#figures")).to_be_visible()
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.locator("#requests li", has_text="ruby").get_by_role("link", name="Decide").click()
    expect(page.get_by_role("main")).to_contain_text("reasons of ruby")


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

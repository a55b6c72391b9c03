"""What somebody could try with a browser: forms of other sites, frames, addresses to go on to, planted sessions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from acp_proxy.hub.settings import Settings
from harness.openid import Provider
from tests.hub.page.house import ORIGINS, Hub
from tests.serve.page.browser import chromium

PAGES = (
    "/",
    "/administration",
    "/signin",
    "/device",
    "/page.js",
    "/api/spend",
    "/api/administration/tokens",
    "/nothing",
)
TOKENS = "/api/administration/tokens"
NEW = {"name": "stolen", "user": "mallory", "role": "administrator"}
HOSTILE = '<img src=x onerror="document.title=1">'


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[Hub]:
    """One that is reached by TLS, behind a reverse proxy."""
    settings = Settings(url="https://hub.example.org", organisation="default")
    with Hub(f"sqlite:///{tmp_path}/ledger.db", settings).running() as hub:
        yield hub


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    context.set_default_timeout(60_000)
    yield context.new_page()
    context.close()


def names_of(hub: Hub) -> set[str]:
    return {token.name for token in hub.store(lambda store: store.tokens.all())}


def test_no_script_reads_the_cookie_and_no_other_site_sends_it_with_a_form(secure: Hub) -> None:
    (cookie,) = secure.sign_in(secure.token("ada", "administrator"), Host="hub.example.org").cookies
    name, *attributes = [part.strip().lower() for part in cookie.split(";")]
    assert name.startswith("__host-acp-proxy=acps_")
    assert {"httponly", "secure", "path=/", "samesite=lax"} <= {*attributes}
    assert not any(each.startswith("domain") for each in attributes)


def test_a_change_without_the_pages_own_token_is_refused(hub: Hub) -> None:
    cookie = hub.cookie("ada", "administrator")
    other = hub.csrf(hub.cookie("mallory", "developer", "red"))
    as_json = {"Content_Type": "application/json"}
    for given in ("", "guessed", other):
        answer = hub.ask(TOKENS, cookie, "POST", json.dumps(NEW), X_CSRF=given, **as_json)
        assert (answer.status, "load it again" in answer.json["error"]) == (403, True)
    csrf = hub.csrf(cookie)
    assert hub.ask(TOKENS, cookie, "POST", json.dumps(NEW), X_CSRF=csrf, Origin="https://evil.example").status == 403
    assert hub.ask(TOKENS, cookie, "POST", json.dumps(NEW), X_CSRF=csrf, Sec_Fetch_Site="cross-site").status == 403
    assert hub.ask(TOKENS, cookie, "POST", json.dumps(NEW), X_CSRF=csrf, Content_Type="text/plain").status == 415
    assert "stolen" not in names_of(hub)


@pytest.mark.needs("chromium")
@pytest.mark.xdist_group("chromium of the hub")
def test_a_page_of_another_site_changes_nothing_in_a_browser_that_has_signed_in(hub: Hub, page: Page) -> None:
    page.goto(hub.url)
    page.get_by_label("token").fill(hub.token("ada", "administrator"))
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#signed-in")).to_have_text("ada")
    with Provider().running() as other:  # some other origin
        page.goto(f"{other.issuer}/nothing")
        page.set_content(
            f'<form method="post" enctype="text/plain" action="{hub.url}{TOKENS}">'
            f"<input name='{json.dumps(NEW)[:-1]},\"x' value='\":1}}'><button>Win</button></form>"
        )
        page.get_by_role("button", name="Win").click()
        expect(page.locator("body")).to_contain_text("requests of other sites are refused")
        page.goto(f"{other.issuer}/nothing")
        page.set_content(f'<iframe src="{hub.url}/administration"></iframe>')
        frame = page.frame_locator("iframe")
        expect(frame.locator("#signed-in")).to_have_count(0)
    assert "stolen" not in names_of(hub)


def test_every_answer_forbids_frames_foreign_scripts_and_being_kept(hub: Hub) -> None:
    cookie = hub.cookie("ada", "administrator")
    for path in PAGES:
        headers = hub.ask(path, cookie).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "base-uri 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers
        assert headers["cache-control"] in ("no-store", "no-cache"), path  # the files of the page are asked for anew


@pytest.mark.parametrize(
    "onward",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "javascript:1",
    ],
)
def test_a_sign_in_goes_on_to_a_page_of_this_hub_only(own_hub: Hub, onward: str) -> None:
    body = f"token={own_hub.token('bob', 'developer')}&next={quote(onward)}"
    answer = own_hub.ask("/signin", "", "POST", body, Content_Type="application/x-www-form-urlencoded")
    assert (answer.status, answer.headers["location"]) == (303, "/")


def test_a_session_that_somebody_gave_a_browser_is_not_the_one_after_sign_in(own_hub: Hub) -> None:
    planted = own_hub.cookie("mallory", "developer", "red")
    (cookie,) = own_hub.sign_in(own_hub.token("ada", "administrator"), planted).cookies
    assert cookie.partition(";")[0] != planted
    assert own_hub.ask("/api/administration/tokens", planted).status == 401  # nor is it anybody's any more
    invented = "acp-proxy=acps_" + "A" * 43
    (cookie,) = own_hub.sign_in(own_hub.token("bob", "developer"), invented).cookies
    assert cookie.partition(";")[0] != invented
    assert own_hub.ask("/api/spend", invented).status == 401


def test_a_session_ends_with_its_time_its_sign_out_and_its_user(own_hub: Hub) -> None:
    first, second = (own_hub.cookie("bob", "developer", "blue") for _ in range(2))
    assert own_hub.ask("/signout", first, "POST", X_CSRF=own_hub.csrf(second)).status == 403
    assert own_hub.ask("/api/spend", first).status == 200
    assert own_hub.ask("/signout", first, "POST", X_CSRF=own_hub.csrf(first)).status == 303
    assert [own_hub.ask("/api/spend", each).status for each in (first, second)] == [401, 200]
    own_hub.ahead += 12 * 3600
    assert own_hub.ask("/api/spend", second).status == 401


def test_neither_a_token_nor_an_access_token_is_taken_for_a_cookie(hub: Hub) -> None:
    """It would be one that scripts and other programs have."""
    assert hub.ask("/api/spend", f"acp-proxy={hub.token('bob', 'developer')}").status == 401


@pytest.mark.needs("chromium")
@pytest.mark.xdist_group("chromium of the hub")
def test_names_are_text_on_the_page_of_administration(own_hub: Hub, page: Page) -> None:
    page.goto(f"{own_hub.url}/administration")
    page.get_by_label("token").fill(own_hub.token(HOSTILE, "administrator", HOSTILE))
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#tokens")).to_contain_text(HOSTILE)
    expect(page.locator("#audit")).to_contain_text(HOSTILE)
    assert page.locator("main img").count() == 0
    assert page.title() == "Administration · acp-proxy"


def test_no_answer_names_a_file_a_database_or_a_machine(hub: Hub) -> None:
    """To a developer, whatever is asked of the page and of the API without a body."""
    cookie, token = hub.cookie("mallory", "developer", "red"), hub.token("mallory", "developer", "red")
    told = b""
    for path in (
        *PAGES,
        "/v1/ledger",
        "/v1/clock",
        "/healthz",
        "/livez",
        "/metrics",
        "/v1/openapi.json",
        "/oauth/whoami",
    ):
        told += hub.ask(path, cookie).body + hub.ask(path, Authorization=f"Bearer {token}").body
    found = re.findall(rb"sqlite|ledger\.db|/tmp/|postgresql://", told.lower().replace(b"sqlite/postgresql", b""))
    assert found == []
    assert not any(ORIGINS[user].host.encode() in told for user in ("ruby", "bob"))

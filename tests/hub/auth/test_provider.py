"""Signing in with an OpenID provider, of Authlib's server side: as it should be, and all that may be wrong with it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from acp_proxy.hub.auth import provider as providers
from acp_proxy.hub.settings import Provider as ProviderSettings
from acp_proxy.hub.settings import Settings
from acp_proxy.hub.store.people import Person
from harness.openid import CLIENT, SECRET, Provider
from tests.hub.served import Served

ALICE = {"sub": "7", "email": "alice@example.com", "email_verified": True, "groups": ["eng"]}


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(account=dict(ALICE)).running() as running:
        yield running


@pytest.fixture
def hub(provider: Provider, tmp_path: Path) -> Iterator[Served]:
    chosen = ProviderSettings("Login", provider.issuer, CLIENT, SECRET, teams={"eng": "core"})
    settings = Settings(organisation="acme", provider=(chosen,))
    with Served(f"sqlite:///{tmp_path}/ledger.db", settings).running() as served:
        yield served


@pytest.fixture
def browser(hub: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=hub.url) as client:
        yield client


def _signed_in(browser: httpx2.Client) -> httpx2.Response:
    """The answer to what a browser brings back from the provider."""
    started = browser.get("/signin/start", params={"provider": "Login", "next": "/spend"})
    if started.status_code != 303:
        return started
    return browser.get(browser.get(started.headers["Location"]).headers["Location"])


def _who(browser: httpx2.Client) -> dict[str, Any]:
    found: dict[str, Any] = browser.get("/oauth/whoami").json()
    return found


def test_a_browser_comes_back_signed_in(hub: Served, provider: Provider, browser: httpx2.Client) -> None:
    answer = _signed_in(browser)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/spend")
    cookies = answer.headers.get_list("set-cookie")
    assert all("HttpOnly" in each and "SameSite=lax" in each for each in cookies)
    who = _who(browser)
    assert (who["user"], who["team"], who["role"]) == ("alice@example.com", "core", "developer")
    assert provider.challenges == ["S256"]
    assert [line["action"] for line in hub.store(lambda store: list(store.audit.lines()))][:2] == [
        "person.added",
        "session.begun",
    ]


def test_groups_that_changed_count_from_the_next_sign_in(provider: Provider, browser: httpx2.Client) -> None:
    _signed_in(browser)
    provider.account["groups"] = []
    _signed_in(browser)
    assert _who(browser)["team"] is None


def test_what_is_told_only_at_the_userinfo_endpoint_is_asked_there(provider: Provider, browser: httpx2.Client) -> None:
    provider.only_userinfo = True
    assert _signed_in(browser).status_code == 303
    assert _who(browser)["team"] == "core"


def test_keys_that_a_provider_changed_are_asked_for_anew(provider: Provider, browser: httpx2.Client) -> None:
    for _ in range(3):
        assert _signed_in(browser).status_code == 303
        provider.rotate()


@pytest.mark.parametrize(
    ("wrong", "status", "said"),
    [
        ({"changes": {"email_verified": False}}, 403, "Login has not verified your e-mail address"),
        ({"account": {"sub": "7"}}, 403, "Login names nobody"),
        ({"account": {"email": "alice@example.com"}}, 502, "the sub of its ID token is not what was expected"),
        ({"denies": True}, 403, "Login says"),
        ({"unsigned": True}, 502, "not signed with one of its keys"),
        ({"signed_by_secret": True}, 502, "not signed with one of its keys"),
        ({"changes": {"iss": "https://evil.example"}}, 502, "the iss of its ID token is not what was expected"),
        ({"changes": {"aud": "another"}}, 502, "the aud of its ID token is not what was expected"),
        ({"changes": {"aud": ["acp-proxy", "another"]}}, 502, "the azp of its ID token"),
        ({"changes": {"nonce": "replayed"}}, 502, "the nonce of its ID token is not what was expected"),
        ({"changes": {"nonce": None}}, 502, "the nonce of its ID token is not what was expected"),
        ({"changes": {"exp": None}}, 502, "the exp of its ID token"),
        ({"ahead": 3600}, 502, "of the future: its clock or the hub&#x27;s is wrong"),
        ({"ahead": -3600}, 502, "its clock or the hub&#x27;s is wrong"),
        ({"broken": True}, 502, "Login answers what is no JSON object"),
    ],
)
def test_what_is_wrong_with_a_provider_is_said_and_signs_nobody_in(
    wrong: dict[str, Any], status: int, said: str, provider: Provider, browser: httpx2.Client
) -> None:
    for name, value in wrong.items():
        setattr(provider, name, value)
    answer = _signed_in(browser)
    assert (answer.status_code, said in answer.text) == (status, True), answer.text[-300:]
    assert _who(browser)["error"] == "invalid_token"


def test_a_provider_that_is_away_or_slow_is_one_line_and_who_is_in_stays_in(
    hub: Served, provider: Provider, browser: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    _signed_in(browser)
    monkeypatch.setattr(providers, "_SECONDS", 0.5)
    hub.ahead += 2 * 3600  # what is known of it is asked for again
    provider.stalls = threading.Event()
    with httpx2.Client(base_url=hub.url) as other:
        answer = _signed_in(other)
        assert answer.status_code == 502
        assert "Login does not answer: try again later" in answer.text
    provider.stalls.set()
    assert _who(browser)["user"] == "alice@example.com"


def test_a_provider_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    chosen = ProviderSettings("Login", Provider().issuer, CLIENT, SECRET)
    settings = Settings(organisation="acme", provider=(chosen,))
    served = Served(f"sqlite:///{tmp_path}/ledger.db", settings)
    with served.running(), httpx2.Client(base_url=served.url) as browser:
        answer = _signed_in(browser)
    assert (answer.status_code, "Login cannot be reached: try again later" in answer.text) == (502, True)


def test_a_provider_of_another_name_is_not_believed(provider: Provider, tmp_path: Path) -> None:
    chosen = ProviderSettings("Login", f"{provider.issuer}/", CLIENT, SECRET)
    served = Served(f"sqlite:///{tmp_path}/ledger.db", Settings(organisation="acme", provider=(chosen,)))
    with served.running(), httpx2.Client(base_url=served.url) as browser:
        assert "it calls itself" in _signed_in(browser).text


Change = Callable[[httpx2.URL], httpx2.URL]


@pytest.mark.parametrize(
    "change",
    [
        lambda url: url.copy_set_param("state", "x"),
        lambda url: url.copy_remove_param("state"),
        lambda url: url.copy_set_param("code", "x"),
        lambda url: url.copy_remove_param("code"),
        lambda url: url.copy_set_param("iss", "https://evil.example"),
    ],
)
def test_an_answer_that_somebody_changed_signs_nobody_in(change: Change, browser: httpx2.Client) -> None:
    started = browser.get("/signin/start", params={"provider": "Login"})
    back = httpx2.URL(browser.get(started.headers["Location"]).headers["Location"])
    assert browser.get(change(back)).status_code in (403, 502)
    assert _who(browser)["error"] == "invalid_token"


def test_an_answer_is_good_once_and_for_the_browser_that_asked(hub: Served, browser: httpx2.Client) -> None:
    started = browser.get("/signin/start", params={"provider": "Login"})
    back = browser.get(started.headers["Location"]).headers["Location"]
    with httpx2.Client(base_url=hub.url) as victim:
        assert "begun in another browser" in victim.get(back).text
    assert browser.get(back).status_code == 303
    assert browser.get(back).status_code == 403


@pytest.mark.parametrize("onward", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:x", "/\n"])
def test_nobody_is_sent_on_to_another_site(onward: str, browser: httpx2.Client) -> None:
    started = browser.get("/signin/start", params={"provider": "Login", "next": onward})
    answer = browser.get(browser.get(started.headers["Location"]).headers["Location"])
    assert answer.headers["Location"] == "/"


def test_who_has_left_is_not_let_in_by_the_provider(hub: Served, browser: httpx2.Client) -> None:
    _signed_in(browser)
    gone = Person("alice@example.com", active=False)
    hub.store(lambda store: store.people.keep(gone, "admin", hub.now()))
    hub.ahead += 5
    assert _who(browser)["error"] == "invalid_token"
    assert "may not sign in any more" in _signed_in(browser).text

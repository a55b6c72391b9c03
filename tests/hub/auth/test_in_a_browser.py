"""A real browser lets a machine in: from what the terminal shows, by the provider, to the page that says so."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # it has none
from playwright.sync_api import Browser, Page, expect

from acp_proxy.hub.settings import Provider as ProviderSettings
from acp_proxy.hub.settings import Settings
from acp_proxy.hub.store.tokens import Asked
from acp_proxy.signin import SignInError, access_token, command
from harness.openid import CLIENT, SECRET, Provider
from tests.hub.served import Served
from tests.serve.page.browser import chromium

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.xdist_group("chromium of the hub")]
PATIENCE = 60_000  # ms on a busy machine


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Served]:
    account = {"sub": "7", "email": "alice@example.com", "email_verified": True, "groups": ["eng"]}
    with Provider(account=account).running() as provider:
        chosen = ProviderSettings("Login", provider.issuer, CLIENT, SECRET, teams={"eng": "core"})
        settings = Settings(organisation="acme", provider=(chosen,))
        with Served(f"sqlite:///{tmp_path}/ledger.db", settings).running() as served:
            yield served


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    complaints: list[str] = []
    page = context.new_page()
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    context.close()
    assert [each for each in complaints if "status of 40" not in each] == []


class Login(threading.Thread):
    """`acp-proxy login` on a machine."""

    def __init__(self, hub: Served, home: Path) -> None:
        super().__init__(daemon=True)
        self.environ = {"XDG_STATE_HOME": str(home)}
        self.said: Queue[str] = Queue()
        self.ended: str | SignInError = ""
        self._asked = command.Asked(hub.url, store="file", browser=False)
        self.start()

    def run(self) -> None:
        try:
            self.ended = command.login(self._asked, self.environ, self.said.put)
        except SignInError as error:
            self.ended = error

    @property
    def address(self) -> str:
        return self.said.get(timeout=60).split()[1]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acp_proxy.hub.store.devices.PAUSE", 1)


def test_a_person_signs_in_at_the_provider_and_lets_the_machine_in(hub: Served, page: Page, tmp_path: Path) -> None:
    login = Login(hub, tmp_path)
    address = login.address
    page.goto(address)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert Axe().run(page).violations_count == 0
    page.get_by_role("link", name="Sign in with Login").click()
    expect(page.get_by_text("alice@example.com")).to_be_visible()
    expect(page.locator("code")).to_have_text(address.partition("=")[2])
    assert Axe().run(page).violations_count == 0
    page.get_by_role("button", name="Let it in").click()
    expect(page.get_by_role("heading", name="Signed in")).to_be_visible()
    login.join(60)
    assert str(login.ended).startswith("signed in as alice@example.com")
    assert access_token(hub.url, environ=login.environ)
    assert page.evaluate("document.cookie") == ""


def test_a_person_who_did_not_begin_it_lets_nobody_in(hub: Served, page: Page, tmp_path: Path) -> None:
    login = Login(hub, tmp_path)
    page.goto(login.address)
    page.get_by_role("link", name="Sign in with Login").click()
    page.get_by_role("button", name="Do not").click()
    expect(page.get_by_role("heading", name="Not let in")).to_be_visible()
    login.join(60)
    assert str(login.ended) == "this machine was not let in"


def test_a_token_signs_in_where_there_is_no_account_and_a_code_can_be_typed(
    hub: Served, page: Page, tmp_path: Path
) -> None:
    token, _ = hub.store(lambda store: store.tokens.make(Asked("bob's", "bob"), "admin", hub.now()))
    login = Login(hub, tmp_path)
    code = login.address.partition("=")[2]
    page.goto(f"{hub.url}/device")
    page.get_by_label("token").fill("acp_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_have_text("This token is not known, or has expired.")
    page.get_by_label("token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_label("The code").fill("BBBBBBBB")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("alert")).to_contain_text("No machine waits with this code")
    page.get_by_label("The code").fill(code.lower().replace("-", " "))
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Let it in").click()
    login.join(60)
    assert str(login.ended).startswith("signed in as bob")


@pytest.mark.parametrize(
    ("path", "guarded", "said"),
    [
        ("/device", True, "requests of other sites are refused"),
        ("/device", False, "Not let in"),
        ("/signin", False, "Not signed in"),
        ("/signout", False, "Still signed in"),
    ],
)
def test_a_form_of_another_site_changes_nothing(
    path: str, guarded: bool, said: str, hub: Served, page: Page, tmp_path: Path
) -> None:
    token, _ = hub.store(lambda store: store.tokens.make(Asked("bob's", "bob"), "admin", hub.now()))
    login = Login(hub, tmp_path)
    code = login.address.partition("=")[2]
    page.goto(f"{hub.url}/device")
    page.get_by_label("token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    fields = {"user_code": code, "decision": "allow", "csrf": "guessed", "token": token}
    inputs = "".join(f'<input name="{name}" value="{value}">' for name, value in fields.items())
    with Provider().running() as other:  # some other origin
        page.goto(f"{other.issuer}/nothing")
        page.set_content(f'<form method="post" action="{hub.url}{path}">{inputs}<button>Win</button></form>')
        hub.guarded = guarded
        page.get_by_role("button", name="Win").click()
        expect(page.locator("body")).to_contain_text(said)
    assert hub.store(lambda store: store.devices.waiting(code, hub.now())) is not None
    hub.ahead += 601
    login.join(60)

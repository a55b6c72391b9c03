"""From nothing to a signed-in developer with a budget that refuses, as docs/hub.md tells it, with page and agent."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from harness.openid import CLIENT, SECRET, Provider
from harness.ports import free_port
from tests.editor import PATIENT, Editor, proxy
from tests.machine import COMMAND
from tests.serve.page.browser import WHOLE, chromium

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.xdist_group("chromium of the hub")]
PATIENCE = 60_000  # ms on a busy machine
ACCOUNT = {"sub": "7", "email": "bea@example.com", "email_verified": True, "groups": ["eng"]}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium(WHOLE) as browser:
        yield browser


def test_a_developer_who_has_signed_in_is_refused_by_a_budget_that_was_set_on_the_page(
    browser: Browser, tmp_path: Path
) -> None:
    with Provider(account=ACCOUNT).running() as provider:
        (tmp_path / "hub.toml").write_text(_settings(provider.issuer))
        environ = os.environ | {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), "OIDC_SECRET": SECRET}
        command = [*COMMAND, "hub", "--config", str(tmp_path / "hub.toml")]
        with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as hub:
            assert hub.stderr
            lines = iter(hub.stderr.readline, "")
            url = next(lines).split()[-1]
            token = next(line.strip() for line in lines if line.strip().startswith("acp_"))
            try:
                _administrator_sets_a_budget(_page(browser), url, token)
                developer = _developer_signs_in(_page(browser), url, tmp_path / "developer")
                with proxy(developer) as process:
                    editor = Editor(process)
                    assert editor.prompt("end 0.4")["result"] == {"stopReason": "end_turn"}
                    refused = editor.prompt("end 0.01")["result"]
                    assert refused["_meta"] == {"acp-proxy": {"budget": "each"}}
                    editor.leave()
                _developer_sees_it(_page(browser), url)
            finally:
                hub.terminate()
                hub.stderr.read()


def _page(browser: Browser) -> Page:
    """Of somebody else's browser."""
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    return context.new_page()


def _administrator_sets_a_budget(page: Page, url: str, token: str) -> None:
    page.goto(f"{url}/administration")
    page.get_by_label("token").fill(token)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_text("Set a budget", exact=True).click()
    page.locator("#budget [name=name]").fill("each")
    page.locator("#budget [name=amount]").fill("0.30")
    page.locator("#budget [name=per]").select_option("user")
    page.get_by_role("button", name="Set it").click()
    expect(page.locator("#budgets tbody")).to_contain_text("each user", timeout=PATIENCE)


def _developer_signs_in(page: Page, url: str, home: Path) -> dict[str, str]:
    """By the provider; the environment of their machine."""
    (home / ".config/acp-proxy").mkdir(parents=True)
    (home / ".config/acp-proxy/config.toml").write_text(f'{PATIENT}url = "{url}"\n')
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "USER": "mallory"}
    command = [*COMMAND, "login", url, "--no-browser", "--store", "file"]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as login:
        assert login.stdout
        page.goto(login.stdout.readline().split()[1])
        page.get_by_role("link", name="Sign in with Login").click()
        page.get_by_role("button", name="Let it in").click()
        assert "signed in as bea@example.com" in login.stdout.read()
    return environ


def _developer_sees_it(page: Page, url: str) -> None:
    page.goto(url)
    page.get_by_role("link", name="Sign in with Login").click()
    expect(page.locator("#signed-in")).to_have_text("bea@example.com", timeout=PATIENCE)
    expect(page.locator("#budget-list")).to_contain_text(" over", timeout=PATIENCE)
    expect(page.locator("#budget-list")).to_contain_text("of $0.3000")


def _settings(issuer: str) -> str:
    return f"""
[listen]
port = {free_port()}
[[provider]]
name = "Login"
issuer = "{issuer}"
client_id = "{CLIENT}"
client_secret = "${{OIDC_SECRET}}"
[provider.teams]
eng = "core"
"""

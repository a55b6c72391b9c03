"""From nothing to a signed-in developer who reads the hub's ledger, and to one who was put out: all by commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from harness.openid import CLIENT, SECRET, Provider
from harness.ports import free_port

COMMAND = [sys.executable, "-P", "-m", "acp_proxy"]


@contextmanager
def _hub(home: Path, config: Path) -> Iterator[tuple[str, str]]:
    """Its address, and the administrator's token that it shows once."""
    environ = os.environ | {"HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "OIDC_SECRET": SECRET}
    with subprocess.Popen(
        [*COMMAND, "hub", "--config", str(config)], env=environ, stderr=subprocess.PIPE, text=True
    ) as hub:
        assert hub.stderr is not None
        lines = iter(hub.stderr.readline, "")
        url = next(lines).split()[-1]
        token = next(line.strip() for line in lines if line.strip().startswith("acp_"))
        try:
            yield url, token
        finally:
            hub.terminate()
            hub.stderr.read()


def _run(environ: dict[str, str], *words: str) -> str:
    done = subprocess.run(
        [*COMMAND, *words], env=os.environ | environ, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_developer_signs_in_at_a_hub_and_is_put_out(tmp_path: Path) -> None:
    account = {"sub": "7", "email": "alice@example.com", "email_verified": True, "groups": ["eng"]}
    with Provider(account=account).running() as provider:
        config = tmp_path / "hub.toml"
        config.write_text(_settings(provider.issuer))
        home = {"HOME": str(tmp_path / "developer"), "XDG_STATE_HOME": str(tmp_path / "developer"), "USER": "mallory"}
        with _hub(tmp_path, config) as (url, _):
            _signs_in(url, home)
            assert _run(home, "whoami") == f"alice@example.com: developer, team core, acme, at {url}\n"
            assert _run(home, "--ledger", url, "report", "--json").startswith("{")
            assert _run(home, "logout") == f"signed out at {url}\n"
            done = subprocess.run(
                [*COMMAND, "--ledger", url, "report"],
                env=os.environ | home,
                capture_output=True,
                text=True,
                check=False,
            )
            assert (done.returncode, done.stderr.count("\n")) == (2, 1)
            assert f"nobody is signed in: run acp-proxy login {url}" in done.stderr
            hub = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), "OIDC_SECRET": SECRET}
            lines = _run(hub, "hub", "audit", "export", "--config", str(config)).splitlines()
            actions = [action for line in lines if (action := json.loads(line)["action"]) != "key.made"]
            assert actions[-3:] == ["device.allowed", "machine.signed_in", "machine.signed_out"]
            assert "none was changed" in _run(hub, "hub", "audit", "verify", "--config", str(config))


def _settings(issuer: str) -> str:
    return f"""
organisation = "acme"
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


def _signs_in(url: str, home: dict[str, str]) -> None:
    command = [*COMMAND, "login", url, "--no-browser", "--store", "file"]
    with subprocess.Popen(command, env=os.environ | home, stdout=subprocess.PIPE, text=True) as login:
        assert login.stdout is not None
        address = login.stdout.readline().split()[1]
        with httpx2.Client(base_url=url, follow_redirects=True, timeout=60) as browser:
            page = browser.get(address)
            start = page.text.partition('href="')[2].partition('"')[0].replace("&amp;", "&")
            page = browser.get(start)
            csrf = page.text.partition('name="csrf" value="')[2].partition('"')[0]
            code = page.text.partition('name="user_code" value="')[2].partition('"')[0]
            done = browser.post("/device", data={"user_code": code, "csrf": csrf, "decision": "allow"})
            assert "Your machine goes on by itself" in done.text
        assert "signed in as alice@example.com" in login.stdout.read()

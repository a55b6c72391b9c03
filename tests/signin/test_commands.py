"""`login`, `logout` and `whoami` as people type them, and what a keyring keeps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from acp_proxy.signin import access_token, token_store
from tests.hub.served import Served
from tests.signin.people import Person, token_of


def _run(environ: dict[str, str], *words: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "acp_proxy", *words]
    return subprocess.run(
        command, env=os.environ | environ, input=given, capture_output=True, text=True, check=False, timeout=60
    )


def test_a_token_on_stdin_signs_in_until_logout(hub: Served, environ: dict[str, str]) -> None:
    done = _run(environ, "login", hub.url, "--token-file", "-", given=token_of(hub))
    assert done.stdout == f"signed in as alice at {hub.url}; the token is kept in a file that only you can read\n"
    assert _run(environ, "whoami").stdout == f"alice: developer, team core, acme, at {hub.url}\n"
    assert json.loads(_run(environ, "whoami", "--json").stdout)[0]["user"] == "alice"
    assert _run(environ, "logout").stdout.startswith(f"signed out at {hub.url}")
    done = _run(environ, "whoami")
    assert done.returncode == 2
    assert done.stderr == "acp-proxy: nobody is signed in at any hub: run acp-proxy login URL\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("login",), "login: expected URL"),
        (("login", "http://hub.example.com"), "without TLS"),
        (("login", "https://127.0.0.1:1"), "connection refused"),
        (("logout", "https://hub.example.com"), "nobody is signed in"),
    ],
)
def test_what_cannot_be_done_is_one_line(words: tuple[str, ...], said: str, environ: dict[str, str]) -> None:
    done = _run(environ, *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_terminal_is_told_what_to_open_before_anybody_has(hub: Served, environ: dict[str, str]) -> None:
    command = [sys.executable, "-P", "-m", "acp_proxy", "login", hub.url, "--no-browser", "--store", "file"]
    with subprocess.Popen(command, env=os.environ | environ, stdout=subprocess.PIPE, text=True) as login:
        assert login.stdout is not None
        Person(hub, token_of(hub)).reads(login.stdout.readline())
        assert "and let this machine in, if it shows the code" in login.stdout.readline()
        assert login.stdout.readline().startswith("signed in as alice")
    assert login.returncode == 0


def test_a_keyring_keeps_what_makes_new_tokens(
    hub: Served, environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rings = tmp_path / "rings"
    environ |= {"PYTHON_KEYRING_BACKEND": "tests.signin.keyring_in_a_file.Keyring", "KEYRING_FILE": str(rings)}
    environ |= {"PYTHONPATH": str(Path(__file__).parent.parent.parent)}
    command = [sys.executable, "-P", "-m", "acp_proxy", "login", hub.url, "--no-browser"]
    with subprocess.Popen(command, env=os.environ | environ, stdout=subprocess.PIPE, text=True) as login:
        assert login.stdout is not None
        Person(hub, token_of(hub)).reads(login.stdout.readline())
        assert login.stdout.read().endswith("the token is kept in the keyring\n")
    (secret,) = json.loads(rings.read_text()).values()
    assert secret.startswith("acpr_")
    found = token_store.read(hub.url, environ)
    assert found is not None
    assert found.secret is None
    assert "acpr_" not in next(token_store.directory(environ).glob("*.json")).read_text()

    before = set(sys.modules)
    renewed = access_token(hub.url, rejected=found.access, environ=os.environ | environ)
    assert renewed != found.access
    assert [name for name in set(sys.modules) - before if name.startswith("keyring")] == []
    assert json.loads(rings.read_text()).values() != [secret]
    assert _run(environ, "logout").stdout == f"signed out at {hub.url}\n"
    assert json.loads(rings.read_text()) == {}
    assert hub.store(lambda store: store.families.all()) == []


def test_what_a_relay_asks_with_imports_neither_a_keyring_nor_a_client_of_others() -> None:
    code = "import sys, acp_proxy.signin.token_refresh; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert {"keyring", "httpx2", "authlib", "joserfc"} & set(done.stdout.split()) == set()

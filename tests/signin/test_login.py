"""Signing in a machine: the commands against a hub that serves on loopback, with a browser that is a person."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import httpx2
import pytest
from msgspec.structs import replace

from acp_proxy.hub.settings import Settings
from acp_proxy.signin import SignInError, UnreachableError, access_token, command, token_store
from acp_proxy.signin.asking import hub_url
from tests.hub.served import Served
from tests.signin.people import Person, token_of


def _login(hub: Served, environ: dict[str, str], user: str = "alice") -> str:
    asked = command.Asked(hub.url, store="file", browser=False)
    return command.login(asked, environ, Person(hub, token_of(hub, user)).reads)


def test_a_machine_is_signed_in_and_tells_who_it_is(hub: Served, environ: dict[str, str]) -> None:
    person = Person(hub, token_of(hub))
    said = command.login(command.Asked(hub.url, store="file", browser=False), environ, person.reads)
    assert said == f"signed in as alice at {hub.url}; the token is kept in a file that only you can read\n"
    assert "Let it in only if you began this yourself" in person.seen[0]
    (found,) = command.whoami(None, environ)
    assert command.in_words(found) == f"alice: developer, team core, acme, at {hub.url}"
    (found,) = command.whoami(hub.url, environ)
    assert (found["user"], found["role"], len(str(found["machine"]))) == ("alice", "developer", 16)


def test_what_is_kept_is_for_nobody_else(hub: Served, environ: dict[str, str]) -> None:
    umask = os.umask(0)
    try:
        _login(hub, environ)
    finally:
        os.umask(umask)
    for path in token_store.directory(environ).iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(token_store.directory(environ).stat().st_mode) == 0o700


def test_a_machine_that_was_not_let_in_is_told_so(hub: Served, environ: dict[str, str]) -> None:
    person = Person(hub, token_of(hub))
    with pytest.raises(SignInError, match="this machine was not let in"):
        command.login(command.Asked(hub.url, store="file", browser=False), environ, person.refuses)
    assert token_store.all_hubs(environ) == []


def test_a_token_is_used_until_its_time_is_nearly_over_and_renewed_then(hub: Served, environ: dict[str, str]) -> None:
    _login(hub, environ)
    first = access_token(hub.url, environ=environ)
    asked = len(hub.asked)
    assert access_token(hub.url, environ=environ) == first
    assert len(hub.asked) == asked
    _age(hub, environ)
    second = access_token(hub.url, environ=environ)
    assert second != first
    assert hub.asked[asked:] == ["/oauth/token"]
    assert access_token(hub.url, rejected=second, environ=environ) != second


def _age(hub: Served, environ: dict[str, str]) -> None:
    """As after an hour: what this machine keeps is over."""
    found = token_store.read(hub.url, environ)
    assert found is not None
    hub.ahead += 3600
    token_store.write(replace(found, ends_at=0.0), environ)


def test_proxies_that_renew_at_once_ask_once(hub: Served, environ: dict[str, str]) -> None:
    _login(hub, environ)
    _age(hub, environ)
    asked, found = len(hub.asked), list[str]()
    threads = [threading.Thread(target=lambda: found.append(access_token(hub.url, environ=environ))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 16
    assert len(set(found)) == 1
    assert hub.asked[asked:] == ["/oauth/token"]


def test_a_stolen_refresh_token_ends_the_sign_in_when_both_have_used_it(
    hub: Served, environ: dict[str, str], tmp_path: Path
) -> None:
    _login(hub, environ)
    found = token_store.read(hub.url, environ)
    assert found is not None
    thief = {"XDG_STATE_HOME": str(tmp_path / "thief")}
    token_store.write(found, thief)
    for who in (environ, thief):
        _age(hub, who)
        access_token(hub.url, environ=who)
    _age(hub, environ)
    with pytest.raises(SignInError, match=f"used before: its sign-in has ended: run acp-proxy login {hub.url}"):
        access_token(hub.url, environ=environ)
    _age(hub, thief)
    with pytest.raises(SignInError, match="has ended"):
        access_token(hub.url, environ=thief)
    with pytest.raises(SignInError, match="nobody is signed in: run acp-proxy login"):
        access_token(hub.url, environ=environ)


def test_a_hub_that_is_away_takes_no_sign_in_away(environ: dict[str, str], tmp_path: Path) -> None:
    served = Served(f"sqlite:///{tmp_path}/ledger.db", Settings(organisation="acme"))
    with served.running():
        _login(served, environ)
    good = access_token(served.url, environ=environ)
    found = token_store.read(served.url, environ)
    assert found is not None
    token_store.write(replace(found, ends_at=found.ends_at - 3570), environ)  # its time is nearly over
    assert access_token(served.url, environ=environ) == good
    with pytest.raises(UnreachableError, match="connection refused"):
        access_token(served.url, rejected=good, environ=environ)
    assert token_store.read(served.url, environ) is not None


def test_who_signs_out_is_out_at_the_hub_as_well(hub: Served, environ: dict[str, str]) -> None:
    _login(hub, environ)
    token = access_token(hub.url, environ=environ)
    assert command.logout(None, environ) == f"signed out at {hub.url}\n"
    with pytest.raises(SignInError, match="nobody is signed in"):
        access_token(hub.url, environ=environ)
    answer = httpx2.get(f"{hub.url}/oauth/whoami", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 401
    assert answer.json()["error_description"] == "this token has been revoked"
    assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]
    assert command.logout(None, environ) == "nobody is signed in at any hub\n"


def test_signing_in_again_ends_what_was_before(hub: Served, environ: dict[str, str]) -> None:
    _login(hub, environ)
    _login(hub, environ, "bob")
    assert [family.user for family in hub.store(lambda store: store.families.all())] == ["bob"]


def test_a_token_that_an_administrator_made_signs_in_without_a_browser(
    hub: Served, environ: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(token_of(hub) + "\n")
    assert "signed in as alice" in command.login(command.Asked(hub.url, str(file)), environ, lambda _: None)
    assert access_token(hub.url, environ=environ) == file.read_text().strip()
    with pytest.raises(SignInError, match="its token is refused"):
        access_token(hub.url, rejected=file.read_text().strip(), environ=environ)
    assert "the token still holds" in command.logout(hub.url, environ)
    file.write_text("acp_guessed")
    with pytest.raises(SignInError, match="this is no token of this hub"):
        command.login(command.Asked(hub.url, str(file)), environ, lambda _: None)


def test_a_program_has_its_token_from_the_environment(hub: Served, environ: dict[str, str]) -> None:
    token = token_of(hub, "ci", "service")
    by_variable = environ | {"ACP_PROXY_HUB_TOKEN": token}
    assert access_token(hub.url, environ=by_variable) == token
    (found,) = command.whoami(hub.url, by_variable)
    assert (found["user"], found["role"]) == ("ci", "service")
    with pytest.raises(SignInError, match="the token in ACP_PROXY_HUB_TOKEN is refused"):
        access_token(hub.url, rejected=token, environ=by_variable)


@pytest.mark.parametrize("text", ["{", "[]", '{"hub": 1}', "", '{"x": 1}'])
def test_a_file_that_is_damaged_is_none(text: str, hub: Served, environ: dict[str, str]) -> None:
    _login(hub, environ)
    path = next(token_store.directory(environ).glob("*.json"))
    path.write_text(text)
    with pytest.raises(SignInError, match="run acp-proxy login"):
        access_token(hub.url, environ=environ)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("hub.example.com", "https://hub.example.com"),
        ("HTTPS://Hub.Example.com:443/", "https://hub.example.com"),
        ("https://example.com/hub/", "https://example.com/hub"),
        ("http://127.0.0.1:8765", "http://127.0.0.1:8765"),
        ("http://[::1]:80", "http://[::1]"),
    ],
)
def test_a_hub_has_one_spelling(given: str, expected: str) -> None:
    assert hub_url(given) == expected


@pytest.mark.parametrize(
    "given",
    ["http://hub.example.com", "ftp://x", "https://", "https://u:p@x", "https://x?y", "https://x:99999", "https://["],
)
def test_what_is_no_address_of_a_hub_is_one_line(given: str) -> None:
    with pytest.raises(SignInError) as refused:
        hub_url(given)
    assert "\n" not in str(refused.value)


def test_what_is_no_hub_is_told_so(tmp_path: Path, environ: dict[str, str]) -> None:
    from harness.openid import Provider

    with Provider().running() as provider, pytest.raises(SignInError, match="answers 404"):
        command.login(command.Asked(provider.issuer, store="file", browser=False), environ, lambda _: None)

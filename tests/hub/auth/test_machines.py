"""What a machine is answered: as RFC 8414, 8628, 6749 and 7009 have it, and one line for all else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from acp_proxy.hub.settings import Settings
from acp_proxy.hub.store.tokens import Asked
from tests.hub.served import Served

_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Served]:
    with Served(f"sqlite:///{tmp_path}/ledger.db", Settings(organisation="acme")).running() as served:
        yield served


@pytest.fixture
def client(hub: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=hub.url) as client:
        yield client


def _post(client: httpx2.Client, path: str, **sent: str) -> httpx2.Response:
    return client.post(path, data={"client_id": "acp-proxy", **sent})


def _begun(client: httpx2.Client) -> dict[str, Any]:
    found: dict[str, Any] = _post(client, "/oauth/device_authorization").json()
    return found


def _let_in(hub: Served, client: httpx2.Client) -> dict[str, Any]:
    begun = _begun(client)
    _, token = hub.store(lambda store: store.tokens.make(Asked("a", "alice"), "admin", hub.now()))
    hub.store(lambda store: store.devices.decide(begun["user_code"], "alice", token.id, hub.now(), allow=True))
    answer = _post(client, "/oauth/token", grant_type=_GRANT, device_code=begun["device_code"])
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def test_a_hub_says_how_machines_sign_in(hub: Served, client: httpx2.Client) -> None:
    found = client.get("/.well-known/oauth-authorization-server").json()
    assert found["issuer"] == hub.url
    assert found["grant_types_supported"] == [_GRANT, "refresh_token"]
    assert {value for name, value in found.items() if name.endswith("_endpoint")} == {
        f"{hub.url}/oauth/{name}" for name in ("device_authorization", "token", "revoke", "whoami")
    }


def test_a_code_is_for_ten_minutes_and_asked_about_each_five_seconds(hub: Served, client: httpx2.Client) -> None:
    begun = _begun(client)
    assert (begun["expires_in"], begun["interval"]) == (600, 5)
    assert begun["verification_uri_complete"] == f"{hub.url}/device?user_code={begun['user_code']}"
    asked = [_post(client, "/oauth/token", grant_type=_GRANT, device_code=begun["device_code"]) for _ in range(2)]
    assert [answer.json()["error"] for answer in asked] == ["authorization_pending", "slow_down"]
    hub.ahead += 600
    asked = [_post(client, "/oauth/token", grant_type=_GRANT, device_code=begun["device_code"])]
    assert [answer.json()["error"] for answer in asked] == ["expired_token"]


def test_an_address_may_begin_thirty_sign_ins_in_ten_minutes(hub: Served, client: httpx2.Client) -> None:
    answers = [_post(client, "/oauth/device_authorization") for _ in range(31)]
    assert [answer.status_code for answer in answers] == [200] * 30 + [429]
    assert 0 < int(answers[-1].headers["Retry-After"]) <= 600
    hub.ahead += 600
    assert _post(client, "/oauth/device_authorization").status_code == 200


def test_an_address_may_try_ten_codes_in_ten_minutes(hub: Served, client: httpx2.Client) -> None:
    secret, _ = hub.store(lambda store: store.tokens.begin_session("alice", _token(hub), hub.now(), hub.now() + 99))
    tried = [
        client.get("/device", params={"user_code": "BBBB-BBBB"}, headers={"Cookie": f"acp-proxy={secret}"}).status_code
        for _ in range(11)
    ]
    assert tried == [404] * 10 + [429]


def _token(hub: Served) -> str:
    return hub.store(lambda store: store.tokens.make(Asked("a", "alice"), "admin", hub.now()))[1].id


def test_what_was_granted_is_refreshed_and_is_no_more_when_revoked(hub: Served, client: httpx2.Client) -> None:
    first = _let_in(hub, client)
    assert (first["token_type"], first["expires_in"], first["user"]) == ("Bearer", 3600, "alice")
    second = _post(client, "/oauth/token", grant_type="refresh_token", refresh_token=first["refresh_token"]).json()
    headers = {"Authorization": f"Bearer {second['access_token']}"}
    assert client.get("/oauth/whoami", headers=headers).json()["user"] == "alice"
    assert _post(client, "/oauth/revoke", token=second["access_token"]).json() == {}
    assert client.get("/oauth/whoami", headers=headers).status_code == 401
    refused = _post(client, "/oauth/token", grant_type="refresh_token", refresh_token=second["refresh_token"])
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")


def test_a_token_that_somebody_made_can_be_revoked_by_who_has_it(hub: Served, client: httpx2.Client) -> None:
    secret, _ = hub.store(lambda store: store.tokens.make(Asked("a", "alice"), "admin", hub.now()))
    assert _post(client, "/oauth/revoke", token=secret).status_code == 200
    answer = client.get("/oauth/whoami", headers={"Authorization": f"Bearer {secret}"})
    assert answer.json()["error_description"] == "this token has been revoked"
    assert _post(client, "/oauth/revoke", token=secret).status_code == 200
    assert _post(client, "/oauth/revoke", token="guessed").status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        (b"client_id=acp-proxy", 400, "unsupported_grant_type"),
        (b"client_id=acp-proxy&grant_type=password&username=a", 400, "unsupported_grant_type"),
        (b"client_id=acp-proxy&grant_type=refresh_token", 400, "invalid_grant"),
        (b"client_id=acp-proxy&grant_type=refresh_token&refresh_token=%00%ff", 400, "invalid_request"),
        (b"client_id=acp-proxy&grant_type=refresh_token&refresh_token=a&refresh_token=b", 400, "invalid_request"),
        (b"client_id=other&grant_type=refresh_token", 401, "invalid_client"),
        (b"", 401, "invalid_client"),
        (b"\xff\xfe", 400, "invalid_request"),
        (b"{}", 401, "invalid_client"),
        (b"a=" + b"x" * 20_000, 400, "invalid_request"),
        (b"&".join(b"a%d=" % number for number in range(100)), 400, "invalid_request"),
    ],
)
def test_what_is_asked_wrong_is_answered_by_name(body: bytes, status: int, error: str, client: httpx2.Client) -> None:
    answer = client.post("/oauth/token", content=body, headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("name", ['"><script>alert(1)</script>', "\x1b[31m", "a" * 5000, "\u202e"])
def test_a_machines_name_is_shown_as_text(name: str, hub: Served, client: httpx2.Client) -> None:
    begun = _post(client, "/oauth/device_authorization", machine_name=name).json()
    secret, _ = hub.store(lambda store: store.tokens.begin_session("alice", _token(hub), hub.now(), hub.now() + 99))
    page = client.get("/device", params={"user_code": begun["user_code"]}, headers={"Cookie": f"acp-proxy={secret}"})
    assert page.status_code == 200
    assert name not in page.text
    assert "script-src" not in page.headers["Content-Security-Policy"]
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_no_answer_of_a_database_is_a_status_and_a_line(hub: Served, client: httpx2.Client, tmp_path: Path) -> None:
    _begun(client)
    (tmp_path / "ledger.db").unlink()
    (tmp_path / "ledger.db").mkdir()
    answer = _post(client, "/oauth/device_authorization")
    assert (answer.status_code, answer.json()["error"]) == (503, "temporarily_unavailable")
    assert client.get("/device").status_code == 503
    assert client.get("/oauth/whoami", headers={"Authorization": "Bearer acp_x"}).status_code == 503

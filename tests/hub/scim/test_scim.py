"""An identity provider provisions by SCIM 2.0, and what follows of it: who may sign in, with which team and role."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any, cast

import httpx2
import pytest
from msgspec.structs import replace

from acp_proxy.hub.auth.claims import person
from acp_proxy.hub.identity import Identity, Role
from acp_proxy.hub.page.seen import SeenLedger
from acp_proxy.hub.policy import CurrentPolicies
from acp_proxy.hub.settings import Provider, Settings
from acp_proxy.hub.store.families import Granted, Refused
from acp_proxy.hub.store.people import Person
from acp_proxy.hub.store.tokens import Asked
from acp_proxy.ledger import Query, open_ledger
from acp_proxy.ledger.sql_ledger import SqlLedger
from harness.rows import ALICE, row
from tests.hub.served import Served

RULES = Provider("Login", "https://login.example.com", "acp", teams={"eng": "core"}, administrators=("admins",))
USER = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"


@pytest.fixture
def hub(url: str) -> Iterator[Served]:
    with Served(url, Settings(organisation="acme", provider=(RULES,))).running() as served:
        yield served


def _token(hub: Served, role: Role = "service", *scopes: str) -> str:
    return hub.store(lambda store: store.tokens.make(Asked("idp", "idp", role, scopes=scopes), "admin", hub.now()))[0]


@pytest.fixture
def provider(hub: Served) -> Iterator[httpx2.Client]:
    """That may provision."""
    headers = {"Authorization": f"Bearer {_token(hub, 'service', 'scim')}", "Content-Type": "application/scim+json"}
    with httpx2.Client(base_url=f"{hub.url}/scim/v2", headers=headers, timeout=60) as client:
        yield client


def _user(provider: httpx2.Client, name: str = "Alice@example.com", **more: Any) -> dict[str, Any]:
    answer = provider.post("/Users", json={"schemas": [USER], "userName": name, "active": True, **more})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _group(provider: httpx2.Client, name: str, *members: str) -> dict[str, Any]:
    told = {"schemas": [GROUP], "displayName": name, "members": [{"value": member} for member in members]}
    answer = provider.post("/Groups", json=told)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _patch(provider: httpx2.Client, path: str, operation: dict[str, Any]) -> None:
    answer = provider.patch(path, json={"schemas": [PATCH], "Operations": [operation]})
    assert answer.status_code in (200, 204), answer.text


def _person(hub: Served, user: str = "alice@example.com") -> Person:
    found = hub.store(lambda store: store.people.find(user))
    assert found is not None
    return found


def _signed_in(hub: Served, user: str = "alice@example.com") -> Granted:
    def let_in(store: Any) -> Any:
        device, code = store.devices.begin((None, None), "192.0.2.1", hub.now())
        store.devices.decide(code, user, None, hub.now(), allow=True)
        return store.devices.ask(device, hub.now())

    found = hub.store(let_in)
    assert isinstance(found, Granted)
    return found


def test_who_leaves_refreshes_no_more_from_that_moment(hub: Served, provider: httpx2.Client) -> None:
    user = _user(provider)
    granted = _signed_in(hub)
    _patch(provider, f"/Users/{user['id']}", {"op": "replace", "path": "active", "value": False})
    refused = hub.store(lambda store: store.families.refresh(granted.refresh, hub.now()))
    assert refused == Refused("this sign-in has ended")
    assert not _person(hub).active
    _patch(provider, f"/Users/{user['id']}", {"op": "replace", "path": "active", "value": True})
    assert _person(hub).active
    assert isinstance(hub.store(lambda store: store.families.refresh(granted.refresh, hub.now())), Refused)


def test_who_is_deleted_or_renamed_may_not_sign_in_by_the_old_name(hub: Served, provider: httpx2.Client) -> None:
    user = _user(provider)
    _patch(provider, f"/Users/{user['id']}", {"op": "replace", "path": "userName", "value": "ann@example.com"})
    assert (_person(hub).active, _person(hub, "ann@example.com").active) == (False, True)
    assert provider.delete(f"/Users/{user['id']}").status_code == 204
    assert not _person(hub, "ann@example.com").active
    assert provider.get(f"/Users/{user['id']}").status_code == 404


def test_who_is_renamed_begins_anew_and_what_they_used_stays_with_the_old_name(
    hub: Served, provider: httpx2.Client, url: str
) -> None:
    """Nobody is shown as theirs what another name has, and reports show both."""
    user = _user(provider)
    before = replace(ALICE, organisation="acme", user="alice@example.com", team=None)
    with closing(open_ledger(url, journals=())) as ledger:
        ledger.append([row(origin=before, id="before")])
        _patch(provider, f"/Users/{user['id']}", {"op": "replace", "path": "userName", "value": "ann@example.com"})
        ledger.append([row(origin=replace(before, user="ann@example.com"), id="after")])

        def seen(role: Role, who: str) -> set[Any]:
            view = SeenLedger(cast(SqlLedger, ledger), Identity(who, "acme", None, role), CurrentPolicies())
            return {sums.key[0] for sums in view.summed(Query(), ["user"])}

        assert seen("finance", "olga") == {"alice@example.com", "ann@example.com"}
        assert seen("developer", "ann@example.com") == {"ann@example.com"}


def test_groups_give_team_and_role_when_members_come_and_go(hub: Served, provider: httpx2.Client) -> None:
    user = _user(provider)
    group = _group(provider, "eng", user["id"])
    assert _person(hub).team == "core"
    admins = _group(provider, "admins")
    added = {"op": "add", "path": "members", "value": [{"value": user["id"]}]}
    _patch(provider, f"/Groups/{admins['id']}", added)
    assert _person(hub).role == "administrator"
    gone = {"op": "remove", "path": f'members[value eq "{user["id"]}"]'}
    _patch(provider, f"/Groups/{admins['id']}", gone)
    assert _person(hub).role == "developer"
    assert provider.delete(f"/Groups/{group['id']}").status_code == 204
    assert _person(hub).team is None


def test_a_user_is_looked_for_before_one_is_made_and_there_is_one(hub: Served, provider: httpx2.Client) -> None:
    wanted = {"filter": 'userName eq "alice@example.com"'}
    assert provider.get("/Users", params=wanted).json()["totalResults"] == 0
    user = _user(provider)
    found = provider.get("/Users", params=wanted).json()
    assert [each["id"] for each in found["Resources"]] == [user["id"]]
    again = provider.post("/Users", json={"schemas": [USER], "userName": "ALICE@example.com"})
    assert (again.status_code, again.json()["scimType"]) == (409, "uniqueness")
    _user(provider, "bob@example.com")
    assert provider.get("/Users", params={"count": 1}).json()["totalResults"] == 2


def test_a_change_is_in_the_log_with_it(hub: Served, provider: httpx2.Client) -> None:
    user = _user(provider)
    _group(provider, "eng", user["id"])
    lines = [line for line in hub.store(lambda store: list(store.audit.lines())) if line["actor"] == "scim"]
    assert [line["action"] for line in lines] == ["person.added", "person.changed"]
    assert hub.store(lambda store: store.audit.verify()).fault is None


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("role", "scopes", "status"),
    [
        ("administrator", (), 200),
        ("service", ("scim",), 200),
        ("service", ("meter",), 403),
        ("administrator", ("read",), 403),
        ("service", (), 403),
        ("developer", (), 403),
        ("lead", (), 403),
        ("finance", (), 403),
    ],
)
def test_only_who_may_provision_does(role: Role, scopes: tuple[str, ...], status: int, hub: Served) -> None:
    headers = {"Authorization": f"Bearer {_token(hub, role, *scopes)}"}
    assert httpx2.get(f"{hub.url}/scim/v2/Users", headers=headers, timeout=60).status_code == status
    assert httpx2.get(f"{hub.url}/scim/v2/Users").status_code == 401


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/Users", b"{", 400),
        ("POST", "/Users", b"[]", 400),
        ("POST", "/Users", b"{}", 400),
        ("GET", "/Users?filter=userName eq", None, 400),
        ("GET", "/Users/none", None, 404),
        ("GET", "/Nothing", None, 404),
        ("DELETE", "/ServiceProviderConfig", None, 405),
        ("POST", "/Bulk", b"{}", 501),
        ("POST", "/Users", b"x" * (1 << 20 | 1), 413),
    ],
)
def test_what_is_asked_wrong_is_answered_as_scim_has_it(
    method: str, path: str, body: bytes | None, status: int, provider: httpx2.Client
) -> None:
    answer = provider.request(method, path, content=body)
    assert answer.status_code == status, answer.text
    assert answer.json()["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]


def test_the_checker_of_scim_finds_nothing(hub: Served) -> None:
    """scim2-tester, as another party reads the standard."""
    from scim2_client.engines.httpx2 import SyncSCIMClient
    from scim2_tester import Status, check_server

    headers = {"Authorization": f"Bearer {_token(hub, 'service', 'scim')}"}
    with httpx2.Client(base_url=f"{hub.url}/scim/v2", headers=headers, timeout=60) as client:
        results = check_server(SyncSCIMClient(client))
    wrong = [(each.title, each.reason) for each in results if each.status in (Status.ERROR, Status.CRITICAL)]
    assert len(results) > 50
    assert wrong == []


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_groups_of_the_directory_count_beside_those_of_a_sign_in(hub: Served, provider: httpx2.Client) -> None:
    user = _user(provider)
    _group(provider, "admins", user["id"])
    told = hub.store(lambda store: store.people.groups_of("alice@example.com"))
    assert told == ["admins"]
    claims = {"sub": "7", "email": "alice@example.com", "groups": ["eng"]}
    found = person(claims, RULES, told)
    assert (found.role, found.team) == ("administrator", "core")

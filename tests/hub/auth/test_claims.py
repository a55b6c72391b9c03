"""What a provider's claims make of somebody."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.hub.auth.claims import RefusedError, groups_of, person
from acp_proxy.hub.settings import Provider
from acp_proxy.hub.store.people import Person

ALICE = {"sub": "7", "email": "Alice@Example.com", "name": "Alice", "groups": ["eng", "web-leads"]}
PROVIDER = Provider(
    "Login", "https://login.example.com", "acp-proxy", teams={"eng": "core"}, leads={"web-leads": "web"}
)


def test_groups_give_team_role_and_the_teams_that_are_led() -> None:
    found = person(ALICE, PROVIDER)
    assert found == Person(
        "alice@example.com",
        "lead",
        "core",
        ("web",),
        "https://login.example.com 7",
        "Alice",
        "Alice@Example.com",
    )


@pytest.mark.parametrize(
    ("groups", "role"),
    [
        ([], "developer"),
        (["web-leads"], "lead"),
        (["money", "web-leads"], "finance"),
        (["root", "money"], "administrator"),
    ],
)
def test_of_several_roles_the_one_that_may_most_counts(groups: list[str], role: str) -> None:
    provider = Provider("Login", "i", "c", leads={"web-leads": "web"}, finance=("money",), administrators=("root",))
    assert person(ALICE | {"groups": groups}, provider).role == role


@pytest.mark.parametrize(
    ("claims", "where", "groups"),
    [
        ({"groups": ["a", "b"]}, "groups", ("a", "b")),
        ({"groups": "a"}, "groups", ("a",)),
        ({"realm_access": {"roles": ["a", 1, None]}}, "/realm_access/roles", ("a",)),
        ({"https://example.com/groups": ["a"]}, "/https:~1~1example.com~1groups", ("a",)),
        ({"https://example.com/groups": ["a"]}, "https://example.com/groups", ("a",)),
        ({"a": [{"b": "c"}]}, "/a/0/b", ("c",)),
        ({"a": [{"b": "c"}]}, "/a/1/b", ()),
        ({"groups": {"a": 1}}, "groups", ()),
        ({}, "/x/y", ()),
    ],
)
def test_groups_are_found_by_name_or_pointer(claims: dict[str, Any], where: str, groups: tuple[str, ...]) -> None:
    assert groups_of(claims, where) == groups


@pytest.mark.parametrize(
    ("changes", "settings", "reason"),
    [
        ({"email_verified": False}, {}, "Login has not verified your e-mail address"),
        ({"email_verified": "false"}, {}, "Login has not verified your e-mail address"),
        ({"email": None}, {}, "Login names nobody: its answer has no email"),
        ({"email": ""}, {}, "names nobody"),
        ({"email": ["a@b"]}, {}, "names nobody"),
        ({"email": "a\n@b"}, {}, "names nobody"),
        ({"sub": None}, {}, "names nobody"),
        ({}, {"domains": ("other.com",)}, "e-mail addresses of example.com may not sign in here"),
        ({"email": "a@example.com@evil.com"}, {"domains": ("example.com",)}, "addresses of evil.com may not"),
        ({}, {"allowed_groups": ("finance",)}, "in none of the groups"),
    ],
)
def test_who_may_not_sign_in_is_told_why(changes: dict[str, Any], settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(RefusedError, match=reason):
        person(ALICE | changes, Provider("Login", "i", "c", **settings))


@given(
    st.dictionaries(
        st.sampled_from(["sub", "email", "email_verified", "groups", "name"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(),
            lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=3), each, max_size=3),
        ),
    )
)
def test_no_claims_do_more_than_refuse(claims: dict[str, Any]) -> None:
    try:
        found = person(claims, PROVIDER)
    except RefusedError:
        return
    assert found.user
    assert found.user.isprintable()

"""Requests for more on the page: each sees their own, and those that they decide on with the way to do so."""

from __future__ import annotations

import pytest

from acp_proxy.hub.identity import Role
from tests.hub.page.house import Hub, ask_for_more, cookie_of


@pytest.mark.parametrize(
    ("role", "seen", "decides"),
    [
        ("developer", {"mallory"}, set()),
        ("lead", {"mallory", "ruby"}, {"ruby"}),
        ("finance", {"mallory", "ruby", "bob"}, set()),
        ("administrator", {"mallory", "ruby", "bob"}, {"mallory", "ruby", "bob"}),
    ],
)
def test_each_sees_their_own_requests_and_those_that_they_decide_on(
    own_hub: Hub, role: Role, seen: set[str], decides: set[str]
) -> None:
    ask_for_more(own_hub)
    found = own_hub.ask("/api/requests", cookie_of(own_hub, role)).json["requests"]
    assert {each["user"] for each in found} == seen
    assert {each["user"] for each in found if each["decides"]} == decides
    assert {(each["amount"], each["why"]) for each in found} == {("2", f"reasons of {user}") for user in seen}

"""Budgets on the page: in full what counts nobody else, and of a shared one its limit, what is left and one's own."""

from __future__ import annotations

from typing import Any

import orjson

from acp_proxy.hub.identity import Role
from tests.hub.page.house import Hub, cookie_of


def limit(dollars: str) -> dict[str, str]:
    return {"amount": dollars, "currency": "USD"}


BUDGETS: list[dict[str, Any]] = [
    {"name": "each", "per": "user", "window": "total", "limit": limit("5")},
    {"name": "red pool", "window": "total", "limit": limit("10"), "scope": {"team": "red"}},
    {"name": "by team", "per": "team", "window": "total", "limit": limit("20")},
    {"name": "all", "window": "total", "limit": limit("100")},
    {"name": "blue pool", "window": "total", "limit": limit("30"), "scope": {"team": "blue"}},
]


def shown_to(hub: Hub, role: Role) -> dict[tuple[str, str], Any]:
    answer = hub.ask("/api/budgets", cookie_of(hub, role))
    assert answer.status == 200, answer.body
    found = orjson.loads(answer.body)["budgets"]
    return {(each["name"], "".join(each["scope"].get("user", each["scope"].get("team", [""])))): each for each in found}


def set_budgets(hub: Hub) -> None:
    cookie = hub.cookie("ada", "administrator")
    revision = {"version": 0, "budgets": {each["name"]: each for each in BUDGETS}}
    answer = hub.change("/api/administration/policy", cookie, revision)
    assert answer.status == 200, answer.body


def test_a_developer_sees_what_is_theirs_and_what_is_left_of_what_is_shared(own_hub: Hub) -> None:
    set_budgets(own_hub)
    found = shown_to(own_hub, "developer")
    assert {name for name, _ in found} == {"each", "red pool", "by team", "all"}
    each = found["each", "mallory"]
    assert (each["spent"], each["limit"], each["left"]) == ("1.17", "5", "3.83")
    for name, allowed, left in (("red pool", "10", "6.56"), ("by team", "20", "16.56"), ("all", "100", "93.19")):
        (of_several,) = [value for (known, _), value in found.items() if known == name]
        assert (of_several["spent"], of_several["left"], of_several["shared"]) == ("1.17", left, True)
        assert (of_several["limit"], of_several["granted"], "held" in of_several) == (allowed, "0", False)
    assert not any(user in str(found) for user in ("ruby", "bob"))


def test_a_lead_sees_the_budgets_of_their_team_in_full_but_of_no_member(own_hub: Hub) -> None:
    set_budgets(own_hub)
    found = shown_to(own_hub, "lead")
    assert (found["by team", "red"]["spent"], found["by team", "red"]["limit"]) == ("3.44", "20")
    assert found["each", "mallory"]["spent"] == "1.17"
    assert (found["red pool", "red"]["spent"], found["red pool", "red"]["left"]) == ("3.44", "6.56")
    assert found["all", ""]["shared"]
    assert "ruby" not in str(found)
    assert ("by team", "blue") not in found


def test_finance_sees_all_of_them_in_full(own_hub: Hub) -> None:
    set_budgets(own_hub)
    found = shown_to(own_hub, "finance")
    assert found["all", ""]["spent"] == "6.81"
    assert {user for name, user in found if name == "each"} == {"mallory", "ruby", "bob"}
    assert not any("shared" in each for each in found.values())

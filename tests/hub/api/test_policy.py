"""The policy by the API: who may change it, that nobody overwrites another's change, and what each is shown of it."""

from __future__ import annotations

from contextlib import closing
from http.client import HTTPConnection
from typing import Any

import orjson
import pytest

from acp_proxy.hub.identity import Identity
from acp_proxy.hub.policy import is_led
from acp_proxy.hub.store import Store
from acp_proxy.ledger import open_ledger

DAILY = {"name": "daily", "per": "user", "window": "day", "limit": {"amount": "5", "currency": "USD"}}
BLUE = {"name": "blue", "window": "month", "limit": {"tokens": 9_000}, "scope": {"team": ["blue", "green"]}}


class Answer:
    def __init__(self, status: int, tag: str | None, body: bytes) -> None:
        self.status, self.tag = status, tag
        self.value: Any = orjson.loads(body) if body else None


class Asked:
    """The policy of a hub, asked about as somebody."""

    def __init__(self, address: str) -> None:
        self._host = address.removeprefix("http://")

    def __call__(self, who: str, method: str = "GET", value: Any = None, path: str = "", **headers: str) -> Answer:
        sent = {"Authorization": f"Bearer {who}", "Content-Type": "application/json"}
        sent |= {name.replace("_", "-"): text for name, text in headers.items()}
        with closing(HTTPConnection(self._host, timeout=20)) as connection:
            body = None if value is None else orjson.dumps(value)
            connection.request(method, f"/v1/policy{path}", body, sent)
            response = connection.getresponse()
            return Answer(response.status, response.headers["ETag"], response.read())


@pytest.fixture
def asked(address: str) -> Asked:
    return Asked(address)


def _names(answer: Answer) -> list[str]:
    return [each["name"] for each in answer.value["document"]["budgets"]]


def test_there_is_none_until_an_administrator_sets_one(asked: Asked) -> None:
    assert asked("developer").value == {
        "version": 0,
        "document": {"budgets": [], "prices": {}},
        "at": None,
        "who": None,
        "whose": {
            "organisation": "default",
            "user": "mallory",
            "team": "red",
            "role": "developer",
            "teams_led": [],
        },
    }
    assert asked("administrator", "PUT", {"budgets": [DAILY]}).status == 200
    assert _names(asked("developer")) == ["daily"]


def test_who_has_it_already_is_told_so_until_it_is_changed(asked: Asked) -> None:
    tag = asked("developer").tag
    assert tag
    unchanged = asked("developer", If_None_Match=tag)
    assert (unchanged.status, unchanged.value, unchanged.tag) == (304, None, tag)
    asked("administrator", "PATCH", {"budgets": {"daily": DAILY}})
    assert asked("developer", If_None_Match=tag).status == 200


def test_of_two_who_change_the_same_version_the_second_is_told(asked: Asked) -> None:
    tag = asked("administrator").tag
    assert tag
    assert asked("administrator", "PUT", {"budgets": [DAILY]}, If_Match=tag).status == 200
    refused = asked("administrator", "PUT", {"budgets": [BLUE]}, If_Match=tag)
    assert refused.status == 412
    assert refused.value["detail"] == "the policy was changed meanwhile: read it again"
    assert _names(asked("administrator")) == ["daily"]


def test_single_budgets_are_set_changed_and_removed(asked: Asked) -> None:
    asked("administrator", "PATCH", {"budgets": {"daily": DAILY, "blue": BLUE}})
    asked("administrator", "PATCH", {"budgets": {"daily": {"mode": "warn"}}})
    found = asked("administrator").value["document"]["budgets"]
    assert found == [{**DAILY, "mode": "warn"}, BLUE]
    asked("administrator", "PATCH", {"budgets": {"blue": None}})
    assert _names(asked("administrator")) == ["daily"]
    missing = asked("administrator", "PATCH", {"budgets": {"blue": None}})
    assert (missing.status, missing.value["detail"]) == (400, "policy: there is no budget 'blue'")


@pytest.mark.parametrize(
    ("table", "detail"),
    [
        ({**DAILY, "limt": 1}, "policy: budget.limt: unknown key; did you mean budget.limit?"),
        (
            {**DAILY, "window": "fortnight"},
            "policy: budget.window: expected turn, session, day, week, month, quarter, ",
        ),
        ({"name": "daily"}, "policy: budget.window: expected a window, such as day or month"),
    ],
)
def test_what_is_no_budget_changes_nothing_and_says_what_is_wrong(asked: Asked, table: Any, detail: str) -> None:
    refused = asked("administrator", "PUT", {"budgets": [table]})
    assert refused.status == 400
    assert refused.value["detail"].startswith(detail)
    assert asked("administrator").value["version"] == 0


def test_a_developer_is_shown_the_budgets_that_count_what_they_do(asked: Asked) -> None:
    asked("administrator", "PUT", {"budgets": [DAILY, BLUE]})
    assert _names(asked("bob")) == ["daily", "blue"]
    assert _names(asked("developer")) == ["daily"]
    assert asked("developer").value["who"] is None
    assert _names(asked("finance")) == ["daily", "blue"]
    assert asked("bob").tag != asked("developer").tag


def test_each_version_stays_with_who_made_it_and_a_line_in_the_log_for_each_change(asked: Asked, ledger: str) -> None:
    asked("administrator", "PUT", {"budgets": [DAILY], "prices": {"opus": {"input": "5", "output": "25"}}})
    asked("administrator", "PATCH", {"budgets": {"daily": {"mode": "shadow"}}})
    asked("administrator", "PATCH", {"budgets": {"daily": {"mode": "shadow"}}})  # as it is
    asked("administrator", "PUT", {"budgets": []})
    history = asked("finance", path="/history").value
    assert [(each["version"], each["who"]) for each in history] == [(3, "mallory"), (2, "mallory"), (1, "mallory")]
    assert asked("developer", path="/history").status == 403
    with closing(open_ledger(ledger, journals=())) as opened:
        lines = list(Store(opened.tables, "default").audit.lines())
    shadow = {**DAILY, "mode": "shadow"}
    changes = [
        (line["action"], line["subject"], *(each and orjson.loads(each) for each in (line["before"], line["after"])))
        for line in lines
    ]
    price = {"input": "5", "output": "25"}
    assert changes == [
        ("budget.set", "daily", None, DAILY),
        ("price.set", "opus", None, price),
        ("budget.set", "daily", DAILY, shadow),
        ("budget.removed", "daily", shadow, None),
        ("price.removed", "opus", price, None),
    ]


def test_another_organisation_has_a_policy_of_its_own(asked: Asked) -> None:
    asked("administrator", "PUT", {"budgets": [DAILY]})
    assert asked("elsewhere").value["version"] == 0


def _of_team(name: str, team: Any, amount: str = "5") -> Any:
    return {name: {"window": "day", "limit": {"amount": amount, "currency": "USD"}, "scope": {"team": team}}}


def test_a_lead_sets_budgets_that_are_named_after_their_team_and_no_others(asked: Asked) -> None:
    asked("administrator", "PATCH", {"budgets": _of_team("pool", "red") | _of_team("red/blue", "blue")})
    assert asked("lead", "PATCH", {"budgets": _of_team("red/daily", "red")}).status == 200
    assert _names(asked("lead", "PATCH", {"budgets": {"red/daily": {"mode": "warn"}}})) == ["pool", "red/daily"]
    for budgets in (
        _of_team("daily", "red"),
        _of_team("blue/daily", "blue"),
        _of_team("red/all", "*"),
        _of_team("red/both", ["red", "blue"]),
        {"red/all": {"window": "day", "limit": {"turns": 1}}},
        {"red/daily": {"scope": None}},
        {"pool": {"limit": {"amount": "50", "currency": "USD"}}},
        {"pool": None},
        {"red/blue": None},
    ):
        refused = asked("lead", "PATCH", {"budgets": budgets})
        assert (refused.status, "is an administrator's to set" in refused.value["detail"]) == (403, True)
    assert asked("lead", "PATCH", {"prices": {"opus": {"input": "5"}}}).status == 403
    assert asked("lead", "PUT", {"budgets": []}).status == 403
    assert asked("administrator").value["version"] == 3
    assert asked("lead", "PATCH", {"budgets": {"red/daily": None}}).status == 200


def test_leads_leave_room_in_the_policy_for_others(asked: Asked) -> None:
    budgets: dict[str, Any] = {}
    for number in range(20):
        budgets |= _of_team(f"red/{number}", "red")
    assert asked("lead", "PATCH", {"budgets": budgets}).status == 200
    refused = asked("lead", "PATCH", {"budgets": _of_team("red/20", "red")})
    assert (refused.status, refused.value["detail"]) == (403, "a lead sets at most 20 budgets of team red")


def test_a_team_whose_name_is_a_pattern_has_no_lead_who_sets_budgets() -> None:
    lead = Identity("mallory", "default", "r*", "lead", ("r*",))
    assert not is_led(lead, {"name": "r*/daily", "scope": {"team": "r*"}})


def test_the_history_of_a_lead_has_what_is_about_their_team(asked: Asked) -> None:
    asked("administrator", "PATCH", {"budgets": {"daily": DAILY}})
    asked("administrator", "PATCH", {"budgets": {"blue": BLUE}})
    asked("lead", "PATCH", {"budgets": _of_team("red/daily", "red")})
    history = asked("lead", path="/history").value
    assert [each["version"] for each in history] == [3, 1]
    assert "blue" not in str(history)

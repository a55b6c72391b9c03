"""Spend limits and requests for more, asked for as scripts for Anthropic's Admin API ask."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx2
import orjson
import pytest
from msgspec.structs import replace

from acp_proxy.core.budget.requests import Wish
from acp_proxy.core.windows import HOUR
from acp_proxy.hub.store import Store
from acp_proxy.hub.store.people import Person
from acp_proxy.hub.store.tokens import Asked
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.hub import asking, wire
from acp_proxy.ledger.hub.wire import Admitted
from acp_proxy.system.decoding import json_decoder
from harness.rows import NOON
from tests.hub.api.asking import about
from tests.hub.api.conftest import BOB, PEOPLE, Ask

LIMITS = "/v1/organizations/spend_limits"
REQUESTS = "/v1/organizations/spend_limit_increase_requests"
ALL = {"type": "organization"}
CENTS = 'amount: expected whole cents as text, such as "50000" for 500 US dollars'
SECONDS = NOON // 10**9


def user(name: str) -> dict[str, str]:
    return {"type": "user", "user_id": name}


def group(name: str) -> dict[str, str]:
    return {"type": "rbac_group", "rbac_group_id": name}


class Client:
    """Asks as an administrator, by key, unless told who else."""

    def __init__(self, address: str) -> None:
        self._http = httpx2.Client(base_url=address, timeout=20)

    def __call__(
        self, method: str, path: str, value: Any = None, who: str = "administrator", **query: Any
    ) -> httpx2.Response:
        named = {name.replace("__", "[]"): each for name, each in query.items()}
        return self._http.request(method, path, json=value, params=named, headers={"x-api-key": who})

    def get(self, path: str, **query: Any) -> Any:
        response = self("GET", path, **query)
        assert response.status_code == 200, response.text
        return response.json()

    def set(self, scope: dict[str, str], amount: str, **fields: Any) -> Any:
        response = self("POST", LIMITS, {"scope": scope, "amount": amount, **fields})
        assert response.status_code == 200, response.text
        return response.json()

    def close(self) -> None:
        self._http.close()


@pytest.fixture
def ledger(url: str) -> str:
    """Of each kind of database."""
    return url


@pytest.fixture
def client(address: str) -> Iterator[Client]:
    with closing(Client(address)) as opened:
        yield opened


def refused(response: httpx2.Response, status: int, kind: str = "invalid_request_error") -> str:
    """What an error says, in their shape."""
    found = response.json()
    assert response.status_code == status, found
    assert found == {
        "type": "error",
        "error": {"type": kind, "message": found["error"]["message"]},
        "request_id": response.headers["request-id"],
    }
    assert len(found["error"]["message"].splitlines()) == 1
    message: str = found["error"]["message"]
    return message


def test_a_limit_that_is_set_is_told_as_it_was_meant_and_is_a_budget_of_the_policy(client: Client) -> None:
    made = client.set(user("bob"), "75000")
    assert re.fullmatch(r"spl_[0-9a-f]{24}", made.pop("id"))
    assert made == {
        "type": "spend_limit",
        "scope": user("bob"),
        "amount": "75000",
        "currency": "USD",
        "period": "monthly",
        "is_enabled": True,
        "created_at": "2026-11-21T12:00:00Z",
        "updated_at": "2026-11-21T12:00:00Z",
    }
    (budget,) = _budgets(client)
    assert budget == {
        "name": "spend-limit/monthly/user/bob",
        "window": "month",
        "per": "user",
        "scope": {"user": "bob"},
        "limit": {"amount": "750", "currency": "USD"},
    }


def _budgets(client: Client) -> Any:
    response = client._http.get("/v1/policy", headers={"Authorization": "Bearer administrator"})
    return response.json()["document"]["budgets"]


def test_a_scope_and_a_period_have_one_limit_that_is_set_anew(client: Client) -> None:
    first = client.set(ALL, "50000")
    again = client.set(ALL, "60001", currency="USD", period="monthly")
    other = client.set(ALL, "700", period="daily")
    assert (again["id"], again["amount"]) == (first["id"], "60001")
    assert other["id"] != first["id"]
    assert [each["limit"]["amount"] for each in _budgets(client)] == ["600.01", "7"]
    assert client.get(f"{LIMITS}/{first['id']}") == again


def test_a_limit_that_is_set_refuses_the_next_prompt_of_whom_has_spent_it(client: Client, ask: Ask) -> None:
    client.set(ALL, "1")
    status, body = ask("bob", wire.ADMIT, replace(about(BOB)[wire.ADMIT], knows_policy=True))
    found = json_decoder(Admitted).decode(body)
    assert status == 200
    assert found.binding == 1
    assert found.accounts[0].budget.name == "spend-limit/monthly"


def test_a_budget_of_the_policy_that_caps_each_user_is_a_limit_whoever_made_it(client: Client) -> None:
    seats = {"window": "month", "per": "user", "mode": "enforce", "limit": {"amount": "20", "currency": "USD"}}
    others = {
        "pool": {"window": "month", "limit": {"amount": "2000", "currency": "USD"}},
        "tokens": {"window": "month", "per": "user", "limit": {"tokens": 10}},
        "warned": {**seats, "mode": "warn"},
        "euro": {**seats, "limit": {"amount": "20", "currency": "EUR"}},
        "here": {**seats, "timezone": "Europe/Paris"},
        "quarter": {**seats, "window": "quarter"},
        "some": {**seats, "scope": {"team": "re*"}},
        "opus": {**seats, "scope": {"model": "opus"}},
    }
    _policy(client, {"seats": seats, **others})
    (found,) = client.get(LIMITS)["data"]
    assert (found["scope"], found["period"], found["amount"]) == (ALL, "monthly", "2000")
    client.set(ALL, "3000")
    changed = {each["name"]: each for each in _budgets(client)}
    assert changed["seats"] == {"name": "seats", **seats, "limit": {"amount": "30", "currency": "USD"}}
    _policy(client, {"seats too": seats})
    said = refused(client("POST", LIMITS, {"scope": ALL, "amount": "1"}), 400)
    assert said == "scope: the policy has several such limits, seats, seats too: change them by /v1/policy"


def _policy(client: Client, budgets: dict[str, Any]) -> None:
    response = client._http.patch(
        "/v1/policy", json={"budgets": budgets}, headers={"Authorization": "Bearer administrator"}
    )
    assert response.status_code == 200, response.text


def test_a_name_that_another_kind_of_budget_has_is_not_taken_from_it(client: Client) -> None:
    _policy(client, {"spend-limit/daily": {"window": "day", "limit": {"turns": 5}}})
    said = refused(client("POST", LIMITS, {"scope": ALL, "amount": "1", "period": "daily"}), 400)
    assert said == "scope: budget 'spend-limit/daily' of the policy is no spend limit: change it by /v1/policy"


def test_a_part_of_a_cent_is_told_exactly(client: Client) -> None:
    _policy(client, {"fine": {"window": "day", "per": "user", "limit": {"amount": "0.125", "currency": "USD"}}})
    assert client.get(LIMITS)["data"][0]["amount"] == "12.5"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"scope": ALL, "amount": "5.5"}, CENTS),
        ({"scope": ALL, "amount": "-1"}, CENTS),
        (
            {"scope": ALL, "amount": "9" * 18},
            'amount: expected whole cents as text, such as "50000" for 500 US dollars',
        ),
        ({"scope": ALL, "amount": 500}, "Expected `str | null`, got `int` - at `$.amount`"),
        (
            {"scope": ALL, "amount": None},
            "amount: null lifts no limit here, for all that apply hold; delete the limit instead",
        ),
        (
            {"scope": ALL, "amount": "1", "currency": "EUR"},
            "currency: expected USD; budgets of other currencies are set by /v1/policy",
        ),
        ({"scope": ALL, "amount": "1", "period": "yearly"}, "Invalid enum value 'yearly' - at `$.period`"),
        ({"scope": ALL, "amount": "1", "reason": "x"}, "Object contains unknown field `reason`"),
        (
            {"scope": {"type": "seat_tier", "seat_tier": "a"}, "amount": "1"},
            "Invalid value 'seat_tier' - at `$.scope.type`",
        ),
        (
            {"scope": {**ALL, "user_id": "bob"}, "amount": "1"},
            "Object contains unknown field `user_id` - at `$.scope`",
        ),
        (
            {"scope": user("b*"), "amount": "1"},
            "scope.user_id: expected a name of up to 200 characters, without *",
        ),
        ({"amount": "1"}, "Object missing required field `scope`"),
    ],
    ids=lambda value: None if isinstance(value, dict) else value[:30],
)
def test_what_is_not_understood_is_one_error_in_their_shape_and_changes_nothing(
    client: Client, body: Any, said: str
) -> None:
    assert refused(client("POST", LIMITS, body), 400) == said
    assert client.get(LIMITS)["data"] == []


def test_a_limit_that_a_broader_one_keeps_anybody_from_reaching_is_refused(client: Client, ledger: str) -> None:
    """In their API it would replace the broader one. Here both hold, so a script is told instead of misled."""
    _with_people(ledger)
    client.set(ALL, "50000")
    said = "amount: the limit of the organization is 50000 and applies too: raise that one first"
    for scope in (user("ann"), group("red")):
        assert refused(client("POST", LIMITS, {"scope": scope, "amount": "50001"}), 400) == said
    client.set(group("red"), "40000")
    of_group = "amount: the limit of group 'red' is 40000 and applies too: raise that one first"
    assert refused(client("POST", LIMITS, {"scope": user("ann"), "amount": "40001"}), 400) == of_group
    client.set(user("ann"), "40000")
    client.set(user("ann"), "90000", period="weekly")
    client.set(user("ben"), "50000")


def _with_people(ledger: str) -> None:
    with closing(open_ledger(ledger, journals=())) as opened:
        store = Store(opened.tables, "default")
        store.people.keep(Person("ann", team="red", name="Ann A.", email="ann@example.org"), "hub", SECONDS)
        store.people.keep(Person("gone", team="red", active=False), "hub", SECONDS)
        store.tokens.make(Asked("ci", "ben", team="green"), "hub", SECONDS)


def test_effective_is_the_tightest_of_the_limits_that_apply(client: Client, ledger: str) -> None:
    _with_people(ledger)
    all_of_them, of_red, of_ann = (
        client.set(scope, amount)["id"] for scope, amount in ((ALL, "900"), (group("red"), "800"), (user("ann"), "700"))
    )
    found = {each["scope"]["user_id"]: each for each in client.get(f"{LIMITS}/effective", period__="monthly")["data"]}
    assert list(found) == ["ann", "ben", "bob", "mallory"]
    assert found["ann"] == {
        "scope": user("ann"),
        "actor": {
            "type": "user_actor",
            "user_id": "ann",
            "name": "Ann A.",
            "email_address": "ann@example.org",
            "deleted": False,
        },
        "amount": "700",
        "currency": "USD",
        "period": "monthly",
        "source": user("ann"),
        "spend_limit_id": of_ann,
        "period_to_date_spend": "0",
        "groups": ["red"],
        "spend_limit_ids": [of_ann, of_red, all_of_them],
    }
    assert (found["mallory"]["source"], found["mallory"]["amount"]) == (group("red"), "800")
    assert found["mallory"]["period_to_date_spend"] == "1"
    assert (found["bob"]["source"], found["bob"]["groups"]) == (ALL, ["blue"])
    client.set(ALL, "600")  # tighter than that of the user: it holds all the same
    (ann,) = client.get(f"{LIMITS}/effective", user_ids__="ann", period__="monthly")["data"]
    assert (ann["amount"], ann["source"], ann["spend_limit_id"]) == ("600", ALL, all_of_them)


def test_who_has_no_limit_is_told_what_they_have_spent(client: Client) -> None:
    found = client.get(f"{LIMITS}/effective", q="BO")["data"]
    assert [(each["period"], each["amount"], each["source"], each["spend_limit_id"]) for each in found] == [
        (period, None, None, None) for period in ("daily", "weekly", "monthly")
    ]
    assert {each["period_to_date_spend"] for each in found} == {"1"}


def test_effective_goes_on_where_a_page_ended_and_only_for_the_same_question(client: Client) -> None:
    seen, page = [], None
    for _ in range(2):
        query = {"limit": "1"} | ({"page": page} if page else {})
        found = client.get(f"{LIMITS}/effective", **query)
        seen += [(each["actor"]["user_id"], each["period"]) for each in found["data"]]
        page = found["next_page"]
    assert page is None
    assert seen == [(name, period) for name in ("bob", "mallory") for period in ("daily", "weekly", "monthly")]
    page = client.get(f"{LIMITS}/effective", limit="1")["next_page"]
    other = client("GET", f"{LIMITS}/effective", page=page, user_ids__="bob")
    assert refused(other, 400) == "page: cursor does not match current query parameters"
    for wrong in ("x", "!", "bnVsbA==", "W10=", "WzFd"):
        refused(client("GET", f"{LIMITS}/effective", page=wrong), 400)


def test_the_list_goes_forth_and_back(client: Client) -> None:
    for name in "abcde":
        client.set(user(name), "1")
    everything = client.get(LIMITS)
    ids = [each["id"] for each in everything["data"]]
    assert (everything["has_more"], everything["first_id"], everything["last_id"]) == (False, ids[0], ids[-1])
    first = client.get(LIMITS, limit="2", beta="true")
    assert ([each["id"] for each in first["data"]], first["has_more"]) == (ids[:2], True)
    after = client.get(LIMITS, limit="3", after_id=ids[1])
    assert ([each["id"] for each in after["data"]], after["has_more"]) == (ids[2:], False)
    before = client.get(LIMITS, limit="2", before_id=ids[3])
    assert ([each["id"] for each in before["data"]], before["has_more"]) == (ids[1:3], True)
    for query in ({"limit": "0"}, {"limit": "1001"}, {"after_id": "spl_1"}, {"after_id": ids[0], "before_id": ids[1]}):
        refused(client("GET", LIMITS, **query), 400)
    assert refused(client("GET", LIMITS, colour="red"), 400) == "Object contains unknown field `colour`"


def test_the_list_goes_on_by_page_also_where_its_last_limit_is_gone(client: Client) -> None:
    for name in "abcde":
        client.set(user(name), "1")
    ids = [each["id"] for each in client.get(LIMITS)["data"]]
    first = client.get(LIMITS, limit="2")
    client("DELETE", f"{LIMITS}/{ids[1]}")
    rest = client.get(LIMITS, limit="3", page=first["next_page"])
    assert ([each["id"] for each in rest["data"]], rest["has_more"], rest["next_page"]) == (ids[2:], False, None)


def test_the_list_is_of_the_scopes_that_are_asked_for(client: Client) -> None:
    for scope in (ALL, group("red"), user("a"), user("b")):
        client.set(scope, "1")
    found = client.get(LIMITS, scope_type__=["organization", "rbac_group"])["data"]
    assert sorted(each["scope"]["type"] for each in found) == ["organization", "rbac_group"]
    said = refused(client("GET", LIMITS, scope_type__="workspace"), 400)
    assert said == "Invalid enum value 'workspace' - at `$.scope_type[][0]`"


def test_a_limit_that_is_deleted_is_gone_and_what_is_no_limit_stays(client: Client) -> None:
    _policy(client, {"pool": {"window": "month", "limit": {"amount": "2000", "currency": "USD"}}})
    made = client.set(ALL, "1")
    response = client("DELETE", f"{LIMITS}/{made['id']}")
    assert response.json() == {"type": "spend_limit_deleted", "id": made["id"]}
    assert re.fullmatch(r"req_\w+", response.headers["request-id"])
    for method in ("GET", "DELETE"):
        said = refused(client(method, f"{LIMITS}/{made['id']}"), 404, "not_found_error")
        assert said == f"no spend limit '{made['id']}'"
    assert [each["name"] for each in _budgets(client)] == ["pool"]


def test_changes_are_told_by_whom_they_were_made_from_the_log_of_all(client: Client, ledger: str) -> None:
    _policy(client, {"pool": {"window": "month", "limit": {"amount": "2000", "currency": "USD"}}})
    made = client.set(ALL, "100")
    client.set(ALL, "200")
    client("DELETE", f"{LIMITS}/{made['id']}")
    trail = client.get(f"{LIMITS}/audit")
    limited = [{"scope": ALL, "amount": amount, "period": "monthly", "currency": "USD"} for amount in ("100", "200")]
    assert [(each["action"], each["before"], each["after"]) for each in trail["data"]] == [
        ("removed", limited[1], None),
        ("set", limited[0], limited[1]),
        ("set", None, limited[0]),
    ]
    assert {(each["actor"]["user_id"], each["spend_limit_id"]) for each in trail["data"]} == {("mallory", made["id"])}
    first = client.get(f"{LIMITS}/audit", limit="2")
    assert first["has_more"]
    rest = client.get(f"{LIMITS}/audit", before_id=first["data"][-1]["id"])
    assert (rest["has_more"], rest["data"]) == (False, trail["data"][2:])
    with closing(open_ledger(ledger, journals=())) as opened:
        log = Store(opened.tables, "default").audit
        assert log.verify().fault is None
        assert [line["action"] for line in log.lines()] == ["budget.set"] * 3 + ["budget.removed"]


@pytest.mark.parametrize("who", ["developer", "lead", "service"])
def test_only_who_sees_all_reads_and_only_administrators_change(client: Client, who: str) -> None:
    expected = "expected the role administrator or finance, not "
    assert refused(client("GET", LIMITS, who=who), 403, "permission_error") == expected + who
    body = {"scope": ALL, "amount": "1"}
    for each in (who, "finance"):
        said = refused(client("POST", LIMITS, body, who=each), 403, "permission_error")
        assert said == f"expected the role administrator, not {each}"
    assert client("GET", LIMITS, who="finance").json()["data"] == []
    refused(client("GET", LIMITS, who="nobody"), 401, "authentication_error")


def test_another_organisation_sees_none_of_it(client: Client) -> None:
    made = client.set(ALL, "1")
    assert client("GET", LIMITS, who="elsewhere").json()["data"] == []
    assert client("GET", f"{LIMITS}/effective", who="elsewhere").json()["data"] == []
    refused(client("GET", f"{LIMITS}/{made['id']}", who="elsewhere"), 404, "not_found_error")


def _wish(ask: Ask, number: int = 1, **fields: Any) -> None:
    of = {"budget": "spend-limit/monthly", "unit": "USD", "value": "bob", "layer": "hub", **fields}
    wish = Wish(f"r{number}", of["layer"], of["budget"], "user", of["value"], 5 * 10**9, of["unit"], "the release")
    assert ask("bob", asking.ASK, wish)[0] == 200


def test_a_request_that_waits_shows_what_its_user_may_spend(client: Client, ask: Ask) -> None:
    client.set(ALL, "1000")
    _wish(ask)
    (found,) = client.get(REQUESTS)["data"]
    summary = client.get(f"{LIMITS}/effective", user_ids__="bob", period__="monthly")["data"][0]
    assert found == {
        "type": "spend_limit_increase_request",
        "id": "slir_r1",
        "actor": summary["actor"],
        "status": "pending",
        "period": "monthly",
        "created_at": "2026-11-21T12:00:00Z",
        "resolved_at": None,
        "resolved_by": None,
        "spend_summary": summary,
    }
    assert client.get(f"{REQUESTS}/slir_r1") == found


def test_an_approval_lets_its_user_spend_that_much_until_the_period_ends(client: Client, ask: Ask, ledger: str) -> None:
    client.set(ALL, "1000")
    _wish(ask)
    path = f"{REQUESTS}/slir_r1/approve"
    assert refused(client("POST", path, {"amount": "1000"}), 400) == "amount: expected more than the 1000 of now"
    wrong = {"amount": "1500", "period": "daily"}
    assert refused(client("POST", path, wrong), 400) == "period: the request is for a monthly limit"
    response = client("POST", path, {"amount": "1500", "period": "monthly", "suppress_notification": True})
    found = response.json()
    assert response.status_code == 200, found
    assert (found["status"], found["resolved_by"]["user_id"], found["spend_summary"]) == ("approved", "mallory", None)
    rows = {
        each["actor"]["user_id"]: each["amount"]
        for each in client.get(f"{LIMITS}/effective", period__="monthly")["data"]
    }
    assert rows == {"bob": "1500", "mallory": "1000"}
    assert client.get(LIMITS)["data"][0]["amount"] == "1000"
    with closing(open_ledger(ledger, journals=())) as opened:
        (grant,) = opened.grants("default", NOON)
        assert (grant.amount, grant.value) == (5 * 10**9, "bob")
        assert grant.until == NOON + (9 * 24 + 12) * HOUR  # the first of December
        lines = list(Store(opened.tables, "default").audit.lines())
        assert [line["action"] for line in lines] == ["budget.set", "request.made", "request.approved"]
        assert orjson.loads(lines[-1]["after"])["amount"] == 5 * 10**9
    assert refused(client("POST", path, {"amount": "1600"}), 400) == "the request is approved already"
    assert refused(client("POST", f"{REQUESTS}/slir_r1/deny", {}), 400) == "the request is approved already"


def test_an_approval_that_another_limit_would_undo_is_refused(client: Client, ask: Ask) -> None:
    client.set(ALL, "1000")
    client.set(user("bob"), "1000")
    _wish(ask, budget="spend-limit/monthly/user/bob")
    said = refused(client("POST", f"{REQUESTS}/slir_r1/approve", {"amount": "1500"}), 400)
    assert said == "amount: the limit of the organization is 1000 and applies too: raise that one first"
    assert client.get(f"{REQUESTS}/slir_r1")["status"] == "pending"


def test_a_denial_may_be_repeated(client: Client, ask: Ask) -> None:
    client.set(ALL, "1000")
    _wish(ask)
    denied = [client("POST", f"{REQUESTS}/slir_r1/deny", {"suppress_notification": True}).json() for _ in range(2)]
    assert denied[0] == denied[1]
    assert (denied[0]["status"], denied[0]["resolved_at"]) == ("denied", "2026-11-21T12:00:00Z")
    said = refused(client("POST", f"{REQUESTS}/slir_r1/approve", {"amount": "1500"}), 400)
    assert said == "the request is denied already"


def test_requests_are_found_by_state_and_user_page_by_page(client: Client, ask: Ask) -> None:
    client.set(ALL, "1000")
    for number in range(3):
        _wish(ask, number)
    client("POST", f"{REQUESTS}/slir_r1/deny", {})
    assert [each["id"] for each in client.get(REQUESTS, status__="pending")["data"]] == ["slir_r0", "slir_r2"]
    assert client.get(REQUESTS, actor_ids__="mallory")["data"] == []
    first = client.get(REQUESTS, limit="2")
    rest = client.get(REQUESTS, limit="2", page=first["next_page"])
    ids = [each["id"] for each in first["data"] + rest["data"]]
    assert (ids, rest["next_page"]) == (["slir_r0", "slir_r1", "slir_r2"], None)
    refused(client("GET", REQUESTS, page=first["next_page"], status__="denied"), 400)


def test_requests_about_what_is_no_spend_limit_are_not_told_here(client: Client, ask: Ask) -> None:
    client.set(ALL, "1000")
    _wish(ask, 1, layer="admin")
    _wish(ask, 2, unit="tokens")
    assert client.get(REQUESTS)["data"] == []
    said = refused(client("POST", f"{REQUESTS}/slir_r1/approve", {"amount": "1500"}), 404, "not_found_error")
    assert said == "no request 'slir_r1' about a spend limit; /v1/requests/search has all others"


def test_a_lead_decides_by_the_hubs_own_calls_and_not_here(client: Client, ask: Ask) -> None:
    client.set(ALL, "1000")
    _wish(ask)
    refused(client("POST", f"{REQUESTS}/slir_r1/deny", {}, who="blue"), 403, "permission_error")
    assert PEOPLE["blue"].teams_led == ("blue",)

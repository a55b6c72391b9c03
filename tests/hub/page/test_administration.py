"""Administration on the page: for administrators alone, each change with its line in the log, no secret shown twice."""

from __future__ import annotations

import json

import pytest
from starlette.routing import Route

from acp_proxy.hub.identity import Role
from acp_proxy.hub.store import Store
from acp_proxy.hub.store.families import Family
from acp_proxy.hub.store.people import Person, holder
from acp_proxy.ledger.statements import Run
from tests.hub.page.house import ROLES, Hub

API = "/api/administration"
ALL: tuple[Role, ...] = ("administrator",)
LEADS: tuple[Role, ...] = ("administrator", "lead")
FINANCE: tuple[Role, ...] = ("administrator", "finance", "lead")
READS: dict[str, tuple[Role, ...]] = {
    **dict.fromkeys(("people", "tokens", "keys", "audit", "audit.jsonl"), ALL),
    **dict.fromkeys(("policy", "grants"), FINANCE),
}
CHANGES: dict[str, tuple[object, tuple[Role, ...]]] = {
    "tokens": ({"name": "ci", "user": "ci", "role": "administrator"}, ALL),
    "tokens/revoked": ({"id": "x"}, ALL),
    "machines/ended": ({"id": "x"}, ALL),
    "keys": ({"forget": True}, ALL),
    "policy": ({"version": 0, "budgets": {"none": {"window": "day", "limit": {"turns": 0}}}}, LEADS),
    "grants": ({"budget": "none", "amount": "5", "duration": "2h", "why": "x"}, LEADS),
}


def administrator(hub: Hub) -> str:
    return hub.cookie("ada", "administrator")


def log_of(hub: Hub) -> list[str]:
    return [str(line["action"]) for line in hub.store(lambda store: list(store.audit.lines()))]


def machine_of(hub: Hub, user: str) -> Family:
    """That has signed in."""

    def begun(store: Store) -> Family:
        now = hub.now()
        store.people.arrive(Person(user, "lead", "red", ("red",), "https://login 7", "Ruby R."), user, now)

        def work(run: Run) -> Family:
            held = holder(run, store.organisation, user, None, now)
            assert held
            return store.families.begin(run, held, None, ("m1", "ruby's laptop"), now).family

        return store.people.write(work)

    return hub.store(begun)


@pytest.mark.parametrize("role", [role for role in ROLES if role not in ("administrator", "service")])
def test_nobody_reads_or_changes_what_is_for_another_role(hub: Hub, role: Role) -> None:
    """A lead asks for what is an administrator's as well: both routes are theirs, the budget is not."""
    cookie, before = hub.cookie("mallory", role, "red", ("red",)), log_of(hub)
    for name, roles in READS.items():
        assert hub.ask(f"{API}/{name}", cookie).status == (200 if role in roles else 403), name
    for name, (value, roles) in CHANGES.items():
        answer = hub.change(f"{API}/{name}", cookie, value)
        is_for_all = answer.json["error"] == f"not for the role {role}"
        assert (answer.status, is_for_all) in ([(403, False), (400, False)] if role in roles else [(403, True)]), name
    assert hub.ask("/administration", cookie).status == (200 if role in FINANCE else 403)
    assert log_of(hub) == before


def test_every_route_of_administration_is_asked_for_by_every_role(hub: Hub) -> None:
    routes = {route.path for route in hub.site.application.routes if isinstance(route, Route)}
    asked = {f"{API}/{name}" for name in (*READS, *CHANGES)}
    assert {path for path in routes if path.startswith(API)} == asked


def test_without_a_session_nothing_is_told_although_a_token_is_shown(hub: Hub) -> None:
    token = hub.token("ada", "administrator")
    for name in READS:
        assert hub.ask(f"{API}/{name}", Authorization=f"Bearer {token}").status == 401
    assert hub.ask("/administration").headers["location"] == "/signin?next=%2Fadministration"


def test_a_token_that_is_made_signs_in_until_it_is_revoked(own_hub: Hub) -> None:
    cookie = administrator(own_hub)
    made = own_hub.change(f"{API}/tokens", cookie, {"name": "bob's", "user": "bob", "team": "blue", "days": 1}).json
    assert made["token"] | {"holds": True, "role": "developer", "created_by": "ada"} == made["token"]
    session = own_hub.sign_in(made["secret"]).cookies[0].partition(";")[0]
    assert own_hub.ask("/api/spend", session).status == 200
    assert own_hub.change(f"{API}/tokens/revoked", cookie, {"id": made["token"]["id"]}).status == 200
    assert own_hub.ask("/api/spend", session).status == 401
    assert own_hub.sign_in(made["secret"]).status == 401
    assert log_of(own_hub)[-2:] == ["session.begun", "token.revoked"]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"name": " ", "user": "bob"}, "expected names"),
        ({"name": "a\x1b[31m", "user": "bob"}, "expected names"),
        ({"name": "ci", "user": "ci", "role": "service"}, "needs an end"),
        ({"name": "ci", "user": "ci", "role": "root"}, "Invalid enum value"),
        ({"name": "ci", "user": "ci", "scopes": ["all"]}, "no scope 'all'"),
        ({"name": "ci", "user": "ci", "days": 0}, "days: expected"),
        ({"name": "ci", "user": "ci", "more": 1}, "unknown field"),
        ([], "Expected `object`"),
    ],
)
def test_a_token_that_makes_no_sense_is_refused_with_one_line(hub: Hub, value: object, says: str) -> None:
    answer = hub.change(f"{API}/tokens", administrator(hub), value)
    assert answer.status == 400
    assert says in answer.json["error"]
    assert "\n" not in answer.json["error"]


def test_people_and_machines_are_listed_and_a_machine_can_be_signed_out(own_hub: Hub) -> None:
    machine, cookie = machine_of(own_hub, "ruby"), administrator(own_hub)
    found = own_hub.ask(f"{API}/people", cookie).json
    assert [(each["user"], each["role"], each["team"], each["leads"]) for each in found["people"]] == [
        ("ruby", "lead", "red", ["red"])
    ]
    assert [(each["user"], each["machine_name"]) for each in found["machines"]] == [("ruby", "ruby's laptop")]
    assert own_hub.change(f"{API}/machines/ended", cookie, {"id": machine.id}).status == 200
    assert own_hub.ask(f"{API}/people", cookie).json["machines"] == []
    assert own_hub.change(f"{API}/machines/ended", cookie, {"id": machine.id}).status == 404


def test_a_new_key_signs_and_earlier_ones_can_be_forgotten(own_hub: Hub) -> None:
    cookie = administrator(own_hub)
    first = own_hub.change(f"{API}/keys", cookie, {}).json["keys"]
    assert len(own_hub.change(f"{API}/keys", cookie, {}).json["keys"]) == len(first) + 1
    (last,) = own_hub.change(f"{API}/keys", cookie, {"forget": True}).json["keys"]
    assert [key["id"] for key in own_hub.ask(f"{API}/keys", cookie).json["keys"]] == [last["id"]]


def test_no_secret_is_read_again(own_hub: Hub) -> None:
    cookie = administrator(own_hub)
    secret = own_hub.change(f"{API}/tokens", cookie, {"name": "bob's", "user": "bob"}).json["secret"]
    own_hub.change(f"{API}/keys", cookie, {})
    secrets = [
        secret,
        cookie.partition("=")[2],
        *own_hub.store(lambda store: [each.secret for each in store.keys.all()]),
    ]
    told = b"".join(own_hub.ask(f"{API}/{name}", cookie).body for name in READS)
    assert b"bob's" in told
    assert not any(each.encode() in told for each in secrets)


def test_the_log_is_filtered_read_in_parts_and_downloaded(own_hub: Hub) -> None:
    cookie = administrator(own_hub)
    for place in range(5):
        own_hub.change(f"{API}/tokens", cookie, {"name": f"token {place}", "user": "bob"})
    own_hub.change(f"{API}/keys", cookie, {})
    asked = f"{API}/audit?actor=ada&action=token.&limit=2"
    seen, part = [], own_hub.ask(asked, cookie).json
    while True:
        seen += [line["after"]["name"] for line in part["lines"]]
        if part["next"] is None:
            break
        part = own_hub.ask(f"{asked}&before={part['next']}", cookie).json
    assert seen == [f"token {place}" for place in reversed(range(5))]
    answer = own_hub.ask(f"{API}/audit.jsonl?actor=ada", cookie)
    lines = [json.loads(line) for line in answer.body.splitlines()]
    assert [line["action"] for line in lines] == ["session.begun", *["token.made"] * 5, "key.made"]
    assert answer.headers["content-disposition"].startswith("attachment")
    for wrong in ("limit=0", "before=x", "more=1", "actor=a&actor=b"):
        assert own_hub.ask(f"{API}/audit?{wrong}", cookie).status == 400


def test_budgets_are_set_changed_and_removed_with_their_history(own_hub: Hub) -> None:
    cookie, path = administrator(own_hub), f"{API}/policy"
    daily = {"per": "user", "window": "day", "limit": {"amount": "5", "currency": "USD"}}
    assert own_hub.change(path, cookie, {"version": 0, "budgets": {"daily": daily}}).json["version"] == 1
    more = daily | {"limit": {"amount": "9", "currency": "USD"}}
    assert own_hub.change(path, cookie, {"version": 1, "budgets": {"daily": more}}).json["version"] == 2
    assert own_hub.change(path, cookie, {"version": 1, "budgets": {"daily": daily}}).status == 409
    assert own_hub.change(path, cookie, {"version": 2, "budgets": {"daily": {"limit": "much"}}}).status == 400
    found = own_hub.change(path, cookie, {"version": 2, "budgets": {"daily": None}}).json
    assert found["document"]["budgets"] == []
    amounts = [
        [change[which] and change[which]["limit"]["amount"] for which in ("before", "after")]
        for version in found["history"]
        for change in version["changes"]
    ]
    assert amounts == [["9", None], ["5", "9"], [None, "5"]]
    assert {version["who"] for version in found["history"]} == {"ada"}
    assert log_of(own_hub)[-3:] == ["budget.set", "budget.set", "budget.removed"]


DAILY = {"window": "day", "limit": {"amount": "5", "currency": "USD"}}


def test_a_lead_sets_budgets_of_their_team_grants_more_of_them_and_sees_no_others(own_hub: Hub) -> None:
    path = f"{API}/policy"
    budgets = {"blue": DAILY | {"scope": {"team": "blue"}}, "pool": DAILY, "seats": DAILY | {"per": "user"}}
    ada, lead = administrator(own_hub), own_hub.cookie("mallory", "lead", "red", ("red",))
    own_hub.change(path, ada, {"version": 0, "budgets": budgets, "prices": {"opus": {"input": "5"}}})
    red = DAILY | {"scope": {"team": "red"}}
    found = own_hub.change(path, lead, {"version": 1, "budgets": {"red/daily": red}}).json
    assert [each["name"] for each in found["document"]["budgets"]] == ["pool", "seats", "red/daily"]
    assert found["changes"] == ["red/daily"]
    assert [(each["version"], each["who"]) for each in found["history"]] == [(2, "mallory"), (1, "ada")]
    for revision in ({"budgets": {"pool": None}}, {"budgets": {"other": red}}, {"prices": {"opus": None}}):
        assert own_hub.change(path, lead, {"version": 2, **revision}).status == 403
    more = {"amount": "2.50", "duration": "2h", "why": "the release"}
    assert own_hub.change(f"{API}/grants", lead, {"budget": "pool", **more}).status == 403
    assert own_hub.change(f"{API}/grants", lead, {"budget": "blue", **more}).status == 400
    given = own_hub.change(f"{API}/grants", lead, {"budget": "red/daily", **more}).json["grants"]
    assert [(each["budget"], each["for"], each["amount"], each["who"], each["counts"]) for each in given] == [
        ("red/daily", None, "2.5", "mallory", True)
    ]
    assert log_of(own_hub)[-1] == "budget.set"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"amount": "much"}, "amount: expected an amount of USD above 0"),
        ({"duration": "long"}, "for: expected"),
        ({"why": " "}, "reason: expected why"),
        ({"value": ""}, "for: expected the name of the user, or * for all"),
        ({"budget": "none"}, 'no budget is called "none"'),
    ],
)
def test_a_grant_that_makes_no_sense_is_refused_with_one_line(own_hub: Hub, value: dict[str, str], says: str) -> None:
    cookie = administrator(own_hub)
    own_hub.change(f"{API}/policy", cookie, {"version": 0, "budgets": {"seats": DAILY | {"per": "user"}}})
    grant = {"budget": "seats", "amount": "5", "duration": "2h", "why": "x", "value": "*"}
    answer = own_hub.change(f"{API}/grants", cookie, grant | value)
    assert (answer.status, says in answer.json["error"]) == (400, True), answer.json
    assert own_hub.ask(f"{API}/grants", cookie).json["grants"] == []

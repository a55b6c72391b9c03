"""Every route of the page and every role: each sees what is theirs, however they ask."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import cast
from urllib.parse import urlencode

import pytest
from msgspec.structs import replace

from acp_proxy.core.entry import IMPORT
from acp_proxy.core.windows import DAY
from acp_proxy.hub.identity import Role
from acp_proxy.hub.page.figures import VIEWS
from acp_proxy.ledger import Query, captures, open_ledger
from acp_proxy.ledger.captures import Capture
from acp_proxy.ledger.sql_ledger import SqlLedger
from harness.daemons import until
from harness.rows import line, row
from tests.hub.page.house import ORIGINS, ROLES, Answer, Hub, cookie_of

_OF = {user: (f"project-of-{user}", f"title of {user}", f"s-{user}") for user in ORIGINS}
_COSTS = {"mallory": "1.17", "ruby": "2.27", "bob": "3.37"}
_SEEN: dict[Role, set[str]] = {
    "administrator": {"mallory", "ruby", "bob"},
    "finance": {"mallory", "ruby", "bob"},
    "lead": {"mallory", "ruby"},
    "developer": {"mallory"},
}
_RANGE = {"range": "all", "tz": "UTC"}
# What a page asks, and what somebody curious would.
_ASKED: dict[str, list[dict[str, str]]] = {
    "/api/spend": [
        _RANGE | {"by": "user"},
        _RANGE | {"by": "project"},
        _RANGE | {"by": "user", "user": "bob"},
        _RANGE | {"by": "user", "team": "blue"},
        _RANGE | {"by": "project", "project": "project-of-bob"},
        {"range": "today", "by": "team"},
    ],
    "/api/sessions": [
        _RANGE,
        *(_RANGE | {"sort": sort} for sort in ("started", "cost", "tokens", "turns", "context")),
        _RANGE | {"find": "bob"},
        _RANGE | {"user": "bob"},
        _RANGE | {"team": "blue"},
        _RANGE | {"user": "bob", "sort": "cost"},
    ],
    "/api/budgets": [{}],
    "/api/bills": [{}],
    "/api/coverage": [
        _RANGE,
        _RANGE | {"user": "bob"},
        _RANGE | {"team": "blue"},
        _RANGE | {"project": "project-of-bob"},
    ],
    "/api/plans": [{}, {"user": "bob"}, {"agent": "agent-of-bob"}],
    "/api/live": [{}],
    "/api/requests": [{}],
}


def answers(hub: Hub, cookie: str) -> Iterator[tuple[str, Answer]]:
    """To all that can be asked of figures, sessions of everybody by their keys among it."""
    for path, questions in _ASKED.items():
        for asked in questions:
            yield f"{path}?{urlencode(asked)}", hub.ask(f"{path}?{urlencode(asked)}", cookie)
    finance = hub.cookie("olga", "finance")
    for session in hub.ask("/api/sessions?range=all", finance).json["sessions"]:
        yield f"session of {session['user']}", hub.ask(f"/api/session?key={session['key']}", cookie)


def test_every_route_with_figures_is_asked() -> None:
    assert {*_ASKED, "/api/session"} <= {*VIEWS}
    untried = {*VIEWS} - {*_ASKED, "/api/session"}
    assert untried == set(), "a new view: what would somebody curious ask it?"


@pytest.mark.parametrize("role", [role for role in ROLES if role != "service"])
def test_a_role_sees_its_own_and_nothing_of_others(hub: Hub, role: Role) -> None:
    cookie, seen = cookie_of(hub, role), _SEEN[role]
    told = b""
    for asked, answer in answers(hub, cookie):
        assert answer.status in (200, 403, 404), (asked, answer.status, answer.body)
        told += answer.body
        for user in {*ORIGINS} - seen:
            names = [name for name in _OF[user] if name not in asked]
            assert not any(name.encode() in answer.body for name in [*names, f'"{_COSTS[user]}']), (asked, answer.body)
    for user in seen:
        assert all(name.encode() in told for name in [*_OF[user], f'"{_COSTS[user]}'])


@pytest.mark.parametrize(("role", "total"), [("finance", "6.81"), ("lead", "3.44"), ("developer", "1.17")])
def test_all_figures_of_a_page_are_of_what_is_seen(hub: Hub, role: Role, total: str) -> None:
    """Also those of the cards and of the plot."""
    spend = hub.ask("/api/spend?range=all&by=user", cookie_of(hub, role)).json
    assert spend["total"]["cost"] == {"USD": total}
    assert spend["cards"]["month"]["cost"]["USD"] in (total, "0")  # an hour ago may be another month
    assert [row["key"] for row in spend["rows"]] == sorted(_SEEN[role], key=lambda user: -float(_COSTS[user]))
    assert {series["key"] for series in spend["over_time"]["currencies"]["USD"]} == _SEEN[role]


def test_what_a_ledger_was_given_back_is_told_to_those_who_see_all(own_hub: Hub) -> None:
    with closing(cast(SqlLedger, open_ledger(own_hub.ledger, journals=()))) as ledger:
        ledger.note_restored(ORIGINS["bob"], "once", own_hub.now() * 10**9, 3, None)
    roles: tuple[Role, ...] = ("finance", "lead")
    told = {role: own_hub.ask("/api/live", cookie_of(own_hub, role)).json["set_back"] for role in roles}
    assert told["finance"].endswith("; 3 rows written again from 1 machine")
    assert told["lead"] is None


def test_work_of_others_does_not_move_what_a_developer_is_told(own_hub: Hub) -> None:
    cookie, finance = cookie_of(own_hub, "developer"), own_hub.cookie("olga", "finance")

    def versions() -> list[str]:
        return [own_hub.ask("/api/live", each).json["version"] for each in (cookie, finance)]

    before = versions()
    with closing(open_ledger(own_hub.ledger, journals=())) as ledger:
        ledger.append([row(origin=ORIGINS["bob"], id="another-of-bob", at=own_hub.now() * 10**9)])
    until(lambda: versions()[1] != before[1], "who sees all is told of the row")
    assert versions()[0] == before[0]
    with closing(open_ledger(own_hub.ledger, journals=())) as ledger:
        ledger.append([row(origin=ORIGINS["mallory"], id="another-of-mallory", at=own_hub.now() * 10**9)])
    until(lambda: versions()[0] != before[0], "so is the developer of their own")


@pytest.mark.parametrize("role", ["finance", "lead", "developer"])
def test_a_correction_that_only_gives_a_row_another_model_is_shown(own_hub: Hub, role: Role) -> None:
    cookie = cookie_of(own_hub, role)

    def models() -> set[str]:
        found = own_hub.ask("/api/spend?range=all&by=model&user=mallory", cookie).json["rows"]
        return {str(each["key"]) for each in found}

    assert models() == {"opus"}
    with closing(open_ledger(own_hub.ledger, journals=())) as ledger:
        (before,) = ledger.rows(Query(where=(("user", "mallory"),)))
        lines = tuple(replace(each, model="sonnet") for each in before.entry.lines)
        assert ledger.correct(before, replace(before, entry=replace(before.entry, lines=lines)), own_hub.now() * 10**9)
    until(lambda: models() == {"sonnet"}, "the page shows what the row says now")


@pytest.mark.parametrize("role", [role for role in ROLES if role != "service"])
def test_the_providers_bills_are_for_who_sees_all(own_hub: Hub, role: Role) -> None:
    of = Capture("anthropic", 0, DAY, DAY, 1000, 875, "USD", 2 * 10**9, 10**9)
    with closing(open_ledger(own_hub.ledger, journals=())) as ledger:
        ledger.tables.write(partial(captures.note, organisation=own_hub.settings.organisation, capture=of))
    bills = own_hub.ask("/api/bills", cookie_of(own_hub, role)).json["bills"]
    assert [bill["provider"] for bill in bills] == (["anthropic"] if role in ("administrator", "finance") else [])


@pytest.mark.parametrize(
    ("role", "around"), [("administrator", 700), ("finance", 700), ("lead", 300), ("developer", 100)]
)
def test_what_went_around_is_told_of_the_people_that_are_seen(own_hub: Hub, role: Role, around: int) -> None:
    with closing(open_ledger(own_hub.ledger, journals=())) as ledger:
        for user, tokens in (("mallory", 100), ("ruby", 200), ("bob", 400)):
            origin = replace(ORIGINS[user], client=IMPORT)
            ledger.append([row(line(input=tokens), origin=origin, id=f"call-of-{user}", kind="call")])
    found = own_hub.ask("/api/coverage?range=all&tz=UTC", cookie_of(own_hub, role)).json
    assert found["total"]["imported"]["tokens"] == around
    others = own_hub.ask("/api/coverage?range=all&user=bob", cookie_of(own_hub, role)).json.get("rows")
    assert bool(others) == ("bob" in _SEEN[role])


def test_a_service_sees_nothing_of_the_page(hub: Hub) -> None:
    answer = hub.sign_in(hub.token("mallory", "service", "red"))
    assert (answer.status, answer.cookies) == (401, [])
    token = hub.token("ci", "service")
    for path in ("/", *_ASKED, "/api/session?key=x"):
        answer = hub.ask(path, Authorization=f"Bearer {token}")
        assert (answer.status, b"project-of" in answer.body) == (303 if path == "/" else 401, False)


@pytest.mark.parametrize("role", ROLES)
def test_metrics_are_for_an_administrator_and_for_who_collects_them(hub: Hub, role: Role) -> None:
    token = hub.token("mallory", role, "red")
    answer = hub.ask("/metrics", Authorization=f"Bearer {token}")
    assert (answer.status, b"acp_" in answer.body) == ((200, True) if role == "administrator" else (403, False))
    scoped = hub.ask("/metrics", Authorization=f"Bearer {hub.token('prometheus', role, None, 'metrics')}")
    assert scoped.status == (200 if role in ("administrator", "service") else 403)
    for other in ("meter", "read"):
        token = hub.token("mallory", role, None, other)
        assert hub.ask("/metrics", Authorization=f"Bearer {token}").status == 403


def test_the_key_of_a_session_of_another_is_that_of_none(hub: Hub) -> None:
    found = {
        name: answer for name, answer in answers(hub, cookie_of(hub, "developer")) if name.startswith("session of")
    }
    assert {name: answer.status for name, answer in found.items()} == {
        "session of mallory": 200,
        "session of ruby": 404,
        "session of bob": 404,
    }
    assert (
        json.loads(found["session of bob"].body) == hub.ask("/api/session?key=zzzz", cookie_of(hub, "developer")).json
    )

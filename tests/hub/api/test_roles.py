"""Every route and every role: who may ask what, and that nobody is told what is not theirs, however they ask."""

from __future__ import annotations

from contextlib import closing
from http.client import HTTPConnection
from typing import Any

import pytest
from msgspec.structs import replace

from acp_proxy.hub.api import ANSWERS
from acp_proxy.hub.api.spending import calls as spending
from acp_proxy.hub.store import Store
from acp_proxy.hub.store.people import Person
from acp_proxy.ledger import Query, Row, open_ledger
from acp_proxy.ledger.budgets import Grant
from acp_proxy.ledger.hub import asking, people, questions, wire
from acp_proxy.ledger.hub.place import Again, Missing, SetBack, Since
from acp_proxy.ledger.hub.wire import Call
from acp_proxy.system.decoding import json_decoder
from harness import hub
from harness.rows import MINUTE, NOON, row
from tests.hub.api.asking import about, everybody
from tests.hub.api.conftest import BOB, MALLORY, PEOPLE, ROLES, Ask

OF_ALL = ("administrator", "finance")
_BY_ID = (spending.FIND, spending.DELETE, spending.REQUEST, spending.APPROVE, spending.DENY)
_UNUSUAL: dict[Call[Any, Any], tuple[int, ...]] = {  # what is asked for is not there, or not theirs
    wire.GRANT: (200, 204, 403),
    asking.DECIDE: (200, 403),
    people.FORGET: (409,),
    **dict.fromkeys(_BY_ID, (404,)),
}


def test_there_is_a_question_for_each_route() -> None:
    assert {answer.call.path for answer in ANSWERS} == {call.path for call in about(MALLORY)}


@pytest.mark.parametrize("role", ROLES)
def test_a_role_is_answered_what_is_its_own_and_nothing_else(ask: Ask, role: str) -> None:
    asked = about(MALLORY)
    found = {}
    for answer in ANSWERS:
        status, body = ask(role, answer.call, asked[answer.call])
        found[answer.call.path, answer.call.method] = status
        if role not in answer.roles:
            assert status == 403, (answer.call.path, body)
        else:
            expected = _UNUSUAL.get(answer.call, (200, 204))
            assert status in expected, (answer.call.path, status, body)
    assert set(found.values()) <= {200, 204, 403, 404, 409}


@pytest.mark.parametrize("who", ["developer", "service", "lead"])
def test_no_route_tells_of_another_user(ask: Ask, who: str) -> None:
    """Neither when it is asked about him by name, nor about everybody."""
    by_name = about(replace(BOB, project="a guess"))
    for asked in (by_name, everybody(by_name)):
        for answer in ANSWERS:
            if answer.call in (wire.RELEASE, wire.BOOK_LOST):
                continue
            status, body = ask(who, answer.call, asked[answer.call])
            assert b"secret-of-bob" not in body, answer.call.path
            assert b"row-of-bob" not in body, answer.call.path
            assert status in (200, 204, 400, 403, 409), (answer.call.path, status, body)


def test_no_invented_budget_tells_what_others_have_spent(ask: Ask) -> None:
    """One of everybody, or of one user by a pattern: it counts what who asks has spent."""
    _, body = ask("developer", wire.STANDINGS, about(BOB)[wire.STANDINGS])
    (found,) = json_decoder(list[wire.Figures]).decode(body)
    assert found.spent == 10_000_000
    _, body = ask("administrator", wire.STANDINGS, about(BOB)[wire.STANDINGS])
    (found,) = json_decoder(list[wire.Figures]).decode(body)
    assert found.spent == 20_000_000


def test_a_lead_sees_the_rows_of_a_team_that_is_theirs(ask: Ask) -> None:
    of_blue = questions.Wanted(Query(where=(("team", "blue"),)))
    assert b"row-of-bob" in ask("blue", questions.ROWS, of_blue)[1]
    assert b"row-of-bob" not in ask("lead", questions.ROWS, of_blue)[1]


def test_a_lead_sees_what_is_granted_to_who_is_in_a_team_that_is_theirs(ask: Ask, ledger: str) -> None:
    with closing(open_ledger(ledger, journals=())) as opened:
        people = Store(opened.tables, "default").people
        people.arrive(Person("bob", team="blue"), "idp", 1)
        people.arrive(Person("carol", team="green"), "idp", 1)
    for user in ("bob", "carol"):
        given = Grant(f"of-{user}", "default", "hub", "seats", user, 1, "USD", NOON, NOON + MINUTE, "", "a release")
        assert ask("administrator", wire.GRANT, given)[0] == 204
    seen = {who: ask(who, wire.GRANTS, wire.GrantsAt("default"))[1] for who in ("blue", "lead", "developer", "finance")}
    told = {who: [user for user in ("bob", "carol") if f"of-{user}".encode() in seen[who]] for who in seen}
    assert told == {"blue": ["bob"], "lead": [], "developer": [], "finance": ["bob", "carol"]}


def test_finance_sees_all_rows_of_its_organisation_and_of_no_other(ask: Ask) -> None:
    everything = questions.Wanted(Query())
    assert b"row-of-bob" in ask("finance", questions.ROWS, everything)[1]
    assert ask("elsewhere", questions.ROWS, everything) == (200, b"\n")
    named = questions.Wanted(Query(where=(("organisation", "default"),)))
    assert ask("elsewhere", questions.ROWS, named) == (200, b"\n")


def test_rows_and_holds_are_of_whom_the_token_names(ask: Ask) -> None:
    claimed = replace(BOB, organisation="other")
    assert ask("developer", wire.APPEND, wire.Rows([row(origin=claimed, id="claimed")]))[0] == 200
    admission = about(claimed)[wire.ADMIT]
    assert ask("developer", wire.ADMIT, admission)[0] == 200
    _, body = ask("finance", questions.ROWS, questions.Wanted(Query(where=(("user", "mallory"),))))
    found = {each.entry.id: each.origin for each in _rows(body)}
    assert found["claimed"] == replace(BOB, user="mallory", team="red")
    _, body = ask("finance", questions.OPEN_TURNS, questions.At("default", NOON))
    assert b'"turn-of-bob","origin":{"organisation":"default","user":"mallory","team":"red"' in body


def test_the_id_of_another_users_row_or_turn_is_refused(ask: Ask) -> None:
    _, body = ask("developer", wire.APPEND, wire.Rows([row(id="row-of-bob"), row(id="mine")]))
    appended = json_decoder(wire.Appended).decode(body)
    assert (appended.new, appended.refused) == (
        1,
        [wire.RefusedRow("row-of-bob", "its id is that of another user's row")],
    )
    asked = about(BOB)
    assert ask("bob", wire.ADMIT, asked[wire.ADMIT])[0] == 200
    for call in (wire.ADMIT, wire.BEAT, wire.RELEASE, wire.BOOK_LOST):
        assert ask("developer", call, asked[call])[0] == 409


def test_which_rows_are_missing_says_nothing_of_whose_the_others_are(ask: Ask) -> None:
    """And is of use to nobody who does not know their ids."""
    asked = questions.Ids("default", ["row-of-bob", "row-of-mallory", "nobody's"])
    for role in (*ROLES, "bob"):
        _, body = ask(role, questions.MISSING, asked)
        found = json_decoder(Missing).decode(body)
        assert found.ids == ["nobody's"]
        assert found.place is not None
        assert found.place.user == PEOPLE[role].user
    _, body = ask("elsewhere", questions.MISSING, asked)
    assert json_decoder(Missing).decode(body).ids == asked.ids


def test_what_was_sent_again_is_told_to_who_sent_it_and_to_those_who_see_all(ask: Ask) -> None:
    lost = wire.Rows([row(origin=BOB, id="lost", at=NOON)], again=Again("once"))
    assert ask("bob", wire.APPEND, lost)[0] == 200
    assert ask("bob", wire.APPEND, lost)[0] == 200
    rows = {who: json_decoder(SetBack).decode(ask(who, questions.SET_BACK, Since())[1]).rows for who in (*ROLES, "bob")}
    assert rows == {"administrator": 1, "finance": 1, "lead": 0, "developer": 0, "service": 0, "bob": 1}


@pytest.mark.parametrize("again", [Again(""), Again("x" * 65), Again("é"), Again("1", 0), Again("1", 2**70)])
def test_what_is_no_word_of_a_proxy_about_lost_rows_is_refused(ask: Ask, again: Again) -> None:
    status, body = ask("bob", wire.APPEND, wire.Rows([row(origin=BOB, id="lost")], again=again))
    assert (status, b"expected" in body) == (400, True)


def _rows(body: bytes) -> list[Row]:
    return [json_decoder(Row).decode(each) for each in body.splitlines() if each]


def test_only_an_administrator_is_told_which_database_there_is(ask: Ask) -> None:
    for role in ROLES:
        status, body = ask(role, questions.CHECK, wire.Nothing())
        assert (status, b"ledger.db" in body) == (200, role == "administrator")


@pytest.mark.parametrize("role", ROLES)
def test_what_a_broken_database_says_is_told_to_nobody(role: str) -> None:
    with hub.running("sqlite:////proc/nothing/of-ours.db", PEOPLE) as url:
        connection = HTTPConnection(url.removeprefix("http://"), timeout=20)
        connection.request("GET", questions.CHECK.path, headers={"Authorization": f"Bearer {role}"})
        answer = connection.getresponse()
        assert answer.status in (500, 503)
        with closing(connection):
            assert b"of-ours" not in answer.read()

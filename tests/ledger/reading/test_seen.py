"""What a lead sees: rows of one user and of some teams, by every way of reading."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from acp_proxy.core.windows import HOUR
from acp_proxy.ledger import Query
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.columns import seen
from harness.rows import ALICE, NOON, line, row
from tests.ledger.conftest import AND_HUB

PEOPLE = {"alice": "core", "bob": "web", "carol": "web", "dave": None, "eve": "shop"}
LED = Query(where=(("organisation", ALICE.organisation), seen("alice", ["web"])))
Read = Callable[[BudgetLedger, Query], set[str]]

WAYS: dict[str, Read] = {
    "rows": lambda ledger, query: {each.origin.user for each in ledger.rows(query)},
    "sums of all time": lambda ledger, query: {str(each.key[0]) for each in ledger.summed(query, ["user"])},
    "sums of days": lambda ledger, query: {str(each.key[1]) for each in ledger.summed(query, ["day+4", "user"])},
    "sums of rows": lambda ledger, query: {str(each.key[1]) for each in ledger.summed(query, ["session", "user"])},
    "sums of a part of a quarter hour": lambda ledger, query: {
        str(each.key[0]) for each in ledger.summed(replace(query, since=NOON - 1, until=NOON + HOUR + 1), ["user"])
    },
    "sessions": lambda ledger, query: {each.origin.user for each in ledger.sessions(query)},
    "sessions with sums": lambda ledger, query: {each.origin.user for each, _ in ledger.session_sums(query)},
    "costliest rows": lambda ledger, query: {each.origin.user for each in ledger.costliest(query, ["USD"], 9)},
    "costliest sessions": lambda ledger, query: {
        each.origin.user for each, _ in ledger.costliest_sessions(query, ["USD"], 9)[0]
    },
    "last sessions": lambda ledger, query: {
        each.origin.user for each in ledger.recent.sessions(ALICE.organisation, 9, query=Query(where=query.where[1:]))
    },
}


def filled(ledger: BudgetLedger) -> BudgetLedger:
    origins = [replace(ALICE, user=user, team=team) for user, team in PEOPLE.items()]
    ledger.append(
        [row(line("opus", "1"), origin=each, id=f"of-{each.user}", session=f"s-{each.user}") for each in origins]
    )
    return ledger


@AND_HUB
def test_every_way_of_reading_keeps_to_what_is_seen(ledger: BudgetLedger) -> None:
    filled(ledger)
    found = {way: read(ledger, LED) for way, read in WAYS.items()}
    assert found == {way: {"alice", "bob", "carol"} for way in WAYS}


@AND_HUB
def test_a_filter_narrows_what_is_seen_and_never_widens_it(ledger: BudgetLedger) -> None:
    filled(ledger)
    for user, shown in (("bob", {"bob"}), ("eve", set())):
        of_user = replace(LED, where=(*LED.where, ("user", user)))
        assert {way: read(ledger, of_user) for way, read in WAYS.items()} == dict.fromkeys(WAYS, shown)


def test_who_leads_nobody_sees_their_own(ledger: BudgetLedger) -> None:
    where = (("organisation", ALICE.organisation), seen("alice", []))
    assert {each.origin.user for each in filled(ledger).rows(Query(where=where))} == {"alice"}


@pytest.mark.parametrize("text", ["", "[]", "{}", "[1]", '"alice"', '["a", null]'])
def test_what_nobody_wrote_is_an_error(ledger: BudgetLedger, text: str) -> None:
    query = Query(where=(("organisation", ALICE.organisation), ("seen", text)))
    with pytest.raises(ValueError, match=r"seen|JSON|unexpected|Input|empty"):
        list(ledger.rows(query))

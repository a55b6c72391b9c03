"""The list of sessions as the page asks for it again and again, from a ledger that goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from acp_proxy.core.entry import ToolSum, Work
from acp_proxy.ledger import Row, open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.report import session_key
from acp_proxy.serve.questions import BadQuestionError
from acp_proxy.serve.session_order import Wanted
from acp_proxy.serve.sessions import ACTIVE, RecentSessions, States
from acp_proxy.text.times import milliseconds
from harness.rows import ALICE, MINUTE, NOON, line, row

OTHERS = replace(ALICE, organisation="another")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[BudgetLedger]:
    with closing(open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())) as ledger:
        yield ledger


def key_of(row: Row) -> str:
    return session_key(row.origin, row.entry.session)


def listed(sessions: RecentSessions, version: str = "1", now: int = NOON, **asked: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = sessions.page(Wanted(10), now, States(**asked), version)["sessions"]
    return found


def test_a_session_that_goes_on_is_added_up_anew_when_rows_were_added(ledger: BudgetLedger) -> None:
    sessions = RecentSessions(ledger, "default")
    ledger.append([row(line("opus", "1"))])
    assert [each["cost"] for each in listed(sessions)] == [{"USD": "1"}]
    ledger.append([row(line("opus", "0.5"))])
    assert [each["cost"] for each in listed(sessions, version="2")] == [{"USD": "1.5"}]


def test_a_session_is_active_until_five_minutes_after_its_last_turn(ledger: BudgetLedger) -> None:
    sessions = RecentSessions(ledger, "default")
    ledger.append([mine := row(at=NOON)])
    ended = NOON + MINUTE
    active = [listed(sessions, now=ended + passed, attended={key_of(mine)})[0] for passed in (ACTIVE - 1, ACTIVE)]
    assert [each["active"] for each in active] == [True, False]


def test_a_session_whose_agent_is_gone_is_not_active(ledger: BudgetLedger) -> None:
    ledger.append([row(session="s1"), other := row(session="s2", at=NOON - MINUTE)])
    found = listed(RecentSessions(ledger, "default"), attended={key_of(other)})
    assert [each["active"] for each in found] == [False, True]


def test_a_session_runs_whose_key_is_among_those_that_do(ledger: BudgetLedger) -> None:
    ledger.append([mine := row(session="s1"), row(session="s2", at=NOON - MINUTE)])
    found = listed(RecentSessions(ledger, "default"), running={key_of(mine)})
    assert [each["running"] for each in found] == [True, False]


def test_a_cost_that_is_partly_unknown_is_at_least_so_much(ledger: BudgetLedger) -> None:
    sessions = RecentSessions(ledger, "default")
    ledger.append([known := row(session="s1"), row(session="s2"), unknown := row(line("x", None), session="s2")])
    assert {each["key"]: each["at_least"] for each in listed(sessions)} == {key_of(known): False, key_of(unknown): True}
    for each, at_least in ((known, False), (unknown, True)):
        assert sessions.one(key_of(each))["total"]["at_least"] is at_least
    assert [turn["at_least"] for turn in sessions.one(key_of(unknown))["turns"]] == [False, True]


def test_a_session_that_was_never_listed_is_found_by_its_key(ledger: BudgetLedger) -> None:
    ledger.append([mine := row()])
    assert RecentSessions(ledger, "default").one(key_of(mine))["key"] == key_of(mine)


def test_a_session_that_was_listed_is_told_as_it_is_by_now(ledger: BudgetLedger) -> None:
    sessions = RecentSessions(ledger, "default")
    ledger.append([mine := row()])
    (before,) = listed(sessions)
    ledger.append([row(at=NOON + MINUTE)])
    found = sessions.one(key_of(mine))
    assert (before["ended_at"], found["ended_at"]) == (milliseconds(NOON + MINUTE), milliseconds(NOON + 2 * MINUTE))
    assert (len(found["turns"]), found["omitted"], found["context"]) == (2, 0, None)


@pytest.mark.parametrize("change", [lambda key: key[:-1], lambda key: f"{key}0", lambda key: "0" * len(key)])
def test_a_key_that_is_none_is_not_found(ledger: BudgetLedger, change: Any) -> None:
    ledger.append([mine := row()])
    with pytest.raises(BadQuestionError, match="no session of this key") as caught:
        RecentSessions(ledger, "default").one(change(key_of(mine)))
    assert caught.value.status == 404


def test_a_session_of_another_organisation_is_not_found_by_its_key(ledger: BudgetLedger) -> None:
    ledger.append([row(), theirs := row(origin=OTHERS, session="theirs")])
    with pytest.raises(BadQuestionError, match="no session of this key"):
        RecentSessions(ledger, "default").one(key_of(theirs))
    assert RecentSessions(ledger, "another").one(key_of(theirs))["session"] == "theirs"


def test_pages_follow_each_other_without_a_gap_among_sessions_that_ended_at_once(ledger: BudgetLedger) -> None:
    ledger.append([row(session=f"s{number}") for number in range(5)])
    sessions = RecentSessions(ledger, "default")
    found, following, sizes = [], None, []
    while True:
        page = sessions.page(Wanted(2, before=following), NOON, States(), "1")
        found += [each["session"] for each in page["sessions"]]
        sizes.append(len(page["sessions"]))
        following = page["next"]
        if following is None:
            break
    assert (sorted(found), sizes) == ([f"s{number}" for number in range(5)], [2, 2, 1])
    assert sessions.page(Wanted(5), NOON, States(), "1")["next"] is None


@pytest.mark.parametrize("before", ["", "%%%", "e30=", "WzEsMiwzLDQsNV0=", "ü"])
def test_a_place_that_no_page_has_named_is_a_bad_question(ledger: BudgetLedger, before: str) -> None:
    with pytest.raises(BadQuestionError, match="before: expected what an earlier answer called next"):
        RecentSessions(ledger, "default").page(Wanted(2, before=before), NOON, States(), "1")


def test_a_turn_says_where_its_time_went_if_that_is_known(ledger: BudgetLedger) -> None:
    work = Work(None, (), (ToolSum("execute", 2, 1, 9000),), busy=8000, waited=5000)
    known = row(id="a", work=work)
    ledger.append([known, row(id="b")])
    turns = RecentSessions(ledger, "default").one(key_of(known))["turns"]
    assert [turn["work"] for turn in turns] == [
        {"tools": 8000, "waited": 5000, "calls": [{"kind": "execute", "count": 2, "failed": 1, "took": 9000}]},
        None,
    ]

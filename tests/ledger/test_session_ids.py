"""Ids of sessions that no ledger could keep as they are: rows are booked all the same, and budgets count them."""

from __future__ import annotations

import pytest

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.entry import SessionState
from acp_proxy.core.scope import Subject
from acp_proxy.core.session_ids import booked
from acp_proxy.core.usage import Counters
from acp_proxy.ledger import OpenTurn, Query
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger
from acp_proxy.ledger.owners import Owner
from harness.rows import ALICE, NOON, line, row
from tests.cases import each_of
from tests.core.accounts import account, budget, usd
from tests.ledger.conftest import AND_HUB

NO_REPEATS = "".join(f"{number:x}-{number * number:x} " for number in range(4000))  # which no index makes smaller
IDS = ["", " ", "x" * 300, "x" * 301, NO_REPEATS, "🦆" * 5000, "half a pair \ud83d", "a\0b", "line\nfeed \x1b[2J"]


@AND_HUB
@pytest.mark.parametrize("session", IDS, ids=lambda session: repr(session)[:20])
def test_a_session_of_any_id_is_booked_goes_on_and_has_a_budget_of_its_own(ledger: BudgetLedger, session: str) -> None:
    ledger.append([row(session=f"{session}!", state=SessionState(title="another"))])
    subject = Subject("default", "alice", "core", "web", "laptop", "claude-agent-acp", session=session)
    own = account(budget("1 USD", window="session"), subject, NOON)
    opened = OpenTurn("t1", ALICE, session, NOON, Owner.this())
    assert ledger.hold(opened, [(own, HoldSize(usd("0.4"), 1))], NOON, NOON + EXPIRY).admitted
    (running,) = ledger.recent.open_turns("default", NOON)
    assert running.session == booked(session)
    state = SessionState(counters=Counters(1, 2, 3), title="its own")
    ledger.append([row(line(cost="0.3"), id="t1", session=session, state=state)])
    ledger.note_session(ALICE, session, "its new one", NOON + EXPIRY)
    (standing,) = ledger.standing([own], NOON)
    assert (standing.spent, standing.held) == (usd("0.3"), 0)
    known = ledger.state_of(ALICE, session)
    assert known is not None
    assert (known.counters, known.title) == (state.counters, "its new one")
    (info,) = ledger.sessions(Query(where=(("title", "its new one"),)))
    assert [found.entry.id for found in ledger.rows(Query.of_session(info))] == ["t1"]


@each_of(IDS, repr)
def test_what_is_booked_is_short_storable_and_booked_as_it_is(session: str) -> None:
    kept = booked(session)
    assert len(kept) <= 300
    assert "\0" not in kept.encode().decode()  # and there is no half of a pair
    assert booked(kept) == kept


def test_ordinary_ids_are_booked_as_they_are_and_long_ones_stay_apart() -> None:
    assert [booked(each) for each in ("", "sess-1", "日本語", "x" * 300)] == ["", "sess-1", "日本語", "x" * 300]
    assert booked("x" * 301) != booked("x" * 302)
    assert booked("\ud83d") != booked("\ud83e")

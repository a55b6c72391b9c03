"""Names are values, never SQL: on every ledger they come back as they were, and find only what is called so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from acp_proxy.core.entry import SessionState
from acp_proxy.ledger import Query
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.report import BY, report
from acp_proxy.times import UTC_ZONE
from tests.ledger.rows import ALICE, BOB, line, row

ATTACKS = (
    "'; DROP TABLE turn; --",
    "' OR '1'='1",
    '" OR 1=1 --',
    "x') UNION SELECT * FROM session --",
    "$1",
    ":name ?1 @x",
    "\\'; --",
    "%",
    "_",
    "NULL",
)
DIMENSIONS = ("user", "team", "project", "agent", "session", "model")


@pytest.mark.parametrize("name", ATTACKS)
def test_a_name_is_kept_as_it_is_and_finds_nothing_else(ledger: BudgetLedger, name: str) -> None:
    origin = replace(ALICE, user=name, team=name, project=name, agent=name, client=name, agent_version=name)
    hostile = row(line(name, "1", "USD"), origin=origin, session=name, message_id=name, state=SessionState(title=name))
    ledger.append([hostile, row(line("opus"), origin=BOB, session="other")])
    for dimension in DIMENSIONS:
        found = list(ledger.rows(Query(where=((dimension, name),))))
        assert [each.entry.id for each in found] == [hostile.entry.id], dimension
    for by in BY:
        assert report(ledger, by, Query(), UTC_ZONE).total.turns == 2
    assert [each.title for each in ledger.sessions(Query(where=(("title", name),)))] == [name]
    assert "2 rows" in ledger.check()

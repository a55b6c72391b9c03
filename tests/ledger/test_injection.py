"""Names are values, never SQL: on every ledger they come back as they were, and find only what is called so."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.entry import SessionState
from acp_proxy.core.scope import Scope, fits
from acp_proxy.ledger import OpenTurn, Query
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger, Grant
from acp_proxy.ledger.owners import Owner
from acp_proxy.report import BY, report
from acp_proxy.text.times import UTC_ZONE
from harness.rows import ALICE, BOB, NOON, line, row
from tests.core.accounts import budget, usd
from tests.ledger.conftest import AND_HUB
from tests.ledger.holds import account, held

pytestmark = AND_HUB

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


@pytest.mark.parametrize("pattern", ["sonnet[1m]*", "*[1m]*", "a?b*", "*?b-x", "100%*", "a_b*", "a\\b*", "*b-x"])
def test_a_pattern_means_nothing_to_the_database_but_its_stars(ledger: BudgetLedger, pattern: str) -> None:
    models = ["sonnet[1m]-x", "sonnet1-x", "a?b-x", "a_b-x", "a\\b-x", "axb-x", "ab-x", "100%-x", "100-x"]
    ledger.append([row(line(model, "1")) for model in models])
    meant = [model for model in models if fits(pattern, model)]
    assert 0 < len(meant) < len(models)
    assert held(ledger, account(budget("99 USD", scope=Scope(model=(pattern,))), model=meant[0])) == (
        usd(str(len(meant))),
        0,
    )


@pytest.mark.parametrize("name", ATTACKS)
def test_budgets_of_any_name_hold_charge_and_grant_for_that_name_alone(ledger: BudgetLedger, name: str) -> None:
    who = replace(ALICE, organisation=name, user=name, team=name, project=name, agent=name)
    cap = budget("9 USD", name=name, per="user", on_unpriced="estimate")
    its, others = account(cap, who, model=name), account(cap, replace(who, organisation="acme"), model=name)
    turn = OpenTurn(f"{name} turn", who, name, NOON, Owner.this(), name, name)
    assert ledger.hold(turn, [(its, HoldSize(usd("0.4"), 1))], NOON, NOON + EXPIRY).admitted
    ledger.beat(name, [turn.id], NOON + EXPIRY)
    assert (held(ledger, its), held(ledger, others)) == ((0, usd("0.4")), (0, 0))
    ledger.append([row(line(name, None), id=turn.id, origin=who, session=name)])
    assert (held(ledger, its), held(ledger, others)) == ((usd("0.4"), 0), (0, 0))
    ledger.grant(Grant(name, name, "user", name, name, usd("2"), "USD", NOON, NOON + EXPIRY, name, name))
    assert [standing.granted for standing in ledger.standing([its], NOON)] == [usd("2")]
    assert [standing.granted for standing in ledger.standing([others], NOON)] == [0]
    assert [grant.why for grant in ledger.grants(name, NOON)] == [name]
    assert ledger.announce(its, 80)
    assert not ledger.announce(its, 80)
    assert ledger.recent_costs(name, name, "USD", model=name, user=name) == []
    ledger.release(name, turn.id)

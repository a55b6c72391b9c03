"""Budgets of the hub's own policy: it decides by them whatever a proxy knows of them, or claims."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from acp_proxy.core.budget import Account
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.entry import Origin
from acp_proxy.core.money import NANO
from acp_proxy.hub.identity import Identity
from acp_proxy.ledger import LedgerError, LedgerForbiddenError, OpenTurn
from acp_proxy.ledger.budgets import EXPIRY, Held
from acp_proxy.ledger.hub.ledger import HubLedger
from acp_proxy.ledger.hub.policy import Changes, Table
from acp_proxy.ledger.owners import Owner
from harness import hub
from harness.rows import ALICE, NOON, row
from tests.core.accounts import budget
from tests.ledger.holds import account

PEOPLE = {
    "root": Identity("root", "default", None, "administrator"),
    "ann": Identity("ann", "default", "core", "developer"),
    "bob": Identity("bob", "default", "core", "developer"),
    "eve": Identity("eve", "default", "web", "developer"),
}
POOL: Table = {"window": "month", "limit": {"amount": "3", "currency": "USD"}, "scope": {"team": "core"}, "hold": "1"}
SEAT: Table = {"window": "day", "per": "user", "limit": {"turns": 2}}


def _silent(event: str, **fields: object) -> None:
    pass


class Hub:
    """A hub at noon, and its ledger as each of these people has it."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __getitem__(self, who: str) -> HubLedger:
        token = f"Bearer {who}"
        return HubLedger(
            self._url,
            lambda: NOON,
            patience=5.0,
            warn=_silent,
            journals=(),
            authorization=lambda _: token,
        )

    def hold(self, who: str, turn: str, *wants: tuple[Account, HoldSize], origin: Origin = ALICE) -> Held:
        opened = OpenTurn(turn, replace(origin, user=who), "s1", NOON, Owner("laptop", 1, "1"), "opus")
        with closing(self[who]) as ledger:
            return ledger.hold(opened, wants, NOON, NOON + EXPIRY)

    def set(self, **budgets: Table | None) -> None:
        with closing(self["root"]) as ledger:
            ledger.change_policy(Changes(budgets=budgets))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Hub]:
    with hub.running(f"sqlite:///{tmp_path}/ledger.db", PEOPLE, clock=lambda: NOON) as url:
        yield Hub(url)


def test_a_pool_is_shared_by_a_team_and_counts_nobody_else(served: Hub) -> None:
    served.set(pool=POOL)
    assert served.hold("ann", "t1").admitted
    assert served.hold("bob", "t2").admitted
    (standing,) = served.hold("ann", "t3").standings
    assert (standing.account.budget.name, standing.held) == ("pool", 2 * NANO)
    refused = served.hold("bob", "t4")
    assert refused.verdict.binding is not None
    assert refused.verdict.binding.account.budget.name == "pool"
    assert served.hold("eve", "t5").standings == ()


def test_a_limit_per_seat_is_each_users_own(served: Hub) -> None:
    served.set(seat=SEAT)
    assert [served.hold("ann", f"a{n}").admitted for n in range(3)] == [True, True, False]
    assert served.hold("bob", "b1").admitted


def test_a_proxy_that_names_another_user_team_or_limit_is_judged_by_its_token(served: Hub) -> None:
    served.set(pool=POOL, seat=SEAT)
    claimed = replace(ALICE, user="eve", team="web", organisation="other")
    lie = account(budget("9999 USD", name="pool", layer="hub"), claimed)
    standings = served.hold("ann", "t1", (lie, HoldSize(1, 1)), origin=claimed).standings
    assert {each.account.budget.name: each.account.limit for each in standings} == {"pool": 3 * NANO, "seat": 2}
    assert [dict(each.account.filter.where).get("user") for each in standings] == [None, "ann"]
    with closing(served["root"]) as ledger:
        (pool,) = ledger.standing([standings[0].account], NOON)
    assert pool.held == NANO


def test_a_proxy_that_knows_an_old_policy_gets_the_verdict_of_the_new_one(served: Hub) -> None:
    served.set(seat=SEAT)
    first = served.hold("ann", "t1")
    served.set(seat={"limit": {"turns": 1}})
    second = served.hold("ann", "t2", *((each.account, HoldSize(1, 1)) for each in first.standings))
    assert not second.admitted
    with closing(served["ann"]) as ledger:
        assert ledger.policy(second.policy) is None
        found = ledger.policy(first.policy)
    assert found is not None
    assert (found[0], found[1].document.budgets[0]["limit"]) == (second.policy, {"turns": 1})


def test_rows_count_in_the_pool_and_everybody_in_it_is_told_what_is_left(served: Hub) -> None:
    served.set(pool=POOL)
    standings = served.hold("ann", "t1").standings
    with closing(served["ann"]) as ledger:
        ledger.append([row(id="t1")])
    with closing(served["bob"]) as ledger:
        (pool,) = ledger.standing([standings[0].account], NOON)
    assert (pool.spent, pool.held) == (10_000_000, 0)


def test_of_an_invented_budget_of_the_hub_nobody_is_told_anything(served: Hub) -> None:
    served.set(seat=SEAT)
    invented = account(budget("9 USD", name="all", layer="hub"), ALICE)
    with closing(served["eve"]) as ledger, pytest.raises(LedgerError, match="has none of that name"):
        ledger.standing([invented], NOON)
    another = account(budget("9 USD", name="seat", layer="hub", per="user"), replace(ALICE, user="ann"))
    served.hold("ann", "t1")
    with closing(served["eve"]) as ledger:
        (own,) = ledger.standing([another], NOON)
    assert own.held == 0


def test_only_an_administrator_changes_it(served: Hub) -> None:
    with closing(served["ann"]) as ledger, pytest.raises(LedgerForbiddenError):
        ledger.change_policy(Changes(budgets={"seat": SEAT}))

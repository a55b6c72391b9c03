"""What is lent, on each database: whatever comes after what, spent, held and lent never exceed a limit together."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from threading import Barrier
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.core.budget import Account
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.budget.lease import Lease, Terms
from acp_proxy.core.entry import Origin
from acp_proxy.core.windows import DAY, SECOND
from acp_proxy.ledger import OpenTurn, Row, open_ledger
from acp_proxy.ledger.budgets import EXPIRY
from acp_proxy.ledger.sql_ledger import SqlLedger
from harness.rows import ALICE, NOON, line, row
from tests.core.accounts import budget, usd
from tests.ledger.conftest import ONE_AT_A_TIME
from tests.ledger.holds import ELSEWHERE, account, overshot

TERMS = Terms(share=40, turns=3, hours=1, kept_days=1)
SIZE = HoldSize(usd("1"), usd("0.25"))
MACHINES = ("laptop", "desktop")
_numbers = count()


@pytest.fixture
def ledger(url: str) -> Iterator[SqlLedger]:
    """Its clock is at noon: on PostgreSQL holds expire by the server's."""
    with closing(open_ledger(url, journals=())) as opened:
        yield cast(SqlLedger, opened)


class Team:
    """Machines of two users that share a pool, each beside a limit of its own; `left` is checked after each step."""

    def __init__(self, ledger: SqlLedger, limit: str = "10 USD") -> None:
        self.ledger = ledger
        self.organisation = f"org{next(_numbers)}"
        self.pool = budget(limit, name="pool", window="total")
        self.seat = budget("6 USD", name="seat", window="total", per="user")
        self.leases: dict[str, Lease] = {}
        self.running: dict[str, tuple[str, str | None]] = {}  # machine and lease of each turn
        self.waiting: list[Row] = []
        self.rows: dict[str, int] = {}
        self.steps = 0

    def origin(self, machine: str) -> Origin:
        return replace(ALICE, organisation=self.organisation, user=f"user of {machine}", host=machine)

    def accounts(self, machine: str) -> list[Account]:
        return [account(each, self.origin(machine)) for each in (self.pool, self.seat)]

    def _turn(self, machine: str, id: str) -> OpenTurn:
        return OpenTurn(id, self.origin(machine), "s1", NOON, ELSEWHERE, "opus")

    def _next(self) -> str:
        self.steps += 1
        return f"{self.organisation}-{self.steps:04}"

    def admit(self, machine: str) -> None:
        turn = self._next()
        wants = [(each, SIZE) for each in self.accounts(machine)]
        if self.ledger.hold(self._turn(machine, turn), wants, NOON, NOON + DAY).admitted:
            self.running[turn] = (machine, None)

    def lend(self, machine: str) -> None:
        old = self.leases.pop(machine, None)
        if old is not None and old.drawn:
            self.leases[machine] = old
            return
        new = f"lease-{self._next()}"
        wants = [(each, SIZE) for each in self.accounts(machine)]
        lent = self.ledger.lend(self._turn(machine, new), wants, TERMS, NOON, [old.id] if old else [])
        self.leases[machine] = Lease(new, "boot", 0, TERMS.usable, lent)

    def draw(self, machine: str) -> None:
        """A prompt without a hub."""
        lease, turn = self.leases.get(machine), self._next()
        sizes = {each.key: SIZE for each in self.accounts(machine)}
        drawn = lease.draw(turn, sizes, "boot", 1) if lease else None
        if drawn is not None and lease is not None:
            self.leases[machine] = drawn[0]
            self.running[turn] = (machine, lease.id)

    def end(self, part: int) -> None:
        """The latest turn ends, having used a part (in percent) of the least that it may have held."""
        if not self.running:
            return
        turn, (machine, lease) = self.running.popitem()
        cost = SIZE.floor * part // 100
        self.rows[turn] = cost
        made = row(line(cost=f"{cost / 10**9:.9f}"), id=turn, origin=self.origin(machine), at=NOON)
        self.waiting.append(replace(made, lease=lease))
        if lease is not None and self.leases[machine].id == lease:
            charged = {each.key: cost for each in self.accounts(machine)}
            self.leases[machine] = self.leases[machine].charge(turn, charged)

    def arrive(self, again: bool = False) -> None:
        """All that waits, perhaps twice."""
        rows, self.waiting = self.waiting, []
        for _ in range(2 if again else 1):
            if rows:
                self.ledger.charge_leases(rows, NOON + DAY)
                self.ledger.append(rows)
        for each in rows:
            machine = each.origin.host
            if each.lease is not None and self.leases[machine].id == each.lease:
                self.leases[machine] = self.leases[machine].settled(each.entry.id)

    def check(self) -> None:
        every = {each.key: each for machine in MACHINES for each in self.accounts(machine)}
        for standing in self.ledger.standing(list(every.values()), NOON):
            assert standing.spent + standing.held <= standing.account.limit


_machines = st.sampled_from(MACHINES)
_steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["admit", "lend", "draw", "draw"]), _machines),
        st.tuples(st.just("end"), st.sampled_from([0, 40, 100])),
        st.tuples(st.just("arrive"), st.booleans()),
    ),
    max_size=30,
)


@given(_steps)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_comes_after_what_no_limit_is_exceeded_and_each_row_counts_once(
    ledger: SqlLedger, steps: list[tuple[str, Any]]
) -> None:
    team = Team(ledger)
    for step, what in steps:
        getattr(team, step)(what)
        team.check()
    while team.running:
        team.end(100)
    team.arrive(again=True)
    team.check()
    (pool,) = ledger.standing([team.accounts("laptop")[0]], NOON)
    assert pool.spent == sum(team.rows.values())
    lent = {lease.id: lease for lease in team.leases.values()}
    assert pool.held == sum(lease.left.get(pool.account.key, 0) for lease in lent.values())
    for machine, lease in team.leases.items():
        ledger.give_back(team.organisation, f"user of {machine}", [lease.id])
    (pool,) = ledger.standing([pool.account], NOON)
    assert pool.held == 0
    assert overshot(ledger, team.organisation) == {}


def test_the_lease_of_another_user_is_neither_given_back_nor_charged(ledger: SqlLedger) -> None:
    team = Team(ledger)
    team.lend("laptop")
    (pool, _) = team.accounts("laptop")
    (before,) = ledger.standing([pool], NOON)
    assert before.held > 0
    lease = team.leases["laptop"].id
    ledger.give_back(team.organisation, "user of desktop", [lease])
    theirs = replace(row(id="theirs", origin=team.origin("desktop")), lease=lease)
    ledger.charge_leases([theirs], NOON + EXPIRY)
    assert ledger.standing([pool], NOON) == [before]


def test_what_was_lent_long_ago_is_free_again_and_rows_that_come_still_later_are_booked(ledger: SqlLedger) -> None:
    team = Team(ledger)
    team.lend("laptop")
    team.draw("laptop")
    team.end(100)
    (pool, _) = team.accounts("laptop")
    after = NOON + TERMS.kept + SECOND
    (standing,) = ledger.standing([pool], after)
    assert standing.held == 0
    ledger.lend(team._turn("desktop", "lease-next"), [(each, SIZE) for each in team.accounts("desktop")], TERMS, after)
    team.arrive()
    (standing,) = ledger.standing([pool], after)
    assert standing.spent == SIZE.floor


def test_so_many_leases_and_no_more_has_one_user(ledger: SqlLedger) -> None:
    team = Team(ledger, "1000000 USD")
    wants = [(team.accounts("laptop")[0], SIZE)]
    lent = [ledger.lend(team._turn("laptop", f"lease-{n}"), wants, TERMS, NOON) for n in range(17)]
    assert [bool(each) for each in lent] == [True] * 16 + [False]


def test_a_lease_that_is_asked_for_again_is_lent_once(ledger: SqlLedger) -> None:
    team = Team(ledger)
    wants = [(team.accounts("laptop")[0], SIZE)]
    turn = team._turn("laptop", "lease-once")
    assert ledger.lend(turn, wants, TERMS, NOON) == ledger.lend(turn, wants, TERMS, NOON)
    (pool,) = ledger.standing([wants[0][0]], NOON)
    assert pool.held == usd("3")


@ONE_AT_A_TIME
def test_rows_that_come_at_one_moment_are_each_taken_out_of_their_lease(url: str, ledger: SqlLedger) -> None:
    team = Team(ledger, "100 USD")
    (pool, _) = team.accounts("laptop")
    lent = ledger.lend(team._turn("laptop", "lease-shared"), [(pool, SIZE)], Terms(share=100, turns=40), NOON)
    begun = Barrier(2, timeout=60)

    def charge(number: int) -> None:
        with closing(cast(SqlLedger, open_ledger(url, journals=()))) as own:
            begun.wait()
            for each in range(20):
                made = row(line(cost="0.5"), id=f"turn {number} {each:02}", origin=team.origin("laptop"), at=NOON)
                own.charge_leases([replace(made, lease="lease-shared")], NOON + DAY)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(charge, range(2)))
    (standing,) = ledger.standing([pool], NOON)
    assert standing.held == lent[pool.key]  # of the lease, and of the rows that are on their way
    ledger.give_back(team.organisation, "user of laptop", ["lease-shared"])
    (standing,) = ledger.standing([pool], NOON)
    assert standing.held == 40 * usd("0.5")

"""Machines whose clocks differ, on one server: what a turn of one holds counts for the other, as long as it lasts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from acp_proxy.core.windows import DAY, SECOND
from acp_proxy.doctor.clocks import clock_trouble
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.budgets import EXPIRY
from acp_proxy.ledger.open_turns import ABANDONED
from harness.rows import MINUTE, line, row
from tests.core.accounts import usd
from tests.ledger.conftest import ISOLATIONS, PATIENCE
from tests.ledger.holds import CAP, ELSEWHERE, hold

APART = pytest.mark.parametrize("ahead", [-10 * MINUTE, -2 * SECOND, 90 * SECOND, 10 * MINUTE, 5 * ABANDONED])
pytestmark = pytest.mark.parametrize("url", ISOLATIONS, indirect=True)


class Machine:
    """One whose clock is `ahead` of the server's."""

    def __init__(self, url: str, ahead: int) -> None:
        self.ahead = ahead
        self.ledger = open_ledger(url, journals=(), clock=self.now, patience=PATIENCE)

    def now(self) -> int:
        return time.time_ns() + self.ahead

    def holds(self, turn: str, amount: str = "0.6", *, ago: int = 0) -> bool:
        return hold(self.ledger, turn, (CAP, amount), now=self.now() - ago, owner=ELSEWHERE).admitted

    @property
    def held(self) -> int:
        return self.ledger.standing([CAP], self.now())[0].held

    @property
    def running(self) -> list[str]:
        return [turn.id for turn in self.ledger.recent.open_turns("default", self.now())]


Make = Callable[[int], Machine]


@pytest.fixture
def machine(url: str) -> Iterator[Make]:
    with ExitStack() as stack:

        def make(ahead: int) -> Machine:
            made = Machine(url, ahead)
            stack.callback(made.ledger.close)
            return made

        yield make


@APART
def test_what_a_turn_holds_counts_on_every_machine(machine: Make, ahead: int) -> None:
    right, wrong = machine(0), machine(ahead)
    assert right.holds("a")
    assert wrong.held == usd("0.6")
    assert wrong.running == ["a"]
    assert wrong.holds("b")  # what is left, 0.4
    assert right.held == wrong.held == usd("1")
    assert not right.holds("c")
    assert not wrong.holds("c")


@APART
def test_a_hold_that_ran_out_counts_on_no_machine(machine: Make, ahead: int) -> None:
    right, wrong = machine(0), machine(ahead)
    right.holds("a", "0.3", ago=EXPIRY + MINUTE)
    wrong.holds("b", "0.3", ago=EXPIRY + MINUTE)
    assert [(each.held, each.running) for each in (right, wrong)] == [(0, []), (0, [])]


@APART
def test_a_beat_of_one_machine_keeps_its_hold_for_the_others(machine: Make, ahead: int) -> None:
    right, wrong = machine(0), machine(ahead)
    wrong.holds("a", ago=EXPIRY + MINUTE)
    wrong.ledger.beat("default", ["a"], wrong.now() + EXPIRY)
    assert (right.held, right.running) == (usd("0.6"), ["a"])
    wrong.ledger.beat("default", ["a"], wrong.now() - MINUTE)  # it never ends a hold earlier
    assert right.held == usd("0.6")


@APART
def test_nobody_takes_a_turn_that_runs_elsewhere_for_abandoned(machine: Make, ahead: int) -> None:
    right, wrong = machine(0), machine(ahead)
    assert right.holds("a")
    assert wrong.ledger.settle_dead(wrong.now()) == 0
    right.ledger.append([row(line(cost="0.2"), id="a")])
    assert wrong.ledger.standing([CAP], wrong.now())[0].held == 0


def test_what_was_abandoned_is_booked_as_ended_by_the_clock_of_who_books_it(machine: Make) -> None:
    right, wrong = machine(0), machine(10 * MINUTE)
    assert right.holds("a", ago=ABANDONED + EXPIRY + MINUTE)
    assert wrong.ledger.settle_dead(wrong.now()) == 1
    assert wrong.held == 0


@pytest.mark.parametrize(
    ("ahead", "says"),
    [
        (-10 * MINUTE, "this machine's is 0:10:00 behind that of the ledger's server"),
        (-2 * SECOND, ""),
        (20 * SECOND, ""),
        (2 * DAY, "this machine's is 2 days, 0:00:00 ahead of that of the ledger's server"),
    ],
)
def test_a_doctor_says_how_far_a_clock_is_off(machine: Make, ahead: int, says: str) -> None:
    assert clock_trouble(machine(ahead).ledger).partition(", and its rows")[0] == says

"""What a hold and a settle cost as more and more users, models and agents share a budget."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial

from msgspec.structs import replace

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.entry import Origin
from acp_proxy.core.money import Money
from acp_proxy.ledger import OpenTurn, Row, open_ledger
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger
from acp_proxy.ledger.owners import Owner
from acp_proxy.system.ids import uuid7
from bench.accounts import HOLD, ORIGIN, accounts
from bench.growth_ledgers import Costs
from harness.rows import line, row

COMBINATIONS = (30, 300, 3000)  # of user, model and agent, each with a row in the budgets' windows
_REPEATED = 300


def on_sqlite() -> Iterator[tuple[int, Costs]]:
    """Microseconds of processor time."""
    for count in COMBINATIONS:
        with tempfile.TemporaryDirectory() as directory:
            yield count, measured(f"sqlite:///{directory}/ledger.db", count, "cpu us", time.process_time_ns)


def measured(url: str, count: int, unit: str, clock: Callable[[], int]) -> Costs:
    """The medians of many turns on two budgets, one of all and one of each user; of a new ledger."""
    with closing(open_ledger(url, journals=())) as ledger:
        ledger.append([_row(number) for number in range(count)])
        turn = partial(_turn, ledger, clock)
        first, _ = turn()
        times = [turn() for _ in range(_REPEATED)]
    return {
        f"a hold, {unit}": statistics.median(hold for hold, _ in times),
        f"a turn's row, {unit}": statistics.median(settle for _, settle in times),
        f"the first hold, {unit}": first,
    }


def _row(number: int) -> Row:
    origin = replace(ORIGIN, user=f"user {number // 10}", agent=f"agent {number % 2}")
    return _ended(uuid7(time.time_ns()), origin, f"model {number // 2 % 5}")


def _turn(ledger: BudgetLedger, clock: Callable[[], int]) -> tuple[float, float]:
    now = time.time_ns()
    opened = OpenTurn(uuid7(now), ORIGIN, "session", now, Owner.this())
    wants = [(account, HoldSize(HOLD, 1)) for account in accounts(10**6)]
    held = _took(clock, lambda: ledger.hold(opened, wants, now, now + EXPIRY))
    return held, _took(clock, lambda: ledger.append([_ended(opened.id, ORIGIN, "model")]))


def _ended(turn: str, origin: Origin, model: str) -> Row:
    used = line(model, Money(HOLD // 2, "USD"), input=10)
    return row(used, id=turn, origin=origin, session="session", at=time.time_ns(), took=0)


def _took(clock: Callable[[], int], call: Callable[[], object]) -> float:
    began = clock()
    call()
    return (clock() - began) / 1e3

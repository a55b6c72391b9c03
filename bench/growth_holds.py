"""What a hold and a settle cost as more and more users, models and agents share a budget."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing

from msgspec.structs import replace

from acp_proxy.core.entry import Entry, Origin, UsageLine
from acp_proxy.core.hold_size import HoldSize
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.ids import uuid7
from acp_proxy.ledger import OpenTurn, Row, open_ledger
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger
from acp_proxy.ledger.owners import Owner
from bench.admission_proof import HOLD, ORIGIN, accounts
from bench.growth_ledgers import Costs

COMBINATIONS = (30, 300, 3000)  # of user, model and agent, each with a row in the budgets' windows
_REPEATED = 300


def holds() -> Iterator[tuple[int, Costs]]:
    """Microseconds of processor time, the medians of many; on two budgets, one of all and one of each user."""
    for count in COMBINATIONS:
        with (
            tempfile.TemporaryDirectory() as directory,
            closing(open_ledger(f"sqlite:///{directory}/ledger.db", journals=())) as ledger,
        ):
            ledger.append([_row(number) for number in range(count)])
            first, _ = _turn(ledger)
            times = [_turn(ledger) for _ in range(_REPEATED)]
            yield (
                count,
                {
                    "a hold, cpu us": statistics.median(hold for hold, _ in times),
                    "a turn's row, cpu us": statistics.median(settle for _, settle in times),
                    "the first hold, cpu us": first,
                },
            )


def _row(number: int) -> Row:
    origin = replace(ORIGIN, user=f"user {number // 10}", agent=f"agent {number % 2}")
    return _ended(uuid7(time.time_ns()), origin, f"model {number // 2 % 5}")


def _turn(ledger: BudgetLedger) -> tuple[float, float]:
    now = time.time_ns()
    opened = OpenTurn(uuid7(now), ORIGIN, "session", now, Owner.this())
    wants = [(account, HoldSize(HOLD, 1)) for account in accounts(10**6)]
    held = _used(lambda: ledger.hold(opened, wants, now, now + EXPIRY))
    return held, _used(lambda: ledger.append([_ended(opened.id, ORIGIN, "model")]))


def _ended(turn: str, origin: Origin, model: str) -> Row:
    now = time.time_ns()
    lines = (UsageLine(model, Usage(input=10), Money(HOLD // 2, "USD")),)
    return Row(origin, Entry(turn, "session", "turn", now, now, "end_turn", lines, "agent", "computed"))


def _used(call: Callable[[], object]) -> float:
    used = time.process_time_ns()
    call()
    return (time.process_time_ns() - used) / 1e3

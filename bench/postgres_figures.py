"""`python postgres_figures.py URL TIMES [KIND]`: microseconds that each kind of call takes with a build, as JSON."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import closing
from uuid import uuid4

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.entry import Entry, UsageLine
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import OpenTurn, Row
from acp_proxy.ledger.budgets import EXPIRY
from acp_proxy.ledger.owners import Owner
from acp_proxy.ledger.postgres.ledger import PostgresLedger
from bench.accounts import HOLD, ORIGIN, accounts


def figures(url: str, times: int, only: str) -> dict[str, float]:
    def anew() -> None:
        transactions = ledger._transactions
        getattr(transactions, "_drop", transactions.close)()  # as it was called before psycopg
        select()

    def select() -> None:
        ledger._read("SELECT count(*) FROM granted WHERE org_id = ?", ("default",))

    wants = [(account, HoldSize(HOLD, 1)) for account in accounts(10**6)[:1]]
    with closing(PostgresLedger(url, patience=60)) as ledger:
        kinds: dict[str, Callable[[], object]] = {
            "a SELECT": select,
            "one on a new connection": anew,
            "a transaction of three": lambda: ledger._write(
                lambda run: [run("SELECT count(*) FROM granted WHERE org_id = ?", (str(each),)) for each in range(3)]
            ),
            "a hold": lambda: ledger.hold(_opened(), wants, (now := time.time_ns()), now + EXPIRY),
            "an append": lambda: ledger.append([_row()]),
        }
        return {kind: _median(call, times) for kind, call in kinds.items() if only in ("", kind)}


def _median(call: Callable[[], object], times: int) -> float:
    taken = []
    for _ in range(times):
        began = time.perf_counter_ns()
        call()
        taken.append((time.perf_counter_ns() - began) / 1000)
    return statistics.median(taken)


def _opened() -> OpenTurn:
    return OpenTurn(str(uuid4()), ORIGIN, "session", time.time_ns(), Owner.this(), "opus")


def _row() -> Row:
    now, lines = time.time_ns(), (UsageLine("opus", Usage(input=1000), Money(10**7, "USD")),)
    return Row(ORIGIN, Entry(str(uuid4()), "session", "turn", now, now, "end_turn", lines, "agent", "computed"))


if __name__ == "__main__":
    measured = figures(sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "")
    sys.stdout.write(json.dumps(measured))

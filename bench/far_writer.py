"""`python far_writer.py URL KIND NUMBER SECONDS`: one of many that write to a ledger on PostgreSQL, with any build.

When it is ready it says so, and begins at a line on stdin. Prints as JSON how many turns it had, and the seconds that
each prompt waited for admission.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import closing
from uuid import uuid4

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.entry import Entry, Origin, UsageLine
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import OpenTurn, Row
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger
from acp_proxy.ledger.owners import Owner
from acp_proxy.ledger.postgres.ledger import PostgresLedger
from bench.accounts import HOLD, accounts

_OF_A_SESSION = 20  # turns
# Seconds between two turns of one who looks how long others keep them waiting, and of people.
_PAUSES = {"look": 0.05, "people": 0.5}


class Writer:
    """A user of the organisation that all share."""

    def __init__(self, ledger: BudgetLedger, number: int) -> None:
        self.waits: list[float] = []
        self.turns = 0
        self._ledger = ledger
        self._origin = Origin("default", f"user{number}", "core", "web", f"host{number}", "agent", None, None)
        self._wants = [(account, HoldSize(HOLD, 1)) for account in accounts(10**6)[:1]]

    def turn(self, *, held: bool) -> None:
        """One after the other, as an agent's are."""
        name, session, now = str(uuid4()), f"session{self.turns // _OF_A_SESSION}", time.time_ns()
        if held:
            opened = OpenTurn(name, self._origin, session, now, Owner.this(), "opus")
            began = time.perf_counter()
            self._ledger.hold(opened, self._wants, now, now + EXPIRY)
            self.waits.append(time.perf_counter() - began)
        lines = (UsageLine("opus", Usage(input=1000), Money(10**7, "USD")),)
        entry = Entry(name, session, "turn", now, time.time_ns(), "end_turn", lines, "agent", "computed")
        self._ledger.append([Row(self._origin, entry)])
        self.turns += 1

    def go_on(self, kind: str, seconds: float) -> None:
        """Counted are those that end in time."""
        self.turns, self.waits = 0, []
        ends = time.monotonic() + seconds
        while True:
            self.turn(held=kind != "rows")
            if time.monotonic() >= ends:
                self.turns -= 1
                return
            time.sleep(_PAUSES.get(kind, 0))


def main() -> None:
    _, url, kind, number, seconds = sys.argv
    if kind == "open":
        is_ready()
        with closing(PostgresLedger(url, patience=60)):
            is_ready()  # to end, which takes longer than to open: what Python has loaded is taken down
        return
    with closing(PostgresLedger(url, patience=60)) as ledger:
        writer = Writer(ledger, int(number))
        for _ in range(3):  # what its first turn alone has to do, and statements that are prepared when they come again
            writer.turn(held=kind != "rows")
        is_ready()
        if kind == "people":  # they do not all press Enter at once
            time.sleep(_PAUSES[kind] * (int(number) % 16) / 16)
        writer.go_on(kind, float(seconds))
        json.dump({"turns": writer.turns, "waits": writer.waits}, sys.stdout)


def is_ready() -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()


if __name__ == "__main__":
    main()

"""`python -m bench.hub_statements URL USERS SECONDS`: what a hub asks of PostgreSQL, from one process without a hub.

All users' prompts are one transaction, and their rows another, as where a hub has none to wait for. Prints how many
turns it had.
"""

from __future__ import annotations

import sys
import time
from contextlib import closing
from uuid import uuid4

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.entry import Entry, Origin, UsageLine
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import OpenTurn, Row
from acp_proxy.ledger.accounts.batched_holds import Prompt
from acp_proxy.ledger.budgets import EXPIRY
from acp_proxy.ledger.owners import Owner
from acp_proxy.ledger.postgres.ledger import PostgresLedger
from bench.accounts import HOLD, accounts

_OF_A_SESSION = 20  # turns


def main() -> None:
    _, url, users, seconds = sys.argv
    origins = [
        Origin("default", f"user{number}", "core", "web", f"host{number}", "agent", None, None)
        for number in range(int(users))
    ]
    with closing(PostgresLedger(url, patience=60)) as ledger:
        for number in range(3):
            _turns(ledger, origins, number)
        number, ends = 3, time.monotonic() + float(seconds)
        while time.monotonic() < ends:
            _turns(ledger, origins, number)
            number += 1
    sys.stdout.write(f"{(number - 3) * len(origins)}\n")


def _turns(ledger: PostgresLedger, origins: list[Origin], number: int) -> None:
    session, now, wants = f"session{number // _OF_A_SESSION}", time.time_ns(), accounts(10**6)[:1]
    prompts = [
        Prompt(
            OpenTurn(str(uuid4()), origin, session, now, Owner.this(), "opus"),
            [(account, HoldSize(HOLD, 1)) for account in wants],
            now,
            now + EXPIRY,
        )
        for origin in origins
    ]
    ledger.users_of("default", [prompt.turn.id for prompt in prompts])
    ledger.hold_together(prompts)
    lines = (UsageLine("opus", Usage(input=1000), Money(10**7, "USD")),)
    rows = [
        [
            Row(
                prompt.turn.origin,
                Entry(prompt.turn.id, session, "turn", now, time.time_ns(), "end_turn", lines, "agent", "computed"),
            )
        ]
        for prompt in prompts
    ]
    ledger.users_of("default", [prompt.turn.id for prompt in prompts])
    ledger.append_together(rows, in_order=True)


if __name__ == "__main__":
    main()

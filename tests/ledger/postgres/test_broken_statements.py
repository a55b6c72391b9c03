"""Each statement of each operation can break: nothing is lost by that, and nothing is done twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from itertools import count
from urllib.parse import quote

import psycopg
import pytest

from acp_proxy.ledger import LedgerUnavailableError, open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.postgres.ledger import PostgresLedger
from harness.faults.gate import Gate, gated
from harness.postgres import Server
from harness.rows import NOON, line, row
from tests.ledger.conftest import ISOLATIONS
from tests.ledger.holds import hold
from tests.ledger.postgres.works import BREAKS, NARROW, WIDE, WORKS, Work

TABLES = {
    "turn": "*",
    "line": "*",
    "correction": "*",
    "session": "*",
    "series": "*",
    "total": "*",
    "open_turn": "*",
    "hold": "*",
    "surcharge": "*",
    "granted": "*",
    "announced": "org_id, notice, threshold",
    "decision": "org_id, layer, budget, decision, count",
    "overshoot": "*",
    "notice": "org_id, kind, budget",
    "plan_window": "*",
    "plan_change": "*",
    "session_key": "*",
    "peak": "*",
    "label": "*",
    "tally": "family, labels, slot, sum(count), sum(units), sum(nano)",
}


def all_rows(url: str) -> dict[str, list[tuple[object, ...]]]:
    """Of all tables, but for what no two ledgers have alike."""
    grouped = {"tally": " GROUP BY 1, 2, 3"}
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        statements = {
            table: f"SELECT {columns} FROM {table}{grouped.get(table, '')}" for table, columns in TABLES.items()
        }
        return {table: sorted(connection.execute(sql.encode()), key=repr) for table, sql in statements.items()}


@pytest.fixture
def gate(postgres: Server) -> Iterator[Gate]:
    with gated(postgres.port) as gate:
        yield gate


@pytest.fixture
def both(postgres: Server, emptied: Callable[[str], None]) -> tuple[str, str]:
    """URLs of two ledgers with the same rows."""
    for name in ISOLATIONS[:2]:
        emptied(name)
        with closing(open_ledger(postgres.url(quote(name)), journals=())) as ledger:
            ledger.append([row(line("opus", "0.5"), id="0")])
            hold(ledger, "0", (WIDE, "0.25"), (NARROW, 1))
            ledger.release("default", "0")
    return postgres.url(quote(ISOLATIONS[0])), postgres.url(quote(ISOLATIONS[1]))


def until_done(work: Work, ledger: BudgetLedger, number: int, gate: Gate) -> object:
    """As the relay's worker does it: what may pass is tried again."""
    for _ in range(3):
        with suppress(LedgerUnavailableError):
            return work(ledger, number)
        assert not gate.is_armed
    raise AssertionError("it does not pass")


@pytest.mark.parametrize("what", BREAKS)
@pytest.mark.parametrize("work", WORKS, ids=lambda work: work.__name__)
def test_a_statement_that_breaks_leaves_the_ledger_as_if_it_had_not(
    postgres: Server, gate: Gate, both: tuple[str, str], work: Work, what: str
) -> None:
    broken, whole = both
    gated_url = broken.replace(f":{postgres.port}/", f":{gate.port}/")
    with closing(PostgresLedger(gated_url)) as ledger, closing(PostgresLedger(whole)) as other:
        for statement in count(1):
            if statement % 2:
                ledger.rest()  # a connection that breaks at its first use is not taken for one that was lost before
            expected = work(other, 2 * statement)
            gate.arm(replace(BREAKS[what], number=statement))
            assert until_done(work, ledger, 2 * statement, gate) == expected
            if gate.is_armed:
                break
        gate.arm(None)
        assert statement > 1
        assert all_rows(broken) == all_rows(whole)
        assert ledger.standing([WIDE, NARROW], NOON) == other.standing([WIDE, NARROW], NOON)

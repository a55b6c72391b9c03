"""What is done to a ledger, each by a number that makes it another one, and how a statement of it breaks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from acp_proxy.core.plans import FULL, PlanWindow
from acp_proxy.ledger.accounts import pending_rows
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger, Grant
from harness.faults.gate import Break
from harness.rows import ALICE, NOON, amended, line, row
from tests.core.accounts import budget
from tests.ledger.holds import GONE, account, hold

WIDE = account(budget("1000000 USD"))
NARROW = account(budget("3 turns", name="narrow"))
Work = Callable[[BudgetLedger, int], object]
BREAKS = {
    "the connection ends before it": Break(0, "cut before"),
    "the connection ends when it is done": Break(0, "cut after"),
    "a conflict": Break(0, "failed", "40001"),
    "an unknown end, and nothing is done": Break(0, "failed", "40003"),
    "an unknown end of what is committed": Break(0, "committed and failed", "40003"),
    "a pooler that lost the server": Break(0, "committed and failed", "08006"),
}


def turn(number: int) -> str:
    return f"{number:08x}-0000-7000-8000-000000000000"


def append(ledger: BudgetLedger, number: int) -> None:
    """Of a session that is new, in part of series that are."""
    ledger.append([row(line(f"model {number % 7}", "0.25"), id=turn(number), session=f"s{number}")])


def append_next(ledger: BudgetLedger, number: int) -> None:
    """Of a turn that holds something, in a session that is known: in one journey."""
    hold(ledger, turn(number), (WIDE, "0.5"))
    ledger.append([row(line("opus", "0.25"), id=turn(number))])


def append_several(ledger: BudgetLedger, number: int) -> None:
    """One of which is there already."""
    rows = [row(line("opus", "0.25"), id=turn(each), session=f"s{each}") for each in (number, number + 1)]
    ledger.append(rows)


def add_up(ledger: BudgetLedger, number: int) -> object:
    """After a row that makes those due which are in no sum."""
    due = next(each for each in count(number * 10_000) if pending_rows.is_due(turn(each)))
    ledger.append([row(line("opus", "0.25"), id=turn(due)), row(line("opus", "0.5"), id=turn(number))])
    return ledger.standing([WIDE], NOON)


def take(ledger: BudgetLedger, number: int) -> object:
    return hold(ledger, turn(number), (WIDE, "0.25")).admitted


def take_first(ledger: BudgetLedger, number: int) -> object:
    """The first prompt under a budget, whose sum is not there."""
    return hold(ledger, turn(number), (account(budget("9 USD", name=f"{number}")), "0.25")).admitted


def be_refused(ledger: BudgetLedger, number: int) -> object:
    return hold(ledger, turn(number), (NARROW, 1)).admitted


def release(ledger: BudgetLedger, number: int) -> None:
    hold(ledger, turn(number), (WIDE, "0.25"))
    ledger.release("default", turn(number))


def beat(ledger: BudgetLedger, number: int) -> None:
    hold(ledger, turn(number), (WIDE, "0.25"))
    ledger.beat("default", [turn(number)], NOON + 2 * EXPIRY)


def settle(ledger: BudgetLedger, number: int) -> None:
    """What a process held that is gone."""
    hold(ledger, turn(number), (WIDE, "0.25"), owner=GONE)
    ledger.settle_dead(NOON)


def correct(ledger: BudgetLedger, number: int) -> None:
    before = row(line("opus", "0.25"), id=turn(number))
    ledger.append([before])
    lines = (line("opus", "0.5", input=7), line("haiku", "0.125"))
    ledger.correct(before, amended(before, lines=lines), NOON)


def grant(ledger: BudgetLedger, number: int) -> object:
    ledger.grant(Grant(turn(number), "default", "user", "cap", None, 5, "USD", NOON, NOON + 1, "alice", "because"))
    return len(ledger.grants("default"))


def count_decisions(ledger: BudgetLedger, number: int) -> None:
    """The same each time."""
    ledger.count_decisions([(WIDE, "warn"), (NARROW, "warn")])


def announce(ledger: BudgetLedger, number: int) -> object:
    return ledger.announce(WIDE, number)


def tell(ledger: BudgetLedger, number: int) -> None:
    """A title, and a plan."""
    ledger.note_session(ALICE, "s1", f"title {number}", NOON + number)
    ledger.note_plan(ALICE, [PlanWindow("week", FULL // 4 + number, "allowed", NOON, None, NOON + number)])


WORKS = [append, append_next, append_several, add_up, take, take_first, be_refused, release, beat, settle, correct]
WORKS += [grant, count_decisions, announce, tell]

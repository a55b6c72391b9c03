"""What a copy carries beside rows: windows of plans, corrections, peaks of metrics, what of bills was metered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from acp_proxy.core.plans import FULL, PlanWindow
from acp_proxy.core.windows import HOUR
from acp_proxy.ledger import Query, captures, open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.captures import Capture
from acp_proxy.ledger.writing.copied_tables import COPIED, OF_ROWS, OF_THE_MOMENT
from acp_proxy.ledger.writing.copying import copy
from harness.rows import ALICE, MINUTE, NOON, amended, line, row
from tests.ledger.conftest import ONE_AT_A_TIME

FIVE = PlanWindow("five_hour", FULL // 10, "allowed", NOON + 5 * HOUR, "rejected", NOON)
LATER = replace(FIVE, used=FULL // 5, seen_at=NOON + MINUTE)

pytestmark = ONE_AT_A_TIME


@pytest.fixture
def file(tmp_path: Path) -> Iterator[BudgetLedger]:
    with closing(open_ledger(f"sqlite:///{tmp_path}/another.db", journals=())) as ledger:
        yield ledger


def tables_of(ledger: BudgetLedger) -> set[str]:
    of_sqlite = ledger.url.startswith("sqlite")
    sql = (
        "SELECT name FROM sqlite_master WHERE type = 'table'"
        if of_sqlite
        else "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
    )
    return {name for (name,) in ledger.tables.rows(sql)}


def test_of_each_table_it_is_said_whether_a_copy_has_it(ledger: BudgetLedger) -> None:
    said = [*COPIED, *OF_ROWS, *OF_THE_MOMENT]
    assert len(said) == len(set(said))
    assert tables_of(ledger) - set(said) == set()
    assert set(COPIED) <= tables_of(ledger)


def test_windows_of_plans_and_how_they_came_to_that_are_copied(ledger: BudgetLedger, file: BudgetLedger) -> None:
    for window in (FIVE, LATER):
        ledger.note_plan(ALICE, [window])
    copy(ledger, file, titles=True)
    assert file.plans("default") == ledger.plans("default")
    assert file.plan_changes("default") == ledger.plan_changes("default")


def test_of_a_window_in_both_the_later_state_stands(ledger: BudgetLedger, file: BudgetLedger) -> None:
    ledger.note_plan(ALICE, [FIVE])
    file.note_plan(ALICE, [LATER])
    copy(ledger, file, titles=True)
    assert [state.told for state in file.plans("default")] == [LATER]
    copy(file, ledger, titles=True)
    assert [state.told for state in ledger.plans("default")] == [LATER]
    assert len(ledger.plan_changes("default")) == 2


def test_a_row_that_was_corrected_after_a_copy_is_corrected_by_the_next(
    ledger: BudgetLedger, file: BudgetLedger
) -> None:
    told, more = row(line("opus", "0.5"), line("haiku", "0.2")), line("opus", "0.7")
    other = row()
    ledger.append([told, other])
    copy(ledger, file, titles=True)
    (before, _) = ledger.rows(Query())
    assert ledger.correct(before, amended(before, lines=(more,)), NOON + HOUR)
    copy(ledger, file, titles=True)
    copy(ledger, file, titles=True)
    assert list(file.rows(Query())) == list(ledger.rows(Query()))
    assert file.summed(Query(), ()) == ledger.summed(Query(), ())
    kept = [dict(each.beside.all())["correction"] for each in (file, ledger)]
    assert list(map(tuple, kept[0])) == list(map(tuple, kept[1]))
    assert len(kept[0]) == 1


def test_a_row_that_was_corrected_there_stays_as_it_is(ledger: BudgetLedger, file: BudgetLedger) -> None:
    ledger.append([row()])
    copy(ledger, file, titles=True)
    for each, cost in ((ledger, "0.7"), (file, "0.9")):
        (before,) = each.rows(Query())
        each.correct(before, amended(before, lines=(line("opus", cost),)), NOON)
    (theirs,) = file.rows(Query())
    copy(ledger, file, titles=True)
    assert list(file.rows(Query())) == [theirs]


def test_counters_of_metrics_are_as_high_as_they_were(ledger: BudgetLedger, file: BudgetLedger) -> None:
    ledger.append([row(line("opus", "0.5"))])
    (before,) = ledger.rows(Query())
    ledger.correct(before, amended(before, lines=(line("opus", "0.1"),)), NOON)
    for _ in range(2):
        copy(ledger, file, titles=True)
        assert file.tallied.wholes("default") == ledger.tallied.wholes("default")


def test_how_much_of_a_bill_was_metered_is_copied_and_the_latest_stands(
    ledger: BudgetLedger, file: BudgetLedger
) -> None:
    first = Capture("anthropic", NOON - HOUR, NOON, NOON, 100, 90, "USD", 50, 40)
    ledger.tables.write(lambda run: captures.note(run, "default", first))
    copy(ledger, file, titles=True)
    assert captures.latest(file.tables.read, "default") == [first]
    latest = replace(first, noted_at=NOON + 1, seen_tokens=95)
    file.tables.write(lambda run: captures.note(run, "default", latest))
    copy(ledger, file, titles=True)
    assert captures.latest(file.tables.read, "default") == [latest]

"""What a journal tells of turns that were still running, and of rows that are none, when its process is dead."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from acp_proxy.core.entry import SessionState, UsageLine
from acp_proxy.ledger import Query, Row
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.journal.abandoned import any_abandoned
from acp_proxy.ledger.journal.records import commit, encode, head, room
from acp_proxy.ledger.journal.recovery import append_all, pending, recover
from acp_proxy.ledger.journal.writer import open_journal
from harness.rows import ALICE, NOON, line, row
from tests.core.accounts import usd
from tests.ledger.conftest import ONE_AT_A_TIME
from tests.ledger.holds import CAP, GONE, held, hold
from tests.ledger.warned import Warnings

pytestmark = ONE_AT_A_TIME

NOTHING = line(None, None, input=0)


def left(directory: Path, url: str, *running: Row, rows: int = 0) -> Path:
    """The journal of a process that has gone."""
    journal = open_journal([directory], url, Warnings())
    for made in running:
        journal.write_open(made)
    for number in range(rows):
        journal.write(row(id=f"row {number}"))
    journal.close()
    assert journal.path
    return journal.path


@pytest.mark.parametrize(
    ("known", "spent"),
    [(line(cost="0.2", input=0), "0.2"), (line(cost=None), "0"), (NOTHING, "0.6")],
    ids=["a cost", "tokens", "nothing"],
)
def test_a_turn_that_ran_is_booked_at_what_was_known_of_it_else_at_what_it_held(
    ledger: BudgetLedger, tmp_path: Path, known: UsageLine, spent: str
) -> None:
    hold(ledger, "a", (CAP, "0.6"), owner=GONE)
    left(tmp_path, ledger.url, row(known, id="a"), rows=2)
    assert recover(ledger, [tmp_path], Warnings()) == 3
    assert held(ledger, CAP) == (usd(spent) + usd("0.02"), 0)


def test_more_rows_than_one_transaction_takes_are_taken_over(ledger: BudgetLedger, tmp_path: Path) -> None:
    left(tmp_path, ledger.url, rows=600)
    assert recover(ledger, [tmp_path], Warnings()) == 600
    assert len(list(ledger.rows(Query()))) == 600


def test_a_turn_of_which_nothing_is_known_and_that_held_nothing_has_its_row(
    ledger: BudgetLedger, tmp_path: Path
) -> None:
    left(tmp_path, ledger.url, row(NOTHING, id="a"))
    assert recover(ledger, [tmp_path], Warnings()) == 1
    assert [found.entry.id for found in ledger.rows(Query())] == ["a"]


def test_records_that_are_no_rows_are_put_aside_with_their_file(
    ledger: BudgetLedger, tmp_path: Path, warnings: Warnings
) -> None:
    start = len(head(ledger.url))
    records = encode(row(id="a")), b"\xc1 of another version", encode(row(id="b"))
    data = bytearray(head(ledger.url)) + bytes(sum(map(room, records)) + 1)
    for record in records:
        commit(data, start, record)  # type: ignore[arg-type]  # as in a mapping
        start += room(record)
    (tmp_path / "1.journal").write_bytes(data)
    assert recover(ledger, [tmp_path], warnings) == 2
    assert [found.entry.id for found in ledger.rows(Query())] == ["a", "b"]
    aside = tmp_path / "1.unreadable"
    assert aside.read_bytes() == data
    assert warnings.told == [("journal.unreadable", {"rows": 1, "moved_to": str(aside)})]
    assert list(tmp_path.glob("*.journal")) == []
    assert recover(ledger, [tmp_path], warnings) == 0  # nobody looks at it again


def test_rows_that_wait_are_counted_for_their_own_ledger(ledger: BudgetLedger, tmp_path: Path) -> None:
    left(tmp_path, ledger.url, rows=2)
    left(tmp_path, "sqlite:////another", rows=1)
    (tmp_path / "no.journal").write_bytes(b"something else")
    (tmp_path / "gone.journal").symlink_to(tmp_path / "nowhere")
    assert [pending([tmp_path], url) for url in (ledger.url, "sqlite:////another")] == [2, 1]


def test_rows_in_order_stay_in_order_beside_one_that_is_refused(ledger: BudgetLedger, warnings: Warnings) -> None:
    """The clock was set back between them."""
    ahead, right = (SessionState(model=model) for model in ("ahead", "right"))
    bad = row(line(input=2**63))
    append_all(ledger, [row(at=NOON + 1, state=ahead), bad, row(at=NOON, state=right)], warnings, in_order=True)
    found = ledger.state_of(ALICE, "s1")
    assert found
    assert found.model == "right"
    ((event, fields),) = warnings.told
    assert (event, fields["id"], fields["agent"]) == ("ledger.row_refused", bad.entry.id, ALICE.agent)
    assert "does not fit" in str(fields["error"])


def test_what_a_dead_process_left_takes_no_place_of_what_is_known_since(ledger: BudgetLedger, tmp_path: Path) -> None:
    before, since = (SessionState(model=model) for model in ("before", "since"))
    ledger.append([row(at=NOON + 1, state=since)])
    with closing(open_journal([tmp_path], ledger.url, Warnings())) as journal:
        journal.write(row(at=NOON, state=before))
    assert recover(ledger, [tmp_path], Warnings()) == 1
    found = ledger.state_of(ALICE, "s1")
    assert found
    assert found.model == "since"


def test_however_old_a_journal_is_its_rows_are_taken_over(ledger: BudgetLedger, tmp_path: Path) -> None:
    os.utime(left(tmp_path, ledger.url, rows=1), (0, 0))
    assert recover(ledger, [tmp_path], Warnings()) == 1


def test_a_journal_that_is_gone_when_it_is_opened_is_passed_over(ledger: BudgetLedger, tmp_path: Path) -> None:
    (tmp_path / "0.journal").symlink_to(tmp_path / "nowhere")
    left(tmp_path, ledger.url, rows=1)
    assert recover(ledger, [tmp_path], Warnings()) == 1


def test_one_dead_process_among_the_living_has_left_something(url: str, tmp_path: Path) -> None:
    assert not any_abandoned([tmp_path])
    with closing(open_journal([tmp_path], url, Warnings())):
        assert not any_abandoned([tmp_path])
        left(tmp_path, url, rows=1)
        assert any_abandoned([tmp_path])

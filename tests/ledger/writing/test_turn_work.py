"""What is known of a turn beside its usage is kept with its row, through journal and ledger."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from acp_proxy.core.entry import ToolCall, ToolSum, Work
from acp_proxy.ledger import Query, Row, open_ledger
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.journal.writer import open_journal
from acp_proxy.ledger.writing.copying import copy
from harness.rows import row
from tests.ledger.conftest import ONE_AT_A_TIME, Open
from tests.ledger.warned import Warnings

WORK = Work(
    f"{'ab' * 16}-{'cd' * 8}",
    (ToolCall("read", 5, 3, "completed"), ToolCall("other", 9)),
    (ToolSum("other", 1, 0, 0), ToolSum("read", 1, 0, 3)),
    busy=3,
    waited=2,
)


def working(id: str, work: Work | None = WORK) -> Row:
    return row(id=id, work=work)


@ONE_AT_A_TIME
def test_it_is_read_back_by_turn_and_only_of_turns_that_have_any(ledger: BudgetLedger) -> None:
    ledger.append([working("a"), working("b", None), working("c", Work(WORK.parent))])
    assert ledger.exports.work("default", ["a", "b", "c", "d"]) == {"a": WORK, "c": Work(WORK.parent)}
    assert ledger.exports.work("default", []) == ledger.exports.work("elsewhere", ["a"]) == {}


@ONE_AT_A_TIME
def test_a_row_that_comes_twice_has_it_once(ledger: BudgetLedger, another: Open) -> None:
    ledger.append([working("a")])
    another().append([working("a", Work(busy=7))])
    assert ledger.exports.work("default", ["a"]) == {"a": WORK}


def test_it_survives_in_a_journal(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    journal = open_journal([tmp_path], url, Warnings())
    journal.write(working("a"))
    journal.close()
    with closing(open_ledger(url, journals=[tmp_path])) as ledger:
        assert [found.entry.id for found in ledger.rows(Query())] == ["a"]
        assert ledger.exports.work("default", ["a"]) == {"a": WORK}


def test_a_copy_of_a_ledger_has_it(tmp_path: Path) -> None:
    with (
        closing(open_ledger(f"sqlite:///{tmp_path}/one.db", journals=())) as one,
        closing(open_ledger(f"sqlite:///{tmp_path}/two.db", journals=())) as two,
    ):
        one.append([working("a")])
        copy(one, two, titles=True)
        assert two.exports.work("default", ["a"]) == {"a": WORK}

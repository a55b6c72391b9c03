"""Looking at a ledger: what a reader finds is what a ledger that writes finds, also of processes that are gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.ledger import LedgerError, OpenTurn, Query, Sums, open_ledger, open_reader
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger, BudgetReader, Grant
from acp_proxy.ledger.journal.writer import open_journal
from acp_proxy.ledger.migrations import MIGRATIONS
from acp_proxy.ledger.owners import Owner
from tests.core.accounts import budget, usd
from tests.ledger.holds import GONE, account
from tests.ledger.rows import ALICE, NOON, Warnings, row

DAILY = account(budget("5 USD"))


@contextmanager
def reading(url: str, *journals: Path) -> Iterator[BudgetReader]:
    with closing(open_reader(url, journals=journals)) as reader:
        yield reader


def ids(reader: BudgetReader) -> list[str]:
    return [found.entry.id for found in reader.rows(Query())]


def hold(ledger: BudgetLedger, owner: Owner) -> None:
    opened = OpenTurn("a", ALICE, "s1", NOON, owner, "opus")
    assert ledger.hold(opened, [(DAILY, HoldSize(usd("1.5"), 1))], NOON, NOON + EXPIRY).admitted


def test_a_reader_finds_what_a_ledger_finds(url: str, ledger: BudgetLedger) -> None:
    ledger.append([row(id="a"), row(id="b")])
    ledger.grant(Grant("g", "default", "user", "daily", None, usd("2"), "USD", NOON, NOON + EXPIRY, "bob", "release"))

    def found(reader: BudgetReader) -> tuple[list[Any], list[Sums], list[Any], list[Any], list[Any]]:
        return (
            list(reader.rows(Query())),
            reader.summed(Query(), ("model",)),
            list(reader.sessions(Query())),
            reader.standing([DAILY], NOON),
            reader.grants("default"),
        )

    with reading(url) as reader:
        assert found(reader) == found(ledger)
        ledger.append([row(id="c")])
        assert ids(reader) == ["a", "b", "c"]


def test_a_journal_of_the_dead_is_taken_over_before_anything_is_read(url: str, tmp_path: Path) -> None:
    with closing(open_journal([tmp_path], url, Warnings())) as journal:
        journal.write(row(id="left"))
        with reading(url, tmp_path) as reader:
            assert ids(reader) == []  # its owner lives
    with reading(url, tmp_path) as reader:
        assert ids(reader) == ["left"]
    assert list(tmp_path.glob("*.journal")) == []


def test_what_the_dead_hold_is_booked_before_anything_is_read(url: str, ledger: BudgetLedger) -> None:
    hold(ledger, GONE)
    with reading(url) as reader:
        assert ids(reader) == ["a"]
        (standing,) = reader.standing([DAILY], NOON)
        assert (standing.spent, standing.held) == (usd("1.5"), 0)


def test_what_is_held_by_one_that_died_since_is_booked_when_somebody_asks(url: str, ledger: BudgetLedger) -> None:
    with reading(url) as reader:
        hold(ledger, GONE)
        (standing,) = reader.standing([DAILY], NOON)
        assert (standing.spent, standing.held) == (usd("1.5"), 0)


def test_what_the_living_hold_is_held(url: str, ledger: BudgetLedger) -> None:
    with reading(url) as reader:  # before the hold: who opens a ledger books what expired long ago by the clock
        hold(ledger, Owner.this())
        (standing,) = reader.standing([DAILY], NOON)
        assert (standing.spent, standing.held) == (0, usd("1.5"))


def test_a_reader_makes_and_migrates_the_file_that_it_is_to_read(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new/ledger.db"
    with reading(url) as reader:
        assert ids(reader) == []
    with closing(open_ledger(url, journals=())) as ledger:
        assert f"schema {len(MIGRATIONS)}" in ledger.check()


def test_a_reader_refuses_what_is_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"^ledger URL of unknown scheme"):
        open_reader("mysql://host/ledger")

"""Looking at a ledger: what a reader finds is what a ledger that writes finds, also of processes that are gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.ledger import LedgerError, OpenTurn, Query, Sums, open_ledger, open_or_make, open_reader
from acp_proxy.ledger.budgets import EXPIRY, BudgetLedger, BudgetReader, Grant
from acp_proxy.ledger.journal.writer import open_journal
from acp_proxy.ledger.migrations import MIGRATIONS
from acp_proxy.ledger.owners import Owner
from acp_proxy.ledger.places import canonical_url
from harness.postgres import Server
from harness.rows import ALICE, NOON, row
from tests.core.accounts import budget, usd
from tests.ledger.holds import GONE, account
from tests.ledger.warned import Warnings

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


def test_a_reader_makes_no_file_and_finds_nothing_until_somebody_does(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new/ledger.db"
    with reading(url) as reader:
        assert ids(reader) == []
        assert reader.standing([DAILY], NOON)[0].spent == 0
        assert list(tmp_path.iterdir()) == []
        with closing(open_ledger(url, journals=())) as ledger:
            ledger.append([row(id="a")])
        assert ids(reader) == ["a"]


def test_a_reader_migrates_the_file_that_it_is_to_read(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_bytes(b"")
    url = f"sqlite:///{tmp_path}/ledger.db"
    with reading(url) as reader:
        assert ids(reader) == []
    with closing(open_ledger(url, journals=(), must_exist=True)) as ledger:
        assert f"schema {len(MIGRATIONS)}" in ledger.check()


def test_rows_that_a_dead_process_left_make_the_ledger_that_they_are_for_and_no_other(tmp_path: Path) -> None:
    theirs, other = (f"sqlite:///{tmp_path}/{name}.db" for name in ("theirs", "other"))
    journals = tmp_path / "journals"
    with closing(open_journal([journals], theirs, Warnings())) as journal:
        journal.write(row(id="left"))
    with reading(other, journals) as reader:
        assert ids(reader) == []
    assert not (tmp_path / "other.db").exists()
    told = list[str]()
    with closing(open_reader(theirs, journals=[journals], tell=told.append)) as reader:
        assert (ids(reader), told) == (["left"], [])


def test_a_ledger_that_must_exist_is_not_made(tmp_path: Path, postgres: Server) -> None:
    for url in (f"sqlite:///{tmp_path}/ledger.db", postgres.create("not_made")):
        for _ in range(2):
            with pytest.raises(LedgerError, match=r"there is no ledger .*: expected one that `acp-proxy run` has made"):
                open_ledger(url, journals=(), must_exist=True)
        open_ledger(url, journals=()).close()
        open_ledger(url, journals=(), must_exist=True).close()


def test_who_only_looks_makes_no_tables_in_a_database_and_finds_nothing_there(postgres: Server) -> None:
    url = postgres.create("looked_at")
    for _ in range(2):
        with reading(url) as reader:
            assert (ids(reader), reader.summed(Query(), ("model",)), reader.grants("default")) == ([], [], [])
            assert [standing.spent for standing in reader.standing([DAILY], NOON)] == [0]
            assert reader.url == canonical_url(url)
    with pytest.raises(LedgerError, match="there is no ledger in this database"):
        open_ledger(url, journals=(), must_exist=True)


def test_whoever_wants_to_know_is_told_that_there_is_no_ledger_yet(tmp_path: Path, postgres: Server) -> None:
    for url in (f"sqlite:///{tmp_path}/ledger.db", postgres.create("told_of")):
        told = list[str]()
        open_reader(url, journals=(), tell=told.append).close()
        open_or_make(url, told.append).close()
        open_or_make(url, told.append).close()
        open_reader(url, journals=(), tell=told.append).close()
        assert [text.rpartition(": ")[2] for text in told] == ["expected one that `acp-proxy run` has made"] * 2


def test_a_database_that_rows_are_left_for_is_made_a_ledger(tmp_path: Path, postgres: Server) -> None:
    with closing(open_journal([tmp_path], canonical_url(postgres.create("owed")), Warnings())) as journal:
        journal.write(row(id="left"))
    with closing(open_ledger(postgres.url("owed"), journals=[tmp_path], must_exist=True)) as ledger:
        assert ids(ledger) == ["left"]


def test_a_reader_refuses_what_is_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"^ledger URL of unknown scheme"):
        open_reader("mysql://host/ledger")

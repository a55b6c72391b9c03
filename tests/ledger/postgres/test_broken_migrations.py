"""A migration that breaks, or whose process is killed, leaves nothing half done: others take over, no row is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path

import psycopg
import pytest

from acp_proxy.ledger import LedgerUnavailableError, Query, open_ledger
from acp_proxy.ledger.migrations import MIGRATIONS
from acp_proxy.ledger.postgres.ledger import PostgresLedger
from acp_proxy.ledger.sums.totals import BILLING
from harness.daemons import until
from harness.faults.gate import Gate, gated
from harness.postgres import Server, asked, name_of
from harness.rows import line, row
from tests.ledger.postgres.works import BREAKS
from tests.ledger.processes import Process
from tests.ledger.steps import gone_since

_SUMMED = next(number for number, step in enumerate(MIGRATIONS) if step[: len(BILLING)] == BILLING)
_SHAPE = """
SELECT table_name, column_name, data_type, is_nullable, coalesce(collation_name, '') FROM information_schema.columns
WHERE table_schema = 'public'
UNION ALL SELECT tablename, indexdef, '', '', '' FROM pg_indexes WHERE schemaname = 'public'
"""
_DONE = "SELECT version, count(identity) FROM acp_proxy_schema GROUP BY 1"
_BLOCKED = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = '{}' HAVING count(*) >= {}"


@pytest.fixture
def gate(postgres: Server) -> Iterator[Gate]:
    with gated(postgres.port) as gate:
        yield gate


@pytest.fixture
def empty(postgres: Server, tmp_path: Path) -> str:
    """The URL of a database without a ledger."""
    return postgres.create(tmp_path.name)


@pytest.fixture
def shape(postgres: Server, tmp_path: Path) -> list[tuple[object, ...]]:
    """What a ledger looks like that was made in one go."""
    url = postgres.create(f"{tmp_path.name}-whole")
    open_ledger(url, journals=()).close()
    return shape_of(url)


def shape_of(url: str) -> list[tuple[object, ...]]:
    return sorted(asked(url, _SHAPE), key=repr)


def opened(url: str) -> int:
    """How often it took to open a ledger, as the relay's worker does it: what may pass is tried again."""
    for times in count(1):
        assert times < 4, "it does not pass"
        with suppress(LedgerUnavailableError):
            PostgresLedger(url).close()
            return times
    raise AssertionError


def append_to(url: str, id: str) -> list[str]:
    with closing(open_ledger(url, journals=())) as ledger:
        ledger.append([row(line("opus", "0.5"), id=id)])
        return [each.entry.id for each in ledger.rows(Query())]


@pytest.mark.parametrize("what", BREAKS)
def test_of_tables_with_rows_each_statement_can_break(
    postgres: Server, gate: Gate, empty: str, shape: list[tuple[object, ...]], what: str
) -> None:
    """What adds up all rows is among the steps."""
    gated_url = empty.replace(f":{postgres.port}/", f":{gate.port}/")
    append_to(empty, "before")
    before = f"{gone_since(_SUMMED)}; UPDATE acp_proxy_schema SET version = {_SUMMED}"
    for statement in count(1):
        postgres.execute(name_of(empty), before)
        gate.arm(replace(BREAKS[what], number=statement))
        opened(gated_url)
        assert shape_of(empty) == shape
        assert asked(empty, _DONE) == [(len(MIGRATIONS), 1)]
        assert asked(empty, "SELECT sum(row_count), sum(nano) FROM total WHERE level = 0") == [(1, 500_000_000)]
        if gate.is_armed:
            break
    gate.arm(None)
    assert statement > 2  # of what is committed there are two
    assert append_to(empty, "later") == ["before", "later"]


@pytest.mark.parametrize("what", BREAKS)
def test_while_one_makes_the_tables_and_breaks_another_finds_them_or_makes_them(
    postgres: Server, gate: Gate, empty: str, shape: list[tuple[object, ...]], what: str
) -> None:
    """Some of the statements: they are all of one transaction."""
    failed = list[BaseException]()

    def open_beside() -> None:
        try:
            opened(empty)
        except BaseException as error:
            failed.append(error)

    gated_url = empty.replace(f":{postgres.port}/", f":{gate.port}/")
    for statement in (2, 5, 8, 40, 90):
        postgres.execute(name_of(empty), "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        gate.arm(replace(BREAKS[what], number=statement))
        beside = threading.Thread(target=open_beside)
        beside.start()
        opened(gated_url)
        beside.join(60)
        assert failed == []
        assert shape_of(empty) == shape
    gate.arm(None)
    assert append_to(empty, "later") == ["later"]


def test_when_who_migrates_is_killed_one_of_those_that_wait_takes_over(
    empty: str, shape: list[tuple[object, ...]]
) -> None:
    first, *others = (Process("first_open", empty) for _ in range(4))
    for each in (first, *others):
        each.until_ready()
    with closing(psycopg.connect(empty)) as blocking:
        blocking.execute("CREATE TABLE tally (a INT)")  # not committed: who makes one of that name waits for the end
        first.go_on()
        until_waiting(empty, 1)
        for each in others:
            each.go_on()
        until_waiting(empty, 4)
        first.kill()
        blocking.rollback()
    assert [each.wait() for each in others] == [0] * 3
    assert shape_of(empty) == shape
    assert asked(empty, _DONE) == [(len(MIGRATIONS), 1)]
    assert append_to(empty, "later") == ["later"]


def until_waiting(url: str, number: int) -> None:
    until(lambda: asked(url, _BLOCKED.format(name_of(url), number)) == [(1,)], f"{number} wait for a lock")

"""The turns of a report in their order, however many there are and however little memory."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core.entry import Origin, UsageLine
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.ledger import LedgerError, Query, open_ledger
from acp_proxy.report import ordered, report, tables, turn_line
from acp_proxy.report.ranked import ranked_turns
from acp_proxy.text.times import UTC_ZONE
from harness.rows import ALICE, BOB, MINUTE, NOON, line, row

MOST = 2**63 - 1
AMOUNTS = st.sampled_from([0, 1, 2, 10**9, MOST]) | st.integers(-MOST, MOST)
COSTS = st.none() | st.builds(Money, AMOUNTS, st.sampled_from(["USD", "credits", "EUR"]))
LINES = st.builds(UsageLine, st.just("opus"), st.builds(Usage, st.sampled_from([0, 1, 300, MOST])), COSTS)
ROWS = st.lists(st.tuples(st.lists(LINES, min_size=1, max_size=3), st.sampled_from([ALICE, BOB])), max_size=40)


@given(ROWS, st.sampled_from([0, 600, 10**6]))
def test_turns_are_in_the_order_of_any_report_whether_they_wait_on_disk_or_not(
    made: list[tuple[list[UsageLine], Origin]], in_memory: int
) -> None:
    rows = [row(*lines, origin=origin) for lines, origin in made]
    lines = [turn_line(each) for each in rows]
    currencies = sorted({cost.currency for each in lines for cost in each.costs})
    ranked = ranked_turns(rows, currencies, turn_line, in_memory)
    assert list(ranked) == ordered("turn", lines, currencies)
    assert (len(ranked), list(ranked)) == (len(rows), list(ranked))
    for most in (1, 2, 30):
        some = ranked_turns(rows, currencies, turn_line, in_memory, most)
        assert (list(some), len(some), some.count) == (list(ranked)[:most], min(most, len(rows)), len(rows))


@contextmanager
def no_room() -> Iterator[None]:
    """On any disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_turns_that_find_no_room_on_disk_are_told_of_in_one_line() -> None:
    no_room_to_sort = r"^report: no room to sort turns in .*: File too large$"
    with no_room(), pytest.raises(LedgerError, match=no_room_to_sort):
        ranked_turns((row() for _ in range(1000)), ["USD"], turn_line, 1000)


def test_a_few_out_of_many_turns_need_no_room_on_disk() -> None:
    rows = [row(line(cost=str(number * 7 % 1000))) for number in range(1000)]
    with no_room():
        ranked = ranked_turns(rows, ["USD"], turn_line, 50_000, 10)
    assert list(ranked) == ordered("turn", [turn_line(each) for each in rows], ["USD"])[:10]
    assert (len(ranked), ranked.count) == (10, 1000)


def test_a_table_of_more_turns_than_are_in_memory_is_one_table(tmp_path: Path) -> None:
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db", journals=())
    count = tables.AT_ONCE + 3
    rows = [row(line("opus", f"{10 + number}"), at=NOON + number * MINUTE) for number in range(count)]
    ledger.append([*rows, row(line("a-longer-name-that-costs-nothing", None))])
    found = report(ledger, "turn", Query(), UTC_ZONE)
    ledger.close()
    title, *lines = "".join(tables.plain(found)).splitlines()
    assert [each.split()[-1] for each in lines[:count]] == [f"${10 + number:,}.00" for number in reversed(range(count))]
    assert {len(each) for each in lines[:count]} == {len(title)}
    assert "a-longer-name-that-costs-nothing" in lines[count]  # sticks out, rather than be cut
    fitted = "".join(tables.coloured(found, 80, {"NO_COLOR": "1"})).splitlines()
    assert max(map(len, fitted)) <= 80

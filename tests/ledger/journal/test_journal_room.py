"""What a journal has room for: rows up to its last byte, and of turns that run what is known last, in half of it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from acp_proxy.ledger import Row
from acp_proxy.ledger.journal.records import Contents, encode, head, read_journal, room
from acp_proxy.ledger.journal.writer import FIRST_SIZE, LARGEST_SIZE, Journal, open_journal
from harness.rows import line, row
from tests.cases import each_of
from tests.ledger.warned import Warnings

URL = "sqlite:////l"
LARGE = 100_000  # bytes, about


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with closing(open_journal([tmp_path], URL, Warnings())) as opened:
        yield opened


def contents(journal: Journal) -> Contents:
    assert journal.path
    found = read_journal(journal.path.read_bytes())
    assert found
    return found


def large(id: str = "") -> Row:
    return row(line("m" * LARGE, None), id=id)


def slot_of(written: int | None) -> int:
    assert written is not None
    return written


def test_a_row_that_ends_with_the_file_makes_it_grow(journal: Journal) -> None:
    size = FIRST_SIZE - len(head(URL))
    rows = (row(line("m" * length, None)) for length in range(size, 0, -1))
    fits = next(made for made in rows if room(encode(made)) == size)
    slot_of(journal.write(fits))
    assert journal.path
    assert journal.path.stat().st_size == 2 * FIRST_SIZE
    assert contents(journal).rows == (fits,)


def test_on_a_disk_that_is_full_it_keeps_what_it_has_and_no_more(small_disk: Path) -> None:
    with closing(open_journal([small_disk], URL, Warnings())) as journal:
        kept = 0
        while journal.write(large()) is not None:
            kept += 1
        assert kept == 1024 * 1024 // LARGE
        assert journal.write(row()) is not None
        assert len(contents(journal).rows) == kept + 1


@each_of([errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM], name=os.strerror)
def test_where_pages_cannot_be_reserved_they_are_written(refusal: int) -> None:
    """As on file systems without `posix_fallocate`, with a C library that has no way around it, and in sandboxes."""

    def refused(*_: int) -> None:
        raise OSError(refusal, os.strerror(refusal))

    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "posix_fallocate", refused)
        warnings = Warnings()
        with closing(open_journal([Path(directory)], URL, warnings)) as journal:
            slots = [slot_of(journal.write(large(f"{number}"))) for number in range(4)]
            assert [kept.entry.id for kept in contents(journal).rows] == ["0", "1", "2", "3"]
            assert len(slots) * LARGE > FIRST_SIZE
        assert warnings.told == []


def test_it_ends_without_complaint_when_somebody_took_its_file_away(journal: Journal) -> None:
    assert journal.path
    journal.path.unlink()
    journal.close()


def test_what_is_known_of_a_running_turn_takes_the_place_of_what_was_known_before(journal: Journal) -> None:
    before, now, beside = row(id="a"), row(line(cost="2"), id="a"), row(id="b")
    slot = slot_of(journal.write_open(before))
    journal.write_open(beside)
    again = slot_of(journal.write_open(now, slot))
    assert contents(journal).open == (beside, now)
    journal.done(again)
    assert contents(journal).open == (beside,)


def test_running_turns_leave_half_of_the_file_to_rows(journal: Journal) -> None:
    slots = list[int]()
    while (slot := journal.write_open(large(f"{len(slots)}"))) is not None:
        slots.append(slot)
    assert LARGEST_SIZE // 2 - 2 * LARGE < slots[-1] < LARGEST_SIZE // 2
    assert journal.write(large("row")) is not None
    assert len(contents(journal).open) == len(slots)


def test_where_there_is_no_room_for_more_what_was_known_before_is_kept(journal: Journal) -> None:
    first = slot_of(journal.write_open(row(id="a")))
    while journal.write_open(large()) is not None:
        pass
    assert journal.write_open(large("a"), first) == first
    assert "a" in [kept.entry.id for kept in contents(journal).open]


def test_turns_that_always_overlap_never_fill_it(journal: Journal) -> None:
    running = slot_of(journal.write_open(large("000")))
    for number in range(1, 3 * LARGEST_SIZE // LARGE):
        following = slot_of(journal.write_open(large(f"{number:03}")))
        ended = slot_of(journal.write(large(f"{number - 1:03}")))
        journal.done(running)
        journal.done(ended)
        running = following
    assert [kept.entry.id for kept in contents(journal).open] == [f"{number:03}"]
    assert journal.path
    assert journal.path.stat().st_size <= 2 * FIRST_SIZE


def test_when_all_is_done_it_starts_over_whatever_room_rows_take(journal: Journal) -> None:
    slots = set()
    for length in range(0, 1600, 16):
        slots.add(slot := slot_of(journal.write(row(line("m" * length, None)))))
        journal.done(slot)
    assert len(slots) == 1


def test_running_turns_take_no_place_of_rows_in_the_other_half(journal: Journal) -> None:
    slots = list[int]()
    while (slot := journal.write(large("a"))) is not None:
        slots.append(slot)
    journal.done(slots[-1])
    assert journal.write_open(large("a")) is None
    journal.done(slots[0])
    assert journal.write_open(large("a")) == slots[0]
    assert journal.write(large("a")) == slots[-1]

"""The bytes of a journal: what was committed comes back, whatever happened to the rest."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.ledger import Row
from acp_proxy.ledger.journal.records import (
    MAGIC,
    commit,
    encode,
    end_at,
    head,
    last_rows,
    read_journal,
    replace_done,
    room,
    tick_off,
)
from harness.rows import NOON, row
from tests.ledger.strategies import any_row

URL = "sqlite:////home/ä/ledger.db"


@dataclass
class Written:
    """A journal in memory with some records, and where they begin."""

    map: mmap.mmap
    slots: list[int] = field(default_factory=list)
    tail: int = len(head(URL))

    def write(self, data: bytes) -> None:
        commit(self.map, self.tail, data)
        self.slots.append(self.tail)
        self.tail += room(data)

    def ids(self) -> list[str]:
        contents = read_journal(self.map[:])
        assert contents
        return [found.entry.id for found in contents.rows]


@pytest.fixture
def written() -> Iterator[Written]:
    with mmap.mmap(-1, 64 * 1024) as memory:
        memory[: len(head(URL))] = head(URL)
        journal = Written(memory)
        for name in "abcd":
            journal.write(encode(row(id=name)))
        yield journal


@given(any_row)
def test_any_row_comes_back_as_it_was(given_row: Row) -> None:
    assert msgspec.msgpack.decode(encode(given_row), type=Row) == given_row


def test_its_bytes_are_those_that_other_releases_write_and_read() -> None:
    """Another layout needs another number in its first bytes, lest a journal be torn to who takes it over."""
    with mmap.mmap(-1, 4096) as memory:
        commit(memory, 0, b"row")
        whole = memory[:17]
        commit(memory, 16, b"row", is_open=True)
        assert (whole, memory[16]) == (bytes.fromhex("c0000000 03000000 dbf63084 726f77 00 00"), 0xB0)
        tick_off(memory, 16)
        assert memory[16] == 0xD0
    assert head("sqlite:///x") == b"acpjrnl1" + bytes.fromhex("0b000000") + b"sqlite:///x" + bytes(9)


def test_what_is_committed_and_not_done_comes_back_in_order(written: Written) -> None:
    tick_off(written.map, written.slots[1])
    contents = read_journal(written.map[:])
    assert contents
    assert contents.ledger == URL
    assert written.ids() == ["a", "c", "d"]
    assert (contents.torn, contents.unreadable) == (0, 0)


def test_a_record_that_was_begun_and_not_committed_is_not_there(written: Written) -> None:
    written.write(encode(row(id="e")))
    end_at(written.map, written.slots[-1])  # its mark is what is written last
    assert written.ids() == ["a", "b", "c", "d"]


def test_what_was_there_before_the_start_over_does_not_come_back(written: Written) -> None:
    for slot in written.slots:
        tick_off(written.map, slot)
    end_at(written.map, len(head(URL)))
    assert written.ids() == []
    written.tail = len(head(URL))
    written.write(encode(row(id="new", session="a much longer name than before, so that it covers what is behind it")))
    assert written.ids() == ["new"]
    contents = read_journal(written.map[:])
    assert contents
    assert contents.torn == 0


def test_what_a_process_wrote_last_is_known_also_when_it_is_done(written: Written) -> None:
    for slot in written.slots:
        tick_off(written.map, slot)
    end_at(written.map, written.slots[0])
    url, rows = last_rows(written.map[:])
    assert (url, [found.entry.id for found in rows]) == (URL, list("abcd"))
    assert last_rows(written.map[: written.slots[1] + 5])[1] == rows[:1]


def test_a_record_that_takes_the_place_of_a_done_one_hides_no_other_before_it_is_whole(written: Written) -> None:
    slot, data = written.slots[1], encode(row(id="e"))
    assert tick_off(written.map, slot) == room(data)
    before = written.map[:]
    replace_done(written.map, slot, data)
    assert written.ids() == ["a", "e", "c", "d"]
    after = written.map[:]
    for killed in range(slot + 1, slot + room(data) + 1):  # the mark comes last
        contents = read_journal(before[: slot + 1] + after[slot + 1 : killed] + before[killed:])
        assert contents
        assert [found.entry.id for found in contents.rows] == ["a", "c", "d"]
        assert contents.torn == 0


@pytest.mark.parametrize("later", [0, 1])
def test_of_a_turn_that_is_kept_twice_the_later_counts(written: Written, later: int) -> None:
    """As when its process was killed before what was known until then was ticked off."""
    for number in range(2):
        data = encode(row(id="t", at=NOON + (number == later)))
        commit(written.map, written.tail, data, is_open=True)
        written.tail += room(data)
    contents = read_journal(written.map[:])
    assert contents
    assert [found.entry.started_at for found in contents.open] == [NOON + 1]


def test_what_was_known_of_a_turn_counts_no_more_beside_its_row(written: Written) -> None:
    """As when its process was killed before the one was ticked off for the other."""
    commit(written.map, written.tail, encode(row(id="e")), is_open=True)
    written.tail += room(encode(row(id="e")))
    written.write(encode(row(id="e")))
    contents = read_journal(written.map[:])
    assert contents
    assert (written.ids(), contents.open) == (["a", "b", "c", "d", "e"], ())


@pytest.mark.parametrize("damaged", range(4))
@pytest.mark.parametrize("there", [(0, b"\xff"), (4, bytes(8)), (40, b"\xff")], ids=["mark", "length", "row"])
def test_a_torn_record_is_skipped_and_counted(written: Written, damaged: int, there: tuple[int, bytes]) -> None:
    offset, data = written.slots[damaged] + there[0], there[1]
    written.map[offset : offset + len(data)] = data
    contents = read_journal(written.map[:])
    assert contents
    assert written.ids() == [name for number, name in enumerate("abcd") if number != damaged]
    assert (contents.torn, contents.unreadable) == (1, 0)


def test_a_torn_record_is_counted_once_though_marks_seem_to_be_in_it(written: Written) -> None:
    written.write(b"\xc0" * 100)
    written.write(encode(row(id="f")))
    written.map[written.slots[-2] + 40] ^= 1
    contents = read_journal(written.map[:])
    assert contents
    assert (contents.torn, written.ids()) == (1, ["a", "b", "c", "d", "f"])


def test_a_torn_length_hides_no_record_behind_it(written: Written) -> None:
    written.map[written.slots[1] + 4 : written.slots[1] + 8] = b"\xff\xff\xff\xff"
    assert written.ids() == ["a", "c", "d"]


def test_a_whole_record_that_is_no_row_is_counted_apart(written: Written) -> None:
    written.write(msgspec.msgpack.encode({"of": "another version"}))
    written.write(encode(row(id="e")))
    contents = read_journal(written.map[:])
    assert contents
    assert contents.unreadable == 1
    assert written.ids() == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize("data", [b"", b"acpj", b"something else entirely", b"acpjrnl2" + head(URL)[8:]])
def test_a_file_that_is_no_journal_or_of_a_newer_format_is_none(data: bytes) -> None:
    assert read_journal(data) is None


@given(st.binary(max_size=400))
def test_any_bytes_are_read_without_an_error(data: bytes) -> None:
    contents = read_journal(MAGIC + data)
    assert contents is None or contents.rows == ()
    assert last_rows(MAGIC + data)[1] == last_rows(data)[1] == ()


@given(st.data())
def test_damage_loses_no_record_that_it_did_not_touch(data: st.DataObject) -> None:
    rows = [row(id=str(number), session="s" * number) for number in range(5)]
    with mmap.mmap(-1, 64 * 1024) as memory:
        memory[: len(head(URL))] = head(URL)
        journal = Written(memory)
        for one in rows:
            journal.write(encode(one))
        # A mark that became "free" ends the journal, so marks are left alone here.
        at = data.draw(st.integers(journal.slots[0], journal.tail - 1).filter(lambda place: place not in journal.slots))
        memory[at] ^= data.draw(st.integers(1, 255))
        hit = max(number for number, slot in enumerate(journal.slots) if slot <= at)
        assert set(journal.ids()) >= {one.entry.id for number, one in enumerate(rows) if number != hit}

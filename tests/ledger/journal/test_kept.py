"""What a ledger has acknowledged, in files that the next process takes over."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from acp_proxy.ledger.journal import kept
from acp_proxy.ledger.journal.kept import Kept, Write, Writer, left, take
from harness.rows import row

LEDGER, IDENTITY = "postgresql://db/ledger", "a1"


def taken(directory: Path, name: str = "first", identity: str = IDENTITY) -> Kept:
    return take(directory, Writer(LEDGER, identity, "default", name))


def add(file: Kept, *ids: str) -> int:
    number = file.number()
    file.add(number, [Write(number, row=row(id=each)) for each in ids])
    return number


def ids(file: Kept, since: int = 0) -> list[str]:
    return [each.row.entry.id for each in file.since(since) if each.row]


def test_the_next_process_finds_what_was_written_and_goes_on_under_the_same_name(tmp_path: Path) -> None:
    with closing(taken(tmp_path)) as file:
        first = add(file, "1", "2")
        add(file, "3")
    with closing(taken(tmp_path, "second")) as file:
        assert (file.writer.id, ids(file), ids(file, first)) == ("first", ["1", "2", "3"], ["3"])
        assert file.number() > file.last
        add(file, "4")
        assert ids(file) == ["1", "2", "3", "4"]


def test_two_processes_at_a_time_have_two_files(tmp_path: Path) -> None:
    with closing(taken(tmp_path)) as one, closing(taken(tmp_path, "second")) as other:
        assert [one.writer.id, other.writer.id] == ["first", "second"]
        with left([tmp_path], LEDGER) as found:
            assert found == []


def test_a_file_of_another_ledger_is_left_alone(tmp_path: Path) -> None:
    with closing(taken(tmp_path)) as file:
        add(file, "1")
    with closing(taken(tmp_path, "second", identity="b2")) as file:
        assert (file.writer.id, ids(file)) == ("second", [])
    with left([tmp_path], "postgresql://db/other") as found:
        assert found == []
    with left([tmp_path], LEDGER) as found:
        assert [ids(file) for file in found] == [["1"]]


def test_what_was_torn_or_not_acknowledged_is_not_found(tmp_path: Path) -> None:
    with closing(taken(tmp_path)) as file:
        add(file, "1")
        path, size = file.path, file.path.stat().st_size
        number = add(file, "2")
        assert file.last == number
    os.truncate(path, size + 7)
    with closing(taken(tmp_path)) as file:
        assert ids(file) == ["1"]
        add(file, "3")
        assert ids(file) == ["1", "3"]


def test_the_oldest_are_given_up_when_there_are_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "LARGEST", 20_000)
    with closing(taken(tmp_path)) as file:
        numbers = [add(file, str(number)) for number in range(200)]
        found = ids(file)
        assert found == [str(number) for number in range(200 - len(found), 200)]
        assert file.given_up == numbers[-len(found) - 1]
        assert file.path.stat().st_size <= 20_000 + 1000
        assert 10 < len(found) < 150


def test_a_file_grows_as_long_as_all_is_of_use_and_gives_up_nothing_before_it_is_largest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of corrections, each of which takes as much as two rows. From 4 to 64 MiB, a thousandth of it here."""
    monkeypatch.setattr(kept, "SMALLEST", kept.SMALLEST // 1000)
    monkeypatch.setattr(kept, "LARGEST", kept.LARGEST // 1000)
    with closing(taken(tmp_path)) as file:
        sizes, number = list[int](), 0
        while not file.given_up:
            number = file.number()
            file.add(number, [Write(number, corrected=(row(id=str(len(sizes))), row(id=str(len(sizes)))))])
            sizes.append(file.path.stat().st_size)
        assert kept.LARGEST * 0.95 < max(sizes) <= kept.LARGEST + 200  # the head beside it
        assert sizes[:-1] == sorted(sizes[:-1])
        left = file.since(0)
        assert left[-1].number == number
        assert len(left) > len(sizes) * 0.45
        assert [each.corrected is not None for each in left] == [True] * len(left)


def test_what_is_too_old_to_be_of_use_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(taken(tmp_path)) as file:
        add(file, "1")
    monkeypatch.setattr(kept, "LONGEST", 0)
    with left([tmp_path], LEDGER) as found:
        assert found == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [b"", b"acpkept1", b"acpkept2" + bytes(100), b"acpkept1" + bytes(100), bytes(range(64))],
    ids=["empty", "its head", "of another version", "zeros behind its head", "anything"],
)
def test_a_file_that_cannot_be_read_is_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.kept").write_bytes(content)
    with closing(taken(tmp_path)) as file:
        assert file.writer.id == "first"
    assert (tmp_path / "a.kept").read_bytes() == content


def test_the_tail_is_the_last_call_with_rows_and_what_came_after_it(tmp_path: Path) -> None:
    with closing(taken(tmp_path)) as file:
        assert file.tail() == []
        number = file.number()
        file.add(number, [Write(number, released=("default", "0"))])
        assert [each.released for each in file.tail()] == [("default", "0")]
        add(file, "1", "2")
        add(file, "3", "4")
        number = file.number()
        file.add(number, [Write(number, released=("default", "5"))])
        assert [each.row.entry.id if each.row else "released" for each in file.tail()] == ["3", "4", "released"]
    with closing(taken(tmp_path, "second")) as file:
        assert len(file.tail()) == 3

"""What holds for each reader: no bytes make it raise, and a book that is cut off tells what stands before the cut."""

from __future__ import annotations

from io import BytesIO

from hypothesis import given, settings
from hypothesis import strategies as st

from acp_proxy.books import Call, NotUnderstood
from tests.books.readers import READERS
from tests.books.recorded import Read, recordings
from tests.cases import each_of

BOOKS = {
    agent: [path.read_bytes() for recording in recordings(agent) for path in reader.files(recording / "home", {})]
    for agent, reader in READERS.items()
}


def told(read: Read, data: bytes) -> list[Call | NotUnderstood]:
    return list(read(BytesIO(data)))


def known_at_once(of: list[Call | NotUnderstood]) -> list[object]:
    """Without the kind: that a call was a compaction may stand after it."""
    return [(call.id, call.session, call.at, call.usage) if isinstance(call, Call) else call for call in of]


def replaced(data: bytes, at: int, by: bytes) -> bytes:
    at %= len(data) + 1
    return data[:at] + by + data[at + len(by) :]


@each_of(READERS)
def test_no_bytes_make_a_reader_raise(agent: str) -> None:
    damaged = st.builds(replaced, st.sampled_from(BOOKS[agent]), st.integers(0, 2**20), st.binary(max_size=40))

    @settings(max_examples=60, deadline=None)
    @given(st.one_of(st.binary(max_size=200), damaged))
    def holds(data: bytes) -> None:
        told(READERS[agent].read, data)

    holds()


@each_of(READERS)
def test_a_book_that_is_cut_at_any_byte_tells_the_calls_before_the_cut(agent: str) -> None:
    read = READERS[agent].read

    @settings(max_examples=60, deadline=None)
    @given(st.sampled_from(BOOKS[agent]), st.integers(0, 2**20))
    def holds(data: bytes, at: int) -> None:
        before = known_at_once(told(read, data[: at % (len(data) + 1)]))
        assert before == known_at_once(told(read, data))[: len(before)]

    holds()


@each_of(READERS)
def test_each_cut_within_the_last_call_tells_all_calls_before_it_and_no_damage(agent: str) -> None:
    read = READERS[agent].read
    lines = BytesIO(max(BOOKS[agent], key=lambda data: len(told(read, data)))).readlines()
    whole = known_at_once(told(read, b"".join(lines)))
    last = max(index for index in range(len(lines)) if known_at_once(told(read, b"".join(lines[:index]))) != whole)
    before = b"".join(lines[:last])
    assert known_at_once(told(read, before)) == whole[:-1]
    for cut in range(0, len(lines[last]) - 1, 7):
        assert known_at_once(told(read, before + lines[last][:cut])) == whole[:-1]


@each_of(READERS)
def test_damage_in_the_middle_is_reported_and_the_rest_is_read(agent: str) -> None:
    read = READERS[agent].read
    for damage in (b"\0" * 4096 + b"\n", b'{"type":"assis{"type"\n', b"\xff\xfe\n"):
        for data in BOOKS[agent][:3]:
            lines = BytesIO(data).readlines()
            spoilt = told(read, b"".join([*lines[:1], damage, *lines[1:]]))
            assert [call for call in spoilt if isinstance(call, Call)] == told(read, data)
            assert len([problem for problem in spoilt if isinstance(problem, NotUnderstood)]) == 1

"""What goes into a framer comes out of it: the same bytes, in order, cut at newlines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core.wire.framing import HEAD, HELD_AT_MOST, Framer, Part

LIMIT = 8  # bytes; small lines do for huge ones then

chunks = st.lists(
    st.one_of(st.binary(min_size=1, max_size=12), st.sampled_from([b"\n", b"a\nb", b"\r\n", b"\n\n", b"abcdefghijkl"])),
    max_size=12,
)


def through(framer: Framer, chunks: Iterable[bytes]) -> list[bytes | Part]:
    return [piece for chunk in chunks for piece in framer.feed(chunk)] + framer.finish()


def joined(pieces: Sequence[bytes | Part]) -> bytes:
    return b"".join(piece.data if isinstance(piece, Part) else piece for piece in pieces)


@given(chunks, st.booleans())
def test_all_bytes_come_out_unchanged_and_in_order_however_they_are_chunked(chunks: list[bytes], may: bool) -> None:
    assert joined(through(Framer(lambda _: may, LIMIT), chunks)) == b"".join(chunks)


@given(chunks, st.booleans())
def test_every_run_ends_with_a_newline_but_for_an_unterminated_last_line(chunks: list[bytes], may: bool) -> None:
    pieces = through(Framer(lambda _: may, LIMIT), chunks)
    assert all(piece.endswith(b"\n") for piece in pieces[:-1] if isinstance(piece, bytes))
    assert b"" not in pieces


@given(chunks)
def test_nothing_comes_between_the_parts_of_a_line(chunks: list[bytes]) -> None:
    within = False
    for piece in through(Framer(lambda _: True, LIMIT), chunks):
        if isinstance(piece, Part):
            assert b"\n" not in piece.data[:-1]
            assert piece.data.endswith(b"\n") <= piece.last
            within = not piece.last
        else:
            assert not within
    assert not within


@given(chunks, st.booleans())
def test_a_chunk_that_begins_a_huge_line_is_told_at_once_as_feeding_it_would(chunks: list[bytes], may: bool) -> None:
    framer = Framer(lambda _: may, LIMIT)
    pieces: list[bytes | Part] = []
    for chunk in chunks:
        pieces += [Part(chunk, last=False)] if framer.begins(chunk) else framer.feed(chunk)
    assert pieces + framer.finish() == through(Framer(lambda _: may, LIMIT), chunks)


@given(chunks)
def test_without_leave_to_stream_nothing_but_whole_lines_comes_out(chunks: list[bytes]) -> None:
    assert not any(isinstance(piece, Part) for piece in through(Framer(lambda _: False, LIMIT), chunks))


@given(chunks, st.lists(st.booleans()))
def test_a_line_that_nobody_can_store_goes_on_as_soon_as_it_may_and_no_byte_is_lost(
    chunks: list[bytes], says: list[bool]
) -> None:
    asked: list[int] = []

    def gives_up(size: int) -> bool:
        asked.append(size)
        return says.pop() if says else True

    framer = Framer(lambda _: False, LIMIT, gives_up=gives_up, stored_at_most=2 * LIMIT)
    assert joined(through(framer, chunks)) == b"".join(chunks)
    assert all(size > 2 * LIMIT for size in asked)


def test_a_line_is_stored_up_to_a_limit_and_streams_from_there() -> None:
    framer = Framer(lambda _: False, LIMIT, gives_up=lambda _: True, stored_at_most=20)
    assert [framer.feed(b"0123456789"), framer.feed(b"0123456789")] == [[], []]
    assert framer.feed(b"x") == [Part(b"01234567890123456789x", last=False)]
    assert framer.held == 0
    assert framer.feed(b"y\nz\n") == [Part(b"y\n", last=True), b"z\n"]


@given(chunks)
def test_what_is_held_is_exactly_what_has_not_come_out(chunks: list[bytes]) -> None:
    framer = Framer(lambda _: True, LIMIT)
    put, got = 0, 0
    for chunk in chunks:
        put, got = put + len(chunk), got + len(joined(framer.feed(chunk)))
        assert framer.held == put - got <= LIMIT


def test_whole_lines_come_out_as_the_very_object_that_came_in() -> None:
    chunk = b'{"a":1}\n{"b":2}\n'
    (run,) = Framer(lambda _: True).feed(chunk)
    assert run is chunk


def test_complete_lines_of_a_chunk_come_out_as_one_run_with_what_was_held() -> None:
    framer = Framer(lambda _: True)
    assert framer.feed(b"a\nb\nhal") == [b"a\nb\n"]
    assert framer.feed(b"f\nc\nd") == [b"half\nc\n"]
    assert framer.finish() == [b"d"]


def test_a_carriage_return_or_a_line_separator_ends_no_line() -> None:
    assert Framer(lambda _: True).feed("a\rb\x0bc\u2028d\x85".encode()) == []


def test_a_line_is_held_up_to_what_one_read_brings_and_asked_for_once_by_its_head() -> None:
    asked: list[bytes] = []

    def refuse(head: bytes) -> bool:
        asked.append(head)
        return False

    framer = Framer(refuse)
    line = bytes(range(11, 256)) * (HELD_AT_MOST // 100)
    assert framer.feed(line[:HELD_AT_MOST]) == []
    assert asked == []
    assert framer.feed(line[HELD_AT_MOST:]) == []
    assert framer.feed(b"\nnext\n") == [line + b"\nnext\n"]
    assert asked == [line[:HEAD]]


def test_each_huge_line_is_judged_for_itself() -> None:
    framer = Framer(lambda head: head.startswith(b"pass"), LIMIT)
    assert framer.feed(b"pass 12345") == [Part(b"pass 12345", last=False)]
    assert framer.feed(b"67\nhold 12345") == [Part(b"67\n", last=True)]
    assert framer.feed(b"67\npass 12345") == [b"hold 1234567\n", Part(b"pass 12345", last=False)]


def test_a_stream_that_breaks_off_within_a_huge_line_ends_it_with_an_empty_part() -> None:
    framer = Framer(lambda _: True, LIMIT)
    framer.feed(b"0123456789")
    assert framer.finish() == [Part(b"", last=True)]
    assert framer.finish() == []


def test_a_huge_line_may_begin_before_it_is_fed() -> None:
    framer = Framer(lambda head: head.startswith(b"x"), LIMIT)
    for chunk in (b"x" * LIMIT, b"x" * LIMIT + b"\n", b"y" * (LIMIT + 1)):
        assert not framer.begins(chunk)
    assert framer.feed(b"ab") == []
    assert not framer.begins(b"x" * (LIMIT + 1))  # within a line
    assert framer.feed(b"c\n") == [b"abc\n"]
    assert framer.begins(b"x" * (LIMIT + 1))
    assert not framer.begins(b"x" * (LIMIT + 1))
    assert framer.feed(b"more") == [Part(b"more", last=False)]
    assert framer.feed(b"end\nnext\n") == [Part(b"end\n", last=True), b"next\n"]
    assert framer.begins(b"x" * (LIMIT + 1))
    assert framer.finish() == [Part(b"", last=True)]

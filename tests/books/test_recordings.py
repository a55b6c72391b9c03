"""What real agents wrote tells each call of a conversation, with the tokens that the model server served."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from acp_proxy.books import NotUnderstood
from tests.books.readers import READERS
from tests.books.recorded import DATA, calls, paid, recordings, served
from tests.cases import each_of

RECORDINGS = [(agent, recording) for agent in READERS for recording in recordings(agent)]

KINDS = {"cut short": "main", "broken off": "main"}


def name(case: tuple[str, Path]) -> str:
    return f"{case[0]} {case[1].name}"


@each_of(RECORDINGS, name)
def test_a_book_has_the_calls_that_were_served_session_by_session(case: tuple[str, Path]) -> None:
    agent, recording = case
    reader = READERS[agent]
    expected = Counter(
        (call.session, call.model, call.usage)
        for call in served(recording)
        if call.what not in reader.missing and call.usage is not None
    )
    assert expected
    assert paid(calls(reader.files(recording / "home", {}), reader.read)) == expected


@each_of(RECORDINGS, name)
def test_each_call_is_of_the_kind_for_which_it_was_made(case: tuple[str, Path]) -> None:
    agent, recording = case
    reader = READERS[agent]
    made_for = {(call.session, call.usage): call.what for call in served(recording) if call.what not in reader.missing}
    for call in calls(reader.files(recording / "home", {}), reader.read):
        what = made_for[call.session, call.usage]
        assert call.kind == KINDS.get(what, what), call


@each_of(READERS)
def test_what_stands_in_no_book_was_really_asked_for(agent: str) -> None:
    asked = {call.what for recording in recordings(agent) for call in served(recording)}
    assert READERS[agent].missing <= asked


@each_of(READERS)
def test_books_read_again_in_another_order_give_the_same_calls(agent: str) -> None:
    """But for the session of what a fork of a fork copied, if that is read before its ancestors."""
    reader = READERS[agent]
    for recording in recordings(agent):
        found = list(reader.files(recording / "home", {}))
        once, again = calls(found, reader.read), calls([*reversed(found), *found], reader.read)
        assert {(call.id, call.usage) for call in again} == {(call.id, call.usage) for call in once}


@each_of(READERS)
def test_no_content_of_a_session_leaves_a_reader(agent: str) -> None:
    """Every text that the recorder and the mock wrote has one of these words."""
    reader = READERS[agent]
    for path in (found for recording in recordings(agent) for found in reader.files(recording / "home", {})):
        with path.open("rb") as book:
            told = repr([call for call in reader.read(book) if not isinstance(call, NotUnderstood)])
        assert [word for word in ("ello", "please", "banana", "mock model", "notes.txt") if word in told] == []


def test_recordings_name_nobody() -> None:
    for path in DATA.rglob("*.jsonl"):
        assert [word for word in (b"/tmp/", b"/work/", b"acp-demo") if word in path.read_bytes()] == [], path

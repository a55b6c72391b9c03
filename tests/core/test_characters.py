"""Characters of text, counted by bytes where that is exact, are those that a decoder would have counted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from acp_proxy.core.acp.characters import chars_between, chars_in, text_length
from acp_proxy.core.effects import Effect
from acp_proxy.core.events import Event, TurnEnded
from acp_proxy.interceptor import Interceptor
from tests.ends import Ends, answer, chunk, prompt

texts = st.text(max_size=30) | st.text(alphabet='"\\{},:\n', max_size=12) | st.sampled_from(["\ud83d", "語", "😀", ""])


def escaped(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def as_it_is(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def with_blanks(value: Any) -> bytes:
    return json.dumps(value, indent=1).encode()


spellings = st.sampled_from([escaped, as_it_is, with_blanks])
blocks = st.one_of(
    st.builds(lambda said: {"type": "text", "text": said}, texts),
    st.builds(lambda said, more: {"type": "text", "text": said, "annotations": {"text": more}}, texts, texts),
    st.builds(lambda said, more: {"type": "text", "text": said, "uri": more}, texts, texts),
    st.builds(lambda data: {"type": "blob", "data": data}, texts),
    st.builds(lambda said: {"type": "resource", "resource": {"uri": "file:///a", "text": said}}, texts),
    st.builds(lambda data: {"type": "image", "mimeType": "image/png", "data": data}, st.text("Aa/", max_size=30)),
)


@given(blocks | st.lists(blocks, max_size=3), spellings)
@example({"type": "text", "text": 'a"}'}, escaped)
@example({"type": "text", "text": "a", "uri": "b"}, escaped)
@example({"type": "blob", "data": "a"}, escaped)
def test_a_blocks_characters_are_those_of_its_text(block: Any, spelt: Callable[[Any], bytes]) -> None:
    assert chars_in(spelt(block)) == text_length(json.loads(spelt(block)))


@given(texts, st.sampled_from([escaped, as_it_is]))
def test_a_strings_characters_are_counted_between_its_quotes(said: str, spelt: Callable[[Any], bytes]) -> None:
    assert chars_between(spelt(said)[1:-1]) == len(said)


def test_an_escape_that_is_none_is_counted_as_it_stands() -> None:
    assert (chars_between(rb"a\q"), chars_between(rb"\u12")) == (3, 4)


NO_TEXT = [b"", b"null", b"7", b'"text"', b'{"text":7}', b'[[{"text":"a"}]]', b"{", b'{"type":"text","text":"a}']
NO_TEXT += [b'{"type":"text","text":"a" ']


@pytest.mark.parametrize("content", NO_TEXT)
def test_what_is_no_text_counts_nothing(content: bytes) -> None:
    assert chars_in(content) == 0


class Ended(Interceptor):
    """Keeps the turns that ended."""

    event_types = frozenset({TurnEnded})

    def __init__(self) -> None:
        self.turns: list[Event] = []

    def on_event(self, event: Event) -> Iterable[Effect]:
        self.turns.append(event)
        return ()


@given(st.lists(texts, min_size=1, max_size=40), st.integers(1, 40), st.booleans())
@example(["a"] * 20 + ["\n"] + ["語"] * 20, 40, True)
@example(["\ud83d", "\ude00"] * 20, 40, True)
def test_a_turns_characters_are_the_same_whether_its_lines_come_alone_or_together(
    said: list[str], together: int, escapes: bool
) -> None:
    seen, spelt = Ended(), escaped if escapes else as_it_is
    ends = Ends([seen])
    ends.open_session()
    ends.client_says(prompt(2))
    lines = [spelt(chunk(text)) + b"\n" for text in said]
    for first in range(0, len(lines), together):
        ends.agent_says(*lines[first : first + together])
    ends.agent_says(answer(2, stopReason="end_turn"))
    assert [event.output_chars for event in seen.turns if isinstance(event, TurnEnded)] == [sum(map(len, said))]

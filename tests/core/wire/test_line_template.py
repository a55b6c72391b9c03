"""Lines known by a line that was decoded: what is said of them is what the decoder would have said."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from acp_proxy.core.acp import PLAIN_UPDATES, SESSION_UPDATE
from acp_proxy.core.acp.characters import text_length
from acp_proxy.core.jsonrpc import decode
from acp_proxy.core.wire.line_template import LineTemplate
from acp_proxy.core.wire.peek import ABSENT, peek_line, split_lines
from harness.recordings import TRANSCRIPTS
from tests.cases import each_of

Said = tuple[str | None, str | None, int]  # session, kind, characters of its text


def chunk(text: str, **more: Any) -> bytes:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}, **more}
    message = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def decoded(line: bytes) -> Said | None:
    """What the decoder says, where it says that nothing but this matters."""
    peek = peek_line(line)
    if peek.method != SESSION_UPDATE or peek.params is None or peek.params.update is None:
        return None
    update = peek.params.update
    if update.kind not in PLAIN_UPDATES or update.meta is not ABSENT or peek.params.meta is not ABSENT:
        return None
    return peek.params.session, update.kind, text_length(decode(bytes(update.content)))


def agrees(template: LineTemplate, run: bytes) -> bool:
    """Whether it claimed the run; that what it claims is right is asserted."""
    measured = template.measure(run)
    if measured is None:
        return False
    said = [decoded(line) for line in split_lines(run)]
    assert measured == (len(said), sum(each[2] for each in said if each))
    assert {each[:2] for each in said if each} == {(template.session, template.kind)}
    assert None not in said
    return True


def learned(line: bytes) -> LineTemplate:
    template = LineTemplate()
    template.learn(line, peek_line(line))
    return template


texts = st.text(max_size=12) | st.text(alphabet='"\\{},:_metax\n', max_size=12)


@given(texts, st.lists(texts, min_size=1, max_size=40))
@example("", ["", 'a"b', "a\\", '\\"', "\\\\", "\n"])
def test_lines_with_other_words_are_known_and_measured_as_the_decoder_would(first: str, others: list[str]) -> None:
    template, plain = learned(chunk(first)), not set(first) & set('"\\')
    for text in others:
        assert agrees(template, chunk(text)) or not plain
    assert agrees(template, b"".join(map(chunk, others))) or not plain


members = st.fixed_dictionaries(
    {},
    optional={
        "_meta": st.just({"usage": {"inputTokens": 1}}) | st.none(),
        "messageId": st.text(max_size=3),
        "annotations": st.dictionaries(st.just("text") | st.just("_meta"), texts, max_size=2),
    },
)


def as_one(text: str, more: dict[str, Any]) -> bytes:
    return chunk(text, **more)


def reordered(text: str, more: dict[str, Any]) -> bytes:
    return json.dumps(dict(reversed(json.loads(chunk(text, **more)).items()))).encode() + b"\n"


def with_meta_beside(text: str, more: dict[str, Any]) -> bytes:
    message = json.loads(chunk(text, **more))
    message["params"]["_meta"] = {"text": text}
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def spelt_otherwise(text: str, more: dict[str, Any]) -> bytes:
    return chunk(text, **more).replace(b'"_meta"', b'"\\u005fmeta"').replace(b'"text":"', b'"t\\u0065xt" : "')


def another_kind(text: str, more: dict[str, Any]) -> bytes:
    return chunk(text, **more).replace(b"agent_message_chunk", b"agent_thought_chunk")


def broken(text: str, more: dict[str, Any]) -> bytes:
    return chunk(text, **more).replace(b'"}}}}', b"}}}}").replace(b"xx", b"\n")


shapes: st.SearchStrategy[Callable[[str, dict[str, Any]], bytes]] = st.sampled_from(
    [as_one, reordered, with_meta_beside, spelt_otherwise, another_kind, broken]
)
lines = st.builds(lambda shape, text, more: shape(text, more), shapes, texts, members)


@given(lines, st.lists(lines, min_size=1, max_size=6))
@example(as_one("", {}), [broken('"', {})])
@example(as_one("", {}), [as_one("a", {}), broken('"', {})])
def test_what_is_claimed_of_lines_of_any_shape_is_what_the_decoder_says(first: bytes, run: list[bytes]) -> None:
    template = learned(first)
    agrees(template, b"".join(run))
    for line in run:
        agrees(template, line)


@given(lines, st.binary(max_size=60), st.integers(min_value=0), st.integers(min_value=0))
def test_bytes_put_into_a_line_are_never_mistaken(line: bytes, noise: bytes, at: int, until: int) -> None:
    template, at = learned(line), at % len(line)
    end = at + until % (len(line) - at)
    changed = (line[:at] + noise + line[end:]).rstrip(b"\n") + b"\n"
    if any(peek_line(each).params is None for each in split_lines(changed)):
        return  # no JSON, or half a surrogate pair: it is forwarded all the same, and nobody counts on its count
    agrees(template, changed)


@pytest.mark.parametrize(
    "line",
    [
        chunk('a"},"_meta":{"x":"y'.replace('"', "'")).replace(b"'", b'"'),
        chunk("a").replace(b'"a"', b'"a","annotations":{"text":"b"}'),
        b'"text":""}}}}\n',
        b"\n",
    ],
)
def test_a_line_with_more_in_it_than_words_is_left_to_the_decoder(line: bytes) -> None:
    assert learned(chunk("a")).measure(line) is None


def block(**content: Any) -> bytes:
    update = {"sessionUpdate": "agent_message_chunk", "content": content}
    message = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


@given(texts, texts, texts)
@example("a", "b", "longer")
@example("", "", "longer")
def test_a_text_that_is_not_the_blocks_own_is_never_taken_for_its_words(said: str, note: str, other: str) -> None:
    for kind in ({"type": "text", "text": said}, {"type": "image", "data": said}):
        template = learned(block(**kind, annotations={"text": note}))
        assert not agrees(template, block(**kind, annotations={"text": other}))


def test_a_run_is_not_known_by_all_of_its_lines_but_the_first_or_the_last() -> None:
    many = chunk("y") * 40
    assert [piece for piece, measured in learned(chunk("a")).sift(THOUGHT + many) if measured is None] == [THOUGHT]
    first, *others = (chunk("a", **{name: {"x": 1}}) for name in ("_note", "_meta"))
    assert learned(first).measure(first * 40)
    assert learned(first).measure(b"".join([first * 40, *others])) is None


USAGE = chunk("b").replace(b"agent_message_chunk", b"usage_update")
THOUGHT = chunk("t").replace(b"agent_message_chunk", b"agent_thought_chunk")  # as long as the other kind
CUT = chunk("").replace(b'""', b'"')  # begins and ends as a chunk does, and is shorter than one without words
lines_of_runs = st.sampled_from(
    [chunk("x")] * 20 + [chunk("longer"), chunk('"quoted"'), chunk("\\"), USAGE, THOUGHT, CUT, b"\n"]
)


@given(st.lists(lines_of_runs, min_size=1, max_size=80))
@example([chunk("x")] * 40 + [CUT] + [chunk("y")] * 40)
@example([USAGE, CUT, USAGE] + [chunk("y")] * 40)
def test_a_sifted_run_comes_out_whole_and_in_order_and_is_measured_as_its_pieces_are(lines: list[bytes]) -> None:
    template, run = learned(chunk("a")), b"".join(lines)
    pieces = list(template.sift(run))
    assert b"".join(piece for piece, _ in pieces) == run
    for piece, measured in pieces:
        assert measured is None or (measured == template.measure(piece) and agrees(template, piece))
        assert measured is None or not {USAGE, THOUGHT, CUT, b"\n"} & set(split_lines(piece))


def test_of_a_long_run_only_what_differs_is_decoded() -> None:
    template, run = learned(chunk("a")), chunk("x") * 50 + USAGE + chunk("y") * 49
    assert len(run) > template.long
    assert [piece for piece, measured in template.sift(run) if measured is None] == [USAGE]


@each_of(sorted(TRANSCRIPTS.glob("*/*.jsonl")), lambda path: f"{path.parent.name}-{path.stem}")
def test_of_recorded_lines_nothing_is_claimed_that_the_decoder_does_not_say(path: Path) -> None:
    template = LineTemplate()
    for record in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        line = record["raw"].encode() + b"\n"
        if record["dir"] == "a2c" and not agrees(template, line):
            template.learn(line, peek_line(line))


@each_of([[5], [0], [39], [5, 6], [38, 39], [0, 1]])
def test_a_run_is_sifted_into_what_is_alike_and_what_may_be_something_else(places: list[int]) -> None:
    template, lines = learned(chunk("a")), [chunk(f"{number}") for number in range(40)]
    for other in (b"short\n", chunk("a").replace(b"_message_", b"_thought_")):
        for place in places:
            lines[place] = other
        pieces = list(template.sift(b"".join(lines)))
        assert b"".join(piece for piece, _ in pieces) == b"".join(lines)
        assert all(piece for piece, _ in pieces)
        assert [piece for piece, measured in pieces if measured is None] == [other] * len(places)
        assert sum(measured[0] for _, measured in pieces if measured is not None) == 40 - len(places)


def test_only_updates_of_sessions_are_known() -> None:
    assert learned(chunk("a").replace(b"session/update", b"session/other_")).session is None
    assert learned(chunk("a")).session == "s"

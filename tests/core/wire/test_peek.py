"""The first look at lines: whatever they are, each gets its own, and it agrees with a full parse."""

from __future__ import annotations

import contextlib
import json
from bisect import bisect_left
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from acp_proxy.core.events import Side
from acp_proxy.core.jsonrpc import BATCH, Notification, Pairing, Request, Response, id_key, parse
from acp_proxy.core.wire.long_lines import may_stream, meta_in_tail, peek_head
from acp_proxy.core.wire.peek import (
    NO_MESSAGE,
    Peek,
    decode_envelopes,
    decode_run,
    is_one_a_line,
    peek_line,
    peek_lines,
    peek_run,
    split_lines,
)

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
updates = st.fixed_dictionaries(
    {}, optional={"sessionUpdate": values, "_meta": values, "content": values, "rawInput": values}
)
params = st.fixed_dictionaries({}, optional={"sessionId": values, "update": updates | values}) | values
messages = st.fixed_dictionaries(
    {}, optional={"id": values, "method": st.just("session/update") | values, "params": params, "result": values}
)
addressed = st.fixed_dictionaries({"method": st.text(), "params": st.fixed_dictionaries({"sessionId": st.text()})})
answers = st.fixed_dictionaries({"id": st.integers() | st.text(max_size=6), "result": values})
json_lines = (messages | addressed | answers).map(lambda value: json.dumps(value).encode())
lines = st.lists(json_lines | st.binary(max_size=30).map(lambda data: data.replace(b"\n", b"")), min_size=1, max_size=6)


def shallow(peek: Peek) -> tuple[Any, Any, Any, Any]:
    update = peek.params.update if peek.params is not None else None
    return repr(peek.id), peek.method, peek.params and peek.params.session, update and update.kind


@given(lines)
def test_a_run_gives_one_look_a_line_and_the_same_as_line_by_line(run: list[bytes]) -> None:
    data = b"".join(line + b"\n" for line in run)
    one_by_one = [shallow(peek_line(line)) for line in run]
    peeked = peek_run(data)
    if is_one_a_line(data, peeked):
        assert [shallow(peek) for peek in peeked] == one_by_one
    assert [shallow(peek) for peek in peek_lines(data)] == one_by_one


@pytest.mark.parametrize("run", [b'{"id":1}\n\n', b'{"id":1} {"id":2}\n', b'{"id":\n1}\n'])
def test_what_is_not_one_message_a_line_shows(run: bytes) -> None:
    assert not is_one_a_line(run, peek_run(run))


@given(st.binary(max_size=200))
def test_lines_joined_are_the_run_and_end_only_at_newlines(data: bytes) -> None:
    cut = split_lines(data)
    assert b"".join(cut) == data
    assert all(line.endswith(b"\n") for line in cut[:-1])
    assert all(b"\n" not in line[:-1] for line in cut)


@given(json_lines)
def test_a_look_agrees_with_a_full_parse(line: bytes) -> None:
    message, peek = parse(line), peek_line(line)
    if isinstance(message, Request | Notification):
        assert peek.method == message.method
        session = message.params.get("sessionId")
        if peek.params is not None and isinstance(session, str):
            assert peek.params.session == session


@pytest.mark.parametrize("id", [b"1", b"1.0", b"10e-1", b"0.1", b"1e400", b"-0.0", b"12345678901234567890", b'"1"'])
def test_a_look_finds_the_id_that_a_full_parse_does(id: bytes) -> None:
    line = b'{"id":%s,"result":{}}' % id
    message = parse(line)
    assert isinstance(message, Response)
    ids = (peek_line(line).id, peek_run(line)[0].id, decode_envelopes(line)[0].id)
    assert {id_key(each) for each in ids} == {id_key(message.id)}


def test_an_id_nested_as_deep_as_can_be_decoded_is_looked_for_without_raising() -> None:
    """Who looks for it is some calls deeper than who decoded it."""
    pairing: Pairing[str] = Pairing()
    pairing.add(Side.AGENT, 1, "asked")
    most = bisect_left(range(10**6), True, key=lambda depth: nested(depth) is None)  # other Pythons, other depths
    assert 700 < most < 10**6
    for depth in range(most - 300, most + 1, 1 + most // 1000):  # the deeper, the longer each takes
        if look := nested(depth):
            assert not pairing.has(Side.AGENT, look.id)


def nested(depth: int) -> Peek | None:
    """A message whose id is in so many lists, where that can be decoded."""
    with contextlib.suppress(RecursionError):
        [look] = decode_run(b'{"id":%s1%s}' % (b"[" * depth, b"]" * depth))
        return look
    return None


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","method":"session\\/update","params":{"\\u0073essionId":"a","update":{"sessionUpdate":"plan"}}}',
        b'{"params":{"update":{"sessionUpdate":"plan"},"sessionId":"a"},"method":"session/update"}',
    ],
)
def test_key_order_and_legal_spellings_do_not_matter(line: bytes) -> None:
    assert shallow(peek_line(line)) == ("None", "session/update", "a", "plan")


@example(b'{"result":null,"id":-100}', 21)
@given(json_lines, st.integers(min_value=0, max_value=400))
def test_a_head_never_raises_and_never_contradicts_the_whole_line(line: bytes, cut: int) -> None:
    head, whole = peek_head(line[:cut]), parse(line)
    match head:
        case Request() | Notification():
            assert isinstance(whole, Request | Notification)
            assert whole.method == head.method
        case Response() if b'"method"' not in line:  # both in one message is no JSON-RPC
            assert isinstance(whole, Response)
            assert repr(whole.id) == repr(head.id)


@given(st.sampled_from(Side), st.sampled_from(["", " "]), st.binary(max_size=100))
def test_the_head_of_an_update_lets_it_pass_however_it_is_spelt_and_goes_on(
    sender: Side, space: str, rest: bytes
) -> None:
    head = f'{{"jsonrpc":{space}"2.0","method":"session/update","params":{{'.encode() + rest
    assert may_stream(sender, head, lambda *_: True, frozenset())
    assert isinstance(peek_head(head), Notification)


def test_the_head_of_a_prompt_names_its_id_and_session() -> None:
    head = (
        b'{"jsonrpc":"2.0","id":"x","method":"session/prompt","params":{"sessionId":"s1","prompt":[{"type":"image","da'
    )
    assert peek_head(head) == Request("x", "session/prompt", {"sessionId": "s1"})


def test_a_head_without_an_id_before_the_bulk_settles_nothing() -> None:
    assert peek_head(b'{"params":{"sessionId":"s1","prompt":[{"type":"text","text":"AAAA') is None
    assert peek_head(b'{"jsonrpc":"2.0","result":"AAAA') is None


def test_half_a_surrogate_pair_hides_no_message() -> None:
    line = b'{"id":1,"method":"session/prompt","params":{"sessionId":"a","prompt":[{"type":"text","text":"\\ud83d"}]}}'
    assert peek_line(line).method == "session/prompt"
    assert [peek.method for peek in peek_run(line + b"\n" + line + b"\n")] == ["session/prompt", "session/prompt"]


def test_usage_at_the_end_of_a_long_update_is_found() -> None:
    tail = b'AAAA"}},"_meta":{"usage":{"inputTokens":5}}}}}\n'
    assert meta_in_tail(tail) == {"usage": {"inputTokens": 5}}
    assert meta_in_tail(b'AAAA"}}}}\n') is None
    assert meta_in_tail(b'"_meta":{"cut') is None


def test_what_begins_as_an_array_of_objects_may_be_several_messages_and_a_log_is_none() -> None:
    assert peek_line(b'[{"method":"m"}]\n').method == BATCH
    assert peek_line(b"[12:00] a log\n") is NO_MESSAGE

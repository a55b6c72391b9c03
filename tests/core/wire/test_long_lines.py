"""What the two ends of a line tell that is too long to be held, and whether it may go out as it comes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from acp_proxy.core.events import Side
from acp_proxy.core.jsonrpc import Message, Notification, Request, Response, parse
from acp_proxy.core.wire.long_lines import WHOLE, LongLine, may_stream, peek_head

AGENT, CLIENT = Side.AGENT, Side.CLIENT
META = {"usage": {"inputTokens": 5}}


def kept(line: bytes, pieces: int = 65_536) -> LongLine:
    long = LongLine()
    for at in range(0, len(line), pieces):
        long.keep(line[at : at + pieces])
    return long


def update(length: int, *, before: dict[str, Any] | None = None, after: dict[str, Any] | None = None) -> bytes:
    """A tool's output, with what stands before it and behind it in the update."""
    fields = {"sessionUpdate": "tool_call_update"} | (before or {}) | {"rawOutput": "x" * length} | (after or {})
    params = {"sessionId": "s", "update": fields}
    return json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}).encode() + b"\n"


@pytest.mark.parametrize("pieces", [1000, 65_536, 1 << 22])
def test_a_line_that_is_not_too_long_is_read_as_a_whole_when_it_is_through(pieces: int) -> None:
    line = update(100_000, after={"_meta": META})
    long = kept(line, pieces)
    assert (long.size, long.is_partly_read) == (len(line), False)
    assert long.message() == parse(line)


def test_a_line_is_too_long_from_a_mebibyte_on() -> None:
    length = WHOLE - len(update(0))
    assert not kept(update(length)).is_partly_read
    assert kept(update(length + 1)).is_partly_read


@pytest.mark.parametrize("pieces", [1000, 65_536, 1 << 22])
def test_of_a_longer_line_its_ends_tell_what_it_is_and_what_was_used(pieces: int) -> None:
    message = kept(update(2 * WHOLE, after={"_meta": META}), pieces).message()
    assert isinstance(message, Notification)
    assert message.params == {"sessionId": "s", "update": {"sessionUpdate": "tool_call_update", "_meta": META}}


def test_what_is_told_at_the_head_stands() -> None:
    line = update(2 * WHOLE, before={"_meta": {"first": 1}})
    message = kept(line.removesuffix(b"}}}\n") + b',"_meta":{"last":1}}}}\n').message()
    assert isinstance(message, Notification)
    assert message.params["update"]["_meta"] == {"first": 1}
    silent = kept(update(2 * WHOLE)).message()
    assert isinstance(silent, Notification)
    assert silent.params["update"] == {"sessionUpdate": "tool_call_update"}


def test_only_updates_tell_usage_at_their_end() -> None:
    tail = b'"' + b"x" * (2 * WHOLE) + b'","_meta":{"a":1}}}'
    for head, message in (
        (b'{"id":1,"method":"fs/write","params":{"sessionId":"s","text":', Request(1, "fs/write", {"sessionId": "s"})),
        (b'{"method":"other","params":{"update":{"a":1},"text":', Notification("other", {"update": {"a": 1}})),
        (b'{"method":"session/update","params":{"update":5,"text":', Notification("session/update", {"update": 5})),
        (b'{"id":1,"result":{"text":', Response(1)),
        (b'{"text":', None),
    ):
        assert kept(head + tail).message() == message


def test_a_blank_may_stand_wherever_json_has_one() -> None:
    spaced = b' {\t"jsonrpc" : "2.0" ,\r\n "id" : 7 , "method" : "m" , "params" : { "a" : 1 , "b" : "long'
    assert peek_head(spaced) == Request(7, "m", {"a": 1})
    assert peek_head(b'{ "id" : 7 , "result" : { "a" : 1 } , "b" : "long') == Response(7)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b'{"id":1,"result":{"a":"lo', Response(1)),
        (b'{"id":1,"error":{"message":"lo', Response(1)),
        (b'{"id":1,"result":"lo', Response(1)),
        (b'{"result":"whole","id":3,"b":"lo', Response(3)),
        (b'{"other":{"result":1},"id":1,"result":"lo', Response(1)),
        (b'{"result":{"a":"lo', None),  # its id may come last
        (b'{"id":1,"b":"lo', None),
        (b'{"id":12', None),  # which may go on
        (b'{"id":1,"method":"m","params":[1', None),
        (
            b'{"id":1,"method":"m","params":{"update":{"a":1,"b":{"c":2},"d":"lo',
            Request(1, "m", {"update": {"a": 1, "b": {"c": 2}}}),
        ),
        (b'[{"id":1', None),
        (b"log", None),
        (b"{1:2", None),
        (b"", None),
    ],
)
def test_the_head_of_a_line_tells_what_stands_before_its_bulk(head: bytes, message: Message | None) -> None:
    assert peek_head(head) == message


@pytest.mark.parametrize(
    ("sender", "head", "streams"),
    [
        (AGENT, b'{"jsonrpc":"2.0","method":"session/update","params":{"a', True),
        (AGENT, b'{"method":"other","params":{"a":"', True),
        (AGENT, b'{"id":1,"result":{"a":"', False),  # means something to us
        (AGENT, b'{"id":2,"result":{"a":"', True),
        (AGENT, b'{"id":2,"method":"session/request_permission","params":{"a":"', False),
        (AGENT, b'{"id":2,"method":"fs/write_text_file","params":{"a":"', True),
        (AGENT, b'{"a":"', False),
        (AGENT, b"a log of the agent's", True),
        (AGENT, b"[{", False),
        (CLIENT, b'{"id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":"', True),
        (CLIENT, b'{"id":2,"method":"session/prompt","params":{"prompt":"', False),
        (CLIENT, b'{"id":2,"method":"session/prompt","params":{"sessionId":5,"prompt":"', False),
        (CLIENT, b'{"id":2,"method":"session/load","params":{"a":"', False),
        (CLIENT, b'{"id":2,"method":"_own","params":{"a":"', True),
        (CLIENT, b'{"id":1,"result":{"a":"', False),
        (CLIENT, b'{"id":2,"result":{"a":"', True),
    ],
)
def test_a_line_goes_out_as_it_comes_unless_it_must_be_accounted_first(
    sender: Side, head: bytes, streams: bool
) -> None:
    def answers(_: Side, id: Any) -> bool:
        return bool(id == 1)

    padded = head + (b"x" * 2000 if head.endswith(b'"') else b"")
    assert may_stream(sender, padded, answers, ()) is streams
    assert may_stream(sender, padded, answers, ("session/prompt",)) is (streams and sender is AGENT)
    late = head.replace(b'{"', b'{"first":"' + b"x" * 1200 + b'","', 1)  # its kind comes after the first kibibyte
    assert may_stream(sender, late, answers, ()) is streams or head.startswith(b'{"jsonrpc"')

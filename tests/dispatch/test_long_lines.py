"""Lines too long to be held: which of them stream, and what is known of those that did."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.core.events import (
    Side,
    TurnMetered,
    UpdateSeen,
)
from acp_proxy.dispatch.line_writer import LineWriter
from tests.dispatch.interceptors import OWN, USED, Gate, Speaks
from tests.ends import SESSION, Ends, Wire, answer, chunk, encoded, prompt, update


def test_nothing_is_written_into_a_line_that_is_half_out() -> None:
    ends = Ends([Speaks(TurnMetered)])
    ends.open_session()
    ends.client_says(prompt(2))
    big = encoded(chunk("x" * 100))
    ends.dispatcher.part(Side.AGENT, big[:50], last=False)
    ends.dispatcher.finish()
    assert ends.client.data == big[:50]
    ends.dispatcher.part(Side.AGENT, big[50:], last=True)
    assert ends.client.data == big + OWN + b"\n"


@pytest.mark.parametrize(
    ("sender", "head", "streams"),
    [
        (Side.AGENT, encoded(chunk("x"))[:-20], True),
        (Side.AGENT, b'{"jsonrpc":"2.0","id":2,"result":{"stop', False),
        (Side.AGENT, b'{"jsonrpc":"2.0","id":99,"result":{"stop', True),
        (Side.AGENT, b'{"result":{"stop', False),
        (Side.AGENT, b'{"jsonrpc":"2.0","id":7,"method":"fs/write_text_file","params":{"content":"', True),
        (Side.AGENT, b'{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"toolCall":"', False),
        (Side.CLIENT, b'{"jsonrpc":"2.0","id":9,"method":"session/prompt","params":{"sessionId":"s","prompt":[', True),
        (Side.CLIENT, b'{"jsonrpc":"2.0","id":9,"method":"session/prompt","params":{"prompt":[', False),
        (Side.CLIENT, b"not json at all", True),
        (Side.AGENT, b' [{"id":2,"result":{}},', False),
        (Side.AGENT, b'["a log",', True),
        (Side.CLIENT, b" \t\r" * 5000, False),
        (Side.CLIENT, b'\r {"half', False),
        (Side.AGENT, b'{"_meta":"%s","method":"session/update","params":{"update":{' % (b"x" * 5000), True),
        (Side.AGENT, b'{"method":"fs/read_text_file","_meta":"%s","id":7,"params":{' % (b"x" * 5000), True),
        (Side.AGENT, b'{"method":"session/request_permission","_meta":"%s","id":7,"params":{' % (b"x" * 5000), False),
        (Side.AGENT, b'{"_meta":1e99999999999999999999,"method":"session/update","params":{"update":{', True),
    ],
)
def test_a_long_line_streams_only_when_its_head_settles_what_it_is(sender: Side, head: bytes, streams: bool) -> None:
    ends = Ends()
    ends.open_session()
    ends.client_says(prompt(2))
    assert ends.dispatcher.streams(sender, head) is streams


def test_usage_in_the_middle_of_a_long_line_is_seen_up_to_a_mebibyte() -> None:
    watcher = Speaks()
    ends = Ends([watcher])
    ends.open_session()
    for size, seen in ((400_000, {"y": 1}), (1 << 21, None)):
        line = encoded(update("agent_message_chunk", before="x" * (size // 2), _meta={"y": 1}, after="x" * (size // 2)))
        ends.dispatcher.part(Side.AGENT, line[:300_000], last=False)
        ends.dispatcher.part(Side.AGENT, line[300_000:], last=True)
        metas = [dict(event.meta) for event in watcher.seen if isinstance(event, UpdateSeen)]
        assert metas == ([seen] if seen else [])
        watcher.seen.clear()


def test_a_number_beyond_all_bounds_at_the_end_of_a_long_line_keeps_nothing_from_what_stands_behind_it() -> None:
    ends = Ends([Speaks(UpdateSeen)])
    ends.open_session()
    head = encoded(update("agent_message_chunk", before="x" * (1 << 21)))[: -len("}}}\n")]
    line = head + b',"_meta":{"y":1e99999999999999999999}}}}\n'
    ends.dispatcher.part(Side.AGENT, line[:300_000], last=False)
    ends.dispatcher.part(Side.AGENT, line[300_000:], last=True)
    assert ends.client.data == line + OWN + b"\n"


@pytest.mark.parametrize(
    ("message", "size", "counted"),
    [
        (update("agent_message_chunk"), 1 << 21, 1),
        (update("agent_message_chunk"), 1 << 19, 0),  # read as a whole
        ({"jsonrpc": "2.0", "id": 7, "method": "fs/write_text_file", "params": {"sessionId": SESSION}}, 1 << 21, 0),
    ],
)
def test_an_update_of_which_only_the_ends_were_read_is_counted(
    message: dict[str, Any], size: int, counted: int
) -> None:
    ends = Ends()
    ends.open_session()
    line = encoded(message | {"more": "x" * size})
    ends.dispatcher.part(Side.AGENT, line[:300_000], last=False)
    ends.dispatcher.part(Side.AGENT, line[300_000:], last=True)
    assert ends.traffic.errors["partly_read"] == counted
    assert ends.client.data.endswith(line)


def test_a_prompt_that_streamed_through_is_a_turn_like_any_other() -> None:
    watcher = Speaks()
    ends = Ends([watcher])
    ends.open_session()
    line = encoded(prompt(2, "x" * 1000))
    ends.dispatcher.part(Side.CLIENT, line[:200], last=False)
    ends.dispatcher.part(Side.CLIENT, line[200:], last=True)
    ends.agent_says(answer(2, stopReason="end_turn", usage=USED))
    metered: list[Any] = [event for event in watcher.seen if isinstance(event, TurnMetered)]
    assert len(metered) == 1
    assert metered[0].entry.usage.total == 15
    assert ends.agent.data == line


@pytest.mark.parametrize(
    "head",
    [
        b'{"jsonrpc":"2.0","id":9,"method":"session/prompt","params":{"sessionId":"s","prompt":[',
        b'{"id":9,"method":"fs/any","params":{"more":"',  # of two methods the last one counts
        b'{"method":"session/cancel","params":{"more":"',
        b'{"id":9,"result":{"content":"',
        "\ufeff{".encode(),
        b"[42,",
        b"what an agent may end at a carriage return",
    ],
)
async def test_a_prompt_that_someone_admits_never_streams_however_its_line_begins(head: bytes) -> None:
    ends = Ends([Gate()])
    assert not ends.dispatcher.streams(Side.CLIENT, head)


async def test_a_prompt_that_waits_keeps_no_line_of_the_agent_from_streaming() -> None:
    ends = Ends([Gate()])
    ends.open_session()
    ends.client_says(prompt(2))
    assert ends.dispatcher.streams(Side.AGENT, encoded(chunk("x"))[:-20])
    assert not ends.dispatcher.streams(Side.CLIENT, b"not json at all")


def test_a_line_that_nobody_can_store_goes_on_unread_and_the_log_says_so() -> None:
    for sender in Side:
        ends = Ends()
        assert ends.dispatcher.gives_up(sender, 1 << 27)
        assert [entry[:2] for entry in ends.log] == [("warning", "a line is too long to be looked into")]


async def test_no_prompt_is_so_long_that_it_gets_past_who_admits_prompts() -> None:
    ends = Ends([Gate()])
    assert not ends.dispatcher.gives_up(Side.CLIENT, 1 << 30)
    assert ends.dispatcher.gives_up(Side.AGENT, 1 << 27)


def test_lines_of_our_own_that_wait_behind_a_long_one_are_told_of() -> None:
    writer = LineWriter(wire := Wire())
    writer.piece(b"half of a line", last=False)
    writer.insert(b"12345")
    writer.insert(b"678")
    assert (wire.owed, wire.data) == (8, b"half of a line")
    writer.piece(b" and more\n", last=True)
    writer.insert_delayed()
    assert (wire.owed, wire.data) == (0, b"half of a line and more\n12345\n678\n")

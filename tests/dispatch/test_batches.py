"""Messages in arrays, which JSON-RPC has and ACP does not: forwarded as they came, and read."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from acp_proxy.core.effects import Effect
from acp_proxy.core.events import Event, Side, TurnEnded, TurnMetered, TurnStarted
from acp_proxy.core.jsonrpc import parse_batch
from acp_proxy.interceptor import Interceptor
from harness.recordings import RECORDINGS, TRANSCRIPTS
from tests.cases import each_of
from tests.dispatch.interceptors import OWN, USED, Gate, Speaks, settled
from tests.ends import Ends, answer, chunk, encoded, prompt

SESSIONS = [TRANSCRIPTS / recording for recording in RECORDINGS]
_REFUSED = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "Invalid request"}}


class Rows(Interceptor):
    """Keeps what turns used."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_event(self, event: Event) -> Iterable[Effect]:
        if isinstance(event, TurnMetered):
            self.heard.append(re.sub(r"(\w*at|started|took|busy|waited)=\d+", r"\1=…", repr(event)))
        return ()


@each_of(SESSIONS, lambda path: f"{path.parent.name}/{path.stem}")
def test_a_recording_in_arrays_costs_what_it_costs_line_by_line(path: Path) -> None:
    one_by_one, together, dice = Rows(), Rows(), random.Random(path.name)
    ends, batched = Ends([one_by_one]), Ends([together])
    said = [json.loads(record) for record in path.read_text().splitlines()]
    for sender, records in groupby(said, key=lambda record: record["dir"]):
        side = Side.CLIENT if sender == "c2a" else Side.AGENT
        lines = [record["raw"].encode() for record in records]
        ends.dispatcher.lines(side, b"\n".join(lines) + b"\n")
        messages = [line for line in lines if line.lstrip().startswith(b"{")]
        while messages:
            size = dice.randint(1, len(messages))
            batched.dispatcher.lines(side, b"[" + b",".join(messages[:size]) + b"]\n")
            del messages[:size]
    for each in (ends, batched):
        each.dispatcher.finish()
        assert each.dispatcher.failures == 0
    assert together.heard == one_by_one.heard


def test_a_turn_in_arrays_is_one_and_its_own_lines_stand_before_its_end() -> None:
    speaks = Speaks(TurnEnded)
    ends = Ends([speaks])
    ends.open_session()
    asked, said = encoded([prompt(5)]), encoded([chunk(), answer(5, stopReason="end_turn", usage=USED)])
    ends.dispatcher.lines(Side.CLIENT, asked)
    ends.dispatcher.lines(Side.AGENT, said)
    assert ends.agent.data == asked
    assert ends.client.data == OWN + b"\n" + said


def test_a_long_array_does_not_stream_past_for_each_of_its_messages_may_matter() -> None:
    rows = Rows()
    ends = Ends([rows])
    ends.open_session()
    long = "x" * (1 << 17)
    said = [chunk(long), answer(5, stopReason="end_turn", usage=USED)]
    for side, messages in ((Side.CLIENT, [prompt(5, long)]), (Side.AGENT, said)):
        assert not ends.dispatcher.streams(side, encoded(messages)[: 1 << 16])
        ends.dispatcher.lines(side, encoded(messages))
    assert len(rows.heard) == 1


def test_an_array_is_read_however_many_blanks_it_begins_with() -> None:
    rows = Rows()
    ends = Ends([rows])
    ends.open_session()
    ends.client_says(prompt(5))
    line = b"[" + b" " * (1 << 17) + encoded([answer(5, stopReason="end_turn", usage=USED)])[1:]
    assert not ends.dispatcher.streams(Side.AGENT, line[: 1 << 16])
    ends.dispatcher.lines(Side.AGENT, line)
    assert len(rows.heard) == 1


def test_an_array_of_more_than_anybody_sends_goes_on_unread_and_the_log_says_so() -> None:
    rows = Rows()
    ends = Ends([rows])
    ends.open_session()
    ends.client_says(prompt(5), prompt(6))
    for asked, updates in ((5, 2500), (6, 2499)):  # of four objects each
        said = encoded([*[chunk()] * updates, answer(asked, stopReason="end_turn", usage=USED)])
        ends.dispatcher.lines(Side.AGENT, said)
        assert ends.client.data.endswith(said)
    assert [entry[:2] for entry in ends.log] == [("warning", "an array is too long to be looked into")]
    assert len(rows.heard) == 1


def test_an_agent_that_takes_no_arrays_ends_with_one_error_all_that_was_asked_in_one() -> None:
    speaks = Speaks()
    ends = Ends([speaks])
    ends.open_session()
    ends.client_says([prompt(5), prompt(6)], [prompt(7)])
    ends.agent_says(_REFUSED)
    ended = [event.turn.id for event in speaks.seen if isinstance(event, TurnEnded)]
    assert ended == ["turn-1", "turn-2"]
    ends.agent_says(_REFUSED, {"jsonrpc": "2.0", "id": None, "result": {}})
    assert [event.stop_reason for event in speaks.seen if isinstance(event, TurnEnded)] == ["error"] * 3


async def test_what_somebody_admits_is_no_turn_in_an_array_for_it_is_answered() -> None:
    speaks = Speaks()
    ends = Ends([Gate(), speaks])
    ends.open_session()
    ends.client_says([prompt(5)], [answer(6)], [prompt(7)])
    await settled()
    assert ends.agent.data == encoded([answer(6)])
    assert [message["error"]["code"] for message in ends.client.messages] == [-32600] * 2
    ends.agent_says(_REFUSED, [answer(5, stopReason="end_turn", usage=USED)])
    assert not [event for event in speaks.seen if isinstance(event, TurnStarted | TurnMetered)]


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b"[1]",
        b'[{"level":"info"},3]',
        b'[{"method":',
        b'["session/prompt"]',
        b"[ERROR] {}",
        b'[[{"method":"m"}]]',
    ],
)
def test_what_is_no_array_of_messages_says_nothing(line: bytes) -> None:
    assert parse_batch(line) == []


@pytest.mark.parametrize("before", ["", " ", "\ufeff", "\t\v"])
def test_an_array_may_begin_with_blanks_and_hold_what_is_no_message(before: str) -> None:
    line: Any = f'{before}[ {{"id":1,"result":2}}, 3, {{"method":"m"}}]'.encode()
    assert [type(message).__name__ for message in parse_batch(line)] == ["Response", "Notification"]

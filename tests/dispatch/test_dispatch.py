"""What is forwarded, when, and what stands before what."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core.effects import Effect, Send
from acp_proxy.core.events import (
    Event,
    Side,
    TurnEnded,
    TurnMetered,
    TurnStarted,
    UpdateSeen,
    UsageReported,
)
from acp_proxy.core.jsonrpc import Request
from acp_proxy.dispatch.lane import Lane
from acp_proxy.interceptor import Interceptor, Refusal
from tests.ends import SESSION, Ends, Wire, answer, chunk, encoded, prompt, request, update

OWN = b'{"own":1}'
USED = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}


class Speaks(Interceptor):
    """Says a word on every event of a type."""

    def __init__(self, *types: type) -> None:
        self._types = types
        self.seen: list[Event] = []

    def on_event(self, event: Event) -> Iterable[Effect]:
        self.seen.append(event)
        return [Send(Side.CLIENT, OWN)] if isinstance(event, self._types) else []


class Gate(Interceptor):
    """Lets a prompt wait until told what to do with it."""

    admits = frozenset({"session/prompt"})

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.verdict: asyncio.Future[Refusal | None] = asyncio.get_running_loop().create_future()

    async def admit(self, sender: Side, request: Request) -> Refusal | None:
        self.asked.append(request)
        return await self.verdict


class Breaks(Interceptor):
    admits = frozenset({"session/prompt"})

    def on_event(self, event: Event) -> Iterable[Effect]:
        raise RuntimeError("a secret of the session")

    async def admit(self, sender: Side, request: Request) -> Refusal | None:
        raise RuntimeError("a secret of the session")


async def settled() -> None:
    """Everything that can run has run."""
    for _ in range(10):
        await asyncio.sleep(0)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
acp_like = st.fixed_dictionaries(
    {},
    optional={
        "id": json_values,
        "method": st.sampled_from(["session/prompt", "session/update", "initialize", "session/new"]) | json_values,
        "params": st.fixed_dictionaries(
            {},
            optional={
                "sessionId": st.just(SESSION) | json_values,
                "update": st.fixed_dictionaries(
                    {}, optional={"sessionUpdate": st.sampled_from(["usage_update", "state_update"]) | json_values}
                ),
            },
        )
        | json_values,
        "result": json_values,
    },
).map(lambda value: json.dumps(value).encode())
raw_lines = st.binary(max_size=40).map(lambda data: data.replace(b"\n", b" "))
runs = st.lists(
    st.lists(acp_like | raw_lines, min_size=1, max_size=4).map(lambda ls: b"\n".join(ls) + b"\n"), max_size=6
)


@given(st.lists(st.tuples(st.sampled_from(Side), runs), max_size=4))
def test_whatever_is_said_comes_out_byte_for_byte_and_in_order(turns: list[tuple[Side, list[bytes]]]) -> None:
    ends = Ends()
    said = {Side.CLIENT: b"", Side.AGENT: b""}
    for sender, texts in turns:
        for run in texts:
            ends.dispatcher.lines(sender, run)
            said[sender] += run
    assert ends.agent.data == said[Side.CLIENT]
    assert ends.client.data == said[Side.AGENT]
    assert ends.dispatcher.failures == 0


def test_own_lines_of_a_turn_stand_between_what_came_before_its_end_and_the_end() -> None:
    ends = Ends([Speaks(TurnMetered)])
    ends.open_session()
    ends.client_says(prompt(2))
    end = answer(2, stopReason="end_turn", usage=USED)
    ends.agent_says(chunk("a"), chunk("b"), end, chunk("c"))
    assert ends.client.data == encoded(chunk("a"), chunk("b")) + OWN + b"\n" + encoded(end, chunk("c"))


def test_own_lines_for_anything_else_come_after_the_line_that_caused_them() -> None:
    ends = Ends([Speaks(UsageReported)])
    ends.open_session()
    ends.client_says(prompt(2))
    told = update("usage_update", used=5, size=10)
    ends.agent_says(told)
    assert ends.client.data == encoded(told) + OWN + b"\n"


def test_a_turn_is_seen_from_a_chunk_that_holds_all_of_it() -> None:
    watcher = Speaks()
    ends = Ends([watcher])
    ends.open_session()
    ends.client_says(prompt(2), prompt(3))
    ends.agent_says(
        chunk("four"), answer(2, stopReason="end_turn"), chunk("fifteen"), answer(3, stopReason="cancelled")
    )
    ended = [event for event in watcher.seen if isinstance(event, TurnEnded)]
    assert [(event.stop_reason, event.updates) for event in ended] == [("end_turn", 1), ("cancelled", 1)]


@pytest.mark.parametrize(("asked", "answered"), [(b"2", b"2.0"), (b"2.0", b"2"), (b"2.5", b"2.50"), (b"2e0", b"20e-1")])
def test_a_turn_ends_however_its_number_is_spelt(asked: bytes, answered: bytes) -> None:
    """Languages that know only doubles write 2 as 2.0."""
    watcher = Speaks()
    ends = Ends([watcher])
    ends.open_session()
    ends.client_says(encoded(prompt(0)).replace(b'"id": 0', b'"id": ' + asked))
    ends.agent_says(b'{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}\n' % answered)
    assert [event.stop_reason for event in watcher.seen if isinstance(event, TurnEnded)] == ["end_turn"]


def test_meta_beside_an_update_is_seen_like_meta_in_it() -> None:
    watcher = Speaks()
    ends = Ends([watcher])
    ends.open_session()
    beside = chunk("a")
    beside["params"]["_meta"] = {"field_meta": {"x": 1}}
    ends.agent_says(beside, chunk("b"), update("agent_message_chunk", _meta={"y": 2}))
    assert [dict(event.meta) for event in watcher.seen if isinstance(event, UpdateSeen)] == [
        {"field_meta": {"x": 1}},
        {"y": 2},
    ]


def test_an_update_is_forwarded_before_it_is_looked_into() -> None:
    watcher = Speaks(UsageReported)
    due: list[Callable[[], None]] = []
    ends = Ends([watcher], later=due.append)
    ends.open_session()
    told = update("usage_update", used=5, size=10)
    ends.agent_says(told)
    assert ends.client.data == encoded(told)
    due.pop()()
    assert ends.client.data == encoded(told) + OWN + b"\n"


async def test_a_waiting_prompt_delays_only_later_lines_of_its_session() -> None:
    gate = Gate()
    ends = Ends([gate])
    ends.open_session()
    cancel = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": SESSION}}
    mode = request(3, "session/set_mode", sessionId="another", modeId="code")
    ends.client_says(prompt(2), cancel, mode)
    await settled()
    assert ends.agent.data == encoded(mode)
    assert ends.dispatcher.holding() == ends.agent.held_back == len(encoded(prompt(2), cancel))
    gate.verdict.set_result(None)
    await settled()
    assert ends.agent.data == encoded(mode, prompt(2), cancel)
    assert ends.dispatcher.holding() == ends.agent.held_back == 0


async def test_a_prompt_that_waited_stands_on_a_line_of_its_own_behind_a_last_line_without_newline() -> None:
    gate = Gate()
    ends = Ends([gate])
    ends.open_session()
    last = encoded(request(3, "session/set_mode", sessionId="another", modeId="code"))[:-1]
    ends.client_says(prompt(2), last)
    await settled()
    assert ends.agent.data == last
    gate.verdict.set_result(None)
    await settled()
    assert ends.agent.data == last + b"\n" + encoded(prompt(2))


async def test_a_refused_prompt_is_answered_and_never_reaches_the_agent() -> None:
    gate, watcher = Gate(), Speaks()
    ends = Ends([gate, watcher])
    ends.open_session()
    line = encoded(prompt(2)).replace(b'"id": 2', b'"id": 20000000000000000001')
    ends.client_says(line)
    gate.verdict.set_result(Refusal(result={"stopReason": "end_turn"}, effects=(Send(Side.CLIENT, OWN),)))
    await settled()
    assert ends.agent.data == b""
    assert ends.client.messages == [{"own": 1}, answer(20000000000000000001, stopReason="end_turn")]
    assert not any(isinstance(event, TurnStarted) for event in watcher.seen)


async def test_the_session_goes_on_after_a_refusal() -> None:
    gate = Gate()
    ends = Ends([gate])
    ends.open_session()
    ends.client_says(prompt(2), prompt(3))
    gate.verdict.set_result(Refusal(error={"code": -32603, "message": "no"}))
    await settled()
    gate.verdict = asyncio.get_running_loop().create_future()
    await settled()
    assert [request.id for request in gate.asked] == [2, 3]


async def test_an_enforcer_that_does_not_answer_in_time_is_passed_over() -> None:
    gate = Gate()
    ends = Ends([gate], admission_timeout=0.01)
    ends.open_session()
    ends.client_says(prompt(2))
    await ends.agent.written.wait()
    assert ends.agent.data == encoded(prompt(2))
    assert ends.log[0][2]["error"] == "TimeoutError"


async def test_an_interceptor_that_fails_is_logged_without_content_and_the_relay_goes_on() -> None:
    watcher = Speaks()
    ends = Ends([Breaks(), watcher])
    ends.open_session()
    ends.client_says(prompt(2))
    await settled()
    ends.agent_says(answer(2, stopReason="end_turn", usage=USED))
    assert ends.agent.data == encoded(prompt(2))
    assert ends.client.data == encoded(answer(2, stopReason="end_turn", usage=USED))
    assert any(isinstance(event, TurnMetered) for event in watcher.seen)
    assert ends.dispatcher.failures > 0
    assert "secret" not in repr(ends.log)
    assert "Breaks" in repr(ends.log)


def test_an_effect_that_cannot_be_carried_out_stops_neither_the_line_nor_other_effects() -> None:
    class Mistaken(Speaks):
        def on_event(self, event: Event) -> Iterable[Effect]:
            said: Any = "a secret, and no bytes"
            effects = [Send(Side.CLIENT, said), *super().on_event(event)]
            return effects if isinstance(event, TurnMetered) else ()

    ends = Ends([Mistaken(TurnMetered)])
    ends.open_session()
    ends.client_says(prompt(2))
    end = answer(2, stopReason="end_turn", usage=USED)
    ends.agent_says(end)
    assert ends.client.data == OWN + b"\n" + encoded(end)
    assert (ends.dispatcher.failures, "secret" in repr(ends.log)) == (1, False)


@pytest.mark.parametrize("verdict", [True, Refusal(result={"stopReason": object()}), Refusal(error={"code": {1}})])
async def test_an_enforcer_whose_verdict_is_none_is_passed_over(verdict: Any) -> None:
    gate = Gate()
    ends = Ends([gate])
    ends.open_session()
    mode = request(3, "session/set_mode", sessionId=SESSION, modeId="code")
    ends.client_says(prompt(2), mode)
    gate.verdict.set_result(verdict)
    await settled()
    assert ends.agent.data == encoded(prompt(2), mode)
    assert ends.dispatcher.failures == 1


async def test_what_cannot_be_said_of_a_refusal_does_not_keep_the_answer() -> None:
    gate = Gate()
    ends = Ends([gate])
    ends.open_session()
    ends.client_says(prompt(2))
    said: Any = "no bytes"
    gate.verdict.set_result(Refusal(result={"stopReason": "end_turn"}, effects=(Send(Side.CLIENT, said),)))
    await settled()
    assert ends.client.data == encoded(answer(2, stopReason="end_turn")).replace(b" ", b"")


def test_nothing_is_written_into_a_line_that_is_half_out() -> None:
    ends = Ends([Speaks(TurnMetered)])
    ends.open_session()
    ends.client_says(prompt(2))
    big = encoded(chunk("x" * 100))
    ends.dispatcher.part(Side.AGENT, big[:50], True, False)
    ends.dispatcher.finish()
    assert ends.client.data == big[:50]
    ends.dispatcher.part(Side.AGENT, big[50:], False, True)
    assert ends.client.data == big + OWN + b"\n"


def test_after_a_last_line_without_newline_own_lines_begin_with_one() -> None:
    ends = Ends([Speaks(TurnMetered)])
    ends.open_session()
    ends.client_says(prompt(2))
    ends.dispatcher.lines(Side.AGENT, b'{"half":')
    ends.dispatcher.ended(Side.AGENT)
    assert ends.client.data == b'{"half":\n' + OWN + b"\n"


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
        (Side.AGENT, b' [{"id":2,"result":{}},', True),
        (Side.CLIENT, b" \t\r" * 5000, False),
        (Side.CLIENT, b'\r {"half', False),
        (Side.AGENT, b'{"_meta":"%s","method":"session/update","params":{"update":{' % (b"x" * 5000), True),
        (Side.AGENT, b'{"method":"fs/read_text_file","_meta":"%s","id":7,"params":{' % (b"x" * 5000), True),
        (Side.AGENT, b'{"method":"session/request_permission","_meta":"%s","id":7,"params":{' % (b"x" * 5000), False),
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
        ends.dispatcher.part(Side.AGENT, line[:300_000], True, False)
        ends.dispatcher.part(Side.AGENT, line[300_000:], False, True)
        metas = [dict(event.meta) for event in watcher.seen if isinstance(event, UpdateSeen)]
        assert metas == ([seen] if seen else [])
        watcher.seen.clear()


def test_a_prompt_that_streamed_through_is_a_turn_like_any_other() -> None:
    watcher = Speaks()
    ends = Ends([watcher])
    ends.open_session()
    line = encoded(prompt(2, "x" * 1000))
    ends.dispatcher.part(Side.CLIENT, line[:200], True, False)
    ends.dispatcher.part(Side.CLIENT, line[200:], False, True)
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
    ],
)
async def test_a_prompt_that_someone_admits_never_streams_however_its_line_begins(head: bytes) -> None:
    ends = Ends([Gate()])
    assert not ends.dispatcher.streams(Side.CLIENT, head)


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
    lane = Lane(wire := Wire())
    lane.piece(b"half of a line", last=False)
    lane.insert(b"12345")
    lane.insert(b"678")
    assert (wire.owed, wire.data) == (8, b"half of a line")
    lane.piece(b" and more\n", last=True)
    lane.insert_delayed()
    assert (wire.owed, wire.data) == (0, b"half of a line and more\n12345\n678\n")


@pytest.mark.parametrize(
    "spelt",
    [
        '\ufeff{"id":9,"method":"session/prompt","params":{"sessionId":"s"}}',
        '{"id":9,"method":"session/prompt","params":{"sessionId":"s"}}\u2028',
        f'{{"id":9,"method":"session/prompt","params":{{"sessionId":"s","x":{"9" * 6000}}}}}',
        f'{{"id":9,"params":{{"x":{"[" * 5000}{"]" * 5000},"sessionId":"s"}},"method":"session/prompt"}}',
        '{"id":9,"method":"fs/any","params":{},"params":{"sessionId":"s"},"method":"session/prompt"}',
    ],
    ids=["before", "behind", "number", "deep", "twice"],
)
async def test_a_prompt_that_an_agent_would_read_waits_however_it_is_spelt(spelt: str) -> None:
    """These are read by agents that trim lines and use JavaScript's parser, as most do."""
    gate = Gate()
    ends = Ends([gate])
    ends.client_says(spelt.encode() + b"\n")
    await settled()
    assert [request.method for request in gate.asked] == ["session/prompt"]
    assert ends.agent.data == b""
    gate.verdict.set_result(Refusal(result={"stopReason": "end_turn"}))
    await settled()
    assert ends.client.messages[-1]["id"] == 9
    assert ends.agent.data == b""

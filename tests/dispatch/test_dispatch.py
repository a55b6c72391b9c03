"""What is forwarded, when, and what stands before what."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core.effects import Send
from acp_proxy.core.events import (
    Side,
    TurnEnded,
    TurnMetered,
    TurnStarted,
    UpdateSeen,
    UsageReported,
)
from acp_proxy.interceptor import Refusal
from tests.dispatch.interceptors import OWN, USED, Gate, Speaks, settled
from tests.ends import SESSION, Ends, answer, chunk, encoded, prompt, request, update

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


@pytest.mark.parametrize(
    ("asked", "answered"), [(b"2", b"2.0"), (b"2.0", b"2"), (b"2.5", b"2.50"), (b"2e0", b"20e-1"), (b"2", b'"2"')]
)
def test_a_turn_ends_however_its_number_is_spelt(asked: bytes, answered: bytes) -> None:
    """Languages that know only doubles write 2 as 2.0, and some agents answer with the number as a text."""
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


def test_of_a_context_that_comes_alone_nothing_is_missed_beside_its_figures() -> None:
    watcher = Speaks()
    ends = Ends([watcher])
    ends.open_session(protocol=2)
    told = update("usage_update", used=5, size=10)
    beside = {**told, "params": {**told["params"], "_meta": {"x": 1}}}
    for each in (told, beside, update("usage_update", used=6, size=10, cost=None)):
        ends.agent_says(each)
    seen = [event for event in watcher.seen if isinstance(event, UsageReported)]
    assert [(event.used, dict(event.meta), event.cost_cleared) for event in seen] == [
        (5, {}, False),
        (5, {"x": 1}, False),
        (6, {}, True),
    ]


@pytest.mark.parametrize("session", [None, 7])
def test_a_context_of_no_session_is_nobodys(session: object) -> None:
    watcher = Speaks()
    ends = Ends([watcher])
    ends.open_session()
    told = update("usage_update", used=5, size=10)
    told["params"]["sessionId"] = session
    ends.agent_says(told)
    assert not any(isinstance(event, UsageReported) for event in watcher.seen)
    assert ends.dispatcher.failures == 0


def test_a_notification_of_another_name_is_no_update_whatever_stands_in_it() -> None:
    watcher = Speaks()
    ends = Ends([watcher])
    ends.open_session()
    ends.client_says(prompt(2))
    text, figures = (
        {**told, "method": "_agent/update"} for told in (chunk("four"), update("usage_update", used=5, size=10))
    )
    for together in ([chunk("four"), text, figures, chunk("four")], [text], [figures]):
        ends.agent_says(*together)
    ends.agent_says(answer(2, stopReason="end_turn"))
    (ended,) = [event for event in watcher.seen if isinstance(event, TurnEnded)]
    assert (ended.updates, ended.output_chars) == (2, 8)
    assert not any(isinstance(event, UsageReported) for event in watcher.seen)


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


def test_the_first_line_that_is_no_message_is_logged_without_what_it_says() -> None:
    ends = Ends()
    ends.open_session()
    said = [b"\n", encoded(chunk()) + b" \r\n", b"npm WARN deprecated\n" + encoded(chunk()), b"[INFO] ready\n", b"{}\n"]
    for run in said:
        ends.dispatcher.lines(Side.AGENT, run)
    assert ends.client.data == b"".join(said)
    assert ends.log == [("info", "agent.no_message", {"bytes": 20})]


def test_after_a_last_line_without_newline_own_lines_begin_with_one() -> None:
    ends = Ends([Speaks(TurnMetered)])
    ends.open_session()
    ends.client_says(prompt(2))
    ends.dispatcher.lines(Side.AGENT, b'{"half":')
    ends.dispatcher.ended(Side.AGENT)
    assert ends.client.data == b'{"half":\n' + OWN + b"\n"


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


@pytest.mark.parametrize(
    ("before", "behind"),
    [(b'{"of several lines":\n', b"}\n"), (b"{}{}\n", b"\n"), (b'{"a":\n', b"}\n{}{}{}\n"), (b"\n\n{}{}{}\n", b"")],
)
@pytest.mark.parametrize("newline", [b"\n", b""])
async def test_a_prompt_on_a_line_of_its_own_waits_whatever_stands_around_it(
    before: bytes, behind: bytes, newline: bytes
) -> None:
    """Agents read line by line, and pass over a line that is no message."""
    gate = Gate()
    ends = Ends([gate])
    run = before + encoded(prompt(2)) + behind + b"{}" + newline
    ends.dispatcher.lines(Side.CLIENT, run)
    await settled()
    assert [request.id for request in gate.asked] == [2]
    assert ends.agent.data == before + behind + b"{}" + newline
    assert ends.traffic.from_client.messages == len(run.splitlines())


_PROMPT = '{"id":9,"method":"session/prompt","params":{"sessionId":"s"}}'


@pytest.mark.parametrize(
    "line",
    {
        "in an array": f"[{_PROMPT}]",
        "in an array of other things": f'[42,"session",{_PROMPT}]',
        "behind another": f'{{"method":"fs/any"}}{_PROMPT}',
        "before another": f"{_PROMPT}{{}}",
        "before a word": f"{_PROMPT} word",
        "with a word that is no text": _PROMPT.replace("9", '9,"of":word'),
        "in other letters": _PROMPT.replace("9", '9,"of":word').replace("/", r"\/"),
        "behind another's return": f'{{"method":"fs/any"}}\r{_PROMPT}',
        "in another, between returns": f'{{"method":"fs/any","params":\r{_PROMPT}\r}}',
        "beside a request of nothing that waits": '{"id":8,"method":"fs/any"} word',
        "of another request, between returns": '{"id":8,"method":"fs/any","params":\r{"id":9,"method":"fs/any"}\r}',
        "with another, between returns": f'{{"id":8,"method":"session/prompt","params":\r{_PROMPT}\r}}',
    }.items(),
    ids=lambda case: case[0],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n{}\n", ""])
async def test_a_prompt_that_nobody_can_be_asked_about_is_answered_and_never_reaches_the_agent(
    line: tuple[str, str], end: str
) -> None:
    """Agents in Java and Kotlin read some of these, by the SDKs of the protocol for these languages."""
    gate = Gate()
    ends = Ends([gate])
    ends.dispatcher.lines(Side.CLIENT, f"{line[1]}{end}".encode())
    await settled()
    assert not gate.asked
    assert ends.agent.data == (b"{}\n" if "{" in end else b"")
    assert [message["error"]["code"] for message in ends.client.messages] == [-32600]


@pytest.mark.parametrize(
    "line",
    [
        '{"id":8,"result":{"content":"session/prompt, "}}',
        '[{"id":8,"result":{"content":"\\"session/prompt\\": \\n"}},"\\n"]',
        '"session/prompt"',
        "{not JSON at all\rbut of nothing that waits}",
        '{"id":8,\r"result":{}}',
        "",
    ],
)
async def test_a_line_that_asks_for_nothing_is_forwarded_whatever_it_speaks_of(line: str) -> None:
    ends = Ends([Gate()])
    ends.dispatcher.lines(Side.CLIENT, f"{line}\n".encode())
    await settled()
    assert (ends.agent.data, ends.client.data) == (f"{line}\n".encode(), b"")

"""Every line counts once, under the side that said it, whichever way it goes through the dispatcher."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core.events import Side, TurnEnded
from acp_proxy.core.jsonrpc import Request
from acp_proxy.interceptor import Interceptor
from tests.dispatch.interceptors import Speaks
from tests.ends import SESSION, Ends, answer, chunk, encoded, prompt, request, update


def said(text: str) -> bytes:
    """A piece of an answer, written as agents write it."""
    return json.dumps(chunk(text), separators=(",", ":")).encode() + b"\n"


CLIENTS = [
    prompt(2),
    prompt(3, session="another"),
    request(4, "session/close", sessionId=SESSION),
    request(5, "authenticate"),
    {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": SESSION}},
    answer(7, outcome={"outcome": "cancelled"}),
    b"no JSON\n",
]
AGENTS = [
    said("a"),
    said("b"),
    said("c" * 3000),
    update("plan", entries=[]),
    update("usage_update", used=5, size=10),
    request(7, "session/request_permission", sessionId=SESSION, toolCall={"toolCallId": "1"}, options=[]),
    answer(2, stopReason="end_turn"),
    answer(99),
    b"no JSON\n",
]


class Hears(Interceptor):
    """Of everything."""


class Admits(Interceptor):
    """Every prompt, a moment later."""

    request_methods = frozenset({"session/prompt"})

    async def admit(self, sender: Side, request: Request) -> None:
        await asyncio.sleep(0)


def counted(ends: Ends) -> tuple[int, int]:
    return ends.traffic.from_client.messages, ends.traffic.from_agent.messages


_runs_alike = st.integers(1, 60).flatmap(
    lambda number: st.lists(st.sampled_from(AGENTS[:3]), min_size=1, max_size=number)
)
_runs = st.lists(
    st.tuples(st.just(Side.CLIENT), st.lists(st.sampled_from(CLIENTS), min_size=1, max_size=4))
    | st.tuples(st.just(Side.AGENT), st.lists(st.sampled_from(AGENTS), min_size=1, max_size=4) | _runs_alike),
    max_size=12,
)


@given(_runs)
def test_lines_count_once_whatever_they_say_and_however_many_come_together(
    runs: Sequence[tuple[Side, Sequence[object]]],
) -> None:
    for interceptors in ([], [Hears()]):
        ends = Ends(interceptors)
        ends.open_session()
        before = counted(ends)
        for side, lines in runs:
            (ends.client_says if side is Side.CLIENT else ends.agent_says)(*lines)
        client, agent = (sum(len(lines) for of, lines in runs if of is side) for side in (Side.CLIENT, Side.AGENT))
        assert counted(ends) == (before[0] + client, before[1] + agent)
        for wire, of in ((ends.agent, Side.CLIENT), (ends.client, Side.AGENT)):
            assert wire.data == b"".join(encoded(*lines) for side, lines in runs if side is of)


@pytest.mark.parametrize("together", [True, False])
async def test_lines_that_wait_behind_a_prompt_count_once(together: bool) -> None:
    ends = Ends([Admits()])
    if together:
        ends.client_says(*CLIENTS)
    else:
        for each in CLIENTS:
            ends.client_says(each)
    for _ in range(100):  # everything that can run has run
        await asyncio.sleep(0)
    assert ends.dispatcher.holding() == 0
    assert counted(ends) == (len(CLIENTS), 0)


def test_lines_that_differ_from_the_one_before_by_their_text_alone_count_too() -> None:
    ends = Ends([Hears()])
    ends.open_session()
    ends.client_says(prompt(2))
    _, before = counted(ends)
    ends.client.data = b""
    lines: list[object] = []
    for number in (1, 1, 2, 1, 300, 1):
        lines += [said(f"text {each}") for each in range(number)]
        ends.agent_says(*lines[-number:])
    among = [*[said("more")] * 300, update("plan", entries=[]), *[said("more")] * 300]
    ends.agent_says(*among, answer(2, stopReason="end_turn"), *among)
    lines += [*among, answer(2, stopReason="end_turn"), *among]
    assert counted(ends)[1] - before == len(lines)
    assert ends.client.data == encoded(*lines)


def of_message(name: str, text: str) -> bytes:
    said = chunk(text)
    said["params"]["update"]["messageId"] = name
    return json.dumps(said, separators=(",", ":")).encode() + b"\n"


@pytest.mark.parametrize("together", [True, False])
def test_messages_to_the_user_are_counted_by_their_ids_however_their_pieces_come(together: bool) -> None:
    watcher = Speaks()
    ends = Ends([watcher])
    ends.open_session()
    for number, messages in enumerate([["one"], ["two", "three", "four"], []], 2):
        ends.client_says(prompt(number))
        lines = [of_message(name, f"word {word}") for name in messages for word in range(40)]
        for run in [lines] if together else [[line] for line in lines]:
            ends.agent_says(*run, update("plan", entries=[]))
        ends.agent_says(chunk(), answer(number, stopReason="end_turn"))
    assert [event.messages for event in watcher.seen if isinstance(event, TurnEnded)] == [1, 3, 0]


@pytest.mark.parametrize("side", [Side.CLIENT, Side.AGENT])
def test_a_long_line_in_pieces_and_a_last_one_without_its_end_count_as_others_do(side: Side) -> None:
    ends = Ends()
    line = encoded(prompt(2, "x" * 1000) if side is Side.CLIENT else chunk("x" * 1000))
    ends.dispatcher.part(side, line[:200], last=False)
    ends.dispatcher.part(side, line[200:900], last=False)
    ends.dispatcher.part(side, line[900:], last=True)
    assert counted(ends) == ((1, 0) if side is Side.CLIENT else (0, 1))
    ends.dispatcher.lines(side, line + line[:-1])
    assert sum(counted(ends)) == 3

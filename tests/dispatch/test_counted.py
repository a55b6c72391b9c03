"""Every line counts once, under the side that said it, whichever way it goes through the dispatcher."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_proxy.core.events import Side
from acp_proxy.interceptor import Interceptor
from tests.ends import SESSION, Ends, answer, chunk, encoded, prompt, request, update

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
    chunk("a"),
    chunk("b"),
    chunk("c" * 3000),
    update("plan", entries=[]),
    update("usage_update", used=5, size=10),
    request(7, "session/request_permission", sessionId=SESSION, toolCall={"toolCallId": "1"}, options=[]),
    answer(2, stopReason="end_turn"),
    answer(99),
    b"no JSON\n",
]


class Hears(Interceptor):
    """Of everything."""


def counted(ends: Ends) -> tuple[int, int]:
    return ends.traffic.from_client.messages, ends.traffic.from_agent.messages


@given(
    st.lists(
        st.tuples(st.just(Side.CLIENT), st.lists(st.sampled_from(CLIENTS), min_size=1, max_size=4))
        | st.tuples(st.just(Side.AGENT), st.lists(st.sampled_from(AGENTS), min_size=1, max_size=60)),
        max_size=8,
    )
)
def test_lines_count_once_whatever_they_say_and_however_many_come_together(
    runs: Sequence[tuple[Side, Sequence[object]]],
) -> None:
    for interceptors in ([], [Hears()]):
        ends = Ends(interceptors)
        for side, said in runs:
            (ends.client_says if side is Side.CLIENT else ends.agent_says)(*said)
        assert counted(ends) == tuple(
            sum(len(said) for of, said in runs if of is side) for side in (Side.CLIENT, Side.AGENT)
        )


@pytest.mark.parametrize("side", [Side.CLIENT, Side.AGENT])
def test_a_long_line_in_pieces_and_a_last_one_without_its_end_count_as_others_do(side: Side) -> None:
    ends = Ends()
    line = encoded(prompt(2, "x" * 1000) if side is Side.CLIENT else chunk("x" * 1000))
    ends.dispatcher.part(side, line[:200], True, False)
    ends.dispatcher.part(side, line[200:900], False, False)
    ends.dispatcher.part(side, line[900:], False, True)
    assert counted(ends) == ((1, 0) if side is Side.CLIENT else (0, 1))
    ends.dispatcher.lines(side, line + line[:-1])
    assert sum(counted(ends)) == 3

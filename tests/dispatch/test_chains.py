"""The agent is a proxy in a conductor's chain: it is asked as an agent is, and beside that has wrapped traffic."""

from __future__ import annotations

from typing import Any

import pytest

from acp_proxy.core.events import Implementation, Initialized, TurnMetered
from acp_proxy.interceptors.usage_updates import UsageUpdates
from tests.dispatch.interceptors import Speaks
from tests.ends import SESSION, Ends, answer, chunk, encoded, prompt, request

USED = {"inputTokens": 1000, "outputTokens": 10, "totalTokens": 1010}
RESULTS: tuple[dict[str, Any], ...] = (
    {"protocolVersion": 1, "agentInfo": {"name": "someone", "version": "1"}},
    {"sessionId": SESSION, "models": {"currentModelId": "claude-sonnet-5"}},
    {"stopReason": "end_turn", "usage": USED},
)


def wrapped(method: str, inner: dict[str, Any], **id: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", **id, "method": method, "params": {"method": inner["method"], "params": inner["params"]}}


@pytest.mark.parametrize(
    ("initialize", "asks", "tells"),
    [
        ("proxy/initialize", "proxy/successor", "proxy/successor"),
        ("_proxy/initialize", "_proxy/successor", "_proxy/successor"),
        ("initialize", "_proxy/successor/request", "_proxy/successor/notification"),  # @thinkwell/conductor 0.5
    ],
)
def test_what_a_conductor_asks_its_proxy_is_metered_once_and_what_is_wrapped_passes(
    initialize: str, asks: str, tells: str
) -> None:
    """Both count their requests from 0, so that each id is open on both sides."""
    listener = Speaks()
    ends = Ends([listener, UsageUpdates()])
    said: dict[str, list[Any]] = {"conductor": [], "proxy": []}

    def conductor(message: Any) -> None:
        said["conductor"].append(message)
        ends.client_says(message)

    def proxy(message: Any) -> None:
        said["proxy"].append(message)
        ends.agent_says(message)

    questions = (
        request(0, "initialize", protocolVersion=1),
        request(1, "session/new", cwd="/tmp", mcpServers=[]),
        prompt(2),
    )
    for question, result in zip(questions, RESULTS, strict=True):
        number = question["id"]
        conductor({**question, "method": initialize} if number == 0 else question)
        proxy(wrapped(asks, question, id=number))
        if number == 2:
            conductor(wrapped(tells, chunk("hi")))
            proxy(chunk("hi"))
        conductor(answer(number, **result))
        proxy(answer(number, **result))

    assert ends.agent.data == encoded(*said["conductor"])
    ours = [line for line in ends.client.messages if line not in said["proxy"]]
    assert [line["params"]["update"]["sessionUpdate"] for line in ours] == ["usage_update"]
    (known,) = [event.agent for event in listener.seen if isinstance(event, Initialized)]
    assert known == Implementation("someone", "1")
    (booked,) = [event.entry for event in listener.seen if isinstance(event, TurnMetered)]
    assert (booked.usage.total, booked.stop_reason) == (1010, "end_turn")

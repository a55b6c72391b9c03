"""An acp-proxy before another: what the nearer one adds is not taken for the agent's word, not repeated, and logged."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from acp_proxy.core.entry import Entry
from acp_proxy.core.events import TurnMetered
from acp_proxy.interceptors.usage_updates import UsageUpdates
from tests.dispatch.interceptors import Speaks
from tests.ends import SESSION, Ends, answer, chunk, prompt, request, update

USED = {"inputTokens": 1000, "outputTokens": 10, "totalTokens": 1010}
CONTEXT = update("usage_update", used=1010, size=200_000)
TOLD = update("usage_update", used=1010, size=200_000, cost={"amount": 0.5, "currency": "USD"})


class Chain:
    """Two relays, client and agent at the ends; each message goes all the way."""

    def __init__(self) -> None:
        self.metered = [Speaks(), Speaks()]
        self.log: list[tuple[str, str]] = []

        def log(level: str, event: str, **_: object) -> None:
            self.log.append((level, event))

        self.outer, self.inner = (Ends([UsageUpdates(log), listener]) for listener in self.metered)

    def client_says(self, message: Any) -> None:
        self.outer.agent.data = b""
        self.outer.client_says(message)
        self.inner.client_says(self.outer.agent.data)

    def agent_says(self, *messages: Any) -> None:
        for message in messages:
            self.inner.client.data = b""
            self.inner.agent_says(message)
            self.outer.agent_says(self.inner.client.data)

    def open_session(self) -> None:
        self.client_says(request(0, "initialize", protocolVersion=1))
        self.agent_says(answer(0, protocolVersion=1, agentInfo={"name": "someone", "version": "1"}))
        self.client_says(request(1, "session/new", cwd="/tmp", mcpServers=[]))
        self.agent_says(answer(1, sessionId=SESSION, models={"currentModelId": "claude-sonnet-5"}))
        self.outer.client.data = b""

    def booked(self) -> tuple[list[Entry], list[Entry]]:
        """By the outer and by the inner one, without ids and times."""
        outer, inner = (
            [
                replace(event.entry, id="", started_at=0, ended_at=0)
                for event in listener.seen
                if isinstance(event, TurnMetered)
            ]
            for listener in self.metered
        )
        return outer, inner


@pytest.mark.parametrize(
    ("before", "result", "source"),
    [
        pytest.param([], {}, "estimated", id="the agent tells nothing"),
        pytest.param([CONTEXT, chunk("more " * 100)], {}, "estimated", id="it tells its context"),
        pytest.param([], {"usage": USED}, "computed", id="it tells its tokens"),
        pytest.param([TOLD], {"usage": USED}, "agent", id="it tells all"),
    ],
)
def test_both_book_what_the_agent_said_and_each_context_is_shown_once(
    before: list[Any], result: dict[str, Any], source: str
) -> None:
    chain = Chain()
    chain.open_session()
    for number in (2, 3):
        chain.client_says(prompt(number))
        chain.agent_says(chunk("hi"), *before, answer(number, stopReason="end_turn", **result))
    outer, inner = chain.booked()
    assert outer == inner
    assert {entry.cost_source for entry in outer[:1]} == {source}
    shown = [line for line in chain.outer.client.messages if "acp-proxy" in str(line)]
    assert len(shown) == (0 if TOLD in before else 2)
    assert chain.log == [("warning", "agent.behind_another")] * bool(shown)


def test_a_prompt_that_the_nearer_one_refused_has_used_nothing() -> None:
    listener = Speaks()
    ends = Ends([UsageUpdates(), listener])
    ends.open_session(agent="someone", model="claude-sonnet-5")
    ends.client_says(prompt(2))
    ends.agent_says(chunk("hi"), answer(2, stopReason="end_turn", usage=USED))
    ends.client.data = b""
    ends.client_says(prompt(3, "x" * 4000))
    refusal = chunk("Not sent to the agent."), answer(3, stopReason="end_turn", _meta={"acp-proxy": {"budget": "b"}})
    ends.agent_says(*refusal)
    _, entry = [event.entry for event in listener.seen if isinstance(event, TurnMetered)]
    assert (entry.usage.total, entry.usage_source) == (0, "agent")
    assert entry.context_used == USED["totalTokens"]
    assert ends.client.messages == list(refusal)

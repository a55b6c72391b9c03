"""Who stands behind a prompt that waits, who is asked of it, and what is left of it all at the end."""

from __future__ import annotations

import asyncio
from math import inf
from typing import Any

import pytest

from acp_proxy.core.effects import Send
from acp_proxy.core.events import ConnectionClosed, Event, Side, TurnEnded, TurnStarted
from acp_proxy.core.jsonrpc import Request
from acp_proxy.interceptor import Admitted, Interceptor, Refusal
from tests.dispatch.interceptors import USED, Gate, Speaks, settled
from tests.ends import SESSION, Ends, answer, encoded, prompt, request


class Asked(Interceptor):
    """Is asked of one method, and answers when it is told to; keeps what it sees."""

    def __init__(self, method: str = "session/prompt") -> None:
        self.request_methods = frozenset({method})
        self.asked: list[str] = []
        self.seen: list[Event] = []
        self.cancelled = False
        self.may_go = asyncio.Event()

    def on_event(self, event: Event) -> tuple[()]:
        self.seen.append(event)
        return ()

    async def admit(self, sender: Side, request: Request) -> None:
        self.asked.append(request.method)
        try:
            await self.may_go.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise


def notification(method: str, session: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": {"sessionId": session}}


def cancelling(asked: int | str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": asked}}


async def test_what_is_said_in_other_sessions_or_in_none_passes_a_prompt_that_waits() -> None:
    ends = Ends([Asked()])
    passing = [
        notification("session/cancel", "another"),
        request(3, "session/close", sessionId="another"),
        request(4, "authenticate"),
        answer(5, outcome={"outcome": "cancelled"}),
    ]
    ends.client_says(prompt(2))
    for each in passing:
        ends.client_says(each)
    await settled()
    assert ends.agent.messages == passing
    assert ends.dispatcher.holding() == len(encoded(prompt(2)))


@pytest.mark.parametrize("refused", [False, True])
async def test_what_cancels_a_request_that_waits_comes_behind_it(refused: bool) -> None:
    gate = Gate()
    ends = Ends([gate])
    config, close = request("c", "session/set_config_option", sessionId=SESSION), request(3, "session/close")
    of_the_prompt, of_another, of_what_is_behind = cancelling(2), cancelling("2"), cancelling("c")
    ends.client_says(prompt(2), of_the_prompt, of_another)
    ends.client_says(config)
    ends.client_says(of_what_is_behind)
    ends.client_says(close)
    await settled()
    assert ends.agent.messages == [of_another, close]
    gate.verdict.set_result(Refusal(result={"stopReason": "end_turn"}) if refused else None)
    await settled()
    prompted = [] if refused else [prompt(2)]
    assert ends.agent.messages == [of_another, close, *prompted, of_the_prompt, config, of_what_is_behind]
    ends.client_says(of_the_prompt)
    assert ends.agent.messages[-1] == of_the_prompt
    assert ends.dispatcher.holding() == 0


async def test_a_notification_is_no_request_whatever_it_is_called() -> None:
    ends = Ends([Asked("session/cancel")])
    for method in ("session/cancel", "session/prompt"):
        ends.client_says(notification(method, SESSION))
    assert ends.agent.messages == [notification("session/cancel", SESSION), notification("session/prompt", SESSION)]


@pytest.mark.parametrize(
    "id",
    [
        "0.1000000000000000055",
        "1e400",
        "1e-400",
        "NaN",
        "true",
        "null",
        "[1.0]",
        '{"2":0,"1":0}',
        '"\\ud800"',
        "1" * 22,
    ],
)
async def test_a_prompt_that_agents_may_answer_by_another_id_is_answered_for_nobody_would_tell_what_it_used(
    id: str,
) -> None:
    asked = Asked()
    ends = Ends([asked])
    ends.client_says(encoded(prompt(2)).replace(b'"id": 2', f'"id": {id}'.encode()))
    await settled()
    assert (ends.agent.messages, asked.asked) == ([], [])
    assert [message["error"]["code"] for message in ends.client.messages] == [-32600]


@pytest.mark.parametrize(
    "id", ["-1", "1e2", "2.0", "9007199254740993", "1" * 21, '""', '"\U0001f600"', '"\\ud83d\\ude00"']
)
async def test_a_prompt_by_any_id_that_comes_back_waits(id: str) -> None:
    asked = Asked()
    ends = Ends([asked])
    ends.client_says(encoded(prompt(2)).replace(b'"id": 2', f'"id": {id}'.encode()))
    await settled()
    assert (asked.asked, ends.client.messages) == (["session/prompt"], [])


async def test_no_answer_to_another_request_ends_the_turn_of_a_prompt_whose_id_that_has() -> None:
    gate, watcher = Gate(), Speaks()
    gate.verdict.set_result(None)
    ends = Ends([gate, watcher])
    ends.client_says(prompt(2), request("2", "fs/any"))
    await settled()
    ends.client_says(request(2, "fs/any"), request(2, "session/list"), request(2.0, "session/set_mode"), prompt(2))
    ends.client_says(encoded(request(7, "fs/any")).replace(b"7", b"2.00000000000000000001"))
    await settled()
    assert ends.agent.messages == [request("2", "fs/any"), prompt(2)]
    assert [(message["id"], message["error"]["code"]) for message in ends.client.messages] == [(2, -32600)] * 5
    ends.agent_says({"jsonrpc": "2.0", "id": "2", "error": {"code": -32601, "message": "Method not found"}})
    assert not [event for event in watcher.seen if isinstance(event, TurnEnded)]
    ends.agent_says(answer(2, stopReason="end_turn", usage=USED))
    (ended,) = (event for event in watcher.seen if isinstance(event, TurnEnded))
    assert ended.counters is not None
    ends.client_says(request(2, "fs/any"))
    assert ends.agent.messages[-1] == request(2, "fs/any")


async def test_a_prompt_waits_for_no_id_that_is_open_or_waits_itself() -> None:
    asked = Asked()
    ends = Ends([asked])
    ends.client_says(request(2, "authenticate"), prompt(2))
    ends.client_says(prompt(3), request(3, "authenticate"))
    large = prompt(1 << 60, session="another")
    ends.client_says(large, request((1 << 60) + 1, "authenticate"))  # to JavaScript they are one
    await settled()
    assert (ends.agent.messages, len(asked.asked)) == ([request(2, "authenticate")], 2)
    assert [message["id"] for message in ends.client.messages] == [2, 3, (1 << 60) + 1]
    assert {message["error"]["code"] for message in ends.client.messages} == {-32600}
    ends.agent_says(answer(2))
    asked.may_go.set()
    ends.client_says(prompt(2))
    await settled()
    assert ends.agent.messages[1:] == [prompt(3), large, prompt(2)]


async def test_a_prompt_without_an_id_is_answered_for_agents_on_the_sdk_for_go_would_do_it() -> None:
    asked = Asked()
    ends = Ends([asked])
    ends.client_says(notification("session/prompt", SESSION))
    assert (ends.agent.messages, asked.asked) == ([], [])
    assert [(message["id"], message["error"]["code"]) for message in ends.client.messages] == [(None, -32600)]


async def test_each_interceptor_is_asked_of_the_methods_that_it_admits() -> None:
    prompts, loads = Asked(), Asked("session/load")
    ends = Ends([prompts, loads])
    for each in (prompts, loads):
        each.may_go.set()
    ends.client_says(prompt(2), request(3, "session/load", sessionId="another"))
    await settled()
    assert (prompts.asked, loads.asked) == (["session/prompt"], ["session/load"])
    assert len(ends.agent.messages) == 2


async def test_whoever_refuses_has_the_last_word() -> None:
    refusing, after = Gate(), Gate()
    ends = Ends([refusing, after])
    ends.client_says(prompt(2))
    refusing.verdict.set_result(Refusal(result={"stopReason": "refusal"}))
    after.verdict.set_result(Admitted("0198-1"))
    await settled()
    assert (after.asked, ends.agent.messages) == ([], [])
    assert ends.client.messages == [answer(2, stopReason="refusal")]


async def test_what_is_to_be_done_when_a_prompt_went_is_done_for_all_who_let_it_go() -> None:
    gates, watcher = [Gate() for _ in range(3)], Speaks()
    ends = Ends([*gates, watcher])
    ends.client_says(prompt(2))
    for number, gate in enumerate(gates):
        said = b'{"by":%d}' % number
        gate.verdict.set_result(Admitted(f"0198-{number}", (Send(Side.CLIENT, said),)) if number != 1 else None)
    await settled()
    assert ends.client.messages == [{"by": 0}, {"by": 2}]
    assert [event.turn.id for event in watcher.seen if isinstance(event, TurnStarted)] == ["0198-2"]


async def test_an_answer_of_the_client_waits_for_no_request() -> None:
    ends = Ends([Asked("authenticate")])
    ends.open_session()
    ends.agent_says(request("p", "session/request_permission", sessionId=SESSION, options=[]))
    allowed = answer("p", outcome={"outcome": "selected", "optionId": "once"})
    ends.client_says(request(3, "authenticate"), allowed)
    await settled()
    assert ends.agent.messages == [allowed]


@pytest.mark.parametrize("own", [inf, 600.0])
async def test_who_wants_more_time_than_is_usual_is_not_passed_over(own: float) -> None:
    asked = Asked()
    asked.admit_timeout = own
    ends = Ends([asked], admission_timeout=0.0)
    ends.client_says(prompt(2))
    await settled()
    assert (ends.agent.messages, ends.log) == ([], [])
    asked.may_go.set()
    await settled()
    assert ends.agent.messages == [prompt(2)]


async def test_who_wants_less_time_than_is_usual_is_passed_over_sooner() -> None:
    asked = Asked()
    asked.admit_timeout = 0.001
    ends = Ends([asked], admission_timeout=600.0)
    ends.client_says(prompt(2))
    await ends.agent.written.wait()
    assert [fields["error"] for _, _, fields in ends.log] == ["TimeoutError"]


async def test_a_turn_has_the_id_that_it_was_admitted_with_though_others_are_asked_too() -> None:
    first, given, last, watcher = Asked(), Gate(), Asked(), Speaks()
    for each in (first, last):
        each.may_go.set()
    given.verdict.set_result(Admitted("0198-1"))
    ends = Ends([first, given, last, watcher])
    ends.client_says(prompt(2))
    await settled()
    assert [event.turn.id for event in watcher.seen if isinstance(event, TurnStarted)] == ["0198-1"]


async def test_at_the_end_nobody_decides_any_more() -> None:
    asked = Asked()
    ends = Ends([asked])
    ends.client_says(prompt(2))
    await settled()
    await ends.dispatcher.aclose()
    await settled()
    assert asked.cancelled
    assert (ends.agent.messages, ends.log) == ([], [])


async def test_what_is_decided_when_the_agent_has_ended_its_output_goes_nowhere_and_holds_back_nothing() -> None:
    asked = Asked()
    ends = Ends([asked])
    ends.client_says(prompt(2), notification("session/cancel", SESSION))
    await settled()
    ends.dispatcher.ended(Side.AGENT)
    asked.may_go.set()
    await settled()
    assert (ends.agent.messages, ends.agent.held_back) == ([], ends.dispatcher.holding()) == ([], 0)


@pytest.mark.parametrize(
    ("gone", "reason"),
    [((Side.CLIENT, Side.AGENT), "disconnected"), ((Side.AGENT, Side.CLIENT), "crashed"), ((), "crashed")],
    ids=["the client", "the agent", "nobody"],
)
async def test_a_turn_that_is_open_is_blamed_once_on_the_side_that_left_first(
    gone: tuple[Side, ...], reason: str
) -> None:
    asked = Asked()
    asked.may_go.set()
    ends = Ends([asked])
    ends.client_says(prompt(2))
    await settled()
    for side in gone:
        ends.dispatcher.ended(side)
    ends.dispatcher.finish()
    ends.dispatcher.finish()
    assert [event.stop_reason for event in asked.seen if isinstance(event, TurnEnded)] == [reason]
    assert len([event for event in asked.seen if isinstance(event, ConnectionClosed)]) == 1

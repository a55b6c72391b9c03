"""Whatever others' interceptors get wrong, lines go on, and the log says whose fault it was."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any
from uuid import UUID

import pytest

from acp_proxy.core.effects import DenyPermissions, Effect, Send
from acp_proxy.core.events import Event, Side, TurnMetered, TurnStarted
from acp_proxy.core.jsonrpc import Request
from acp_proxy.dispatch import accounting
from acp_proxy.interceptor import Admitted, Interceptor, Refusal
from tests.dispatch.interceptors import OWN, USED, Gate, Speaks, settled
from tests.ends import SESSION, Ends, answer, chunk, encoded, prompt, request


def look_into(event: Event) -> Iterable[Effect]:
    raise RuntimeError("a secret of the session")


class Breaks(Interceptor):
    request_methods = frozenset({"session/prompt"})

    def on_event(self, event: Event) -> Iterable[Effect]:
        return look_into(event)

    async def admit(self, sender: Side, request: Request) -> Refusal | None:
        raise RuntimeError("a secret of the session")


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
    where = look_into.__code__
    assert ends.log[0][2]["at"] == f"look_into:{where.co_firstlineno + 1}"


@pytest.mark.parametrize("error", [asyncio.CancelledError(), SystemExit(1)], ids=["cancelled", "exit"])
async def test_no_interceptor_keeps_a_line_or_ends_the_relay_whatever_it_raises(error: BaseException) -> None:
    class Raises(Interceptor):
        request_methods = frozenset({"session/prompt"})

        def on_event(self, event: Event) -> Iterable[Effect]:
            raise error

        async def admit(self, sender: Side, request: Request) -> None:
            raise error

        async def aclose(self) -> None:
            raise error

    watcher = Speaks()
    ends = Ends([Raises(), watcher])
    ends.open_session()
    ends.client_says(prompt(2))
    await settled()
    ends.agent_says(answer(2, stopReason="end_turn", usage=USED))
    await ends.dispatcher.aclose()
    assert ends.agent.data == encoded(prompt(2))
    assert ends.client.data == encoded(answer(2, stopReason="end_turn", usage=USED))
    assert any(isinstance(event, TurnMetered) for event in watcher.seen)
    assert {fields["error"] for _, _, fields in ends.log} == {type(error).__name__}


SECRET: Any = "a secret, and no bytes"
NO_SIDE: Any = "client"


@pytest.mark.parametrize("mistake", [Send(Side.CLIENT, SECRET), Send(NO_SIDE, OWN), SECRET, None])
def test_an_effect_that_cannot_be_carried_out_stops_neither_the_line_nor_other_effects(mistake: Any) -> None:
    class Mistaken(Speaks):
        def on_event(self, event: Event) -> Iterable[Effect]:
            effects = [mistake, *super().on_event(event)]
            return effects if isinstance(event, TurnMetered) else ()

    ends = Ends([Mistaken(TurnMetered)])
    ends.open_session()
    ends.client_says(prompt(2))
    end = answer(2, stopReason="end_turn", usage=USED)
    ends.agent_says(end)
    assert ends.client.data == OWN + b"\n" + encoded(end)
    assert ends.agent.data == encoded(prompt(2))
    assert (ends.dispatcher.failures, "secret" in repr(ends.log)) == (1, False)


NO_EFFECTS: Any = Send(Side.CLIENT, OWN)  # of which a tuple was meant
NO_ID: Any = UUID(int=1)


@pytest.mark.parametrize(
    ("effect", "error"),
    [
        (Send(Side.CLIENT, b"{\n}"), "ValueError"),
        (DenyPermissions(SESSION, tell=OWN + b"\n"), "ValueError"),
        (DenyPermissions(SESSION, tell=SECRET), "TypeError"),
    ],
)
def test_what_is_no_single_line_is_neither_sent_nor_kept_for_later(effect: Effect, error: str) -> None:
    class Mistaken(Interceptor):
        event_types = frozenset({TurnStarted})

        def on_event(self, event: Event) -> Iterable[Effect]:
            return [effect]

    ends = Ends([Mistaken()])
    ends.open_session()
    ends.client_says(prompt(2))
    asked = request("p", "session/request_permission", sessionId=SESSION, options=[])
    ends.agent_says(asked, chunk())
    assert ends.client.data == encoded(asked, chunk())
    assert [fields["error"] for _, _, fields in ends.log] == [error]


@pytest.mark.parametrize(
    "verdict",
    [
        True,
        Refusal(result={"stopReason": object()}),
        Refusal(error={"code": {1}}),
        Refusal(result={"stopReason": "end_turn"}, effects=NO_EFFECTS),
        Admitted("0198-1", effects=NO_EFFECTS),
        Admitted(NO_ID),
    ],
)
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


@pytest.mark.parametrize("admits", [None, "session/prompt", [["session/prompt"]]])
async def test_who_does_not_say_as_it_should_what_it_is_asked_of_is_asked_of_nothing(admits: Any) -> None:
    mistaken, gate = Gate(), Gate()
    mistaken.request_methods = admits
    ends = Ends([mistaken, gate])
    ends.open_session()
    ends.client_says(prompt(2))
    gate.verdict.set_result(None)
    await settled()
    assert (mistaken.asked, ends.agent.data) == ([], encoded(prompt(2)))
    assert [fields["who"] for _, _, fields in ends.log] == ["Gate"]


async def test_an_enforcer_whose_own_task_was_cancelled_is_passed_over() -> None:
    gate = Gate()
    ends = Ends([gate])
    ends.open_session()
    mode = request(3, "session/set_mode", sessionId=SESSION, modeId="code")
    ends.client_says(prompt(2), mode)
    gate.verdict.cancel()
    await settled()
    assert ends.agent.data == encoded(prompt(2), mode)
    assert ends.log[0][2]["error"] == "CancelledError"


class Closes(Interceptor):
    """Keeps whether it was closed; before that does what it is given."""

    def __init__(self, *steps: Callable[[], Awaitable[object]]) -> None:
        self._steps = steps
        self.closed = False

    async def aclose(self) -> None:
        for step in self._steps:
            await step()
        self.closed = True


async def test_whoever_cannot_close_keeps_neither_the_end_nor_others_from_closing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(accounting, "CLOSING", 0.01)
    cancelled = asyncio.get_running_loop().create_future()
    cancelled.cancel()
    stuck, broken, last = Closes(asyncio.Event().wait), Closes(lambda: cancelled), Closes()
    ends = Ends([stuck, broken, last])
    await ends.dispatcher.aclose()
    assert [each.closed for each in (stuck, broken, last)] == [False, False, True]
    assert [fields["error"] for _, _, fields in ends.log] == ["TimeoutError", "CancelledError"]


async def test_who_stops_waiting_for_the_end_is_not_kept() -> None:
    ends = Ends([Closes(asyncio.Event().wait)])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await ends.dispatcher.aclose()
    assert ends.log == []

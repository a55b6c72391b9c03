"""Requests for permission that are answered in the client's place, and answers that come too late."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from acp_proxy.core.effects import AllowPermissions, DenyPermissions, Effect
from acp_proxy.core.events import Event, PermissionAnswered, PermissionRequested, TurnEnded, UsageReported
from acp_proxy.interceptor import Interceptor
from tests.ends import SESSION, Ends, answer, chunk, encoded, prompt, request, update

CANCELLED = {"outcome": {"outcome": "cancelled"}}
SPENT = update("usage_update", used=5, size=10)
TELL = b'{"told":1}'


class Denies(Interceptor):
    """From the first usage on until the turn's end."""

    def __init__(self, *, pending: bool = False) -> None:
        self._pending = pending
        self.seen: list[Event] = []

    def on_event(self, event: Event) -> Iterable[Effect]:
        self.seen.append(event)
        match event:
            case UsageReported():
                return [DenyPermissions(SESSION, self._pending, TELL)]
            case TurnEnded():
                return [AllowPermissions(SESSION)]
        return []


def ends_with(denies: Denies) -> Ends:
    ends = Ends([denies])
    ends.open_session()
    ends.client_says(prompt(2))
    ends.client.data = ends.agent.data = b""
    return ends


def permission(id: Any, session: str = SESSION) -> dict[str, Any]:
    return request(id, "session/request_permission", sessionId=session, toolCall={"toolCallId": f"call-{id}"})


def allowed(id: Any) -> dict[str, Any]:
    return answer(id, outcome={"outcome": "selected", "optionId": "yes"})


def test_a_request_is_denied_without_asking_the_client_which_is_told_once() -> None:
    denies = Denies()
    ends = ends_with(denies)
    ends.agent_says(SPENT)
    ends.agent_says(permission(7), permission(8))
    assert ends.agent.messages == [answer(7, **CANCELLED), answer(8, **CANCELLED)]
    assert ends.client.data == encoded(SPENT) + TELL + b"\n"
    outcomes = [event.outcome for event in denies.seen if isinstance(event, PermissionAnswered)]
    assert outcomes == ["cancelled", "cancelled"]


@pytest.mark.parametrize("heard", [PermissionRequested, PermissionAnswered])
def test_who_hears_of_a_denied_request_may_have_the_client_asked_again(heard: type[Event]) -> None:
    class Once(Interceptor):
        """Denies one tool."""

        event_types = frozenset({UsageReported, heard})

        def on_event(self, event: Event) -> Iterable[Effect]:
            return [
                DenyPermissions(SESSION, tell=TELL) if isinstance(event, UsageReported) else AllowPermissions(SESSION)
            ]

    ends = Ends([Once()])
    ends.open_session()
    ends.agent_says(SPENT, permission(7), permission(8), chunk("on"))
    assert ends.agent.messages == [answer(7, **CANCELLED)]
    assert ends.client.data == encoded(SPENT) + TELL + b"\n" + encoded(permission(8), chunk("on"))


def test_what_comes_in_one_chunk_with_the_reason_is_denied_too() -> None:
    ends = ends_with(Denies())
    ends.agent_says(SPENT, permission(7), chunk("on"))
    assert ends.agent.messages == [answer(7, **CANCELLED)]
    assert ends.client.data == encoded(SPENT) + TELL + b"\n" + encoded(chunk("on"))


def test_the_id_is_answered_in_its_own_digits() -> None:
    ends = ends_with(Denies())
    ends.agent_says(SPENT, encoded(permission(7)).replace(b'"id": 7', b'"id": 70000000000000000001'))
    assert b"70000000000000000001" in ends.agent.data


def test_after_the_turn_the_client_is_asked_again() -> None:
    ends = ends_with(Denies())
    end = answer(2, stopReason="end_turn")
    ends.agent_says(SPENT, permission(7), end, permission(8))
    assert ends.client.data == encoded(SPENT) + TELL + b"\n" + encoded(end, permission(8))
    ends.client_says(allowed(8))
    assert ends.agent.messages == [answer(7, **CANCELLED), allowed(8)]


def test_another_session_is_asked_as_ever() -> None:
    ends = ends_with(Denies())
    ends.agent_says(SPENT, permission(7, "another"))
    assert ends.client.messages[-1] == permission(7, "another")


def test_a_subagents_request_is_its_roots() -> None:
    ends = ends_with(Denies())
    ends.agent_says(update("subagent_update", sessionId="child", state={"state": "running"}))
    ends.agent_says(SPENT, permission(7, "child"))
    assert ends.agent.messages == [answer(7, **CANCELLED)]


@pytest.mark.parametrize("together", [False, True])
def test_what_the_client_was_asked_is_answered_and_its_late_answer_is_dropped(together: bool) -> None:
    denies = Denies(pending=True)
    ends = ends_with(denies)
    ends.agent_says(permission(7))
    ends.agent_says(SPENT)
    late = [allowed(7), prompt(9)]
    if together:
        ends.client_says(*late)
    else:
        for message in late:
            ends.client_says(message)
    assert ends.agent.messages == [answer(7, **CANCELLED), prompt(9)]
    assert sum(isinstance(event, PermissionRequested) for event in denies.seen) == 1
    outcomes = [event.outcome for event in denies.seen if isinstance(event, PermissionAnswered)]
    assert outcomes == ["cancelled"]


def test_only_one_late_answer_is_dropped_for_agents_use_ids_again() -> None:
    ends = ends_with(Denies(pending=True))
    ends.agent_says(permission(7), SPENT)
    ends.client_says(allowed(7))
    ends.agent_says(answer(2, stopReason="end_turn"), permission(7))
    ends.client_says(allowed(7))
    assert ends.agent.messages == [answer(7, **CANCELLED), allowed(7)]


def test_what_was_answered_in_time_is_not_answered_again() -> None:
    ends = ends_with(Denies(pending=True))
    ends.agent_says(permission(7))
    ends.client_says(allowed(7))
    ends.agent_says(SPENT)
    assert ends.agent.messages == [allowed(7)]

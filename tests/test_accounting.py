"""Who is told what: each interceptor the events that it wants, in their order, and nobody else's fault is its own."""

from __future__ import annotations

from collections.abc import Iterable

from acp_proxy.core.effects import Effect
from acp_proxy.core.events import Event, TurnEnded, TurnMetered, TurnStarted
from acp_proxy.interceptor import Interceptor
from tests.ends import Ends, answer, prompt


class Listens(Interceptor):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.heard: list[type[Event]] = []

    def on_event(self, event: Event) -> Iterable[Effect]:
        self.heard.append(type(event))
        return ()


class ListensToTurns(Listens):
    hears = frozenset({TurnStarted, TurnMetered})


class ListensToNonsense(Listens):
    hears = 7  # type: ignore[assignment]  # what a package of somebody else's may do


class Silent(Interceptor):
    """Overrides nothing."""


def a_turn(ends: Ends) -> None:
    ends.open_session()
    ends.client_says(prompt(2))
    ends.agent_says(answer(2, stopReason="end_turn", usage={"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}))


def test_an_interceptor_is_told_the_events_that_it_hears_and_no_others() -> None:
    everything, turns = Listens(), ListensToTurns()
    a_turn(Ends([everything, turns, Silent()]))
    assert turns.heard == [TurnStarted, TurnMetered]
    assert TurnEnded in everything.heard
    assert [kind for kind in everything.heard if kind in ListensToTurns.hears] == turns.heard


def test_an_interceptor_that_hears_nonsense_is_logged_and_the_others_are_told() -> None:
    nonsense, everything = ListensToNonsense(), Listens()
    ends = Ends([nonsense, everything])
    a_turn(ends)
    assert nonsense.heard == []
    assert TurnMetered in everything.heard
    assert ends.dispatcher.failures > 0
    assert "ListensToNonsense" in repr(ends.log)

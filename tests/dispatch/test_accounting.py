"""Who is told what: each interceptor the events that it wants, in their order, and nobody else's fault is its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from acp_proxy.core.effects import Effect
from acp_proxy.core.events import Event, TurnEnded, TurnEnding, TurnMetered, TurnStarted, UsageReported
from acp_proxy.dispatch.accounting import AT_MOST
from acp_proxy.interceptor import Interceptor
from tests.dispatch.interceptors import Notes
from tests.ends import Ends, answer, chunk, encoded, prompt, update


class Listens(Interceptor):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.heard: list[type[Event]] = []

    def on_event(self, event: Event) -> Iterable[Effect]:
        self.heard.append(type(event))
        return ()


class ListensToTurns(Listens):
    event_types = frozenset({TurnStarted, TurnMetered})


class ListensToNonsense(Listens):
    event_types = 7  # type: ignore[assignment]  # what a package of somebody else's may do


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
    assert [kind for kind in everything.heard if kind in ListensToTurns.event_types] == turns.heard


def test_an_interceptor_that_hears_nonsense_is_logged_and_the_others_are_told() -> None:
    nonsense, everything = ListensToNonsense(), Listens()
    ends = Ends([nonsense, everything])
    a_turn(ends)
    assert nonsense.heard == []
    assert TurnMetered in everything.heard
    assert ends.dispatcher.failures > 0
    assert "ListensToNonsense" in repr(ends.log)


def late_ends(*interceptors: Interceptor) -> tuple[Ends, list[Callable[[], None]]]:
    """With a session, and what is to be called a moment later."""
    due: list[Callable[[], None]] = []
    ends = Ends(interceptors, later=due.append)
    ends.open_session()
    return ends, due


def test_a_prompt_is_forwarded_before_its_turn_begins_for_us() -> None:
    turns = ListensToTurns()
    ends, due = late_ends(turns)
    ends.client_says(prompt(2))
    assert ends.agent.data == encoded(prompt(2))
    assert turns.heard == []
    due.pop()()
    assert turns.heard == [TurnStarted]


def test_an_agent_that_answers_at_once_ends_a_turn_that_began_when_its_prompt_passed() -> None:
    notes = Notes()
    ends, due = late_ends(notes)
    ends.client_says(prompt(2))
    ends.agent_says(answer(2, stopReason="end_turn", usage={"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}))
    due.pop()()
    [started] = [event for event in notes.events if isinstance(event, TurnStarted)]
    [entry] = [event.entry for event in notes.events if isinstance(event, TurnMetered)]
    assert (entry.id, entry.started_at, entry.usage.total) == (started.turn.id, started.at, 15)
    assert entry.started_at < entry.ended_at


def test_what_an_agent_told_before_it_answered_at_once_is_looked_into_when_the_end_is_known() -> None:
    everything = Listens()
    ends, _ = late_ends(everything)
    everything.heard.clear()
    ends.client_says(prompt(2))
    ends.agent_says(update("usage_update", used=5, size=10))
    assert everything.heard == []
    ends.agent_says(answer(2, stopReason="end_turn"))
    assert everything.heard[:3] == [TurnStarted, TurnEnding, UsageReported]
    assert everything.heard[-2:] == [TurnEnded, TurnMetered]


def test_nobody_waits_for_an_answer_to_a_prompt_that_is_looked_into_because_of_it() -> None:
    turns = ListensToTurns()
    ends, _ = late_ends(turns)
    ends.client_says(prompt(2))
    ends.agent_says(answer(77, something="else"))
    assert turns.heard == [TurnStarted]


def test_one_look_is_called_for_whatever_waits_and_none_for_words_alone() -> None:
    ends, due = late_ends(Listens())
    for _ in range(2):
        ends.agent_says(update("usage_update", used=5, size=10))
        ends.agent_says(update("usage_update", used=6, size=10))
        assert len(due) == 1
        due.pop()()
        ends.agent_says(chunk())
        assert due == []


def test_a_context_that_says_more_than_figures_is_looked_into_like_others() -> None:
    notes = Notes()
    ends, due = late_ends(notes)
    ends.client_says(prompt(2))
    ends.agent_says(update("usage_update", used=5, size=10, _meta={"_claude/model": "claude-opus-5-5"}))
    due.pop()()
    assert [event.meta for event in notes.events if isinstance(event, UsageReported)] == [
        {"_claude/model": "claude-opus-5-5"}
    ]


def test_no_more_than_so_many_lines_wait_to_be_accounted() -> None:
    everything = Listens()
    ends, _ = late_ends(everything)
    ends.client_says(prompt(2))
    for number in range(AT_MOST):
        assert UsageReported not in everything.heard
        ends.agent_says(update("usage_update", used=number, size=AT_MOST))
    assert everything.heard.count(UsageReported) == 1

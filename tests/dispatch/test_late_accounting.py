"""Looking into updates late, and into several at once, sees what looking into each of them at once would have seen."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from acp_proxy.core.effects import Effect
from acp_proxy.core.events import ContextChanged, Event, Side, TurnEnding, UsageReported
from acp_proxy.interceptor import Interceptor
from acp_proxy.interceptors.usage_updates import UsageUpdates
from harness.recordings import RECORDINGS, TRANSCRIPTS
from tests.cases import each_of
from tests.ends import SESSION, Ends, answer, chunk, encoded, prompt, update

SESSIONS = [TRANSCRIPTS / recording for recording in RECORDINGS]


class Listens(Interceptor):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.heard: list[Event] = []

    def on_event(self, event: Event) -> Iterable[Effect]:
        self.heard.append(event)
        return ()


class Both:
    """One connection whose updates are looked into line by line and at once, and one where they wait."""

    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []
        self.heard_at_once, self.heard_late = Listens(), Listens()
        self.at_once = Ends([self.heard_at_once, UsageUpdates()])
        self.late = Ends([self.heard_late, UsageUpdates()], later=self.due.append)

    def say(self, side: Side, lines: Sequence[bytes]) -> None:
        for line in lines:
            self.at_once.dispatcher.lines(side, line)
        self.late.dispatcher.lines(side, b"".join(lines))

    def catch_up(self) -> None:
        while self.due:
            self.due.pop()()

    def finish(self) -> None:
        self.at_once.dispatcher.finish()
        self.late.dispatcher.finish()
        assert self.late.client.data == self.at_once.client.data
        assert self.late.agent.data == self.at_once.agent.data
        assert reported(self.heard_late) == reported(self.heard_at_once)
        assert everything_else(self.heard_late) == everything_else(self.heard_at_once)
        assert self.late.dispatcher.failures == self.at_once.dispatcher.failures == 0


@each_of(SESSIONS, lambda path: f"{path.parent.name}/{path.stem}")
def test_a_recording_in_pieces_of_any_size_tells_what_it_tells_line_by_line(path: Path) -> None:
    said = [json.loads(record) for record in path.read_text().splitlines()]
    both, dice = Both(), random.Random(path.name)
    for sender, records in groupby(said, key=lambda record: record["dir"]):
        side = Side.CLIENT if sender == "c2a" else Side.AGENT
        lines = [record["raw"].encode() + b"\n" for record in records]
        while lines:
            size = dice.randint(1, len(lines))
            both.say(side, lines[:size])
            del lines[:size]
            if dice.random() < 0.3:
                both.catch_up()
    both.finish()


OTHER = "sess-2"
sessions = st.sampled_from([*[SESSION] * 7, OTHER])
used = st.sampled_from([0, 5000, 5001, 7000, 9000])
money = st.fixed_dictionaries({"amount": st.sampled_from([0, 1, 1.5, 2.25, 3]), "currency": st.just("USD")})
no_money = st.sampled_from([None, 7, {}, {"amount": -1, "currency": "USD"}, {"amount": 1, "currency": "EUR"}])


def figures(**other: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"used": used, "size": st.just(10_000)} | other)


kinds = [
    figures(),
    figures(cost=money),
    figures(cost=money),
    figures(cost=no_money),
    figures(used=st.sampled_from([2**53, 2**53 + 1, -1, 1.0, True, None])),
    figures(size=st.sampled_from([0, 20_000, None])),
    figures(_meta=st.just({"x": 1})),
]
many = st.lists(st.sampled_from(kinds).flatmap(lambda kind: st.tuples(sessions, kind)), min_size=1)
usages = many.map(lambda each: [update("usage_update", session, **fields) for session, fields in each])
others = st.one_of(
    st.builds(chunk, st.text(max_size=3), sessions),
    st.builds(update, st.just("tool_call"), sessions, toolCallId=st.sampled_from(["a", "b"])),
    st.builds(update, st.just("agent_thought_chunk"), sessions, content=st.just({"type": "text", "text": "hm"})),
)
runs = st.lists(usages | usages | st.lists(others, min_size=1, max_size=2), min_size=1, max_size=4).map(
    lambda runs: [each for run in runs for each in run]
)
turns = st.lists(st.tuples(st.sampled_from([True, True, False]), runs, st.booleans()), min_size=1, max_size=4)
agents = st.sampled_from(
    [("goose", "1.52.0"), ("codex-acp", "0.16.0"), ("@zed-industries/claude-agent-acp", "0.23.1"), ("new", "1")]
)


@given(agents, turns)
def test_contexts_and_costs_in_any_order_add_up_to_the_same_when_looked_into_together(
    agent: tuple[str, str], turns: list[tuple[bool, list[dict[str, Any]], bool]]
) -> None:
    both = Both()
    for ends in (both.at_once, both.late):
        ends.open_session(*agent)
    for number, (prompted, updates, in_time) in enumerate(turns, 2):
        if prompted:
            both.say(Side.CLIENT, [encoded(prompt(number))])
        both.say(Side.AGENT, [encoded(each) for each in updates])
        if in_time:
            both.catch_up()
        if prompted:
            both.say(Side.AGENT, [encoded(answer(number, stopReason="end_turn"))])
    both.finish()


def test_contexts_that_follow_each_other_in_a_turn_are_told_as_one() -> None:
    both = Both()
    both.late.open_session()
    both.late.client_says(prompt(2))
    for used in (10, 20, 30):
        both.late.agent_says(update("usage_update", used=used, size=100), chunk())
    both.catch_up()
    (told,) = [event for event in both.heard_late.heard if isinstance(event, UsageReported)]
    assert [told.used, *(one.used for one in told.earlier)] == [30, 10, 20]


def reported(by: Listens) -> list[str]:
    """Each `usage_update`, also where several were told as one."""
    each: list[Event] = []
    for event in by.heard:
        if isinstance(event, UsageReported):
            alone = replace(event, earlier=())
            each += [*(replace(alone, used=one.used, cost=one.cost) for one in event.earlier), alone]
    return _timeless(each)


def everything_else(by: Listens) -> list[str]:
    """Without the event that says that something is still to be looked into.

    Of changes that nothing else stands between only the last is certain, and not whether it came with the last report:
    one that changes nothing is an event of its own for nobody.
    """
    events = [
        replace(event, done=False) if isinstance(event, ContextChanged) else event
        for event in by.heard
        if not isinstance(event, TurnEnding | UsageReported)
    ]
    followed = zip_longest(events, events[1:])
    return _timeless(event for event, then in followed if _changed(event) is None or _changed(event) != _changed(then))


def _changed(event: Event | None) -> str | None:
    """The session of which only the context or the cost changed."""
    return event.session if isinstance(event, ContextChanged) and not event.restored else None


def _timeless(events: Iterable[Event]) -> list[str]:
    return [re.sub(r"(\w*at|started|took|busy|waited)=\d+", r"\1=…", repr(event)) for event in events]

"""Recordings of released agents in mid-turn: what a turn is said to have used at least, against what it really used."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from acp_proxy.core.entry import Entry, SessionState
from acp_proxy.core.events import (
    ContextChanged,
    Event,
    SessionRequested,
    SessionRestored,
    TurnEnded,
    TurnMetered,
    TurnStarted,
)
from acp_proxy.core.meter import Meter
from acp_proxy.core.unfinished import Unfinished
from acp_proxy.core.usage import NOTHING, Usage
from harness.recordings import CONTINUES, IN_PLACE, RECORDINGS, events_of, metered, told_in, truth_of
from tests.cases import each_of
from tests.core.story import PRICES

# All others report at the end of a turn or not at all, or only a context of their own estimate.
TELL_IN_MID_TURN = {
    "box-agent-0.9.7",
    "claude-agent-acp-0.100.0",
    "claude-agent-acp-0.101.0",
    "claude-agent-acp-0.49.0",
    "claude-agent-acp-0.91.0",
    "claude-plan-0.101.0",
    "codebuddy-2.163.0",
    "codex-acp-1.10.0",
    "codex-acp-2.6.0",
    "crow-cli-0.1.48",
    "fast-agent-0.10.46",
    "goose-anthropic-1.52.0",
    "goose-openai-1.52.0",
    "mistral-vibe-3.0.2",
    "nooa-0.0.10",
    "openhands-1.16.0",
    "qwen-code-0.10.1",
    "qwen-code-0.24.4",
    "zed-codex-acp-0.16.0",
}

# Of these it is tokens; others tell contexts, which prove calls.
TELL_TOKENS = {
    "box-agent-0.9.7",
    "codebuddy-2.163.0",
    "fast-agent-0.10.46",
    "mistral-vibe-3.0.2",
    "openhands-1.16.0",
    "qwen-code-0.10.1",
    "qwen-code-0.24.4",
}
COUNT_ON = {"mistral-vibe-3.0.2", "openhands-1.16.0"}  # for a session, in one process after the other

# Its estimate of the context after it looks like another call.
COMPACTION = ("codex-acp-2.6.0/subagent.jsonl", "/compact")


def real(calls: list[dict[str, Any]]) -> tuple[int, int]:
    """Tokens and US nano-dollars of all that a turn asked, the answers that were cut off among it."""
    usages = [(call["model"], Usage(**call["tokens"])) for call in calls]
    prices = [PRICES.price(model, usage, 0).cost for model, usage in usages]
    return sum((usage for _, usage in usages), NOTHING).total, sum(price.nano for price in prices if price)


@each_of(IN_PLACE)
def test_no_turn_is_said_to_have_used_more_than_it_did(recording: Path) -> None:
    turns = told_in(recording)
    for (_, told), truth in zip(turns, sorted(truth_of(recording), key=lambda turn: str(turn["session"])), strict=True):
        if (str(recording), truth["text"]) == COMPACTION:
            continue
        tokens, nano = real(truth["calls"])
        for each in told:
            price = PRICES.price(each.state.model, each.lower_bound, 0).cost
            assert each.lower_bound.total <= tokens, truth["text"]
            assert price is None or price.nano <= nano, truth["text"]


def test_these_agents_tell_what_a_turn_uses_while_it_runs() -> None:
    tell = {path.parent.name for path in IN_PLACE for _, told in told_in(path) if told}
    assert tell == TELL_IN_MID_TURN


Known = Mapping[str, SessionState]  # by session


def earlier_of(recording: Path) -> Path | None:
    """The recording whose sessions it loads."""
    earlier = recording.with_name(f"{CONTINUES.get(recording.stem)}.jsonl")
    return earlier if earlier in RECORDINGS else None


def known_before(recording: Path) -> Known:
    earlier = earlier_of(recording)
    return metered(earlier).states if earlier else {}


def played(events: Iterable[Event], known: Known) -> Iterator[tuple[Event, Event, Entry | None]]:
    """Each event, what the meter makes of it, and the row that a proxy killed then leaves, where that is new."""
    numbers = itertools.count(1)
    meter, unfinished = Meter(PRICES, lambda _: f"row{next(numbers)}"), Unfinished()
    for event in events:
        unfinished.on_event(event)
        made = meter.on_event(event)
        if isinstance(event, SessionRequested) and event.how != "fork":
            made += meter.on_event(SessionRestored(event.at, event.session, known.get(event.session)))
        for each in made:
            left = unfinished.on_event(each)
            yield event, each, left if isinstance(each, ContextChanged) else None


def killed_in(recording: Path) -> list[tuple[list[Entry], list[Entry]]]:
    """Of each turn the rows that a proxy killed in it would have left, in their order, and those that it got."""
    running: dict[str, list[Entry]] = {}
    rows: dict[str, list[Entry]] = {}
    for event, made, left in played(events_of(recording), known_before(recording)):
        if left is not None:
            running.setdefault(left.id, []).append(left)
        if isinstance(event, TurnEnded) and isinstance(made, TurnMetered):
            rows.setdefault(event.turn.id, []).append(made.entry)
    return [(left, rows[turn]) for turn, left in running.items()]


def nano(*rows: Entry) -> int:
    return sum(cost.nano for row in rows for cost in row.costs)


def tokens(*rows: Entry) -> Usage:
    return sum((row.usage for row in rows), NOTHING)


@each_of(RECORDINGS)
def test_a_turn_whose_proxy_is_killed_is_never_booked_at_more_than_its_rows_would_have_cost(recording: Path) -> None:
    for left, rows in killed_in(recording):
        assert [nano(each) for each in left] == sorted(nano(each) for each in left)
        assert nano(left[-1]) <= nano(*rows)


@each_of(RECORDINGS)
def test_nor_at_more_tokens_than_they_would_have_had(recording: Path) -> None:
    """Subagents are in the row of a killed turn, and have rows of their own once it has ended."""
    for left, rows in killed_in(recording):
        assert all(after.usage.covers(before.usage) for before, after in itertools.pairwise(left))
        assert tokens(*rows).covers(left[-1].usage)
        assert {each.usage_source for each in left} == {"partial"}


@each_of(RECORDINGS)
def test_its_tokens_are_those_that_its_rows_would_have_if_its_agent_had_gone_away_instead(recording: Path) -> None:
    events, known = list(events_of(recording)), known_before(recording)
    turns = {event.turn.id: event.turn for event in events if isinstance(event, TurnStarted)}
    places = {id(event): place for place, event in enumerate(events)}
    for event, _, left in played(events, known):
        if left is not None and left.usage.total:
            until_then = events[: places[id(event)] + 1]
            gone = TurnEnded(left.ended_at, left.session, turns[left.id], "crashed", updates=1)
            after = [made for now, made, _ in played([*until_then, gone], known) if now is gone]
            rows = [made.entry for made in after if isinstance(made, TurnMetered)]
            assert (tokens(*rows), nano(*rows)) == (left.usage, nano(left))
            assert {row.cost_source for row in rows} == {left.cost_source}


def test_of_these_agents_a_killed_turn_has_tokens() -> None:
    tell = {path.parent.name for path in RECORDINGS for left, _ in killed_in(path) if left[-1].usage.total}
    assert tell == TELL_TOKENS


def killed_before(recording: Path) -> Iterator[tuple[list[Entry], Known]]:
    """All that there may be of the sessions that a recording loads when the proxy before it was killed."""
    earlier = earlier_of(recording)
    rows: list[Entry] = []
    states: dict[str, SessionState] = {}
    for _, made, left in played(events_of(earlier), {}) if earlier else ():
        if isinstance(made, TurnMetered):
            rows.append(made.entry)
            states[made.entry.session] = made.state
        elif isinstance(made, ContextChanged) and left is not None:
            yield [*rows, left], {**states, made.session: made.state}
    yield rows, states


@each_of([path for path in RECORDINGS if earlier_of(path)])
def test_who_goes_on_with_a_session_books_nothing_of_a_killed_turn_again(recording: Path) -> None:
    """And all of it that is in a counter which goes on."""
    loaded = {event.session for event in events_of(recording) if isinstance(event, SessionRequested)}
    *killed, (rows, known) = killed_before(recording)
    for left, states in killed:
        if left[-1].session not in loaded:
            continue
        then = in_both(recording, left[-1].session, left, states)
        otherwise = in_both(recording, left[-1].session, rows, known)
        assert nano(*then) <= nano(*otherwise)
        assert tokens(*otherwise).covers(tokens(*then))
        if recording.parent.name in COUNT_ON:
            assert tokens(*otherwise) == tokens(*then)


def in_both(recording: Path, session: str, before: list[Entry], known: Known) -> list[Entry]:
    """The rows of a session that had some before."""
    after = [made.entry for _, made, _ in played(events_of(recording), known) if isinstance(made, TurnMetered)]
    return [row for row in [*before, *after] if row.session == session]

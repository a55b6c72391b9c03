"""Recordings of released agents: what was said in them, as events and as rows, and what really happened beside it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from acp_proxy.core.conversation import Conversation
from acp_proxy.core.entry import Entry, SessionState
from acp_proxy.core.events import (
    ContextChanged,
    Event,
    SessionOpened,
    SessionRequested,
    SessionRestored,
    Side,
    TurnEnded,
    TurnMetered,
    TurnStarted,
    UsageReported,
)
from acp_proxy.core.jsonrpc import parse
from acp_proxy.core.meter import Meter
from acp_proxy.core.pricing import Pricer
from acp_proxy.core.usage import NOTHING, Usage
from harness.prices import PRICES

TRANSCRIPTS = Path(__file__).parents[1] / "tests/transcripts"
RECORDINGS = sorted(path.relative_to(TRANSCRIPTS) for path in TRANSCRIPTS.glob("*/*.jsonl"))
BEGIN = 1_795_294_800_000_000_000  # 2026-11-21T21:00Z, when most of them were recorded
# What loads a session in a new process, and the recording in which it began.
CONTINUES = {"load": "basic", "reload": "sessions", "restarted": "stopped"}
# Where the agent itself reports calls with another turn than that which caused them.
MISPLACED = {
    "opencode-1.18.33/concurrent.jsonl",  # the first of two prompts gets the usage of the second
    "zed-claude-agent-acp-0.23.1/cancel.jsonl",  # usage comes a turn late
    "zed-claude-agent-acp-0.23.1/errors.jsonl",
}
IN_PLACE = [path for path in RECORDINGS if str(path) not in MISPLACED]


@dataclass(slots=True)
class Metered:
    """What a meter made of a recording; `states` by session, `parents` the sessions that subagents' belong to."""

    rows: list[Entry] = field(default_factory=list)
    states: dict[str, SessionState] = field(default_factory=dict)
    reports: list[UsageReported] = field(default_factory=list)
    parents: dict[str, str] = field(default_factory=dict)

    def booked(self, session: str) -> int:
        return sum(cost.nano for row in self.rows if row.session == session for cost in row.costs)


def events_of(recording: Path) -> Iterator[Event]:
    numbers = itertools.count(1)
    conversation = Conversation(lambda at: f"turn{next(numbers)}")
    with (TRANSCRIPTS / recording).open() as lines:
        for line in map(json.loads, lines):
            raw = line.get("raw", "").encode()
            message = parse(raw)
            if message is not None:
                side = Side.CLIENT if line["dir"] == "c2a" else Side.AGENT
                yield from conversation.receive(side, message, BEGIN + int(line["t"] * 1e9), len(raw))
        yield from conversation.close(Side.AGENT, BEGIN + int(line["t"] * 1e9))


@cache
def metered(recording: Path) -> Metered:
    """Made once for all tests, which only look at it."""
    return metered_by(PRICES, recording)


def metered_by(pricer: Pricer, recording: Path) -> Metered:
    """A recording, after the one whose sessions it loads: the ledger knows them."""
    first = CONTINUES.get(recording.stem)
    earlier = recording.with_name(f"{first}.jsonl")
    known = metered_by(pricer, earlier).states if first and earlier in RECORDINGS else {}
    numbers = itertools.count(1)
    meter, result = Meter(pricer, lambda at: f"row{next(numbers)}"), Metered()
    for event in events_of(recording):
        made = meter.on_event(event)
        if isinstance(event, SessionRequested) and event.how != "fork":
            made += meter.on_event(SessionRestored(event.at, event.session, known.get(event.session)))
        if isinstance(event, UsageReported):
            result.reports.append(event)
        if isinstance(event, SessionOpened) and event.parent:
            result.parents[event.session] = event.parent
        for row in made:
            if isinstance(row, TurnMetered):
                result.rows.append(row.entry)
                result.states[row.entry.session] = row.state
    return result


def truth_of(recording: Path) -> list[dict[str, Any]]:
    turns = json.loads((TRANSCRIPTS / recording.with_suffix(".truth.json")).read_text())["turns"]
    if recording.parts[0].startswith("copilot"):  # calls of subagents are in its counter
        for call in itertools.chain.from_iterable(turn["calls"] for turn in turns):
            call["kind"] = "main" if call["kind"] == "subagent" else call["kind"]
    return [turn for turn in turns if isinstance(turn["session"], str)]


def used(calls: list[dict[str, Any]], kind: str, *, cut_off: bool = False) -> Usage:
    """With `cut_off`, also what was paid for answers that never came to their end."""
    counted = [call for call in calls if call["kind"] == kind and (cut_off or call["delivered"])]
    return sum((Usage(**call["tokens"]) for call in counted), NOTHING)


def told(usage: Usage, agent: str) -> tuple[int, ...]:
    """As much of a partition as the agent tells apart."""
    if agent.startswith(("goose", "fast-agent", "nanocoder", "box-agent", "crow-cli", "codex-acp-1.")):
        return (usage.prompt, usage.completion)
    if agent.startswith(("mistral", "code-puppy", "oh-my-pi")):
        return (usage.input, usage.cached_read, usage.completion)
    return (usage.input, usage.cached_read, usage.cached_write, usage.output, usage.thought)


Told = list[ContextChanged]


def told_in(recording: Path) -> list[tuple[str, Told]]:
    """What each turn was said to have used so far; by session, in their order."""
    numbers = itertools.count(1)
    meter = Meter(PRICES, lambda _: f"row{next(numbers)}")
    turns: list[tuple[str, Told]] = []
    running: dict[str, list[tuple[str, Told]]] = {}
    for event in events_of(recording):
        if isinstance(event, TurnStarted):
            turns.append((event.session, []))
            running.setdefault(event.session, []).append((event.turn.id, turns[-1][1]))
        made = meter.on_event(event)
        if isinstance(event, TurnEnded):
            running[event.session] = [each for each in running[event.session] if each[0] != event.turn.id]
        for each in made:
            # What comes while a second prompt waits may be that one's: some agents take both into one turn.
            if isinstance(each, ContextChanged) and each.lower_bound.total and len(running[each.session]) == 1:
                running[each.session][0][1].append(each)
    return sorted(turns, key=lambda turn: turn[0])


def possible(calls: list[dict[str, Any]]) -> list[Usage]:
    """What a turn may be said to have used, the most last. Commands of the agent's own have side calls."""
    main = [used(calls, "main"), used(calls, "main", cut_off=True)]
    return main if main[1].total else [used(calls, "side")]

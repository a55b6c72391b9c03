"""Recordings of released agents in mid-turn: what a turn is said to have used at least, against what it really used."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from acp_proxy.core.entry import Entry
from acp_proxy.core.events import ContextChanged, SessionRequested, SessionRestored, TurnEnded, TurnMetered
from acp_proxy.core.meter import Meter
from acp_proxy.core.unfinished import Unfinished
from acp_proxy.core.usage import NOTHING, Usage
from harness.recordings import CONTINUES, IN_PLACE, RECORDINGS, events_of, metered, told_in, truth_of
from tests.cases import each_of
from tests.core.story import PRICES

# All others report at the end of a turn or not at all, or only a context of their own estimate.
TELL_IN_MID_TURN = {
    "claude-agent-acp-0.100.0",
    "claude-agent-acp-0.101.0",
    "claude-agent-acp-0.49.0",
    "codex-acp-1.10.0",
    "codex-acp-2.6.0",
    "fast-agent-0.10.46",
    "goose-anthropic-1.52.0",
    "goose-openai-1.52.0",
    "mistral-vibe-3.0.2",
    "openhands-1.16.0",
    "qwen-code-0.10.1",
    "qwen-code-0.24.4",
    "zed-codex-acp-0.16.0",
}

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
        for least, state in told:
            price = PRICES.price(state.model, least, 0).cost
            assert least.total <= tokens, truth["text"]
            assert price is None or price.nano <= nano, truth["text"]


def test_these_agents_tell_what_a_turn_uses_while_it_runs() -> None:
    tell = {path.parent.name for path in IN_PLACE for _, told in told_in(path) if told}
    assert tell == TELL_IN_MID_TURN


def killed_in(recording: Path) -> list[tuple[list[Entry], list[Entry]]]:
    """Of each turn the rows that a proxy killed in it would have left, in their order, and those that it got."""
    first = CONTINUES.get(recording.stem)
    earlier = recording.with_name(f"{first}.jsonl")
    known = metered(earlier).states if first and earlier in RECORDINGS else {}
    numbers = itertools.count(1)
    meter, unfinished = Meter(PRICES, lambda _: f"row{next(numbers)}"), Unfinished()
    running: dict[str, list[Entry]] = {}
    turns = []
    for event in events_of(recording):
        unfinished.on_event(event)
        made = meter.on_event(event)
        if isinstance(event, SessionRequested) and event.how != "fork":
            made += meter.on_event(SessionRestored(event.at, event.session, known.get(event.session)))
        left = [(each, unfinished.on_event(each)) for each in made]
        for entry in (entry for each, entry in left if entry and isinstance(each, ContextChanged)):
            running.setdefault(entry.id, []).append(entry)
        if isinstance(event, TurnEnded) and (rows := running.pop(event.turn.id, None)):
            turns.append((rows, [each.entry for each in made if isinstance(each, TurnMetered)]))
    return turns


def nano(*rows: Entry) -> int:
    return sum(cost.nano for row in rows for cost in row.costs)


@each_of(RECORDINGS)
def test_a_turn_whose_proxy_is_killed_is_never_booked_at_more_than_its_rows_would_have_cost(recording: Path) -> None:
    for left, rows in killed_in(recording):
        assert [nano(each) for each in left] == sorted(nano(each) for each in left)
        assert nano(left[-1]) <= nano(*rows)

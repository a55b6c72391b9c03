"""Recordings of released agents in mid-turn: what a turn is said to have used at least, against what it really used."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from acp_proxy.core.entry import SessionState
from acp_proxy.core.events import ContextChanged, TurnEnded, TurnStarted
from acp_proxy.core.meter import Meter
from acp_proxy.core.usage import NOTHING, Usage
from tests.cases import each_of
from tests.core.story import PRICES
from tests.test_transcripts_metering import IN_PLACE, events_of, truth_of

Told = list[tuple[Usage, SessionState]]

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


def told_in(recording: Path) -> list[tuple[str, Told]]:
    """What each turn was said to have used so far, and the session at that moment; by session, in their order."""
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
            if isinstance(each, ContextChanged) and each.least.total and len(running[each.session]) == 1:
                running[each.session][0][1].append((each.least, each.state))
    return sorted(turns, key=lambda turn: turn[0])


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

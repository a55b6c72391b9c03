"""Recordings of released agents in mid-turn: what a turn is said to have used at least, against what it really used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from acp_proxy.core.usage import NOTHING, Usage
from harness.recordings import IN_PLACE, told_in, truth_of
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

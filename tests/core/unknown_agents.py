"""Sessions of agents that nobody has described, told in every way that is known, beside what they really used."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from msgspec.structs import astuple

from acp_proxy.core.entry import Entry
from acp_proxy.core.events import Counters
from acp_proxy.core.events import Turn as RunningTurn
from acp_proxy.core.usage import NOTHING, Usage
from tests.core.story import UNKNOWN_AGENT, Story

Covers = Literal["turn", "last_call", "session"]
Context = Literal["none", "gauge", "prompt", "sum", "low", "high"]  # how its `used` is made
Kind = Literal["plain", "parallel", "long"]
Beside = Literal["text", "context"]  # what it tells its usage of in mid-turn


_WORDS = ("inputTokens", "outputTokens", "totalTokens", "thoughtTokens", "cachedReadTokens", "cachedWriteTokens")


@dataclass(frozen=True, slots=True)
class Turn:
    prompt_chars: int
    tool_chars: int
    output_chars: int
    tool_calls: int
    calls: list[Usage]


def turns(seed: int, kind: Kind) -> Iterator[Turn]:
    """Six turns of a session. Each call sends all that came before it; a token has four characters."""
    rng = random.Random(seed)
    context = rng.choice((1500, 6000, 15_000))
    for number in range(6):
        asked = rng.randint(5, 6000 if kind == "long" else 200)
        context += asked
        rounds = rng.choice((0, 0, 1, 1, 2, 4))
        calls, tool_calls, tool_chars, said = [], 0, 0, 0
        for round_ in range(rounds + 1):
            written = rng.randint(10, 300)
            read = int(context * rng.uniform(0.6, 0.95)) if number or round_ else 0
            calls.append(Usage(context - read, read, 0, written))
            context += written
            said += 4 * written if round_ == rounds else 20
            if round_ < rounds:
                result = rng.randint(10, 5000 if kind == "long" else 800)
                context += result
                tool_chars += 4 * result + 3 * written
                tool_calls += rng.randint(1, 4) if kind == "parallel" else 1
        yield Turn(4 * asked, tool_chars, said, tool_calls, calls)


def rows(seed: int, covers: Covers, context: Context, kind: Kind) -> Iterator[tuple[Entry, Usage]]:
    """The row of each turn, and what the turn really used."""
    story = Story(UNKNOWN_AGENT)
    story.open()
    session = NOTHING
    for turn in turns(seed, kind):
        used, last = sum(turn.calls, NOTHING), turn.calls[-1]
        session += used
        open_turn = story.begin(chars=turn.prompt_chars)
        told = {"gauge": last.total, "prompt": last.prompt, "sum": session.total}
        told |= {"low": 7 * last.prompt // 10, "high": 5000 + 13 * last.prompt // 10}
        if context != "none":
            story.report(open_turn, used=told[context], size=200_000)
        counters = _as_told({"turn": used, "last_call": last, "session": session}[covers], seed)
        ended = story.end(
            open_turn,
            counters,
            tool_calls=turn.tool_calls,
            tool_chars=turn.tool_chars,
            output_chars=turn.output_chars,
        )
        yield ended[-1], used


def rows_in_mid_turn(
    seed: int, covers: Covers, beside: Beside, kind: Kind, *, tools_show: bool, again: bool
) -> Iterator[tuple[Entry, Usage]]:
    """The same of an agent that tells its usage after each call, and nothing at the end of a turn.

    `again`: what it told last stands at the beginning of the next turn as well.
    """
    story = Story(UNKNOWN_AGENT)
    story.open()
    session, said = NOTHING, dict[str, object]()
    for turn in turns(seed, kind):
        used, open_turn = NOTHING, story.begin(chars=turn.prompt_chars)
        if again and said:
            _tell(story, open_turn, beside, said, None)
        for call in turn.calls:
            used, session = used + call, session + call
            told = _as_told({"turn": used, "last_call": call, "session": session}[covers], seed)
            said = {name: value for name, value in zip(_WORDS, astuple(told), strict=True) if value is not None}
            _tell(story, open_turn, beside, said, call.prompt)
        tools = (turn.tool_calls, turn.tool_chars) if tools_show else (0, 0)
        ended = story.end(open_turn, tool_calls=tools[0], tool_chars=tools[1], output_chars=turn.output_chars)
        yield ended[-1], used


def _tell(story: Story, turn: RunningTurn, beside: Beside, said: dict[str, object], context: int | None) -> None:
    if beside == "text":
        story.update(turn, {"usage": said}, {"content": {"type": "text", "text": "said"}})
    else:
        story.report(turn, used=context, size=200_000, meta={"usage": said})


def _as_told(usage: Usage, seed: int) -> Counters:
    """Caches beside input, inside of it, or not told."""
    match seed % 3:
        case 0:
            return Counters(usage.input, usage.output, usage.total, None, usage.cached_read, 0)
        case 1:
            return Counters(usage.prompt, usage.output, usage.total, None, usage.cached_read)
    return Counters(usage.prompt, usage.output, usage.total)

"""Recorded sessions of real agents in, events out: turns must be those of the ground truth beside each recording."""

from __future__ import annotations

import itertools
import json
from typing import Any

from acp_proxy.core.events import (
    Initialized,
    ModelSelected,
    SessionInfoChanged,
    SessionOpened,
    SessionRequested,
    TurnEnded,
    TurnStarted,
    UpdateSeen,
    UsageReported,
)
from harness.recordings import RECORDINGS, TRANSCRIPTS
from tests.cases import each_of
from tests.core.talk import AGENT, CLIENT, Talk

NAMES = [str(path.with_suffix("")) for path in RECORDINGS]


def replay(recording: str) -> Talk:
    """The whole recording, and then the agent goes."""
    talk = Talk()
    with (TRANSCRIPTS / f"{recording}.jsonl").open() as lines:
        for line in lines:
            record = json.loads(line)
            talk.line(CLIENT if record["dir"] == "c2a" else AGENT, record["raw"].encode())
    talk.close(AGENT)
    return talk


def brief(event: Any) -> Any:
    """An event in a few words, None for one that the golden lists leave out."""
    match event:
        case Initialized():
            return f"initialized v{event.protocol_version} {event.agent.name} {event.agent.version}"
        case SessionRequested():
            return f"requested {event.how}"
        case SessionOpened():
            return f"opened {event.how} {event.model}"
        case ModelSelected():
            return f"model {event.model}"
        case TurnStarted():
            return f"started {event.turn.kind}"
        case UsageReported():
            cost = "" if event.cost is None else f" {event.cost.text} {event.cost.currency}"
            return f"usage {event.used}/{event.size}{cost}" + ("" if event.turn else " between turns")
        case SessionInfoChanged():
            return f"title {event.title}"
        case UpdateSeen():
            return f"seen {event.update}" + (" replayed" if event.replayed else "")
        case TurnEnded():
            return f"ended {event.stop_reason} {event.counters and event.counters.total}"
    return None


def briefly(recording: str) -> list[str]:
    told = [told for event in replay(recording).events if (told := brief(event))]
    return [key for key, _ in itertools.groupby(told)]


@each_of(NAMES)
def test_every_prompt_is_one_turn_with_the_end_that_it_had(recording: str) -> None:
    truth = json.loads((TRANSCRIPTS / f"{recording}.truth.json").read_text())["turns"]
    talk = replay(recording)
    ends = {event.turn.id: event for event in talk.events if isinstance(event, TurnEnded)}
    started = [event for event in talk.events if isinstance(event, TurnStarted)]
    assert all(event.turn.kind == "turn" for event in started)
    got = [(event.session, ends[event.turn.id].stop_reason) for event in started]
    assert got == [(turn["session"], end_of(turn)) for turn in truth if turn["session"] is not None]
    assert len(ends) == len(talk.turns)


def end_of(turn: Any) -> str:
    """A turn without an answer ends with the agent; one without a session (a malformed prompt) is none."""
    return str(turn["stop"] or ("error" if turn["error"] is not None else "crashed"))


# zed's codex-acp 0.16.0 shows nothing of a call to a tool that it does not know, as the recorded one is.
@each_of([name for name in NAMES if not name.startswith("zed-codex-acp-0.16.0/")])
def test_a_turn_of_several_model_calls_shows_a_tool_call_or_several_messages(recording: str) -> None:
    """What lets the last call of a turn without one stand for the whole turn."""
    truth = json.loads((TRANSCRIPTS / f"{recording}.truth.json").read_text())["turns"]
    talk = replay(recording)
    ends = {event.turn.id: event for event in talk.events if isinstance(event, TurnEnded)}
    turns = [turn for turn in truth if turn["session"] is not None]
    for turn, turn_id in zip(turns, talk.started, strict=True):
        main = [call for call in turn["calls"] if call["kind"] == "main" and call["delivered"]]
        if turn["stop"] == "end_turn" and len(main) > 1:
            assert ends[turn_id].most_calls > 1, turn["text"]


def test_a_conversation_of_v2_is_told_event_by_event() -> None:
    assert briefly("claude-agent-acp-0.100.0/v2")[:14] == [
        "initialized v2 @agentclientprotocol/claude-agent-acp 0.100.0",
        "opened new default",
        "started turn",
        "usage 6412/1000000",
        "usage 6612/1000000",
        "usage 6612/1000000 0.010927 USD",
        "ended end_turn 6612",
        "title mock",
        "started turn",
        "usage 6634/1000000",
        "usage 6836/1000000",
        "usage 6745/1000000",
        "usage 6948/1000000",
        "usage 6948/1000000 0.04627 USD",
    ]


def test_a_resumed_session_of_v2_ends_with_no_turn_of_its_own() -> None:
    assert briefly("claude-agent-acp-0.100.0/v2")[-4:] == [
        "ended end_turn 7620",
        "requested resume",
        "title mock",
        "opened resume default",
    ]


def test_vibe_tells_its_baseline_before_the_load_is_answered() -> None:
    events = briefly("mistral-vibe-3.0.2/load")
    opened = events.index("opened load mock-small")
    assert events[: opened + 5] == [
        "initialized v1 @mistralai/mistral-vibe 3.0.2",
        "requested load",
        "title Mock answer 2 from mock-small.",
        "seen tool_call replayed",
        "usage 2870/102400 0.025658 USD between turns",
        "opened load mock-small",
        "started turn",
        "usage 2870/102400 0.025658 USD",
        "usage 1817/102400 0.027844 USD",
        "ended end_turn 23318",
    ]


def test_opencodes_fork_replays_its_parent_before_it_is_answered() -> None:
    talk = replay("opencode-1.18.33/load")
    fork = next(event for event in talk.events if isinstance(event, SessionOpened) and event.how == "fork")
    before = talk.events[: talk.events.index(fork)]
    history = [event for event in before if isinstance(event, UpdateSeen) and event.session == fork.session]
    assert history
    assert all(event.replayed for event in history)


def test_kimi_reports_its_context_after_the_turn() -> None:
    assert briefly("kimi-code-2.1.0/basic")[2:6] == [
        "started turn",
        "title hello #P1#",
        "ended end_turn None",
        "usage 1817/128000 between turns",
    ]


@each_of(NAMES)
def test_of_recorded_agents_every_call_is_kept_that_is_counted(name: str) -> None:
    for event in replay(name).events:
        if isinstance(event, TurnEnded):
            sums = event.work.sums if event.work else ()
            kept = sum(each.count for each in sums)
            assert kept == event.tool_calls or (kept < event.tool_calls and "codebuddy" in name)  # announces some twice

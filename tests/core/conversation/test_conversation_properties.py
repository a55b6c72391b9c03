"""Whatever is said, in whatever order: nothing raises, and every turn starts once and ends once."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from acp_proxy.core import acp
from acp_proxy.core.events import Side, TurnEnded, TurnStarted
from harness.recordings import RECORDINGS, TRANSCRIPTS
from tests.core.messages import JSON
from tests.core.talk import AGENT, Talk

SHORT = settings(max_examples=60, deadline=None)

ids = st.sampled_from([0, 1, 2, "1", None])
sessions = st.sampled_from(["s", "t", "kid"])
states = st.sampled_from(["running", "idle", "requires_action", "unknown"])
updates = st.fixed_dictionaries(
    {"sessionUpdate": st.sampled_from(sorted(acp.PLAIN_UPDATES | acp.TOOL_UPDATES)) | st.just("usage_update")},
    optional={"_meta": JSON, "toolCallId": st.sampled_from("abc"), "used": JSON, "cost": JSON, "rawOutput": JSON},
) | st.one_of(
    st.fixed_dictionaries({"sessionUpdate": st.just("state_update"), "state": states}),
    st.fixed_dictionaries(
        {
            "sessionUpdate": st.just("subagent_update"),
            "sessionId": sessions,
            "state": st.fixed_dictionaries({"state": states}),
        }
    ),
    st.fixed_dictionaries({"sessionUpdate": st.just("session_info_update"), "title": JSON, "_meta": JSON}),
    st.fixed_dictionaries({"sessionUpdate": st.just("config_option_update"), "configOptions": JSON}),
)
results = st.one_of(
    st.fixed_dictionaries({}, optional={"stopReason": JSON | st.just("end_turn"), "usage": JSON, "messageId": JSON}),
    st.fixed_dictionaries({"sessionId": sessions}),
    st.fixed_dictionaries({"protocolVersion": st.sampled_from([1, 2, "x"])}),
    JSON,
)
requests = st.fixed_dictionaries(
    {
        "id": ids,
        "method": st.sampled_from(sorted(acp.CLIENT_METHODS)),
        "params": st.fixed_dictionaries({"sessionId": sessions}, optional={"prompt": JSON, "modelId": JSON}),
    }
)
responses = st.fixed_dictionaries({"id": ids, "result": results}) | st.fixed_dictionaries({"id": ids, "error": JSON})
notifications = st.fixed_dictionaries(
    {
        "method": st.just("session/update"),
        "params": st.fixed_dictionaries({"sessionId": sessions, "update": updates | JSON}),
    }
)
permissions = st.fixed_dictionaries(
    {
        "id": ids,
        "method": st.just("session/request_permission"),
        "params": st.fixed_dictionaries({"sessionId": sessions, "toolCall": JSON}),
    }
)
messages = st.one_of(
    st.tuples(st.just(Side.CLIENT), requests),
    st.tuples(
        st.sampled_from(Side),
        st.one_of(requests, responses, responses, notifications, notifications, permissions, JSON),
    ),
)


def check(talk: Talk) -> None:
    """Turns start once, end once, and none is left when a side is gone. (`Talk` checks `ending` on each line.)"""
    talk.close(AGENT)
    ended = [event.turn.id for event in talk.events if isinstance(event, TurnEnded)]
    assert len(ended) == len(set(ended))
    assert len(talk.started) == len(set(talk.started))
    assert sorted(ended) == sorted(talk.started)
    open_turns: set[str] = set()
    for event in talk.events:
        match event:
            case TurnStarted():
                open_turns.add(event.turn.id)
            case TurnEnded():
                open_turns.remove(event.turn.id)
                assert min(event.updates, event.tool_calls, event.output_chars, event.chars_since_report) >= 0


@SHORT
@given(st.sampled_from([None, 1, 2]), st.lists(messages, max_size=30))
def test_any_messages_are_taken_in_any_order(version: int | None, said: list[tuple[Side, Any]]) -> None:
    talk = Talk(version)
    for sender, message in said:
        talk.line(sender, json.dumps(message).encode())
    check(talk)


@SHORT
@given(st.data())
def test_a_recording_is_taken_though_lines_of_it_are_lost_repeated_or_changed(data: st.DataObject) -> None:
    lines = recorded(data.draw(st.sampled_from(RECORDINGS)))
    talk = Talk()
    start = data.draw(st.integers(0, len(lines)))
    for sender, raw in lines[start : start + 40]:
        for _ in range(data.draw(st.sampled_from([1, 1, 1, 0, 2]))):
            talk.line(sender, data.draw(mutated(raw)))
    check(talk)


@cache
def recorded(recording: Path) -> list[tuple[Side, str]]:
    with (TRANSCRIPTS / recording).open() as file:
        records = [json.loads(line) for line in file]
    return [(Side.CLIENT if r["dir"] == "c2a" else AGENT, r["raw"]) for r in records if len(r["raw"]) < 4000]


@st.composite
def mutated(draw: Callable[..., Any], raw: str) -> bytes:
    """The line, or one in which the value somewhere inside is another."""
    if draw(st.integers(0, 3)):
        return raw.encode()
    root = [json.loads(raw)]
    inside: Any = root
    key: Any = 0
    while isinstance(inside[key], dict | list) and inside[key] and draw(st.integers(0, 4)):
        inside = inside[key]
        key = draw(st.sampled_from(sorted(inside) if isinstance(inside, dict) else range(len(inside))))
    inside[key] = draw(JSON)
    return json.dumps(root[0]).encode()

"""Recordings, changed into what another recording of the same agent could hold: the rows must stay what they were."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from acp_proxy.core.conversation import Conversation
from acp_proxy.core.entry import Entry, SessionState
from acp_proxy.core.events import SessionRequested, SessionRestored, Side, TurnMetered
from acp_proxy.core.jsonrpc import parse
from acp_proxy.core.meter import Meter
from harness.recordings import BEGIN, CONTINUES, MISPLACED, RECORDINGS, TRANSCRIPTS, metered, possible, told, truth_of
from tests.cases import each_of
from tests.core.story import PRICES

pytestmark = pytest.mark.xdist_group("varied")  # each recording is metered once for all tests of it

Line = tuple[Side, float, dict[str, Any]]

# A stranger who repeats the usage of the turn before when a turn fails says nothing by which that could be told.
STRANGERS = [path for path in RECORDINGS if str(path) not in MISPLACED and path.stem != "errors"]


def lines_of(recording: Path) -> list[Line]:
    lines = map(json.loads, (TRANSCRIPTS / recording).read_text().splitlines())
    return [
        (Side.CLIENT if line["dir"] == "c2a" else Side.AGENT, line["t"], message)
        for line in lines
        if isinstance(message := _decoded(line.get("raw", "")), dict)
    ]


def rows_of(lines: Iterable[Line], known: dict[str, SessionState]) -> list[Entry]:
    numbers, made = itertools.count(1), []
    conversation = Conversation(lambda at: f"turn{next(numbers)}")
    meter = Meter(PRICES, lambda at: f"row{next(numbers)}")
    for side, seconds, message in lines:
        line, at = json.dumps(message).encode(), BEGIN + int(seconds * 1e9)
        read = parse(line)
        for event in conversation.receive(side, read, at, len(line)) if read is not None else ():
            made += meter.on_event(event)
            if isinstance(event, SessionRequested) and event.how != "fork":
                made += meter.on_event(SessionRestored(event.at, event.session, known.get(event.session)))
    for event in conversation.close(Side.AGENT, at):
        made += meter.on_event(event)
    return [event.entry for event in made if isinstance(event, TurnMetered)]


def known_before(recording: Path) -> dict[str, SessionState]:
    earlier = recording.with_name(f"{CONTINUES.get(recording.stem)}.jsonl")
    return metered(earlier).states if earlier in RECORDINGS else {}


def figures(rows: Iterable[Entry], suffix: str = "") -> list[Any]:
    """What a report shows of them, without their ids."""
    return [
        (row.session.removesuffix(suffix), row.kind, row.stop_reason, row.usage_source, row.cost_source, row.lines)
        for row in rows
        if row.session.endswith(suffix)
    ]


@each_of(RECORDINGS)
def test_ids_may_be_strings(recording: Path) -> None:
    changed = [(side, at, message | _with_id(message, "id-")) for side, at, message in lines_of(recording)]
    assert figures(rows_of(changed, known_before(recording))) == figures(metered(recording).rows)


@each_of(RECORDINGS)
def test_what_an_agent_says_twice_counts_once(recording: Path) -> None:
    changed = itertools.chain.from_iterable([line] * (2 if _is_usage(line[2]) else 1) for line in lines_of(recording))
    assert figures(rows_of(changed, known_before(recording))) == figures(metered(recording).rows)


@each_of(RECORDINGS)
def test_sessions_that_alternate_in_one_process_do_not_touch_each_other(recording: Path) -> None:
    known = known_before(recording)
    both = {name + suffix: state for name, state in known.items() for suffix in "AB"}
    rows = rows_of(_interleaved(lines_of(recording)), both)
    expected = [row for row in figures(metered(recording).rows) if row[0] != "no-such-session"]
    for suffix in "AB":
        assert [row for row in figures(rows, suffix) if row[0] != "no-such-session"] == expected


@each_of(STRANGERS)
def test_of_an_agent_under_a_name_that_nobody_knows_no_figure_is_said_to_be_exact_that_is_not(recording: Path) -> None:
    rows = [row for row in rows_of(_under_another_name(lines_of(recording)), {}) if row.kind == "turn"]
    truth = sorted(truth_of(recording), key=lambda turn: str(turn["session"]))
    for row, turn in zip(sorted(rows, key=lambda row: row.session), truth, strict=True):
        if row.usage_source == "agent" and row.usage.total:
            happened = [told(usage, recording.parts[0]) for usage in possible(turn["calls"])]
            assert told(row.usage, recording.parts[0]) in happened, turn["text"]


def _decoded(raw: str) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return None


def _with_id(message: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {"id": f"{prefix}{message['id']}"} if message.get("id") is not None else {}


def _is_usage(message: dict[str, Any]) -> bool:
    return message.get("method") == "session/update" and message["params"]["update"]["sessionUpdate"] == "usage_update"


def _interleaved(lines: list[Line]) -> Iterator[Line]:
    """Two copies line by line, each with session ids and request ids of its own, on one connection."""
    sessions = {params.get("sessionId") for _, _, message in lines if isinstance(params := message.get("params"), dict)}
    for side, at, message in lines:
        for suffix in "AB":
            text = json.dumps(message | _with_id(message, suffix))
            for session in filter(None, sessions):
                text = text.replace(f'"{session}"', f'"{session}{suffix}"')
            yield side, at, json.loads(text)


def _under_another_name(lines: list[Line]) -> Iterator[Line]:
    for side, at, message in lines:
        result = message.get("result")
        if isinstance(result, dict):
            said = {name: result[name] for name in ("agentInfo", "info") if isinstance(result.get(name), dict)}
            names = {name: who | {"name": "stranger", "version": "1"} for name, who in said.items()}
            message = message | {"result": result | names}
        yield side, at, message

"""Recordings, changed into what another recording of the same agent could hold, and the rows that are made of them."""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from acp_proxy.core.conversation import Conversation
from acp_proxy.core.entry import Entry, SessionState
from acp_proxy.core.events import Event, SessionRequested, SessionRestored, Side, TurnMetered
from acp_proxy.core.jsonrpc import parse
from acp_proxy.core.meter import Meter
from harness.prices import PRICES
from harness.recordings import BEGIN, CONTINUES, RECORDINGS, TRANSCRIPTS, metered

Line = tuple[Side, float, dict[str, Any]]
Spelling = Callable[[Any], str]

_CONTENT = ("content", "rawInput", "rawOutput")  # whose characters are counted
_TOKENS = re.compile(r"used|size|\w*_?tokens|\w*Tokens|\w*TokenCount")


@cache
def lines_of(recording: Path) -> tuple[Line, ...]:
    """To be looked at only: a changed line is a new one."""
    lines = map(json.loads, (TRANSCRIPTS / recording).read_text().splitlines())
    return tuple(
        (Side.CLIENT if line["dir"] == "c2a" else Side.AGENT, line["t"], message)
        for line in lines
        if isinstance(message := _decoded(line.get("raw", "")), dict)
    )


def rows_of(
    lines: Iterable[Line], known: dict[str, SessionState], spelling: Spelling = json.dumps, slow: int = 0
) -> list[Entry]:
    """What one process books. The ledger knows these sessions, and answers so many lines late."""
    numbers, made, asked = itertools.count(1), list[Event](), list[tuple[int, str]]()
    conversation = Conversation(lambda at: f"turn{next(numbers)}")
    meter = Meter(PRICES, lambda at: f"row{next(numbers)}")

    def answered(session: str) -> list[Event]:
        return meter.on_event(SessionRestored(at, session, known.get(session)))

    for number, (side, seconds, message) in enumerate(lines):
        line, at = spelling(message).encode(), BEGIN + int(seconds * 1e9)
        read = parse(line)
        for event in conversation.receive(side, read, at, len(line)) if read is not None else ():
            made += meter.on_event(event)
            if isinstance(event, SessionRequested) and event.how != "fork":
                asked.append((number + slow, event.session))
        while asked and asked[0][0] <= number:
            made += answered(asked.pop(0)[1])
    for _, session in asked:
        made += answered(session)
    for event in conversation.close(Side.AGENT, at):
        made += meter.on_event(event)
    return [event.entry for event in made if isinstance(event, TurnMetered)]


def known_before(recording: Path) -> dict[str, SessionState]:
    earlier = before(recording)
    return metered(earlier).states if earlier else {}


def before(recording: Path) -> Path | None:
    """The recording whose sessions this one loads."""
    earlier = recording.with_name(f"{CONTINUES.get(recording.stem)}.jsonl")
    return earlier if earlier in RECORDINGS else None


def figures(rows: Iterable[Entry], suffix: str = "") -> list[Any]:
    """What a report shows of them, without their ids."""
    return [
        (row.session.removesuffix(suffix), row.kind, row.stop_reason, row.usage_source, row.cost_source, row.lines)
        for row in rows
        if row.session.endswith(suffix)
    ]


def each_message(lines: Iterable[Line], change: Callable[[dict[str, Any]], dict[str, Any]]) -> list[Line]:
    return [(side, at, change(message)) for side, at, message in lines]


def named_apart(lines: Iterable[Line], suffix: str) -> list[Line]:
    """With ids and sessions of its own."""
    lines = list(lines)
    sessions = {params.get("sessionId") for _, _, message in lines if isinstance(params := message.get("params"), dict)}

    def renamed(message: dict[str, Any]) -> dict[str, Any]:
        text = json.dumps(message | with_id(message, suffix))
        for session in filter(None, sessions):
            text = text.replace(f'"{session}"', f'"{session}{suffix}"')
        return json.loads(text)  # type: ignore[no-any-return]  # an object comes back as one

    return each_message(lines, renamed)


def with_id(message: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {"id": f"{prefix}{message['id']}"} if message.get("id") is not None else {}


def mixed(one: Sequence[Line], other: Sequence[Line], random: Random) -> Iterator[Line]:
    """Both on one connection, in an order of chance that keeps that of each."""
    turns = [0] * len(one) + [1] * len(other)
    random.shuffle(turns)
    rest = iter(one), iter(other)
    return (next(rest[turn]) for turn in turns)


def chance(recording: Path) -> Random:
    """The same for a recording each time."""
    return Random(str(recording))


def respelt(random: Random) -> Spelling:
    """JSON with other blanks, another order of members, and short texts all in escapes."""

    def text(value: str) -> str:
        short = len(value) < 40 and value.isascii()
        return '"' + "".join(rf"\u{ord(char):04X}" for char in value) + '"' if short else json.dumps(value)

    def spell(value: Any) -> str:
        if isinstance(value, dict):
            members = [f"{text(key)} :\t{spell(each)}" for key, each in value.items()]
            random.shuffle(members)
            return f"{{ {' , '.join(members)}}}"
        if isinstance(value, list):
            return f"[{' , '.join(map(spell, value))} ]"
        return text(value) if isinstance(value, str) else json.dumps(value)

    return lambda message: spell(message) + "\r\n"


def extended(value: Any) -> Any:
    """With members that nobody knows, and a `_meta`, in all objects but those whose characters count."""
    if isinstance(value, list):
        return list(map(extended, value))
    if not isinstance(value, dict):
        return value
    more = {key: each if key in _CONTENT else extended(each) for key, each in value.items()}
    trace = {"traceparent": "00-1-2", "example.org/x": {"inputTokens": 7, "sessionId": "another"}}
    if isinstance(value.get("_meta", {}), dict):
        more["_meta"] = trace | more.get("_meta", {})
    return {"zzz": {"usage": trace}, **more}


def scaled(value: Any, by: int) -> Any:
    """With all token counts and amounts of money so many times as large."""
    if isinstance(value, list):
        return [scaled(each, by) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: _scaled_member(key, each, by) for key, each in value.items()}


def _scaled_member(key: str, value: Any, by: int) -> Any:
    match value:
        case int() if not isinstance(value, bool) and _TOKENS.fullmatch(key):
            return value * by
        case float() | int() if key in ("amount", "cost"):
            return value * by
        case str() if key == "status_line":
            return re.sub(r"[\d,]+(?= in| out)", lambda count: str(int(count[0].replace(",", "")) * by), value)
    return scaled(value, by)


def loaded_again(lines: Iterable[Line], earlier: Iterable[Line] = ()) -> Iterator[Line]:
    """After each turn its session is loaded once more; whenever one is, all that was ever told of it is told again."""
    told, prompts = defaultdict[str, list[Line]](list), dict[Any, str]()
    for line in earlier:
        _keep(line, told)
    for number, (side, at, message) in enumerate(lines):
        _keep((side, at, message), told)
        yield side, at, message
        session = message.get("params", {}).get("sessionId")
        match message.get("method"):
            case "session/prompt":
                prompts[message["id"]] = session
            case "session/load" | "session/resume":
                yield from told[session]
            case None if side is Side.AGENT and "stopReason" in (message.get("result") or {}):
                session = prompts.pop(message["id"])
                if session not in prompts.values():
                    request, params = f"again{number}", {"sessionId": session}
                    yield Side.CLIENT, at, {"id": request, "method": "session/load", "params": params}
                    yield from told[session]
                    yield Side.AGENT, at, {"id": request, "result": {}}


def _keep(line: Line, told: dict[str, list[Line]]) -> None:
    side, _, message = line
    if side is Side.AGENT and message.get("method") == "session/update":
        told[message["params"]["sessionId"]].append(line)


def _decoded(raw: str) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return None

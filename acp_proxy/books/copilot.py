"""Copilot CLI: `session-state/SESSION/events.jsonl`; a `session.usage_record` is a call, also of a subagent.

Of its `usage`, `cacheReadTokens` and `cacheWriteTokens` are inside `inputTokens`, and `reasoningTokens` is inside
`outputTokens`; what it calls cost is no money. A compaction tells its own tokens. No line tells of calls cut short.
`importing/shelves.py` calls `files` and `read`, as of each reader here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Raw, Struct

from acp_proxy.books import Call, CallKind, NotUnderstood
from acp_proxy.books.lines import Count, Damaged, Moment, decoded, nanoseconds, records
from acp_proxy.books.tree import below
from acp_proxy.core.usage import Usage

_WANTED = {b"session.start", b"session.usage_record", b"session.compaction_complete"}
_SAYS = re.compile(rb'\{"type":"([\w.]+)"')
_OF_THE_MAIN_LOOP = (None, "conversation-agent")


class _Line(Struct, rename="camel"):
    type: str
    data: Raw
    id: str
    timestamp: Moment
    agent_id: str | None = None  # of a subagent


class _Context(Struct):
    cwd: str | None = None


class _Start(Struct, rename="camel"):
    session_id: str
    copilot_version: str | None = None
    context: _Context | None = None


class _Tokens(Struct, rename="camel"):
    input_tokens: Count
    output_tokens: Count
    cache_read_tokens: Count | None = None
    cache_write_tokens: Count | None = None
    reasoning_tokens: Count | None = None
    model: str | None = None
    interaction_type: str | None = None


class _Record(Struct):
    usage: _Tokens


class _Compaction(Struct, rename="camel"):
    compaction_tokens_used: _Tokens | None = None


class _Head(Struct):
    """What a line says of itself, of any type."""

    type: Any = None


_DATA: Mapping[str, type[_Start | _Record | _Compaction]] = {
    "session.start": _Start,
    "session.usage_record": _Record,
    "session.compaction_complete": _Compaction,
}


def files(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    yield from below(home / (environ.get("COPILOT_HOME") or ".copilot") / "session-state", "events.jsonl")


def read(lines: Iterable[bytes]) -> Iterator[Call | NotUnderstood]:
    session: _Start | None = None
    for record in records(lines, _tells, _Line):
        version = session.copilot_version if session else None
        if isinstance(record, Damaged):
            head = decoded(record.line, _Head)
            if head is None or head.type in _DATA:
                yield NotUnderstood("an event with its id and time", version)
        elif record.type in _DATA:
            match decoded(record.data, _DATA[record.type]):
                case _Start() as start:
                    session = start
                case _Record(usage=told):
                    if told.input_tokens or told.output_tokens:  # an endpoint that counts nothing tells nothing
                        yield _call(session, record, told, _kind(record, told))
                case _Compaction(compaction_tokens_used=_Tokens() as told):
                    yield _call(session, record, told, "compaction")
                case None:
                    yield NotUnderstood(f"a {record.type} as it is known", version)


def _tells(line: bytes) -> bool:
    says = _SAYS.match(line)
    return says[1] in _WANTED if says else any(word in line for word in _WANTED)


def _kind(line: _Line, told: _Tokens) -> CallKind:
    if line.agent_id:
        return "subagent"
    return "main" if told.interaction_type in _OF_THE_MAIN_LOOP else "side"


def _call(session: _Start | None, line: _Line, told: _Tokens, kind: CallKind) -> Call | NotUnderstood:
    if session is None:
        return NotUnderstood("a session.start before the first call")
    at, usage = nanoseconds(line.timestamp), _partition(told)
    if at is None or usage is None:
        return NotUnderstood("a call's time, and parts of its tokens that fit into them", session.copilot_version)
    return Call(
        id=line.id,
        session=session.session_id,
        at=at,
        model=told.model,
        usage=usage,
        kind=kind,
        parent=session.session_id if kind == "subagent" else None,
        version=session.copilot_version,
        cwd=session.context.cwd if session.context else None,
    )


def _partition(told: _Tokens) -> Usage | None:
    read, written, thought = told.cache_read_tokens or 0, told.cache_write_tokens or 0, told.reasoning_tokens or 0
    if read + written > told.input_tokens or thought > told.output_tokens:
        return None
    return Usage(
        input=told.input_tokens - read - written,
        cached_read=read,
        cached_write=written,
        output=told.output_tokens - thought,
        thought=thought,
    )

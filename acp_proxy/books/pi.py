"""pi: `sessions/DIR/TIME_SESSION.jsonl`; every call of a model has its tokens and cost, also one that was cut short.

Of `usage`, `input`, `cacheRead` and `cacheWrite` stand beside each other, `cacheWrite1h` is inside the last, and
`reasoning` is inside `output`. A fork's file begins with a copy of its parent's entries. The cost is what pi computed
from prices of its own, and 0 where it has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Raw, Struct

from acp_proxy.books import Call, CallKind, NotUnderstood
from acp_proxy.books.lines import Count, Damaged, Moment, decoded, nanoseconds, records
from acp_proxy.books.tree import below
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage

_OF_A_CALL = b'"usage":{'
_OF_A_SESSION = b'"type":"session",'
_HEAD = 200

_VERSIONS = (None, 1, 2, 3)  # of the format, which the first line tells
_KINDS: Mapping[str, CallKind] = {
    "assistant": "main",
    "toolResult": "subagent",  # what a tool asked of models
    "compaction": "compaction",
    "branch_summary": "compaction",
    "usage": "side",  # such as keeping a cache warm
}


class _Cost(Struct):
    total: Raw = Raw(b"0")


class _Usage(Struct, rename="camel"):
    input: Count
    output: Count
    cache_read: Count
    cache_write: Count
    reasoning: Count | None = None
    cost: _Cost | None = None


class _Message(Struct, rename="camel"):
    role: str | None = None
    model: str | None = None
    response_model: str | None = None
    usage: _Usage | None = None


class _Line(Struct, rename="camel"):
    """An entry, or the session's own line, which comes first."""

    type: str
    timestamp: Moment
    id: str | None = None
    message: _Message | None = None
    model: str | None = None
    usage: _Usage | None = None
    version: int | None = None
    cwd: str | None = None
    parent_session: str | None = None


class _Head(Struct):
    """What a line says of itself, of any type."""

    type: Any = None
    message: Any = None
    usage: Any = None

    @property
    def is_of_a_call(self) -> bool:
        of_message = self.message.get("usage") if isinstance(self.message, dict) else None
        return self.type == "session" or bool(self.usage or of_message)


def files(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    if sessions := environ.get("PI_CODING_AGENT_SESSION_DIR"):
        yield from below(home / sessions, ".jsonl")
    else:
        place = home / (environ.get("PI_CODING_AGENT_DIR") or ".pi/agent")
        yield from below(place / "sessions", ".jsonl")


def read(lines: Iterable[bytes]) -> Iterator[Call | NotUnderstood]:
    session: _Line | None = None
    for record in records(lines, _tells, _Line):
        if isinstance(record, Damaged):
            head = decoded(record.line, _Head)
            if head is None or head.is_of_a_call:
                yield NotUnderstood("an entry with its usage as counts of tokens", _version(session))
        elif record.type == "session":
            session = record
            if record.version not in _VERSIONS:
                yield NotUnderstood("a session of version 1, 2 or 3", _version(session))
        elif session is None:
            yield NotUnderstood("the session's own line before the first call")
        elif session.version in _VERSIONS:
            yield from _calls(session, record)


def _tells(line: bytes) -> bool:
    return _OF_A_CALL in line or line.find(_OF_A_SESSION, 0, _HEAD) >= 0


def _version(session: _Line | None) -> str | None:
    return None if session is None or session.version is None else str(session.version)


def _calls(session: _Line, entry: _Line) -> Iterator[Call | NotUnderstood]:
    message = entry.message or _Message()
    told, kind = message.usage or entry.usage, _KINDS.get(message.role or entry.type)
    if told is None or kind is None or not (told.input or told.output or told.cache_read or told.cache_write):
        return  # what failed has a usage of zeros
    at, cost = nanoseconds(entry.timestamp), _cost(told)
    if at is None or cost is None or session.id is None or (told.reasoning or 0) > told.output:
        yield NotUnderstood("a call's time and cost, and reasoning as a part of the output", _version(session))
        return
    parent = _parent(session)
    copied = parent is not None and entry.timestamp < session.timestamp
    yield Call(
        id=f"{entry.id or session.id}:{at}",
        session=parent if parent and copied else session.id,
        at=at,
        model=message.response_model or message.model or entry.model,
        usage=Usage(
            input=told.input,
            cached_read=told.cache_read,
            cached_write=told.cache_write,
            output=told.output - (told.reasoning or 0),
            thought=told.reasoning or 0,
        ),
        kind=kind,
        cost=cost if cost.nano else None,
        parent=None if copied else parent,
        cwd=session.cwd,
    )


def _cost(told: _Usage) -> Money | None:
    """None for what is no amount of money."""
    try:
        cost = Money.of(bytes((told.cost or _Cost()).total).decode(), "USD")
    except ValueError:
        return None
    return cost if cost.nano >= 0 else None


def _parent(session: _Line) -> str | None:
    """The session whose file it was forked from, by that file's name."""
    name = (session.parent_session or "").replace("\\", "/").rpartition("/")[2]
    return name.partition("_")[2].removesuffix(".jsonl") or None

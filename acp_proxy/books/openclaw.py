"""OpenClaw's book: the entries of sessions in `agents/AGENT/agent/openclaw-agent.sqlite`. Seen in 2026.9.6.

An entry is one of pi, but for its `reasoningTokens`, which are inside the output. The cost is what OpenClaw computed
from prices of its configuration, and 0 where it has none. An entry may be compressed, in a way that Python cannot read
before 3.14: it is counted as not understood. A session over ACP has an id of its own there, which is in its key here
unless the bridge was told which session to use.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Raw, Struct

from acp_proxy.books import Call, NotUnderstood
from acp_proxy.books.databases import missing
from acp_proxy.books.lines import Count, Moment, decoded, nanoseconds
from acp_proxy.books.tree import directories
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage

_WANTED = {
    "transcript_events": ("session_id", "seq", "event_json"),
    "session_windows": ("session_id", "session_key"),
}
_ENTRIES = """
SELECT e.session_id, w.session_key, e.event_json
FROM transcript_events e LEFT JOIN session_windows w ON w.session_id = e.session_id
ORDER BY e.session_id, e.seq
"""
_BRIDGED = "acp-bridge:"  # what stands before ACP's id in a key
_VERSION = 4  # of a session's entries


class _Cost(Struct):
    total: Raw = Raw(b"0")


class _Usage(Struct, rename="camel"):
    input: Count
    output: Count
    cache_read: Count
    cache_write: Count
    reasoning_tokens: Count = 0
    cost: _Cost | None = None


class _Message(Struct):
    role: str
    model: str | None = None
    usage: _Usage | None = None


class _Entry(Struct):
    type: str
    timestamp: Moment
    id: str
    message: _Message | None = None
    version: int | None = None
    cwd: str | None = None


def files(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """A database for each of its agents."""
    for agent in directories(home / (environ.get("OPENCLAW_STATE_DIR") or ".openclaw") / "agents"):
        path = agent / "agent" / "openclaw-agent.sqlite"
        if path.exists():
            yield path


def read(connection: sqlite3.Connection, of: str | None = None) -> Iterator[Call | NotUnderstood]:
    """Only calls `of` one session, if it is named."""
    if absent := missing(connection, _WANTED):
        yield NotUnderstood(f"expected {absent}")
        return
    about: _Entry | None = None
    for own, key, text in connection.execute(_ENTRIES):
        session = str(key).rpartition(_BRIDGED)[2] if _BRIDGED in str(key) else str(own)
        if of not in (None, session):
            continue
        entry = decoded(text.encode("utf-8", "replace"), _Entry) if isinstance(text, str) else None
        if entry is None:
            yield NotUnderstood("an entry as JSON, with its type, id and time")
        elif entry.type == "session":
            about = entry
            if entry.version != _VERSION:
                yield NotUnderstood(f"a session of version {_VERSION}", str(entry.version))
        elif about and about.version == _VERSION and entry.message and entry.message.usage:
            yield from _calls(session, about, entry, entry.message, entry.message.usage)


def _calls(
    session: str, about: _Entry, entry: _Entry, message: _Message, told: _Usage
) -> Iterator[Call | NotUnderstood]:
    if message.role != "assistant" or not (told.input or told.output or told.cache_read or told.cache_write):
        return
    at, cost = nanoseconds(entry.timestamp), _cost(told)
    if at is None or cost is None or told.reasoning_tokens > told.output:
        yield NotUnderstood("a call's time and cost, and reasoning as a part of the output", str(_VERSION))
        return
    yield Call(
        id=entry.id,
        session=session,
        at=at,
        model=message.model,
        usage=Usage(
            input=told.input,
            cached_read=told.cache_read,
            cached_write=told.cache_write,
            output=told.output - told.reasoning_tokens,
            thought=told.reasoning_tokens,
        ),
        cost=cost if cost.nano else None,
        cwd=about.cwd,
    )


def _cost(told: _Usage) -> Money | None:
    """None for what is no amount of money."""
    try:
        cost = Money.of(bytes((told.cost or _Cost()).total).decode(), "USD")
    except ValueError:
        return None
    return cost if cost.nano >= 0 else None

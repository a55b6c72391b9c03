"""OpenCode's book: `opencode.db`, seen from 1.2.4 to 1.18.33. A message of the assistant ends each call with a part.

Calls for titles are in no table. A call that was cut short, failed, or still runs has no such part, and is none here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated

from msgspec import DecodeError, Meta, Struct, ValidationError

from acp_proxy.books import Call, CallKind, NotUnderstood
from acp_proxy.books.databases import missing
from acp_proxy.books.lines import Count
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage
from acp_proxy.system.decoding import json_decoder

Milliseconds = Annotated[int, Meta(ge=0, le=2**53 // 1000)]

_WANTED = {
    "message": ("id", "session_id", "data"),
    "part": ("message_id", "data"),
    "session": ("id", "parent_id", "directory", "version", "time_created"),
}

# What is asked of JSON leaves SQLite as JSON arrays of these values; texts of the session stay where they are. A fork
# has copies of its parent's messages, so the older session comes first.
_MESSAGES = """
SELECT message.session_id, session.parent_id, session.directory, session.version, session.time_created,
       CASE WHEN json_valid(message.data) THEN json_extract(
         message.data, '$.role', '$.time', '$.providerID', '$.modelID', '$.finish', '$.summary') END,
       (SELECT json_group_array(json_extract(part.data, '$.tokens', '$.cost')) FROM part
        WHERE part.message_id = message.id
          AND CASE WHEN json_valid(part.data) THEN json_extract(part.data, '$.type') = 'step-finish' END)
FROM message LEFT JOIN session ON session.id = message.session_id
{where}
ORDER BY session.time_created, message.session_id, message.id
"""
_SESSIONS = "SELECT id FROM session WHERE id = ? OR parent_id = ?"


class Origin(Struct, frozen=True):
    """The session of a message; but for its id None where it has no row any more."""

    session: str
    parent: str | None
    directory: str | None
    version: str | None
    created: int | None = None  # milliseconds


class Time(Struct):
    created: Milliseconds
    completed: Milliseconds | None = None


class Cache(Struct):
    read: Count
    write: Count


class Tokens(Struct):
    input: Count
    output: Count
    reasoning: Count
    cache: Cache
    total: Count | None = None


class _Role(Struct, array_like=True):
    role: str


class Assistant(Struct, array_like=True):
    role: str
    time: Time
    provider: str
    model: str
    finish: str | None
    summary: bool | None


class Step(Struct, array_like=True):
    tokens: Tokens
    cost: Decimal  # of the message it is more: in Kilo also what its subagents cost


def files(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Its databases: one, or one per release channel."""
    return databases("opencode", "OPENCODE_DB", home, environ)


def databases(name: str, variable: str, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Those of an agent made from OpenCode, in its directory `name`; the `variable` names another file."""
    directory = data_directory(name, home, environ)
    if chosen := environ.get(variable):
        yield directory / chosen  # a relative path is one in the directory
    else:
        yield from sorted(path for path in directory.glob("*.db") if path.name.startswith((name, "opencode")))


def data_directory(name: str, home: Path, environ: Mapping[str, str]) -> Path:
    return Path(environ.get("XDG_DATA_HOME") or home / ".local/share") / name


def read(connection: sqlite3.Connection, of: str | None = None) -> Iterator[Call | NotUnderstood]:
    """Each call once, under the session that made it; if one is named only those `of` it and of its subagents."""
    if absent := missing(connection, _WANTED):
        yield NotUnderstood(f"expected {absent}", _last_version(connection))
        return
    seen: set[str] = set()
    where, values = ("", ()) if of is None else (f"WHERE message.session_id IN ({_SESSIONS})", (of, of))
    messages = connection.execute(_MESSAGES.format(where=where), values)
    for session, parent, directory, version, begun, told, steps in messages:
        created = begun if isinstance(begun, int) else None
        origin = Origin(session, _text(parent), _text(directory), _text(version), created)
        try:
            calls = _calls(origin, told, steps)
        except (ValueError, RecursionError) as error:
            yield NotUnderstood(expected(error), origin.version)
            continue
        for call in calls:
            if call.id not in seen:
                seen.add(call.id)
                yield call


def _calls(origin: Origin, told: str | None, steps: str) -> list[Call]:
    """None of a message of another role, and of one whose call has no end. Raises ValueError."""
    if not isinstance(origin.session, str):
        raise ValueError("expected a session")
    if told is None:
        raise ValueError("expected JSON in column data of table message")
    if json_decoder(_Role).decode(told).role != "assistant":
        return []
    message = json_decoder(Assistant).decode(told)
    calls = [call_of(origin, message, step) for step in json_decoder(list[Step]).decode(steps)]
    ended = message.finish is not None and message.time.completed is not None
    copied = origin.created is not None and message.time.created < origin.created  # and its parts a moment later
    if ended and not copied and not calls:
        raise ValueError("expected a part with the end of a finished call")
    return calls


def call_of(origin: Origin, message: Assistant, step: Step) -> Call:
    """Raises ValueError; `expected` says what was."""
    usage = _usage(step.tokens)
    if not usage.total:
        raise ValueError("expected tokens of a finished call")
    created, completed = message.time.created, message.time.completed
    model = f"{message.provider}/{message.model}"
    return Call(
        # Copies in a fork have ids of their own, and all of these in common; in Kilo they have no cost.
        id=" ".join(map(str, (created, model, *_counts(usage)))),
        session=origin.session,
        at=1_000_000 * (created if completed is None else completed),  # its tools may still run
        model=model,
        usage=usage,
        kind=_kind(message, origin.parent),
        cost=_cost(step.cost) if usage.output == step.tokens.output else None,  # else it has thinking twice
        parent=origin.parent,
        version=origin.version,
        cwd=origin.directory,
    )


def _usage(tokens: Tokens) -> Usage:
    """Up to 1.3 thinking was counted inside the output too, on some routes. The total says which; up to 1.1 none is."""
    prompt = tokens.input + tokens.cache.read + tokens.cache.write
    output, thought = tokens.output, tokens.reasoning
    if thought and tokens.total != prompt + output + thought:
        if tokens.total != prompt + output or thought > output:
            raise ValueError("expected a total that says whether thinking is inside the output")
        output -= thought
    return Usage(tokens.input, tokens.cache.read, tokens.cache.write, output, thought)


def _cost(told: Decimal) -> Money | None:
    """It says 0 where it knows no price."""
    if not told:
        return None
    try:
        cost = Money.of(told, "USD")
    except ValueError:
        cost = None
    if cost is None or cost.nano < 0:
        raise ValueError("expected a cost in US dollars")
    return cost


def _counts(usage: Usage) -> tuple[int, ...]:
    return usage.input, usage.cached_read, usage.cached_write, usage.output, usage.thought


def _kind(message: Assistant, parent: str | None) -> CallKind:
    if message.summary:
        return "compaction"
    return "subagent" if parent is not None else "main"


def expected(error: ValueError | RecursionError) -> str:
    """Of msgspec it names types and places, never a value."""
    match error:
        case ValidationError():
            return f"a message of another form: {error}"
        case DecodeError():
            return "expected a message in JSON"
        case RecursionError():
            return "expected a message that is not nested so deeply"
    return str(error)


def _text(value: object) -> str | None:
    """SQLite keeps a value of any type in a column of text."""
    return value if isinstance(value, str) else None


def _last_version(connection: sqlite3.Connection) -> str | None:
    if missing(connection, {"session": ("version", "time_created")}):
        return None
    row = connection.execute("SELECT version FROM session ORDER BY time_created DESC LIMIT 1").fetchone()
    return None if row is None else _text(row[0])

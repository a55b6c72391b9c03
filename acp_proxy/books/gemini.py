"""Gemini CLI: `tmp/PROJECT/chats/session-*.jsonl`, subagents in `chats/MAINSESSION/*.jsonl`; a message a call.

Of its `tokens`, `cached` is inside `input`; `thoughts` stands beside `output`, and `tool`, which is what a tool of the
service put into the prompt, beside `input`. A message is written again as it grows, also as a part of a `$set`. No line
tells of the router's calls and of those that were cut short. The agent deletes the file of a session that was loaded
and then not used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from acp_proxy.books import Call, NotUnderstood
from acp_proxy.books.lines import Count, Damaged, Moment, decoded, nanoseconds, records
from acp_proxy.books.tree import below, directories
from acp_proxy.core.usage import Usage

_OF_A_CALL = b'"tokens"'
_OF_A_SESSION = b'"sessionId"'
_HEAD = 4096  # a session's own record is short; a message that quotes one may be long


class _Tokens(Struct):
    input: Count
    output: Count
    cached: Count | None = None
    thoughts: Count | None = None
    tool: Count | None = None


class _Message(Struct):
    id: str | None = None
    type: str | None = None
    timestamp: Moment | None = None
    model: str | None = None
    tokens: _Tokens | None = None


class _Changes(Struct, rename="camel"):
    session_id: str | None = None
    messages: list[_Message] = []


class _Line(_Message, rename="camel", kw_only=True):
    """A message, the session's own record, or changes of either."""

    session_id: str | None = None
    kind: str | None = None
    directories: list[str] | None = None
    messages: list[_Message] = []
    changes: _Changes | None = field(name="$set", default=None)


class _Head(Struct):
    """What a line says of itself, of any type."""

    type: Any = None
    session: Any = field(name="sessionId", default=None)
    changes: Any = field(name="$set", default=None)


class _Session(Struct):
    id: str | None = None
    is_subagent: bool = False
    cwd: str | None = None

    def take(self, line: _Line) -> None:
        self.id = line.session_id or (line.changes and line.changes.session_id) or self.id
        self.is_subagent = self.is_subagent or line.kind == "subagent"
        self.cwd = line.directories[0] if line.directories else self.cwd


def files(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    for project in directories(home / (environ.get("GEMINI_CLI_HOME") or "") / ".gemini" / "tmp"):
        for directory in directories(project):
            if directory.name == "chats":
                yield from below(directory, ".jsonl")


def parent(path: Path) -> str | None:
    """The session that started the subagent whose file this is, which no line tells; None for a main session's."""
    return None if path.parent.name == "chats" else path.parent.name


def read(lines: Iterable[bytes]) -> Iterator[Call | NotUnderstood]:
    """A call is told again with each record of its message; a later one may have more tokens."""
    session = _Session()
    for record in records(lines, _tells, _Line):
        if isinstance(record, Damaged):
            yield from _unread(record)
            continue
        session.take(record)
        for message in [record, *record.messages, *(record.changes.messages if record.changes else ())]:
            if message.type == "gemini" and message.tokens:
                yield _call(session, message, message.tokens)


def _tells(line: bytes) -> bool:
    return _OF_A_CALL in line or line.find(_OF_A_SESSION, 0, _HEAD) >= 0


def _unread(record: Damaged) -> Iterator[NotUnderstood]:
    head = decoded(record.line, _Head)
    if head is None:
        yield NotUnderstood("a line of JSON")
    elif head.type == "gemini" or head.session or head.changes:
        yield NotUnderstood("a message with its tokens as counts, or a session's record")


def _call(session: _Session, message: _Message, told: _Tokens) -> Call | NotUnderstood:
    at, cached = nanoseconds(message.timestamp) if message.timestamp else None, told.cached or 0
    if message.id is None or at is None or session.id is None:
        return NotUnderstood("a message with its id, time and session")
    if cached > told.input:
        return NotUnderstood("cached tokens as a part of the input")
    return Call(
        id=message.id,
        session=session.id,
        at=at,
        model=message.model,
        usage=Usage(
            input=told.input - cached + (told.tool or 0),
            cached_read=cached,
            output=told.output,
            thought=told.thoughts or 0,
        ),
        kind="subagent" if session.is_subagent else "main",
        cwd=session.cwd,
    )

"""Claude Code: `projects/DIR/SESSION.jsonl`, subagents in `SESSION/subagents/`; one `assistant` line per content block.

Of `usage`, `input_tokens`, `cache_read_input_tokens` and `cache_creation_input_tokens` stand beside each other; the
parts of `cache_creation` are inside the last, and `output_tokens_details.thinking_tokens` is inside `output_tokens`.
No line tells of titles, suggestions, reviews of tool calls, and compaction by the agent; in 2.1.83 none tells of calls
that were cut short. Up to 2.1.185 thinking is not told apart, and a fork's copies name the fork as their session.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from acp_proxy.books import Call, CallKind, NotUnderstood
from acp_proxy.books.lines import Count, Damaged, Moment, decoded, nanoseconds, records
from acp_proxy.books.tree import below, roots
from acp_proxy.core.usage import Usage

_OF_A_CALL = b'"type":"assistant"'
_NO_MODEL = "<synthetic>"  # what the agent says itself, such as an error
_ITERATIONS: Mapping[str, CallKind] = {"compaction": "compaction", "advisor_message": "side"}


class _CacheCreation(Struct):
    ephemeral_5m_input_tokens: Count = 0
    ephemeral_1h_input_tokens: Count = 0


class _Details(Struct):
    thinking_tokens: Count | None = None


class _Tokens(Struct):
    input_tokens: Count
    output_tokens: Count
    cache_read_input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    cache_creation: _CacheCreation | None = None
    output_tokens_details: _Details | None = None


class _Iteration(_Tokens, kw_only=True):
    """A pass of the model inside one request: https://platform.claude.com/docs/en/build-with-claude/compaction"""

    type: str
    model: str | None = None


class _Usage(_Tokens, kw_only=True):
    iterations: list[_Iteration] | None = None


class _Message(Struct):
    usage: _Usage
    model: str
    id: str | None = None


class _Origin(Struct, rename="camel"):
    """Where a fork copied a line from."""

    session_id: str
    message_uuid: str | None = None


class _Line(Struct, rename="camel"):
    type: str
    message: _Message
    session_id: str
    timestamp: Moment
    uuid: str | None = None
    request_id: str | None = None
    request_ref: str | None = None  # stands also where a model's endpoint sends no id of a request
    is_sidechain: bool | None = None
    agent_id: str | None = None
    forked_from: _Origin | None = None
    cwd: str | None = None
    version: str | None = None

    @property
    def id(self) -> str | None:
        """The same for each line of one call, and for each copy of it."""
        if self.message.id:
            return f"{self.message.id}:{self.request_id or self.request_ref or ''}"
        return self.forked_from.message_uuid if self.forked_from else self.uuid


class _Head(Struct):
    """What a line says of itself, of any type."""

    type: Any = None
    version: Any = None
    message: Any = None


def files(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    if directory := environ.get("CLAUDE_CONFIG_DIR"):
        places = [home / directory]
    else:
        places = [home / ".claude", home / ".config" / "claude"]
    for root in roots(*(place / "projects" for place in places)):
        yield from below(root, ".jsonl")


def read(lines: Iterable[bytes]) -> Iterator[Call | NotUnderstood]:
    """A call is told again with each of its lines; a later one may have more output."""
    version = parent = None
    for record in records(lines, _tells_of_a_call, _Line):
        if isinstance(record, Damaged):
            yield from _unread(record, version)
        elif record.type == "assistant" and record.message.model != _NO_MODEL:
            version = record.version or version
            if record.forked_from:
                parent = record.forked_from.session_id
            yield from _calls(record, parent)


def _tells_of_a_call(line: bytes) -> bool:
    return _OF_A_CALL in line


def _unread(record: Damaged, version: str | None) -> Iterator[NotUnderstood]:
    head = decoded(record.line, _Head)
    if head is None:
        yield NotUnderstood("a line of JSON", version)
    elif head.type == "assistant" and not _is_synthetic(head.message):
        written_by = head.version if isinstance(head.version, str) else version
        yield NotUnderstood("an assistant message with its usage as counts of tokens", written_by)


def _is_synthetic(message: object) -> bool:
    return isinstance(message, dict) and message.get("model") == _NO_MODEL


def _calls(line: _Line, parent: str | None) -> Iterator[Call | NotUnderstood]:
    at, usage = nanoseconds(line.timestamp), _of_message(line.message.usage)
    if line.id is None or at is None:
        yield NotUnderstood("an assistant message with its id and time", line.version)
        return
    if usage is None:
        yield NotUnderstood("thinking as a part of the output", line.version)
        return
    session = line.forked_from.session_id if line.forked_from else line.session_id
    is_subagent = bool(line.is_sidechain or line.agent_id)
    call = Call(
        id=line.id,
        session=session,
        at=at,
        model=line.message.model,
        usage=usage,
        kind="subagent" if is_subagent else "main",
        parent=session if is_subagent else None if session == parent else parent,
        version=line.version,
        cwd=line.cwd,
    )
    yield call
    yield from _beside(call, line.message.usage.iterations or [])


def _beside(call: Call, iterations: list[_Iteration]) -> Iterator[Call | NotUnderstood]:
    """What the service did inside of the request; none of it is in the message's own counts."""
    for index, step in enumerate(iterations):
        if step.type == "message":
            continue
        usage = _partition(step)
        if step.type not in _ITERATIONS or usage is None:
            yield NotUnderstood("iterations of the kinds message, compaction and advisor_message", call.version)
            continue
        yield Call(
            id=f"{call.id}:{index}",
            session=call.session,
            at=call.at,
            model=step.model or call.model,
            usage=usage,
            kind=_ITERATIONS[step.type],
            parent=call.parent,
            version=call.version,
            cwd=call.cwd,
        )


def _of_message(told: _Usage) -> Usage | None:
    """Where a message took several passes, its own counts have the input of the first alone."""
    own = _partition(told)
    passes = [step for step in told.iterations or [] if step.type == "message"]
    if own is None or len(passes) < 2:
        return own
    return Usage(
        input=sum(step.input_tokens for step in passes),
        cached_read=sum(step.cache_read_input_tokens or 0 for step in passes),
        cached_write=sum(_written(step) for step in passes),
        output=own.output,
        thought=own.thought,
    )


def _partition(told: _Tokens) -> Usage | None:
    thought = (told.output_tokens_details and told.output_tokens_details.thinking_tokens) or 0
    if thought > told.output_tokens:
        return None
    return Usage(
        input=told.input_tokens,
        cached_read=told.cache_read_input_tokens or 0,
        cached_write=_written(told),
        output=told.output_tokens - thought,
        thought=thought,
    )


def _written(told: _Tokens) -> int:
    if told.cache_creation_input_tokens is None and told.cache_creation:
        return told.cache_creation.ephemeral_5m_input_tokens + told.cache_creation.ephemeral_1h_input_tokens
    return told.cache_creation_input_tokens or 0

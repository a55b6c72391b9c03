"""Qwen Code: `projects/DIR/chats/SESSION.jsonl`; an `api_response` among the telemetry for the screen is a call.

It tells of subagents too, so their files in `subagents/` are not read. Of its counts, `cached_content_token_count` is
inside `input_token_count`, and `thoughts_token_count` inside `output_token_count` or beside it, as the total says. No
line tells of suggestions and of calls cut short; `usage_record.jsonl` has sums of processes, not calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from acp_proxy.books import Call, CallKind, NotUnderstood
from acp_proxy.books.lines import Count, Moment, decoded, nanoseconds, records
from acp_proxy.books.tree import below, directories
from acp_proxy.core.usage import Usage

_RESPONSE = "qwen-code.api_response"
_OF_A_CALL = b'"qwen-code.api_response"'
_OF_THE_AGENT = "managed-"  # names of subagents that nobody asked for, such as those that keep its memory


class _Response(Struct):
    input_token_count: Count
    output_token_count: Count
    total_token_count: Count
    timestamp: Moment = field(name="event.timestamp")
    cached_content_token_count: Count | None = None
    thoughts_token_count: Count | None = None
    response_id: str | None = None
    prompt_id: str | None = None
    model: str | None = None
    subagent_name: str | None = None

    @property
    def kind(self) -> CallKind:
        """By the subagent's name; older versions tell it in `SESSION#NAME#0` alone (main: `SESSION########1`)."""
        name = self.subagent_name or "".join((self.prompt_id or "").split("#")[1:2])
        if not name:
            return "main"
        return "side" if name.startswith(_OF_THE_AGENT) else "subagent"


class _Payload(Struct, rename="camel"):
    ui_event: _Response


class _Line(Struct, rename="camel"):
    session_id: str
    system_payload: _Payload
    version: str | None = None
    cwd: str | None = None


class _Head(Struct, rename="camel"):
    """What a line says of itself, of any type."""

    version: Any = None
    system_payload: Any = None

    @property
    def is_response(self) -> bool:
        match self.system_payload:
            case {"uiEvent": {"event.name": name}}:
                return bool(name == _RESPONSE)
        return False


def files(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    place = home / (environ.get("QWEN_RUNTIME_DIR") or environ.get("QWEN_HOME") or ".qwen")
    for project in directories(place / "projects"):
        for directory in directories(project):
            if directory.name == "chats":
                yield from below(directory, ".jsonl")


def read(lines: Iterable[bytes]) -> Iterator[Call | NotUnderstood]:
    version = None
    for record in records(lines, lambda line: _OF_A_CALL in line, _Line):
        if isinstance(record, _Line):
            version = record.version or version
            told = record.system_payload.ui_event
            if told.input_token_count or told.output_token_count:  # an endpoint that counts nothing tells nothing
                yield _call(record, told)
        elif (head := decoded(record.line, _Head)) is None:
            yield NotUnderstood("a line of JSON", version)
        elif head.is_response:
            written_by = head.version if isinstance(head.version, str) else version
            yield NotUnderstood("an api_response with its counts of tokens, time and session", written_by)


def _call(line: _Line, told: _Response) -> Call | NotUnderstood:
    at, usage = nanoseconds(told.timestamp), _partition(told)
    if at is None or usage is None:
        return NotUnderstood("an api_response whose counts add up to their total", line.version)
    return Call(
        id=f"{told.prompt_id}:{told.response_id}:{at}",
        session=line.session_id,
        at=at,
        model=told.model,
        usage=usage,
        kind=told.kind,
        parent=line.session_id if told.kind == "subagent" else None,
        version=line.version,
        cwd=line.cwd,
    )


def _partition(told: _Response) -> Usage | None:
    cached, thought = told.cached_content_token_count or 0, told.thoughts_token_count or 0
    beside = told.total_token_count - told.input_token_count - told.output_token_count
    spoken = told.output_token_count if beside == thought else told.output_token_count - thought
    if cached > told.input_token_count or spoken < 0 or beside not in (0, thought):
        return None
    return Usage(input=told.input_token_count - cached, cached_read=cached, output=spoken, thought=thought)

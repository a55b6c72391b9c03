"""Codex: `sessions/Y/M/D/rollout-*.jsonl`, a file for each thread; a subagent is a thread of its own.

Newer ones write a `token_usage_record` for each call. Others write `token_count` events alone, which are repeated, and
whose total a fork inherits. Of their tokens, `cached_input_tokens` and `cache_write_input_tokens` are inside
`input_tokens`, and `reasoning_output_tokens` inside `output_tokens`. No line tells of titles and of calls cut short.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Raw, Struct, structs

from acp_proxy.books import Call, CallKind, NotUnderstood
from acp_proxy.books.lines import Count, Damaged, Moment, decoded, nanoseconds, records
from acp_proxy.books.tree import below, roots
from acp_proxy.core.usage import Usage

# The lines that are read. Others may be long, and say what they are in their first bytes as well.
_WANTED = {b"session_meta", b"turn_context", b"token_usage_record", b"compacted"}
_EVENTS = {b"task_started", b"thread_settings_applied", b"token_count"}
_SAYS = re.compile(
    rb'\{"timestamp":"[^"]{1,40}",(?:"ordinal":\d{1,20},)?"type":"(\w+)"(?:,"payload":\{"type":"(\w+)")?'
)

_HAVE_RECORDS = (0, 153)  # the first version seen to write a `token_usage_record` before each `token_count` of a call


class _Line(Struct):
    timestamp: Moment
    type: str
    payload: Raw


class _Meta(Struct):
    """A thread, as the first line of its file has it; a fork's file may go on with those of its ancestors."""

    id: str
    cli_version: str | None = None
    cwd: str | None = None
    forked_from_id: str | None = None
    parent_thread_id: str | None = None
    source: Any = None

    @property
    def kind(self) -> CallKind:
        return "subagent" if isinstance(self.source, dict) and "subagent" in self.source else "main"

    @property
    def parent(self) -> str | None:
        return self.parent_thread_id or self.forked_from_id


class _Tokens(Struct, frozen=True):
    input_tokens: Count
    output_tokens: Count
    total_tokens: Count
    cached_input_tokens: Count = 0
    cache_write_input_tokens: Count = 0
    reasoning_output_tokens: Count = 0


class _Settings(Struct):
    model: str | None = None


class _Context(_Settings):
    turn_id: str | None = None


class _Record(Struct):
    thread_id: str
    turn_id: str
    usage: _Tokens
    thread_token_usage: _Tokens


class _Counted(Struct):
    total_token_usage: _Tokens
    last_token_usage: _Tokens


class _Event(Struct):
    type: str
    turn_id: str | None = None
    thread_settings: _Settings | None = None
    info: _Counted | None = None


_PAYLOADS: Mapping[str, type[_Meta | _Context | _Record | _Event]] = {
    "session_meta": _Meta,
    "turn_context": _Context,
    "token_usage_record": _Record,
    "event_msg": _Event,
}


def files(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    place = home / (environ.get("CODEX_HOME") or ".codex")
    for root in roots(place / "sessions", place / "archived_sessions"):
        yield from below(root, ".jsonl")


def read(lines: Iterable[bytes]) -> Iterator[Call | NotUnderstood]:
    """A call is told once the next turn or call begins: whether it was a compaction stands after it."""
    thread = _Thread()
    held: Call | None = None
    for record in records(lines, _tells, _Line):
        if isinstance(record, _Line) and record.type == "compacted":
            held = held and structs.replace(held, kind="compaction")
            continue
        found = thread.unread() if isinstance(record, Damaged) else thread.take(record)
        if held and (found or thread.turn_begins):
            yield held
            held = None
        if isinstance(found, Call):
            held = found
        elif found:
            yield found
    if held:
        yield held


def _tells(line: bytes) -> bool:
    says = _SAYS.match(line)
    if not says:
        return any(word in line for word in (*_WANTED, *_EVENTS))
    kind, event = says.groups()
    return kind in _WANTED or (kind == b"event_msg" and (event is None or event in _EVENTS))


class _Thread:
    """What the lines before have told."""

    def __init__(self) -> None:
        self._metas: dict[str, _Meta] = {}  # the thread's own comes first
        self._own: _Meta | None = None
        self._turn: str | None = None
        self._model: str | None = None
        self._total: _Tokens | None = None
        self.turn_begins = False

    def unread(self) -> NotUnderstood:
        return NotUnderstood("a line of JSON that has a time, a type and a payload", self._version)

    def take(self, line: _Line) -> Call | NotUnderstood | None:
        self.turn_begins = False
        if line.type not in _PAYLOADS:
            return None
        match decoded(line.payload, _PAYLOADS[line.type]):
            case _Meta() as meta:
                self._own = self._own or meta
                self._metas.setdefault(meta.id, meta)
            case _Context() as context:
                self._model = context.model or self._model
                self._turn = context.turn_id or self._turn
            case _Record() as record:
                self._total = record.thread_token_usage
                return self._call(line, record.thread_id, record.turn_id, record.usage, record.thread_token_usage)
            case _Event(type="task_started", turn_id=turn):
                self._turn, self.turn_begins = turn, True
            case _Event(type="thread_settings_applied", thread_settings=_Settings(model=str(model))):
                self._model = model
            case _Event(type="token_count", info=_Counted() as counted):
                return self._counted(line, counted)
            case None:
                return NotUnderstood(f"a {line.type} as it is known", self._version)
        return None

    def _counted(self, line: _Line, told: _Counted) -> Call | NotUnderstood | None:
        before, self._total = self._total, told.total_token_usage
        if self._total == before or not (told.last_token_usage.input_tokens or told.last_token_usage.output_tokens):
            return None  # said again, or how full the window is after a compaction
        if before is None and self._keeps_records:
            return None  # a fork says its parent's last call again
        if self._own is None:
            return NotUnderstood("a session_meta before the first call")
        owner = self._owner(self._own.id)
        if owner is None:
            return NotUnderstood("a turn's id that tells whose turn it is", self._version)
        return self._call(line, owner, self._turn or owner, told.last_token_usage, told.total_token_usage)

    def _owner(self, own: str) -> str | None:
        """The thread whose turn it is: a fork's file begins with a copy of its ancestors' turns.

        Ids are UUIDs of version 7, which are in the order of time: a turn is of the youngest thread that is older.
        """
        if len(self._metas) == 1:
            return own
        if self._turn is None or not _made_at(self._turn):
            return None
        return max((thread for thread in self._metas if thread <= self._turn), default=None)

    def _call(self, line: _Line, thread: str, turn: str, told: _Tokens, total: _Tokens) -> Call | NotUnderstood:
        copied = self._own is not None and thread != self._own.id
        at, usage = (_made_at(turn) if copied else None) or nanoseconds(line.timestamp), _partition(told)
        if at is None or usage is None:
            return NotUnderstood("a call's time, and parts of its tokens that fit into them", self._version)
        meta = self._metas.get(thread)
        return Call(
            id=f"{turn}:{total.total_tokens}",
            session=thread,
            at=at,
            model=self._model,
            usage=usage,
            kind=meta.kind if meta else "main",
            parent=meta.parent if meta else None,
            version=meta.cli_version if meta else self._version,
            cwd=meta.cwd if meta else None,
        )

    @property
    def _version(self) -> str | None:
        return self._own.cli_version if self._own else None

    @property
    def _keeps_records(self) -> bool:
        numbers = re.match(r"(\d{1,9})\.(\d{1,9})", self._version or "")
        return numbers is not None and tuple(map(int, numbers.groups())) >= _HAVE_RECORDS


def _made_at(name: str) -> int | None:
    """When a UUID of version 7 was made, in nanoseconds; None for another id."""
    made = re.fullmatch(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", name)
    moment = int("".join(made.groups()), 16) * 1_000_000 if made else None
    return moment if moment and moment < 2**63 else None


def _partition(told: _Tokens) -> Usage | None:
    cached = told.cached_input_tokens + told.cache_write_input_tokens
    if cached > told.input_tokens or told.reasoning_output_tokens > told.output_tokens:
        return None
    return Usage(
        input=told.input_tokens - cached,
        cached_read=told.cached_input_tokens,
        cached_write=told.cache_write_input_tokens,
        output=told.output_tokens - told.reasoning_output_tokens,
        thought=told.reasoning_output_tokens,
    )

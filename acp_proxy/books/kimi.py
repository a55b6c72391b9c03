"""Kimi Code: `sessions/DIR/SESSION/agents/AGENT/wire.jsonl`; a `usage.record` is a call, of that agent.

Of its `usage`, `inputOther`, `inputCacheRead` and `inputCacheCreation` stand beside each other; thinking is in `output`
and not told apart. Lines name their session where it ran under ACP; else its directory does. A fork's file begins with
a copy of its parent's lines. No line tells of calls cut short.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from acp_proxy.books import Call, CallKind, NotUnderstood
from acp_proxy.books.lines import Count, Damaged, decoded, records
from acp_proxy.books.tree import below
from acp_proxy.core.usage import Usage

_USAGE = "usage.record"
_WANTED = {b"metadata", b"runtime.set_binding", b"profile.bind", b"llm.request", b"usage.record"}
_SAYS = re.compile(rb'\{"type":"([\w.]+)"')
_UNDER_ACP = "acp:"  # what a binding's runtime begins with, before the session
_MAJOR = "1."  # of the versions of the format
_MAIN = "main"


class _Tokens(Struct, rename="camel"):
    input_other: Count
    output: Count
    input_cache_read: Count
    input_cache_creation: Count


class _Disclosure(Struct):
    cwd: str | None = None


class _Line(Struct, rename="camel"):
    type: str
    time: Count | None = None  # Unix time in milliseconds
    agent_id: str | None = None
    usage: _Tokens | None = None
    model: str | None = None
    model_alias: str | None = None
    kind: str | None = None
    usage_scope: str | None = None
    runtime_id: str | None = None
    environment_disclosure: _Disclosure | None = None
    protocol_version: str | None = field(name="protocol_version", default=None)
    created_at: Count | None = field(name="created_at", default=None)


class _Head(Struct):
    """What a line says of itself, of any type."""

    type: Any = None


def files(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    yield from below(home / (environ.get("KIMI_CODE_HOME") or ".kimi-code") / "sessions", "wire.jsonl")


def session(path: Path) -> str:
    """The session whose file it is, by its directory."""
    return path.parents[2].name


def read(lines: Iterable[bytes], session: str | None = None) -> Iterator[Call | NotUnderstood]:
    """`session` is that of the file, for lines that name none."""
    file = _File(session)
    for record in records(lines, _tells, _Line):
        if isinstance(record, Damaged):
            head = decoded(record.line, _Head)
            if head is None or head.type == _USAGE:
                yield NotUnderstood("a usage.record with its usage as counts of tokens", file.version)
        elif record.type == _USAGE:
            yield from file.calls(record)
        else:
            file.take(record)


def _tells(line: bytes) -> bool:
    says = _SAYS.match(line)
    return says[1] in _WANTED if says else b'"type":"usage.record"' in line


class _File:
    """What the lines before have told."""

    def __init__(self, session: str | None) -> None:
        self._session = session
        self._begun: int | None = None  # a fork has its parent's
        self._request: _Line | None = None
        self._cwd: str | None = None
        self.version: str | None = None

    def take(self, line: _Line) -> None:
        self.version = line.protocol_version or self.version
        self._begun = line.created_at or self._begun
        if line.runtime_id and line.runtime_id.startswith(_UNDER_ACP):
            self._session = line.runtime_id.removeprefix(_UNDER_ACP)
        if line.environment_disclosure:
            self._cwd = line.environment_disclosure.cwd
        if line.type == "llm.request":
            self._request = line

    def calls(self, line: _Line) -> Iterator[Call | NotUnderstood]:
        told, at = line.usage, (line.time or 0) * 1_000_000
        if not (self.version or "").startswith(_MAJOR):
            yield NotUnderstood("a file of version 1", self.version)
        elif told is None or not 0 < at < 2**63 or self._session is None:
            yield NotUnderstood("a usage.record with its usage, time and session", self.version)
        elif told.input_other or told.output or told.input_cache_read or told.input_cache_creation:
            kind = self._kind(line)
            yield Call(
                id=f"{self._begun}:{line.agent_id}:{line.time}",
                session=self._session,
                at=at,
                model=self._model(line),
                usage=Usage(
                    input=told.input_other,
                    cached_read=told.input_cache_read,
                    cached_write=told.input_cache_creation,
                    output=told.output,
                ),
                kind=kind,
                parent=self._session if kind == "subagent" else None,
                cwd=self._cwd,
            )

    def _kind(self, line: _Line) -> CallKind:
        if self._request and self._request.kind == "compaction":
            return "compaction"
        if line.agent_id not in (None, _MAIN):
            return "subagent"
        return "side" if line.usage_scope == "session" else "main"

    def _model(self, line: _Line) -> str | None:
        """As the request named it, for which the record may have an alias."""
        if self._request and self._request.model_alias == line.model:
            return self._request.model
        return line.model

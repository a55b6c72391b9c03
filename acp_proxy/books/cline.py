"""Cline: `data/sessions/SESSION/*.messages.json`, a file for a session and for each of its subagents. Seen in 3.0.65.

Of a message's `metrics`, `cacheReadTokens` and `cacheWriteTokens` are inside `inputTokens`, and thinking is inside
`outputTokens` and not told apart. The cost is what Cline computed from prices of its own, and missing or 0 where it
has none. A compaction takes the metrics of earlier messages away, and is itself in no file; nor is a call that was cut
short. `SESSION.json` beside it has the directory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path

from msgspec import Struct, field

from acp_proxy.books import Call, NotUnderstood
from acp_proxy.books.lines import Count, decoded
from acp_proxy.books.tree import below
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage

_END = ".messages.json"
_VERSION = 1  # of the format
_NS_PER_MS = 1_000_000
_LAST = 2**63 // _NS_PER_MS


class _Metrics(Struct, rename="camel"):
    input_tokens: Count
    output_tokens: Count
    cache_read_tokens: Count = 0
    cache_write_tokens: Count = 0
    cost: Decimal | None = None


class _Model(Struct):
    id: str


class _Message(Struct, rename="camel"):
    role: str
    id: str | None = None
    ts: float | None = None  # Unix time in milliseconds
    model_info: _Model | None = None
    metrics: _Metrics | None = None


class _Origin(Struct, rename="camel"):
    version: str | None = None
    parent_thread_id: str | None = None


class _Document(Struct, rename="camel"):
    version: int
    session_id: str
    messages: list[_Message]
    origin: _Origin = field(default_factory=_Origin)


class _About(Struct):
    cwd: str | None = None


def files(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    cline = home / (environ.get("CLINE_DIR") or ".cline")
    data = home / environ["CLINE_DATA_DIR"] if environ.get("CLINE_DATA_DIR") else cline / "data"
    yield from below(home / (environ.get("CLINE_SESSION_DATA_DIR") or data / "sessions"), _END)


def about(path: Path) -> Path:
    """The file that tells the directory of a file's session."""
    return path.parent / f"{path.parent.name}.json"


def read(document: bytes, about: bytes = b"") -> Iterator[Call | NotUnderstood]:
    """Of one file. It is written anew with each message: what is no JSON is looked at again when it is whole."""
    told = decoded(document, _Document)
    if told is None or told.version != _VERSION:
        yield NotUnderstood(f"messages in version {_VERSION} of the format, with their tokens as counts")
        return
    known = decoded(about, _About)
    for message in told.messages:
        if message.role == "assistant" and message.metrics:
            yield _call(told, message, message.metrics, known.cwd if known else None)


def _call(told: _Document, message: _Message, metrics: _Metrics, cwd: str | None) -> Call | NotUnderstood:
    cached = metrics.cache_read_tokens + metrics.cache_write_tokens
    if message.id is None or message.ts is None or not 0 <= message.ts < _LAST:
        return NotUnderstood("a message with its id and time", told.origin.version)
    if cached > metrics.input_tokens:
        return NotUnderstood("cached tokens as a part of the input", told.origin.version)
    parent = told.origin.parent_thread_id
    return Call(
        id=message.id,
        session=told.session_id,
        at=int(message.ts) * _NS_PER_MS,
        model=message.model_info.id if message.model_info else None,
        usage=Usage(
            input=metrics.input_tokens - cached,
            cached_read=metrics.cache_read_tokens,
            cached_write=metrics.cache_write_tokens,
            output=metrics.output_tokens,
        ),
        kind="subagent" if parent else "main",
        cost=_money(metrics.cost),
        parent=parent,
        version=told.origin.version,
        cwd=cwd,
    )


def _money(cost: Decimal | None) -> Money | None:
    """None for what is no amount of money."""
    try:
        return Money.of(cost, "USD") if cost and cost > 0 else None
    except ValueError:
        return None

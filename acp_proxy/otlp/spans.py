"""A row as a span, by the conventions for generative AI, and its tool calls as the span's children. Pure.

Ids are made of the row's id, so that a row that is sent again is the same span.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial

from acp_proxy.core.digest import digest
from acp_proxy.core.entry import Entry, ToolCall, Work
from acp_proxy.core.money import NANO
from acp_proxy.ledger import Row
from acp_proxy.otlp.common import attributes, text_attribute
from acp_proxy.otlp.protobuf import block, double, fixed64, text, whole

FAILED = frozenset(("error", "crashed", "disconnected"))  # stop reasons that are no end of a turn

_INTERNAL, _CLIENT = 1, 3  # kinds of spans
_ERROR = whole(3, 2)
_TIME = 2**64 - 1  # the largest that a field holds
_MILLI = 10**6  # ns
_INVOKE = text_attribute(9, "gen_ai.operation.name", "invoke_agent")
_EXECUTE = text_attribute(9, "gen_ai.operation.name", "execute_tool")

Provider = Callable[[str | None], str | None]
"""The convention's name for who makes a model; None where that is not known."""


class Spans:
    """`shown` are dimensions of people that may leave: "user", "project"."""

    def __init__(self, provider: Provider, shown: tuple[str, ...] = ()) -> None:
        self._of_model = lru_cache(maxsize=1024)(partial(_of_model, provider))
        self._shown = shown

    def of(self, row: Row, work: Work | None = None) -> Iterator[bytes]:
        """The turn first."""
        trace, span = ids(row.entry.id, work)
        yield block(2, self._turn(row, work, trace, span))
        for number, call in enumerate(work.calls if work else ()):
            yield block(2, _call(row, call, trace, span, number))

    def _turn(self, row: Row, work: Work | None, trace: bytes, span: bytes) -> bytes:
        origin, entry = row.origin, row.entry
        parent = block(4, bytes.fromhex(work.parent[33:])) if work and work.parent else b""
        return b"".join(
            (
                block(1, trace),
                block(2, span),
                parent,
                _of_agent(origin.agent, origin.agent_version),
                _times(entry.started_at, entry.ended_at),
                text_attribute(9, "gen_ai.conversation.id", entry.session),
                self._of_model(entry.model),
                *[_integer(name, number) for name, number in tokens_of(entry).items()],
                _of_end(entry.stop_reason),
                self._ours(row, work),
            )
        )

    def _ours(self, row: Row, work: Work | None) -> bytes:
        origin, entry = row.origin, row.entry
        costs = [
            _number("acp_proxy.cost", cost.nano / NANO) + text_attribute(9, "acp_proxy.cost.currency", cost.currency)
            for cost in entry.costs[:1]  # nearly all turns have one currency; metrics have all
        ]
        calls = sum(each.count for each in work.sums) if work else 0
        return b"".join(
            (
                _of_row(entry.kind, entry.usage_source, entry.cost_source),
                *costs,
                _integer("acp_proxy.tool_calls", calls) if work and work.sums else b"",
                b"" if entry.context_used is None else _integer("acp_proxy.context.used", entry.context_used),
                b"" if entry.context_size is None else _integer("acp_proxy.context.size", entry.context_size),
                _optional("acp_proxy.team", origin.team),
                *[_optional(f"acp_proxy.{name}", getattr(origin, name)) for name in self._shown],
            )
        )


def ids(row: str, work: Work | None = None) -> tuple[bytes, bytes]:
    """Of the trace, which is the editor's if it named one, and of the turn's span."""
    plain = row.replace("-", "")
    try:
        own = bytes.fromhex(plain)
    except ValueError:
        own = b""
    if len(own) != 16 or not any(own[8:]):
        own = bytes.fromhex(digest(row.encode("utf-8", "replace"), 16))
    return (bytes.fromhex(work.parent[:32]) if work and work.parent else own), own[8:]


def _call(row: Row, call: ToolCall, trace: bytes, turn: bytes, number: int) -> bytes:
    started = row.entry.started_at + call.started * _MILLI
    ended = row.entry.ended_at if call.took is None else started + call.took * _MILLI
    span = bytes.fromhex(digest(turn + number.to_bytes(4, "big"), 8))
    failed = call.outcome == "failed"
    return b"".join(
        (
            block(1, trace),
            block(2, span),
            block(4, turn),
            text(5, f"execute_tool {call.kind}"),
            whole(6, _INTERNAL),
            _times(started, max(started, ended)),
            _EXECUTE,
            text_attribute(9, "gen_ai.tool.name", call.kind),
            text_attribute(9, "error.type", "failed") if failed else b"",
            block(15, _ERROR) if failed else b"",
        )
    )


def tokens_of(entry: Entry) -> dict[str, int]:
    """Input includes what caches gave and took, output includes reasoning: not a partition, as rows have it."""
    if entry.usage_source == "none":
        return {}
    usage = entry.usage
    found = {
        "gen_ai.usage.input_tokens": usage.input + usage.cached_read + usage.cached_write,
        "gen_ai.usage.output_tokens": usage.output + usage.thought,
    }
    if usage.cached_read:
        found["gen_ai.usage.cache_read.input_tokens"] = usage.cached_read
    if usage.cached_write:
        found["gen_ai.usage.cache_creation.input_tokens"] = usage.cached_write
    if usage.thought:
        found["gen_ai.usage.reasoning.output_tokens"] = usage.thought
    return found


@lru_cache(maxsize=1024)
def _of_agent(agent: str, version: str | None) -> bytes:
    """What all spans of an agent have in common, its name among it."""
    named = text_attribute(9, "gen_ai.agent.name", agent) + _optional("gen_ai.agent.version", version)
    return text(5, f"invoke_agent {agent}") + whole(6, _CLIENT) + _INVOKE + named


def _of_model(provider: Provider, model: str | None) -> bytes:
    """Whose agent tells no model has no provider; the convention wants one, and has no name for that."""
    named = _optional("gen_ai.request.model", model) + _optional("gen_ai.response.model", model)
    return text_attribute(9, "gen_ai.provider.name", provider(model) or "unknown") + named


@lru_cache(maxsize=256)
def _of_end(stop_reason: str | None) -> bytes:
    if stop_reason is None:
        return b""
    reasons = attributes(9, {"gen_ai.response.finish_reasons": (stop_reason,)})
    return (
        reasons + text_attribute(9, "error.type", stop_reason) + block(15, _ERROR) if stop_reason in FAILED else reasons
    )


@lru_cache(maxsize=256)
def _of_row(kind: str, usage_source: str, cost_source: str) -> bytes:
    return (
        text_attribute(9, "acp_proxy.kind", kind)
        + text_attribute(9, "acp_proxy.usage.source", usage_source)
        + text_attribute(9, "acp_proxy.cost.source", cost_source)
    )


def _times(start: int, end: int) -> bytes:
    """Whatever a clock said: a time before 1970 has no place."""
    return fixed64(7, min(max(start, 0), _TIME)) + fixed64(8, min(max(end, 0), _TIME))


def _optional(name: str, value: str | None) -> bytes:
    return b"" if value is None else text_attribute(9, name, value)


@lru_cache(maxsize=64)
def _key(name: str) -> bytes:
    return text(1, name)


def _integer(name: str, number: int) -> bytes:
    return block(9, _key(name) + block(2, whole(3, number)))


def _number(name: str, number: float) -> bytes:
    return block(9, _key(name) + block(2, double(4, number)))

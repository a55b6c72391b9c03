"""Metrics by the conventions for generative AI, which are in development: tokens and durations of agents. Pure.

Their input includes what caches gave and took, and their output includes reasoning: not a partition, as ours is.
Counters come from the ledger's sums; histograms of turns are kept by the exporter, and begin with it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct

from acp_proxy.core.entry import Work
from acp_proxy.core.money import NANO
from acp_proxy.ledger import Row
from acp_proxy.ledger.sums.tallied import Whole
from acp_proxy.ledger.sums.tallies import NO_BOUND, OTHER
from acp_proxy.metrics.exposition import AnyFamily, Buckets, Family, Histogram, Values
from acp_proxy.metrics.readings import Readings
from acp_proxy.system.decoding import json_decoder

_USAGE = "gen_ai.client.inference.usage."
_TOKENS = tuple(4**power * NANO for power in range(14))
_SECONDS = tuple(int(bound * NANO) for bound in (0.01, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600))
_CALLS = tuple(bound * NANO for bound in (0, 1, 2, 5, 10, 20, 50, 100))
_MILLI = 10**6
_MOST_SERIES = 500  # of all histograms: agents and models make names up

_BY = (
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.token.modality",
    "gen_ai.request.model",
    "gen_ai.response.model",
)
_COUNTERS: tuple[tuple[str, str, Callable[[Whole], int]], ...] = (
    ("input_tokens", "Tokens sent, cached ones included.", lambda of: of.input + of.cached_read + of.cached_write),
    ("output_tokens", "Tokens written, reasoning included.", lambda of: of.output + of.thought),
    ("cache_read.input_tokens", "Of the input what a cache had.", lambda of: of.cached_read),
    ("cache_write.input_tokens", "Of the input what a cache was given.", lambda of: of.cached_write),
    ("reasoning.output_tokens", "Of the output what was reasoning.", lambda of: of.thought),
)
_AGENT = ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.agent.name", "gen_ai.request.model")
_HISTOGRAMS: Mapping[str, tuple[str, tuple[str, ...], tuple[int, ...]]] = {
    "gen_ai.invoke_agent.duration": ("From a prompt to its answer.", _AGENT, _SECONDS),
    "gen_ai.invoke_agent.tool_calls": ("Tool calls of a turn.", _AGENT, _CALLS),
    "gen_ai.execute_tool.duration": (
        "How long a tool call took, by its kind.",
        ("gen_ai.operation.name", "gen_ai.agent.name", "gen_ai.tool.name"),
        _SECONDS,
    ),
    "gen_ai.client.token.usage": ("Tokens of a turn.", (*_AGENT, "gen_ai.token.type"), _TOKENS),
}
_OLDER = "gen_ai.client.token.usage"

Provider = Callable[[str | None], str | None]


def counters(readings: Readings, provider: Provider) -> Iterator[Family]:
    """By model; turns whose usage nobody knows are not in them."""
    sums: dict[Values, list[int]] = {}
    for whole in readings.wholes:
        of = readings.series.get(whole.series)
        if of is None or of.usage_source == "none":
            continue
        model = readings.labels.of("model", of.model)
        key = ("invoke_agent", provider(of.model) or "unknown", "text", model, model)
        so_far = sums.setdefault(key, [0] * len(_COUNTERS))
        for index, (_, _, amount) in enumerate(_COUNTERS):
            so_far[index] += amount(whole)
    for index, (name, text, _) in enumerate(_COUNTERS):
        samples = [(key, numbers[index]) for key, numbers in sorted(sums.items())]
        yield Family(f"{_USAGE}{name}", "counter", text, _BY, samples)


class _Series(Struct, array_like=True):
    family: str
    values: Values
    counts: dict[str, int]  # by upper bound, as text for JSON
    sum: int  # nano-units


class _Kept(Struct):
    """Of all turns since a time (Unix ns)."""

    since: int
    series: list[_Series]


class Histograms:
    """Of the turns that were sent. What they are is kept in the ledger together with what was sent."""

    def __init__(self, provider: Provider, *, tokens: bool) -> None:
        self._provider = provider
        self._tokens = tokens  # also by the older convention

    def after(self, state: str | None, rows: Sequence[Row], work: Mapping[str, Work], now: int) -> str:
        """The state with these turns added."""
        before = _decoded(state, now)
        kept = {(each.family, each.values): each for each in before.series}
        for row in rows:
            if row.entry.kind == "turn":
                for family, values, amount in self._observed(row, work.get(row.entry.id)):
                    _add(kept, family, values, amount)
        return msgspec.json.encode(_Kept(before.since, list(kept.values()))).decode()

    def since(self, state: str | None, now: int) -> int:
        """Since when they count."""
        return _decoded(state, now).since

    def families(self, state: str | None) -> Iterator[AnyFamily]:
        found = _decoded(state, 0).series
        for family, (text, labels, bounds) in _HISTOGRAMS.items():
            if family == _OLDER and not self._tokens:
                continue
            samples = [
                (each.values, Buckets({int(bound): count for bound, count in each.counts.items()}, each.sum))
                for each in found
                if each.family == family
            ]
            yield Histogram(family, text, labels, bounds, samples)

    def _observed(self, row: Row, work: Work | None) -> Iterator[tuple[str, Values, int]]:
        entry, agent = row.entry, row.origin.agent
        by = ("invoke_agent", self._provider(entry.model) or "unknown", agent, entry.model or "unknown")
        yield "gen_ai.invoke_agent.duration", by, max(0, entry.ended_at - entry.started_at)
        yield "gen_ai.invoke_agent.tool_calls", by, sum(each.count for each in work.sums) * NANO if work else 0
        for call in work.calls if work else ():
            if call.took is not None:
                yield "gen_ai.execute_tool.duration", ("execute_tool", agent, call.kind), call.took * _MILLI
        if self._tokens and entry.usage_source != "none":
            usage = entry.usage
            yield _OLDER, (*by, "input"), (usage.input + usage.cached_read + usage.cached_write) * NANO
            yield _OLDER, (*by, "output"), (usage.output + usage.thought) * NANO


def _add(kept: dict[tuple[str, Values], _Series], family: str, values: Values, amount: int) -> None:
    if (family, values) not in kept and len(kept) >= _MOST_SERIES:
        values = tuple(OTHER for _ in values)
    bounds = _HISTOGRAMS[family][2]
    index = bisect_left(bounds, amount)
    bound = str(bounds[index] if index < len(bounds) else NO_BOUND)
    series = kept.setdefault((family, values), _Series(family, values, {}, 0))
    series.counts[bound] = series.counts.get(bound, 0) + 1
    series.sum += amount


def _decoded(state: str | None, now: int) -> _Kept:
    """Nothing, since now, of what another version wrote otherwise."""
    try:
        return _Kept(now, []) if state is None else json_decoder(_Kept).decode(state)
    except msgspec.MsgspecError:
        return _Kept(now, [])

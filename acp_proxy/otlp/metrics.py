"""Families of metrics as OTLP's, cumulative or as differences. Pure.

Prometheus makes the names that are scraped of these again: `acp_proxy.turn_duration` in seconds is its
`acp_proxy_turn_duration_seconds`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from acp_proxy.core.money import NANO
from acp_proxy.ledger.sums.tallies import NO_BOUND
from acp_proxy.metrics.exposition import AnyFamily, Buckets, Family, Histogram, Values, Written
from acp_proxy.otlp.common import text_attribute
from acp_proxy.otlp.protobuf import block, double, fixed64, packed_double, packed_fixed64, signed64, text, whole

DELTA, CUMULATIVE = 1, 2  # temporalities, by OTLP's numbers

_OURS = "acp_proxy_"
_UNITS = {
    "tokens": "{token}",
    "unpriced_tokens": "{token}",
    "turns": "{turn}",
    "turns_without_usage": "{turn}",
    "sessions": "{session}",
    "sessions_active": "{session}",
    "relay_messages": "{message}",
    "relay_bytes": "By",
    "context_used_ratio": "1",
    "plan_used_ratio": "1",
    "capture_ratio": "1",
    "coverage_ratio": "1",
    "input_tokens": "{token}",
    "output_tokens": "{token}",
    "usage": "{token}",
    "duration": "s",
    "tool_calls": "{tool_call}",
}


class Interval(Struct, frozen=True):
    """From when counters count (Unix ns), and when they were read."""

    start: int
    time: int


def metrics(families: Iterable[AnyFamily], over: Interval, temporality: int = CUMULATIVE) -> Iterator[bytes]:
    """A family without samples is left out: an empty metric says nothing, and some receivers refuse it."""
    for family in families:
        if points := list(_points(family, over)):
            yield block(2, _head(family) + _data(family, points, temporality))


def named(family: AnyFamily) -> tuple[str, str]:
    """Name and unit. Names of conventions are as they are given."""
    if not family.name.startswith(_OURS):
        return family.name, _UNITS.get(family.name.rpartition(".")[2], "1")
    name = family.name.removeprefix(_OURS).removesuffix("_total")
    if name.endswith("_seconds"):
        return f"acp_proxy.{name.removesuffix('_seconds')}", "s"
    return f"acp_proxy.{name}", _UNITS.get(name, "")


def _head(family: AnyFamily) -> bytes:
    name, unit = named(family)
    return text(1, name) + text(2, family.help) + (text(3, unit) if unit else b"")


def _data(family: AnyFamily, points: Sequence[bytes], temporality: int) -> bytes:
    content = b"".join([block(1, point) for point in points])
    match family:
        case Histogram():
            return block(9, content + whole(2, temporality))
        case Family(kind="gauge") | Written(kind="gauge"):
            return block(5, content)
    return block(7, content + whole(2, temporality) + whole(3, 1))


def _points(family: AnyFamily, over: Interval) -> Iterator[bytes]:
    if isinstance(family, Histogram):
        for values, buckets in family.samples:
            yield _histogram_point(family, values, buckets, over)
        return
    times = fixed64(3, over.time)
    if family.kind == "counter":
        times = fixed64(2, over.start) + times
    for values, number in samples(family):
        value = double(4, number / NANO) if family.nano else signed64(6, number)
        yield _labels(7, family.labels, values) + times + value


def samples(family: Family | Written) -> Iterable[tuple[Values, int]]:
    if isinstance(family, Family):
        return family.samples
    return zip(family.values, family.numbers, strict=True)


def _histogram_point(family: Histogram, values: Values, buckets: Buckets, over: Interval) -> bytes:
    """Its bounds are those of the family and of what was counted when there were others, as in a scrape."""
    bounds = sorted({*family.bounds, *buckets.counts} - {NO_BOUND})
    counts = [buckets.counts.get(bound, 0) for bound in (*bounds, NO_BOUND)]
    return b"".join(
        (
            fixed64(2, over.start),
            fixed64(3, over.time),
            fixed64(4, sum(counts)),
            double(5, buckets.sum / NANO),
            packed_fixed64(6, counts),
            packed_double(7, [bound / NANO for bound in bounds]),
            _labels(9, family.labels, values),
        )
    )


def _labels(field: int, names: Sequence[str], values: Values) -> bytes:
    return b"".join([text_attribute(field, name, value) for name, value in zip(names, values, strict=True)])

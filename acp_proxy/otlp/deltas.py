"""Counters as differences: what came since the last export that a receiver took. Pure.

Where it stands is kept in the ledger, together with what is on its way: an export that was not confirmed is sent again
as it was, so that a receiver that has it knows it by its times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from acp_proxy.metrics.exposition import AnyFamily, Buckets, Family, Histogram, Values
from acp_proxy.otlp.metrics import samples
from acp_proxy.system.decoding import json_decoder


class Point(Struct, array_like=True, frozen=True):
    """Of one series: a number, or a histogram's sum and counts by upper bound (as text, for JSON)."""

    family: str
    values: Values
    number: int
    counts: dict[str, int] = field(default_factory=dict)


class Standing(Struct, frozen=True):
    """At which time (Unix ns) the counters stood where."""

    at: int
    points: list[Point]

    @classmethod
    def of(cls, state: str | None) -> Standing | None:
        """None where there is none yet, or one of another version."""
        try:
            return None if state is None else json_decoder(Standing).decode(state)
        except msgspec.MsgspecError:
            return None

    @property
    def text(self) -> str:
        return msgspec.json.encode(self).decode()


def standing(families: Iterable[AnyFamily], at: int, before: Standing | None) -> Standing:
    """Where these counters stand. One that has fallen stands where it was: until then all of it was sent."""
    known = _known(before)
    return Standing(at, [_highest(each, known.get((each.family, each.values))) for each in _points(families)])


def differences(families: Iterable[AnyFamily], before: Standing | None) -> Iterator[AnyFamily]:
    """Counters since then, and gauges as they are. One that has fallen has no difference."""
    known = _known(before)
    for family in families:
        if isinstance(family, Histogram):
            since = [(values, _less(buckets, known.get((family.name, values)))) for values, buckets in family.samples]
            yield replace(family, samples=[(values, buckets) for values, buckets in since if buckets.counts])
        elif family.kind == "gauge":
            yield family
        else:
            yield Family(
                family.name,
                "counter",
                family.help,
                family.labels,
                [(values, _since(number, known.get((family.name, values)))) for values, number in samples(family)],
                nano=family.nano,
            )


def _points(families: Iterable[AnyFamily]) -> Iterator[Point]:
    for family in families:
        if isinstance(family, Histogram):
            for values, buckets in family.samples:
                counts = {str(bound): count for bound, count in buckets.counts.items()}
                yield Point(family.name, values, buckets.sum, counts)
        elif family.kind == "counter":
            for values, number in samples(family):
                yield Point(family.name, values, number)


def _known(before: Standing | None) -> dict[tuple[str, Values], Point]:
    return {} if before is None else {(each.family, each.values): each for each in before.points}


def _highest(now: Point, before: Point | None) -> Point:
    if before is None:
        return now
    counts = {bound: max(now.counts.get(bound, 0), before.counts.get(bound, 0)) for bound in now.counts | before.counts}
    return Point(now.family, now.values, max(now.number, before.number), counts)


def _since(number: int, before: Point | None) -> int:
    return number if before is None else max(0, number - before.number)


def _less(buckets: Buckets, before: Point | None) -> Buckets:
    was = {} if before is None else {int(bound): count for bound, count in before.counts.items()}
    if before is None:
        return buckets
    counts = {bound: count - was.get(bound, 0) for bound, count in buckets.counts.items()}
    return Buckets({bound: count for bound, count in counts.items() if count > 0}, max(0, buckets.sum - before.number))

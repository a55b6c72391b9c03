"""Families of metrics as Prometheus's text format 0.0.4. Pure, and knows no metric by name.

Values are integers, of nano-units where that is said: a sum of money is written as the exact decimal that it is.
prometheus_client's writer takes five times as long and more for the same samples, and goes through floats.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from acp_proxy.core.money import NANO, decimal_text
from acp_proxy.ledger.sums.tallies import NO_BOUND

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Values = tuple[str, ...]  # of the labels, in their order

_GROWS = re.compile(rb"^# TYPE \S+ (counter|histogram)$", re.MULTILINE)


class Family(Struct, frozen=True):
    """`help` is for people; a sample has a value for each of `labels`."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    labels: tuple[str, ...]
    samples: Iterable[tuple[Values, int]]
    nano: bool = False  # the samples are nano-units


class Written(Struct, frozen=True):
    """A family whose samples are written already, but for their numbers."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    starts: Sequence[str]  # name and labels of each sample
    numbers: Sequence[int]
    nano: bool = False
    labels: tuple[str, ...] = ()  # as of `Family`, for who writes them otherwise
    values: Collection[Values] = ()  # of the labels of each sample


class Buckets(Struct, frozen=True):
    """The observations in each bucket, by upper bounds (nano-units, `NO_BOUND`), and their sum (nano-units)."""

    counts: Mapping[int, int]
    sum: int


class Histogram(Struct, frozen=True):
    """As `Family`. Each of `bounds` has a bucket, also an empty one; so has each other bound of what was counted."""

    name: str
    help: str
    labels: tuple[str, ...]
    bounds: tuple[int, ...]  # nano-units, ascending
    samples: Iterable[tuple[Values, Buckets]]


AnyFamily = Family | Written | Histogram


def exposition(families: Iterable[AnyFamily]) -> bytes:
    """Families as text, in their order; nothing for none."""
    lines: list[str] = []
    for family in families:
        match family:
            case Histogram():
                lines += _histogram(family)
            case Written():
                lines += _written(family)
            case Family():
                starts = [start_of(family.name, family.labels, values) for values, _ in family.samples]
                numbers = [number for _, number in family.samples]
                lines += _written(Written(family.name, family.kind, family.help, starts, numbers, nano=family.nano))
    return ("\n".join(lines) + "\n").encode("utf-8", "replace") if lines else b""


def counters_of(text: bytes, *, but: bytes) -> bytes:
    """The counters in a text of `exposition`, except the families that another such text has."""
    others = {family.partition(b" ")[0] for family in _split(but)}
    return b"".join(
        b"# HELP " + family
        for family in _split(text)
        if family.partition(b" ")[0] not in others and _GROWS.search(family)
    )


def _split(text: bytes) -> list[bytes]:
    """Families without the words that each begins with."""
    return re.split(rb"^# HELP ", text, flags=re.MULTILINE)[1:]


def start_of(name: str, labels: tuple[str, ...], values: Values) -> str:
    """The text of a sample before its number."""
    return f"{name}{{{_labels(labels, values)}}}" if labels else name


def _written(family: Written) -> Iterator[str]:
    yield from _head(family.name, family.kind, family.help)
    text = decimal_text if family.nano else str
    yield from [f"{start} {text(number)}" for start, number in zip(family.starts, family.numbers, strict=True)]


def _histogram(family: Histogram) -> Iterator[str]:
    yield from _head(family.name, "histogram", family.help)
    for values, buckets in family.samples:
        labels = _labels(family.labels, values)
        before = f"{labels}," if labels else ""
        below = 0
        for bound in sorted({*family.bounds, *buckets.counts} - {NO_BOUND}):
            below += buckets.counts.get(bound, 0)
            yield f'{family.name}_bucket{{{before}le="{bound / NANO!r}"}} {below}'
        below += buckets.counts.get(NO_BOUND, 0)
        yield f'{family.name}_bucket{{{before}le="+Inf"}} {below}'
        end = f"{{{labels}}}" if labels else ""
        yield f"{family.name}_sum{end} {decimal_text(buckets.sum)}"
        yield f"{family.name}_count{end} {below}"


def _head(name: str, kind: str, help: str) -> Iterator[str]:
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} {kind}"


def _labels(names: tuple[str, ...], values: Values) -> str:
    return ",".join([f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True)])


@lru_cache(maxsize=4096)
def _escaped(value: str) -> str:
    """Prometheus takes a NUL for the end of the text."""
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"').replace("\0", "\ufffd")

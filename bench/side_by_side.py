"""All relays side by side, as tables and as pictures: multiples of the relay in C, and of no relay at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bench.goals import US
from bench.rounds import Results, median
from bench.svg import Bar, bars, ratio_text

Measure = Callable[[Results, str], list[float]]

NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Figure:
    text: str
    metric: str
    name: str
    drawn: str = ""  # the picture that it is part of


FIGURES = (
    Figure("round trip, p50", "pings", "p50 us"),
    Figure("paced notification, p50", "chunks", "p50 us"),
    Figure("CPU per message of a round trip", "pings", "cpu us", "cpu"),
    Figure("CPU per lone chunk", "chunks", "cpu us", "cpu"),
    Figure("CPU per chunk, one write each", "stream", "cpu us", "cpu"),
    Figure("CPU per chunk of a burst", "burst", "cpu us", "cpu"),
    Figure("rate of a burst", "burst", "k/s", "rate"),
    Figure("rate of chunks, one write each", "stream", "k/s", "rate"),
    Figure("rate with both directions busy", "duplex", "k/s", "rate"),
    Figure("rate of a 1 MB line", "1 MB", "down MB/s", "rate"),
    Figure("rate of a 16 MB line", "16 MB", "down MB/s", "rate"),
    Figure("rate of a 100 MB line", "100 MB", "down MB/s", "rate"),
    Figure("first byte of a 16 MB line, behind one of 1 MB", "16 MB behind 1 MB", "down first byte ms"),
    Figure("first byte of a 16 MB line, after a pause", "16 MB", "down first byte ms"),
    Figure("start, agent that boots 300 ms", "start", "start ms"),
)
ADDED = (
    Figure("delay of a round trip, added p50", "pings", "p50 us", "delay"),
    Figure("delay of a paced notification, added p50", "chunks", "p50 us", "delay"),
)
# In microseconds: what the relay in C adds to a message that finds everybody asleep is less than rounds differ by, so
# that a multiple of it says nothing.
ADDED_TO_PACED = (
    Figure("added to a chunk, one a millisecond, p50, µs", "chunks", "p50 us"),
    Figure("added to a `usage_update`, one a millisecond, p50, µs", "usages", "p50 us"),
)
ABSOLUTE = (
    Figure("resident at rest, MB", "rest", "RSS MB"),
    Figure("wake-ups at rest, /s", "rest", "wake-ups/s"),
    Figure("memory for a 100 MB line, MB", "100 MB", "down peak MB"),
    Figure("held for a stalled client, MB", "stall", "down held MB"),
    Figure("grown by for a stalled client, MB", "stall", "down grew MB"),
)
PICTURES = {
    "delay": "What a relay adds to the delay of a message",
    "cpu": "CPU time of a relay for a message",
    "rate": "How fast a relay is",
}


def tables(results: Results, relays: Sequence[str]) -> Iterator[str]:
    """Markdown lines; `relays` include those that could not be measured."""
    yield "In multiples of the relay in C:"
    yield ""
    yield from _table(results, relays, [(figure, _added) for figure in ADDED] + [(figure, _of_c) for figure in FIGURES])
    yield ""
    yield "In multiples of no relay at all:"
    yield ""
    yield from _table(results, relays, [(figure, _of_none) for figure in FIGURES if not figure.name.startswith("cpu")])
    yield ""
    yield "As they are:"
    yield ""
    absolute = [(figure, _adds) for figure in ADDED_TO_PACED] + [(figure, _as_it_is) for figure in ABSOLUTE]
    yield from _table(results, relays, absolute, plain=True)
    reasons = [f"{name}: {why}" for name, why in (results.absent | results.failures).items()]
    if reasons:
        yield ""
        yield f"Not measured: {'; '.join(reasons)}."


def pictures(results: Results, relays: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Their file names, and SVG."""
    shown = [name for name in relays if name != "c"]
    measured = [(figure, _added) for figure in ADDED] + [(figure, _of_c) for figure in FIGURES]
    for name, title in PICTURES.items():
        groups = {
            figure.text: [Bar(relay, median(measure(figure)(results, relay)), relay == US) for relay in shown]
            for figure, measure in measured
            if figure.drawn == name
        }
        note = "multiples of a relay in C that only copies bytes" + (
            "; further right is better" if name == "rate" else "; further left is better"
        )
        yield f"performance-{name}.svg", bars(title, groups, note)


def _table(
    results: Results,
    relays: Sequence[str],
    figures: Sequence[tuple[Figure, Callable[[Figure], Measure]]],
    *,
    plain: bool = False,
) -> Iterator[str]:
    yield "| | " + " | ".join(relays) + " |"
    yield "|---" + "|--:" * len(relays) + "|"
    for figure, measure in figures:
        found = [median(measure(figure)(results, relay)) for relay in relays]
        cells = [NOT_MEASURED if value is None else f"{value:.3g}" if plain else ratio_text(value) for value in found]
        yield f"| {figure.text} | {' | '.join(cells)} |"


def _added(figure: Figure) -> Measure:
    return lambda results, relay: results.added_ratios(figure.metric, figure.name, relay)


def _adds(figure: Figure) -> Measure:
    return lambda results, relay: results.added(figure.metric, figure.name, relay)


def _of_c(figure: Figure) -> Measure:
    return lambda results, relay: results.ratios(figure.metric, figure.name, relay)


def _of_none(figure: Figure) -> Measure:
    return lambda results, relay: results.ratios(figure.metric, figure.name, relay, "direct")


def _as_it_is(figure: Figure) -> Measure:
    return lambda results, relay: results.values(figure.metric, figure.name, relay)

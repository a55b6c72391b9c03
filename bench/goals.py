"""The goals, as a table: what was measured, what it must be, and whether it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.right import LIFE, ODD_LINES
from bench.rounds import Results

US = "acp-proxy"
Measured = float | None


@dataclass(frozen=True, slots=True)
class Goal:
    """`limit` is the most that `value` may be, or the least where `at_least`."""

    text: str
    limit: float
    value: Callable[[Results], Measured]
    unit: str = "×"
    at_least: bool = False

    def met(self, measured: float) -> bool:
        return measured >= self.limit if self.at_least else measured <= self.limit


def _ratio(metric: str, figure: str, to: str = "c") -> Callable[[Results], Measured]:
    return lambda results: results.ratio(metric, figure, US, to)


def _added_ratio(metric: str) -> Callable[[Results], Measured]:
    return lambda results: results.added_ratio(metric, "p50 us", US)


def _value(metric: str, figure: str) -> Callable[[Results], Measured]:
    return lambda results: results.value(metric, figure, US)


def _life(results: Results) -> Measured:
    checks = [results.value("life", name, US) for name in LIFE]
    return sum(check or 0 for check in checks)


def _added_milliseconds(results: Results) -> Measured:
    added = results.added("turns", "p50 us", US)
    return None if added is None else added / 1e3


GOALS = (
    Goal("delay of a message that is not looked into, added p50", 2.0, _added_ratio("pings")),
    Goal("delay of a `usage_update`, added p50", 2.25, _added_ratio("usages")),
    Goal("delay of a turn (journal, synthesized update), added p50", 0.3, _added_milliseconds, "ms"),
    Goal("CPU per ping", 2.0, _ratio("pings", "cpu us")),
    Goal("CPU per ping, of the Python SDK's", 1 / 10, _ratio("pings", "cpu us", "python-sdk")),
    Goal("CPU per lone chunk", 3.5, _ratio("chunks", "cpu us")),
    Goal("CPU per lone chunk, of the Python SDK's", 1 / 7, _ratio("chunks", "cpu us", "python-sdk")),
    Goal("CPU per chunk, one write each", 2.0, _ratio("stream", "cpu us")),
    Goal("CPU per chunk, one write each, of the Python SDK's", 1 / 150, _ratio("stream", "cpu us", "python-sdk")),
    Goal("CPU per chunk, one write each, of asyncio with json", 1 / 15, _ratio("stream", "cpu us", "asyncio-json")),
    Goal("rate of a burst, every line classified", 0.45, _ratio("burst", "k/s"), at_least=True),
    Goal("rate of chunks, one write each", 0.95, _ratio("stream", "k/s"), at_least=True),
    Goal("rate with both directions busy", 0.8, _ratio("duplex", "k/s"), at_least=True),
    Goal("rate of a 16 MB line", 0.75, _ratio("16 MB", "down MB/s"), at_least=True),
    Goal("first byte of a 16 MB line", 2.5, _ratio("16 MB", "down first byte ms")),
    Goal("memory for a 100 MB line", 2.0, _value("100 MB", "down peak MB"), "MB"),
    Goal(
        "start with an agent that boots 300 ms, of a Python that only execs it",
        1.25,
        _ratio("start", "start ms", "exec"),
    ),
    Goal("resident at rest", 32, _value("rest", "RSS MB"), "MB"),
    Goal("wake-ups at rest", 0, _value("rest", "wake-ups/s"), "/s"),
    Goal("held for a stalled client", 0.5, _value("stall", "down held MB"), "MB"),
    Goal("grown by for a stalled client", 1.0, _value("stall", "down grew MB"), "MB"),
    Goal("odd lines that pass byte for byte", len(ODD_LINES), _value("fidelity", "byte-exact"), "", at_least=True),
    Goal("kinds of ends and of stdin survived", len(LIFE), _life, "", at_least=True),
)

RELAYS_TABLE: tuple[tuple[str, Callable[[Results, str], Measured]], ...] = (
    ("added p50", lambda results, relay: results.added_ratio("pings", "p50 us", relay)),
    ("CPU per ping", lambda results, relay: results.ratio("pings", "cpu us", relay)),
    ("CPU per lone chunk", lambda results, relay: results.ratio("chunks", "cpu us", relay)),
    ("CPU per chunk, one write each", lambda results, relay: results.ratio("stream", "cpu us", relay)),
    ("rate of a burst", lambda results, relay: results.ratio("burst", "k/s", relay)),
)


def goals_table(results: Results) -> Iterator[str]:
    """Markdown lines. × is a multiple of the relay in C, in the same rounds, unless the text says of what."""
    yield "| figure | measured | goal | |"
    yield "|---|---|---|---|"
    for goal in GOALS:
        measured = goal.value(results)
        bound = f"{'≥' if goal.at_least else '≤'} {_with_unit(goal.limit, goal.unit)}"
        if measured is None:
            yield f"| {goal.text} | not measured | {bound} | |"
        else:
            verdict = "met" if goal.met(measured) else "**missed**"
            yield f"| {goal.text} | {_with_unit(measured, goal.unit)} | {bound} | {verdict} |"


def relays_table(results: Results, relays: list[str]) -> Iterator[str]:
    """All relays side by side, as multiples of the one in C."""
    yield "| relay | " + " | ".join(title for title, _ in RELAYS_TABLE) + " |"
    yield "|---" * (len(RELAYS_TABLE) + 1) + "|"
    for relay in relays:
        cells = [
            _ratio_text(value) if (value := measure(results, relay)) is not None else "–" for _, measure in RELAYS_TABLE
        ]
        yield f"| {relay} | " + " | ".join(cells) + " |"


def all_met(results: Results) -> bool:
    return all(measured is not None and goal.met(measured) for goal in GOALS for measured in [goal.value(results)])


def _with_unit(value: float, unit: str) -> str:
    return f"{_ratio_text(value)}×" if unit == "×" else f"{value:.3g} {unit}".strip()


def _ratio_text(value: float) -> str:
    if 0 < value <= 0.1:
        return f"1/{1 / value:.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}"

"""The goals, as a table: what was measured, what it must be, and whether it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.right import LIFE, ODD_LINES
from bench.rounds import Results, median, spread
from bench.svg import ratio_text

US = "acp-proxy"
BARE = "bare"  # our relay without interceptors and ledger
SMALLEST = "smallest"  # the smallest relay on uvloop, which looks at nothing
AGAIN = "c-again"  # the relay in C a second time: what it takes in multiples of the first is noise
Rounds = Callable[[Results, str], list[float]]  # of this relay


@dataclass(frozen=True, slots=True)
class Goal:
    """`limit` is the most that the median of `of` may be for our relay, or the least where `at_least`.

    None: the figure is shown, and has no goal.
    """

    text: str
    limit: float | None
    of: Rounds
    unit: str = "×"
    at_least: bool = False
    of_c: bool = False  # in multiples of the relay in C

    def rounds(self, results: Results) -> list[float]:
        return self.of(results, US)

    def noise(self, results: Results) -> list[float]:
        return self.of(results, AGAIN) if self.of_c else []

    def met(self, measured: float) -> bool:
        if self.limit is None:
            return True
        return measured >= self.limit if self.at_least else measured <= self.limit


def _times_c(text: str, limit: float, metric: str, figure: str, *, at_least: bool = False) -> Goal:
    return Goal(text, limit, _ratios(metric, figure, "c"), at_least=at_least, of_c=True)


def _added_times_c(text: str, limit: float, metric: str) -> Goal:
    return Goal(text, limit, lambda results, relay: results.added_ratios(metric, "p50 us", relay), of_c=True)


def _ratios(metric: str, figure: str, to: str) -> Rounds:
    return lambda results, relay: results.ratios(metric, figure, relay, to)


def _values(metric: str, figure: str) -> Rounds:
    return lambda results, relay: results.values(metric, figure, relay)


def _life(results: Results, relay: str) -> list[float]:
    checks = [results.values("life", name, relay) for name in LIFE]
    return [sum(median(check) or 0 for check in checks)] if any(checks) else []


def _added_milliseconds(results: Results, relay: str) -> list[float]:
    return [added / 1e3 for added in results.added("turns", "p50 us", relay)]


GOALS = (
    _added_times_c("delay of a message that is not looked into, added p50", 2.0, "pings"),
    _added_times_c("delay of a reply behind a `usage_update`, added p50", 2.25, "updates"),
    Goal("delay of a turn (journal, synthesized update), added p50", 0.3, _added_milliseconds, "ms"),
    _times_c("CPU per ping", 2.0, "pings", "cpu us"),
    Goal("CPU per ping, of the Python SDK's", None, _ratios("pings", "cpu us", "python-sdk")),
    Goal("CPU per lone chunk, of the smallest relay on uvloop", 1.6, _ratios("tail", "cpu us", SMALLEST)),
    Goal("the same with a turn around every hundred", None, _ratios("chunks", "cpu us", SMALLEST)),
    Goal("CPU per lone chunk, of the Python SDK's", None, _ratios("chunks", "cpu us", "python-sdk")),
    Goal("p99 of a lone chunk, of that without interceptors and ledger", 1.5, _ratios("tail", "p99 us", BARE)),
    _times_c("CPU per chunk, one write each", 2.0, "stream", "cpu us"),
    Goal("CPU per chunk, one write each, of the Python SDK's", None, _ratios("stream", "cpu us", "python-sdk")),
    Goal("CPU per chunk, one write each, of asyncio with json", 1 / 15, _ratios("stream", "cpu us", "asyncio-json")),
    _times_c("rate of a burst, every line classified", 0.45, "burst", "k/s", at_least=True),
    _times_c("rate of chunks, one write each", 0.95, "stream", "k/s", at_least=True),
    _times_c("rate with both directions busy", 0.8, "duplex", "k/s", at_least=True),
    _times_c("rate of a 16 MB line", 0.75, "16 MB", "down MB/s", at_least=True),
    _times_c("first byte of a 16 MB line, behind one of 1 MB", 2.5, "16 MB behind 1 MB", "down first byte ms"),
    _times_c("first byte of a 16 MB line, after a pause", 2.5, "16 MB", "down first byte ms"),
    Goal("memory for a 100 MB line", 2.0, _values("100 MB", "down peak MB"), "MB"),
    Goal(
        "start with an agent that boots 300 ms, of a Python that only execs it",
        1.25,
        _ratios("start", "start ms", "exec"),
    ),
    Goal("resident at rest", 32, _values("rest", "RSS MB"), "MB"),
    Goal("wake-ups at rest", 0, _values("rest", "wake-ups/s"), "/s"),
    Goal("held for a stalled client", 0.5, _values("stall", "down held MB"), "MB"),
    Goal("grown by for a stalled client", 1.0, _values("stall", "down grew MB"), "MB"),
    Goal("lines lost when the client goes on", 0, _values("lost", "lines lost"), ""),
    Goal("odd lines that pass byte for byte", len(ODD_LINES), _values("fidelity", "byte-exact"), "", at_least=True),
    Goal("kinds of ends and of stdin survived", len(LIFE), _life, "", at_least=True),
)


def goals_table(results: Results) -> Iterator[str]:
    """Markdown lines. × is a multiple of the relay in C, in the same rounds, unless the text says of what."""
    yield "| figure | measured | four of five rounds | goal | | C against itself |"
    yield "|---|---|---|---|---|---|"
    for goal in GOALS:
        rounds = goal.rounds(results)
        measured = median(rounds)
        bound = "" if goal.limit is None else f"{'≥' if goal.at_least else '≤'} {_with_unit(goal.limit, goal.unit)}"
        if measured is None:
            yield f"| {goal.text} | not measured | | {bound} | | |"
            continue
        verdict = "" if goal.limit is None else "met" if goal.met(measured) else "**missed**"
        noise = _spread_text(goal.noise(results), goal.unit)
        cells = (goal.text, _with_unit(measured, goal.unit), _spread_text(rounds, goal.unit), bound, verdict, noise)
        yield f"| {' | '.join(cells)} |"


def compared(results: Results, earlier: Results) -> Iterator[str]:
    """Which figures are outside of what four of five rounds of an earlier run had, on either side."""
    for goal in GOALS:
        now, before = median(goal.rounds(results)), median(goal.rounds(earlier))
        expected = spread(goal.rounds(earlier))
        if now is None or before is None or expected is None or expected[0] <= now <= expected[1]:
            continue
        lowest, highest = (_with_unit(value, goal.unit) for value in expected)
        yield f"{goal.text}: {_with_unit(now, goal.unit)}, was {_with_unit(before, goal.unit)} ({lowest} to {highest})"


def all_met(results: Results) -> bool:
    return all(
        measured is not None and goal.met(measured) for goal in GOALS for measured in [median(goal.rounds(results))]
    )


def _spread_text(rounds: list[float], unit: str) -> str:
    found = spread(rounds)
    return f"{_with_unit(found[0], unit)} – {_with_unit(found[1], unit)}" if found else ""


def _with_unit(value: float, unit: str) -> str:
    return f"{ratio_text(value)}×" if unit == "×" else f"{value:.3g} {unit}".strip()

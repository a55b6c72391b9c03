"""Measures in rounds, every relay once a round in rotating order, and compares within a round.

A slow minute of a shared machine so falls on all alike. `direct` is the agent without a relay.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from bench.peer import Died, Peer
from bench.traffic import Figures

FAILURES = (Died, OSError, ValueError, KeyError, IndexError)
Relays = Mapping[str, list[str]]


@dataclass(slots=True)
class Results:
    """`rounds[metric][relay]` has an entry for each round: the figures, or None where the relay failed."""

    rounds: dict[str, dict[str, list[Figures | None]]] = field(default_factory=dict)
    measured: dict[str, str] = field(default_factory=dict)  # metric -> when
    failures: dict[str, str] = field(default_factory=dict)  # "metric, relay" -> what went wrong
    absent: dict[str, str] = field(default_factory=dict)  # relay -> why it was not there

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        return cls(found["rounds"], found["measured"], found["failures"], found["absent"])

    def as_json(self) -> dict[str, Any]:
        return {
            "absent": self.absent,
            "failures": self.failures,
            "measured": self.measured,
            "rounds": {
                metric: {name: [_rounded(figures) for figures in rounds] for name, rounds in relays.items()}
                for metric, relays in self.rounds.items()
            },
        }

    def values(self, metric: str, figure: str, relay: str) -> list[float]:
        """One for each round."""
        rounds = self.rounds.get(metric, {}).get(relay, [])
        return [figures[figure] for figures in rounds if figures and figure in figures]

    def ratios(self, metric: str, figure: str, relay: str, to: str = "c") -> list[float]:
        return [mine / other for mine, other in self._together(metric, figure, relay, to) if other]

    def added(self, metric: str, figure: str, relay: str) -> list[float]:
        """What the hop adds, in the figure's unit."""
        return [mine - direct for mine, direct in self._together(metric, figure, relay, "direct")]

    def added_ratios(self, metric: str, figure: str, relay: str) -> list[float]:
        """What the hop adds, as a multiple of what the relay in C adds."""
        rounds = self._together(metric, figure, relay, "c", "direct")
        return [(mine - direct) / (c - direct) for mine, c, direct in rounds if c > direct]

    def _together(self, metric: str, figure: str, *relays: str) -> list[tuple[float, ...]]:
        """The figure of each relay, of rounds in which all of them were measured."""
        by_relay = self.rounds.get(metric, {})
        rounds = zip(*(by_relay.get(name, []) for name in relays), strict=False)
        return [
            tuple(each[figure] for each in found if each)
            for found in rounds
            if all(each and figure in each for each in found)
        ]


def median(values: list[float]) -> float | None:
    return statistics.median(values) if values else None


def spread(values: list[float]) -> tuple[float, float] | None:
    """Between which four of five rounds are; None of one round."""
    if len(values) < 2:
        return None
    tenths = statistics.quantiles(values, n=10, method="inclusive")
    return tenths[0], tenths[-1]


def alive(
    results: Results,
    metric: str,
    measure: Callable[[Peer], Figures],
    relays: Relays,
    batches: int,
    warm_up: int = 2,
) -> None:
    """All relays stay alive; short batches alternate between them."""
    rounds: dict[str, list[Figures | None]] = {name: [] for name in relays}
    peers: dict[str, Peer] = {}
    with contextlib.ExitStack() as stack:
        for name, command in relays.items():
            try:
                peer = stack.enter_context(Peer(command, seconds=600))
                peer.hello()
                for _ in range(warm_up):
                    measure(peer)
                peers[name] = peer
            except FAILURES as error:
                results.failures[f"{metric}, {name}"] = _line(error)
        for number in range(batches):
            for name in _rotated(list(relays), number):
                try:
                    rounds[name].append(_floats(measure(peers[name])) if name in peers else None)
                except FAILURES as error:
                    results.failures[f"{metric}, {name}"] = _line(error)
                    rounds[name].append(None)
                    del peers[name]
    results.rounds[metric] = rounds


def afresh(
    results: Results, metric: str, measure: Callable[[list[str]], Figures], relays: Relays, batches: int
) -> None:
    """Each measurement starts the relay."""
    rounds: dict[str, list[Figures | None]] = {name: [] for name in relays}
    for number in range(batches):
        for name in _rotated(list(relays), number):
            try:
                rounds[name].append(_floats(measure(relays[name])))
            except FAILURES as error:
                results.failures[f"{metric}, {name}"] = _line(error)
                rounds[name].append(None)
    results.rounds[metric] = rounds


def _rotated(names: list[str], by: int) -> list[str]:
    start = by % len(names)
    return names[start:] + names[:start]


def _floats(figures: Figures) -> Figures:
    return {name: float(value) for name, value in figures.items()}


def _rounded(figures: Figures | None) -> Figures | None:
    """Six digits are more than is known."""
    return figures and {name: float(f"{value:.6g}") for name, value in figures.items()}


def _line(error: Exception) -> str:
    """The last line of what a relay said is the one that tells."""
    text = str(error).strip() or type(error).__name__
    last = text.splitlines()[-1].strip()
    sys.stderr.write(f"failed: {text[-600:]}\n")
    return last[:200]

"""Measures in rounds, every relay once a round in rotating order, and compares within a round.

A slow minute of a shared machine so falls on all alike. `direct` is the agent without a relay.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bench.peer import Died, Peer
from bench.traffic import Figures

FAILURES = (Died, OSError, ValueError, KeyError, IndexError)
Relays = Mapping[str, list[str]]


@dataclass(slots=True)
class Results:
    """`rounds[metric][relay]` has an entry for each round: the figures, or None where the relay failed."""

    rounds: dict[str, dict[str, list[Figures | None]]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def value(self, metric: str, figure: str, relay: str) -> float | None:
        """The median; the 99th percentile of what was pooled."""
        seen = [figures[figure] for figures in self.rounds[metric].get(relay, []) if figures and figure in figures]
        pool = sorted(each for value in seen if isinstance(value, list) for each in value)
        if pool:
            return pool[int(len(pool) * 0.99)] / 1e3
        return _median([float(value) for value in seen if not isinstance(value, list)])

    def ratio(self, metric: str, figure: str, relay: str, to: str = "c") -> float | None:
        return _median([mine / other for mine, other, _ in self._together(metric, figure, relay, to) if other])

    def added(self, metric: str, figure: str, relay: str) -> float | None:
        """What the hop adds, in the figure's unit."""
        return _median([mine - direct for mine, _, direct in self._together(metric, figure, relay, "direct")])

    def added_ratio(self, metric: str, figure: str, relay: str) -> float | None:
        """What the hop adds, as a multiple of what the relay in C adds."""
        return _median(
            [
                (mine - direct) / (c - direct)
                for mine, c, direct in self._together(metric, figure, relay, "c")
                if c > direct
            ]
        )

    def _together(self, metric: str, figure: str, relay: str, to: str) -> list[tuple[float, float, float]]:
        """(relay, to, direct) of each round in which all three were measured."""
        by_relay = self.rounds[metric]
        names = (relay, to, "direct" if "direct" in by_relay else to)
        if not all(name in by_relay for name in names):
            return []
        rows = []
        for figures in zip(*(by_relay[name] for name in names), strict=True):
            values = [each.get(figure) if each else None for each in figures]
            mine, other, direct = values
            if isinstance(mine, float) and isinstance(other, float) and isinstance(direct, float):
                rows.append((mine, other, direct))
        return rows


def _median(values: list[float]) -> float | None:
    return statistics.median(values) if values else None


def alive(results: Results, metric: str, measure: Callable[[Peer], Figures], relays: Relays, batches: int) -> None:
    """All relays stay alive; short batches alternate between them."""
    rounds: dict[str, list[Figures | None]] = {name: [] for name in relays}
    peers: dict[str, Peer] = {}
    with contextlib.ExitStack() as stack:
        for name, command in relays.items():
            try:
                peer = stack.enter_context(Peer(command, seconds=600))
                peer.hello()
                for _ in range(2):
                    measure(peer)
                peers[name] = peer
            except FAILURES as error:
                results.failures[f"{metric}, {name}"] = str(error)[-300:]
        for number in range(batches):
            for name in _rotated(list(relays), number):
                try:
                    rounds[name].append(_floats(measure(peers[name])) if name in peers else None)
                except FAILURES as error:
                    results.failures[f"{metric}, {name}"] = str(error)[-300:]
                    rounds[name].append(None)
                    del peers[name]
    results.rounds[metric] = rounds
    _progress(metric)


def afresh(results: Results, metric: str, measure: Callable[[list[str]], Figures], relays: Relays, times: int) -> None:
    """Each measurement starts the relay."""
    rounds: dict[str, list[Figures | None]] = {name: [] for name in relays}
    for number in range(times):
        for name in _rotated(list(relays), number):
            try:
                rounds[name].append(_floats(measure(relays[name])))
            except FAILURES as error:
                results.failures[f"{metric}, {name}"] = str(error)[-300:]
                rounds[name].append(None)
    results.rounds[metric] = rounds
    _progress(metric)


def _rotated(names: list[str], by: int) -> list[str]:
    start = by % len(names)
    return names[start:] + names[:start]


def _floats(figures: Figures) -> Figures:
    return {name: value if isinstance(value, list) else float(value) for name, value in figures.items()}


def _progress(metric: str) -> None:
    sys.stderr.write(f"measured: {metric}\n")

"""The exporter's own metrics: its reads, its build, and its process as prometheus_client reports it."""

from __future__ import annotations

import platform
import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import CollectorRegistry

from acp_proxy import __version__
from acp_proxy.core.money import NANO
from acp_proxy.ledger.sums.tallies import NO_BOUND
from acp_proxy.metrics.exposition import Buckets, Family, Histogram

_OPERATIONS = ("wholes", "tallies", "labels", "sessions", "budgets", "counts", "coverage", "journals")
_BOUNDS = tuple(milli * NANO // 1000 for milli in (1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000))


class Timings:
    """How long reads took, since this process began."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[int, int]] = {name: {} for name in _OPERATIONS}
        self._sums = dict.fromkeys(_OPERATIONS, 0)

    @contextmanager
    def of(self, operation: str) -> Iterator[None]:
        """Also of one that fails."""
        began = time.perf_counter_ns()
        try:
            yield
        finally:
            took = time.perf_counter_ns() - began
            index = bisect_left(_BOUNDS, took)
            bound = _BOUNDS[index] if index < len(_BOUNDS) else NO_BOUND
            counts = self._counts[operation]
            counts[bound] = counts.get(bound, 0) + 1
            self._sums[operation] += took

    def family(self) -> Histogram:
        samples = [((name,), Buckets(dict(counts), self._sums[name])) for name, counts in self._counts.items()]
        return Histogram("acp_proxy_ledger_op_seconds", "Reads of the ledger for metrics.", ("op",), _BOUNDS, samples)


def build_info() -> Family:
    python = platform.python_version()
    info = [((__version__, python), 1)]
    return Family("acp_proxy_build_info", "gauge", "What runs here.", ("version", "python"), info)


class Process:
    """The families `process_` and `python_`, each time as they are."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def exposition(self) -> bytes:
        return generate_latest(self._registry)

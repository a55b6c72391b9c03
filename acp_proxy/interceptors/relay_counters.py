"""Reports what passed through the relay to the ledger: every ten seconds while something passes, and at the end.

Sets no timer while nothing passes. What a killed process has not reported is lost: ten seconds at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

from acp_proxy.core.traffic import BOUNDS, Flow, Traffic
from acp_proxy.interceptor import Interceptor
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.worker import LedgerWorker

PERIOD = 10.0  # seconds

_Key = tuple[str, str, int]  # family, label, upper bound (ns) where it is of a histogram
_Sums = dict[_Key, tuple[int, int]]  # count, ns


class Timer(Protocol):
    def cancel(self) -> object: ...


class RelayCounters(Interceptor):
    """`process` names this run. Stands before the one that closes the worker, so that the last report is in time."""

    def __init__(
        self,
        worker: LedgerWorker,
        traffic: Traffic,
        organisation: str,
        process: str,
        *,
        later: Callable[[float, Callable[[], object]], Timer],
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """`later` calls once, after so many seconds; `clock` is Unix time in nanoseconds."""
        self._worker = worker
        self._traffic = traffic
        self._organisation = organisation
        self._process = process
        self._later = later
        self._clock = clock
        self._reported: _Sums = {}
        self.reports = 0  # so far
        self._settled = 0  # the last report that the ledger has; written by the worker's thread
        self._timer: Timer | None = None
        traffic.watch(self._activity)

    async def aclose(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._traffic.errors["rows_dropped"] = self._worker.dropped
        self._report()

    def _activity(self) -> None:
        self._timer = self._later(PERIOD, self._due)

    def _due(self) -> None:
        self._timer = None
        if self._settled == self.reports:  # else the ledger is out of reach: one report waits, and not ever more
            self._report()
        self._traffic.rearm()

    def _report(self) -> None:
        sums = dict(_sums(self._traffic))
        news = {
            key: (count - before[0], taken - before[1])
            for key, (count, taken) in sums.items()
            if (before := self._reported.get(key, (0, 0))) != (count, taken)
        }
        if news:
            self._reported = sums
            self.reports += 1
            self._worker.do(partial(self._count, self.reports, news, self._clock()))

    def _count(self, number: int, news: _Sums, now: int, ledger: BudgetLedger) -> None:
        """In the worker's thread, perhaps more than once."""
        from acp_proxy.ledger.sums.tallies import NO_BOUND, Tally  # no start of an agent waits for it

        counts = [
            Tally(family, (label,), NO_BOUND if bound < 0 else bound, count, taken)
            for (family, label, bound), (count, taken) in news.items()
        ]
        ledger.tallied.count_relayed(self._organisation, self._process, number, counts, now)
        self._settled = number


def _sums(traffic: Traffic) -> Iterator[tuple[_Key, tuple[int, int]]]:
    yield from _of_flow("client_to_agent", traffic.from_client)
    yield from _of_flow("agent_to_client", traffic.from_agent)
    for error, count in traffic.errors.items():
        yield ("relay_errors", error, 0), (count, 0)
    for how, count in traffic.exits.items():
        yield ("agent_exits", how, 0), (count, 0)


def _of_flow(direction: str, flow: Flow) -> Iterator[tuple[_Key, tuple[int, int]]]:
    """The sum of what chunks took stands with the lowest bucket: a histogram has one."""
    yield ("relay_messages", direction, 0), (flow.messages, 0)
    yield ("relay_bytes", direction, 0), (flow.bytes, 0)
    for index, (bound, count) in enumerate(zip((*BOUNDS, -1), flow.buckets, strict=True)):
        yield ("relay_seconds", direction, bound), (count, flow.nanoseconds if index == 0 else 0)

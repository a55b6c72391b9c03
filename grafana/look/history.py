"""What a Prometheus would have kept of a ledger to which things happened: the real exporter, scraped at given times."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from acp_proxy.catalog import Catalog
from acp_proxy.config import Config
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.metrics import Exporter

TARGET = 'job="acp-proxy",instance="ledger"'
_QUIET = 600  # seconds after which nothing changes by itself, but with the hour


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that is done to the ledger at a time (Unix seconds)."""

    at: float
    do: Callable[[BudgetLedger], None]


@dataclass(slots=True)
class Scrapes:
    """Of one ledger. The exporter is made anew at each of `restarts` (Unix seconds, ascending), as after a crash."""

    ledger: BudgetLedger
    config: Config
    target: str = TARGET
    restarts: list[int] = field(default_factory=list)
    _now: float = 0.0
    _exporter: Exporter | None = None

    def lines(self, happenings: Iterable[Happening], times: Iterable[int]) -> Iterator[str]:
        """OpenMetrics text without its end, of scrapes at `times`; both in order of time."""
        left = iter(happenings)
        following = next(left, None)
        last, seen = 0.0, (0, 0)
        text = ""
        for self._now in times:
            while following is not None and following.at <= self._now:
                following.do(self.ledger)
                last, following = following.at, next(left, None)
            state = (int(last), int(self._now // 3600))
            if state != seen or self._now - last < _QUIET:
                text, seen = self._scrape(), state
            yield "".join(f"{line} {self._now:.0f}\n" for line in text.splitlines())

    def _scrape(self) -> str:
        """Samples as Prometheus stores them, with the labels of the target and how long it took."""
        if self._exporter is None or (self.restarts and self.restarts[0] <= self._now):
            self._exporter = Exporter(self.config, Catalog(), clock=lambda: self._now, journals=())
            self.restarts = [at for at in self.restarts if at > self._now]
        begin = time.perf_counter()
        answer = self._exporter.scrape(self.ledger).decode()
        samples = [self._labelled(line) for line in answer.split("\n") if line and not line.startswith("#")]
        samples.append(f"scrape_duration_seconds{{{self.target}}} {time.perf_counter() - begin:.6f}")
        return "\n".join(samples)

    def _labelled(self, line: str) -> str:
        series, _, value = line.rpartition(" ")
        return (
            f"{series[:-1]},{self.target}}} {value}" if series.endswith("}") else f"{series}{{{self.target}}} {value}"
        )

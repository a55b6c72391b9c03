"""Metrics of what agents used around a relay: how much of each agent's tokens a relay has seen in the last 30 days."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from acp_proxy.core.money import NANO
from acp_proxy.core.windows import DAY, SECOND
from acp_proxy.ledger import LedgerReader, Query
from acp_proxy.ledger.sums.tallied import Dimensions
from acp_proxy.metrics.exposition import Family
from acp_proxy.metrics.readings import Readings
from acp_proxy.report import Line, line_of, name_of
from acp_proxy.report.coverage import IMPORTED, IMPORTED_KIND, Covered, covered

_DAYS = 30 * DAY
_FRESH = 600 * SECOND  # no sums tell what was imported: rows are read, which no scrape shall wait for each time


class Coverage:
    """Reads it by agent, and keeps it for a while."""

    def __init__(self, organisation: str) -> None:
        self._organisation = organisation
        self._read_at: int | None = None
        self._found: Sequence[Covered] = ()

    def read(self, ledger: LedgerReader, series: Iterable[Dimensions], now: int) -> Sequence[Covered]:
        """`series` are all of the ledger. Raises LedgerError."""
        if all(each.kind != IMPORTED_KIND for each in series):
            return ()
        if self._read_at is None or not 0 <= now - self._read_at < _FRESH:
            since = now - now % DAY - _DAYS
            self._found = _by_agent(ledger, Query(since, None, (("organisation", self._organisation),)))
            self._read_at = now
        return self._found


def coverage(readings: Readings) -> Family:
    """Nothing of an agent of which nothing was imported, or of which nothing was used."""
    sums: dict[str, tuple[int, int]] = {}
    for each in readings.coverage:
        if each.imported is not None and each.total > 0:
            agent = readings.labels.of("agent", each.key)
            relayed, total = sums.get(agent, (0, 0))
            sums[agent] = (relayed + each.relayed, total + each.total)
    ratios = [((agent,), max(0, relayed) * NANO // total) for agent, (relayed, total) in sums.items()]
    text = "How much of an agent's tokens of the last 30 days went through a relay, of all that is known."
    return Family("acp_proxy_coverage_ratio", "gauge", text, ("agent",), ratios, nano=True)


def _by_agent(ledger: LedgerReader, query: Query) -> list[Covered]:
    of_import = Query(query.since, query.until, (*query.where, IMPORTED))
    return covered(_lines(ledger, query), _lines(ledger, of_import), "agent")


def _lines(ledger: LedgerReader, query: Query) -> Iterable[Line]:
    return [line_of(name_of("agent", sums.key[0]), sums) for sums in ledger.summed(query, ("agent",))]

"""Metrics of a ledger's servers: how old is what one shows, and what was written again after it was set back. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from acp_proxy.metrics.exposition import Family
from acp_proxy.metrics.readings import Readings

_MS = 1000

_LAG = "By how much a standby is behind: the one that is asked, or the slowest that streams from the primary that is."
_RESTORED = "Rows that the ledger had lost by a failover or a restored backup, and was given again."
_INCOMPLETE = "Processes that could not give a ledger that was set back all that it had lost."


def servers(readings: Readings) -> Iterator[Family]:
    """What is not known has no series, nor has a ledger without servers."""
    found, lag, standbys = readings.replication, [], []
    if found is not None:
        role = "standby" if found.standby else "primary"
        standbys = [((), found.standbys)]
        if found.behind is not None and (found.standby or found.standbys):
            lag = [((role,), round(found.behind * _MS) * 10**6)]
    yield Family("acp_proxy_ledger_replication_lag_seconds", "gauge", _LAG, ("role",), lag, nano=True)
    yield Family("acp_proxy_ledger_standbys", "gauge", "Standbys that stream from the server.", (), standbys)
    restored = readings.restored
    rows, incomplete = (restored.rows, restored.incomplete) if restored else (0, 0)
    yield Family("acp_proxy_ledger_restored_rows_total", "counter", _RESTORED, (), [((), rows)])
    yield Family("acp_proxy_ledger_restores_incomplete_total", "counter", _INCOMPLETE, (), [((), incomplete)])

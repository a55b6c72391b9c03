"""Metrics in Prometheus's text format: what a ledger says at this moment. Knows no HTTP, and writes nothing to it.

`docs/metrics.md` names them all. Counters are those of all proxies that ever ran; only `acp_proxy_ledger_op_seconds`
and the families of the process are the exporter's own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from acp_proxy.budget.accounts import accounts_of
from acp_proxy.budget.current_user import own_subject
from acp_proxy.budget.on_plans import of_everybody
from acp_proxy.catalog import Catalog
from acp_proxy.config import Config
from acp_proxy.core.windows import SECOND
from acp_proxy.ledger import captures as kept
from acp_proxy.ledger.budgets import BudgetLedger
from acp_proxy.ledger.journal.recovery import pending
from acp_proxy.ledger.places import journal_directories
from acp_proxy.ledger.sums.tallied import Dimensions
from acp_proxy.metrics.budgets import budgets
from acp_proxy.metrics.captures import captures
from acp_proxy.metrics.coverage import Coverage, coverage
from acp_proxy.metrics.exposition import CONTENT_TYPE, AnyFamily, Family, Histogram, exposition
from acp_proxy.metrics.labels import Labels
from acp_proxy.metrics.own import Process, Timings, build_info
from acp_proxy.metrics.plans import plans
from acp_proxy.metrics.readings import Readings
from acp_proxy.metrics.servers import servers
from acp_proxy.metrics.spend import Spend
from acp_proxy.metrics.traffic import tallied

__all__ = ["CONTENT_TYPE", "Exporter"]

_ACTIVE = 5 * 60 * SECOND  # after a row a session is active


class Exporter:
    """For one organisation and the budgets of this machine's configuration.

    `scrape` is called from one thread; `without_ledger` may be from another, while that one waits.

    `clock` gives Unix seconds; `journals` are the directories of this host's journals, by default the usual ones.
    Without `process` there is nothing of the exporter's own process.
    """

    def __init__(
        self,
        config: Config,
        catalog: Catalog,
        *,
        clock: Callable[[], float] = time.time,
        journals: Sequence[Path] | None = None,
        process: bool = True,
    ) -> None:
        self._config = config
        self._catalog = catalog
        self._clock = clock
        self._journals = journal_directories(os.environ) if journals is None else journals
        self._timings = Timings()
        self._process = Process() if process else None
        self._subject = own_subject(config, None)  # the exporter works in no project
        shown = config.metrics
        self._more = (("user",) if shown.user_label else ()) + (("project",) if shown.project_label else ())
        self._ledger: BudgetLedger | None = None
        self._series: dict[str, Dimensions] = {}
        self._spend = Spend(self._more)
        self._coverage = Coverage(config.identity.organisation)
        self._counters = b""

    def scrape(self, ledger: BudgetLedger) -> bytes:
        """The metrics of the ledger's current state. Raises LedgerError; use `without_ledger` then."""
        families = self.families(self.readings(ledger))
        self._counters = exposition(each for each in families if _only_grows(each))
        return self._counters + exposition(each for each in families if not _only_grows(each)) + self._own(up=True)

    def readings(self, ledger: BudgetLedger) -> Readings:
        """What families are made of, for who writes them otherwise. Raises LedgerError."""
        if ledger is not self._ledger:  # another file may have other labels
            self._ledger, self._series, self._spend = ledger, {}, Spend(self._more)
            self._coverage = Coverage(self._config.identity.organisation)
        return self._read(ledger)

    def families(self, readings: Readings) -> list[AnyFamily]:
        """The ledger's alone."""
        return list(self._families(readings))

    def without_ledger(self) -> bytes:
        """Counters with their last values, so that none decreases; no gauges."""
        return self._counters + self._own(up=False)

    def _own(self, *, up: bool) -> bytes:
        return exposition(self.own_families(up=up)) + (self._process.exposition() if self._process else b"")

    def own_families(self, *, up: bool) -> list[AnyFamily]:
        """Of the exporter itself, and whether the ledger answers."""
        date = self._catalog.date
        made_at = int(datetime(date.year, date.month, date.day, tzinfo=UTC).timestamp())
        return [
            Family("acp_proxy_ledger_up", "gauge", "Whether the ledger answers.", (), [((), int(up))]),
            self._timings.family(),
            Family(
                "acp_proxy_catalog_timestamp_seconds",
                "gauge",
                "Of which day the table of prices is.",
                (),
                [((), made_at)],
            ),
            build_info(),
        ]

    def _read(self, ledger: BudgetLedger) -> Readings:
        """Labels last: whatever was read before is among them."""
        config, organisation, now = self._config, self._config.identity.organisation, int(self._clock() * SECOND)
        timed = self._timings.of
        with timed("wholes"):
            wholes = ledger.tallied.wholes(organisation)
            unknown = [whole.series for whole in wholes if whole.series not in self._series]
            self._series |= ledger.tallied.series(organisation, unknown)
        with timed("tallies"):
            tallies = ledger.tallied.tallies(organisation)
        with timed("sessions"):
            active = ledger.tallied.active_sessions(organisation, now - _ACTIVE)
        with timed("budgets"):
            standings = ledger.standing(accounts_of(ledger, config.budgets, self._subject, now), now)
        with timed("counts"):
            decisions, overshoots = ledger.decision_counts(organisation), ledger.overshoots(organisation)
            deliveries = ledger.delivery_counts(organisation)
            told = ledger.plans(organisation)
            bills = kept.latest(ledger.tables.read, organisation)
            plans_now = [state for state in told if not state.is_over(now)]
        with timed("coverage"):
            covered = self._coverage.read(ledger, self._series.values(), now)
        with timed("labels"):
            labels = Labels(ledger.tallied.labels(organisation))
            replication, restored = ledger.replication(), ledger.restored(organisation)
        with timed("journals"):
            waiting = pending(self._journals, ledger.url)
        return Readings(
            labels=labels,
            wholes=wholes,
            series=self._series,
            tallies=tallies,
            active=active,
            budgets=[budget for budget in config.budgets if budget.layer != "flag"],
            standings=standings,
            decisions=decisions,
            overshoots=overshoots,
            channels=[channel.name for channel in config.channels],
            deliveries=deliveries,
            agents=sorted(config.agents),
            team=config.identity.team,
            plans=plans_now,
            plan_budgets=config.plan_budgets,
            plan_standings=list(of_everybody(config.plan_budgets, told, now)),
            captures=bills,
            coverage=covered,
            replication=replication,
            restored=restored,
            pending=waiting,
        )

    def _families(self, readings: Readings) -> Iterator[AnyFamily]:
        yield from self._spend.families(readings)
        yield from tallied(readings)
        yield from budgets(readings)
        yield from plans(readings)
        yield from captures(readings)
        yield coverage(readings)
        yield from servers(readings)
        beyond = [((name,), number) for name, number in readings.labels.overflow.items()]
        yield Family("acp_proxy_label_overflow_total", "counter", _OVERFLOW, ("label",), beyond)
        yield Family("acp_proxy_ledger_pending_entries", "gauge", _PENDING, (), [((), readings.pending)])


def _only_grows(family: AnyFamily) -> bool:
    return isinstance(family, Histogram) or family.kind == "counter"


_OVERFLOW = "Values of a label that are shown as other: too many, or too long."
_PENDING = "Rows in journals on this host that the ledger does not have yet."

"""The values that one scrape has read, from which metrics are computed without further queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from acp_proxy.core.budget import Budget, Standing
from acp_proxy.core.budget.plan_limits import PlanBudget, PlanStanding
from acp_proxy.core.plans import PlanState
from acp_proxy.ledger.budgets import DecisionCount, Overshoot
from acp_proxy.ledger.captures import Capture
from acp_proxy.ledger.durability import Replication, Restored
from acp_proxy.ledger.notices import DeliveryCount
from acp_proxy.ledger.sums.tallied import Dimensions, Whole
from acp_proxy.ledger.sums.tallies import Tally
from acp_proxy.metrics.labels import Labels
from acp_proxy.report.coverage import Covered


class Readings(Struct, frozen=True):
    """`series` has those of `wholes`, and may have more."""

    labels: Labels
    wholes: Sequence[Whole] = ()
    series: Mapping[str, Dimensions] = field(default_factory=dict)  # by id
    tallies: Sequence[Tally] = ()
    active: Mapping[str, int] = field(default_factory=dict)  # sessions by agent
    budgets: Sequence[Budget] = ()
    standings: Sequence[Standing] = ()
    plan_budgets: Sequence[PlanBudget] = ()
    plan_standings: Sequence[PlanStanding] = ()  # of each user
    decisions: Sequence[DecisionCount] = ()
    overshoots: Sequence[Overshoot] = ()
    channels: Sequence[str] = ()  # names of those that are configured
    deliveries: Sequence[DeliveryCount] = ()
    agents: Sequence[str] = ()  # that the configuration names
    team: str | None = None  # of the configuration
    plans: Sequence[PlanState] = ()  # windows that were not reset since
    captures: Sequence[Capture] = ()  # of bills that were kept
    coverage: Sequence[Covered] = ()  # by agent, where something was imported
    replication: Replication | None = None
    restored: Restored | None = None
    pending: int = 0  # rows of journals on this host

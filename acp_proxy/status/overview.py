"""The figures of `acp-proxy status`: today's spend, what is left of the tightest budget and of a plan, the last turn.

For one user, because a ledger may be a whole team's. Renders nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from acp_proxy.budget.accounts import accounts_of
from acp_proxy.config import Config
from acp_proxy.core.budget import Account, Standing, account_of
from acp_proxy.core.budget.hold_size import HoldSize
from acp_proxy.core.plans import PlanState
from acp_proxy.core.scope import Dimension, Subject
from acp_proxy.ledger import Query, Row
from acp_proxy.report import Line, line_of, sums_of_all
from acp_proxy.text.times import Zone, begin_of, day_after, zone_info

if TYPE_CHECKING:
    from acp_proxy.core.budget.plan_limits import PlanStanding
    from acp_proxy.core.budget.requests import MoreRequest
    from acp_proxy.ledger.budgets import BudgetReader
    from acp_proxy.policy.borrowed import Borrowed

FIELDS: Mapping[str, str] = {
    "today": "what was spent since midnight",
    "week": "since Monday",
    "month": "since the first",
    "turns": "how many turns today",
    "tokens": "how many tokens today",
    "budget": "the name of the budget of which least is left",
    "left": "what is left of it",
    "limit": "its limit",
    "used": "how much of it is used, in percent",
    "resets": "when it resets",
    "plan": "windows of the plan: how much of each is used, and until when",
    "requests": "at a hub: requests for more that wait, or were decided on within a day",
    "lent": "what a hub has lent to this machine",
    "last": "what the last turn cost",
    "last_tokens": "how many tokens it took",
    "agent": "its agent",
    "model": "its model",
    "context": "how full its context was, in percent",
}
"""The fields of a format, named in braces."""

_UNKNOWN: tuple[Dimension, ...] = ("agent", "model")  # of the next prompt


class Status(Struct, frozen=True):
    """`standings` are those of budgets that the user's next prompt is charged to, the tightest first: those that have
    too little left and refuse it, then by how full they are.

    Those in shadow mode come last: they neither warn nor refuse.
    """

    user: str
    zone: Zone
    at: int  # Unix ns
    today: Line
    week: Line
    month: Line
    standings: tuple[Standing, ...]
    last: Row | None
    plans: tuple[PlanState, ...] = ()
    plan_standings: tuple[PlanStanding, ...] = ()  # of budgets on them
    requests: tuple[MoreRequest, ...] = ()  # for more, at a hub: those that wait or were decided on lately
    lent: tuple[Borrowed, ...] = ()  # by a hub, to this machine

    @property
    def tightest(self) -> Standing | None:
        """The budget that a prompt meets first."""
        first = next(iter(self.standings), None)
        return first if first and first.account.budget.mode != "shadow" else None


def status(ledger: BudgetReader, config: Config, own: Subject, zone: Zone, now: int) -> Status:
    """Raises LedgerError."""
    mine = (("organisation", own.organisation), ("user", own.user))

    end_of_today = day_after(now, zone)  # rows may be dated later, by a clock that was wrong

    def since(period: str) -> Line:
        return line_of("total", sums_of_all(ledger, Query(begin_of(period, zone, now), end_of_today, mine)))

    standings = ledger.standing(_accounts(ledger, config, own, now), now)
    return Status(
        own.user,
        zone,
        now,
        since("today"),
        since("week"),
        since("month"),
        tuple(sorted(standings, key=_fullness)),
        ledger.recent.last_turn(own.organisation, own.user),
        tuple(ledger.plans(own.organisation, own.user)),
        _on_plans(ledger, config, own, now),
    )


def _on_plans(ledger: BudgetReader, config: Config, own: Subject, now: int) -> tuple[PlanStanding, ...]:
    if not config.plan_budgets:
        return ()
    from acp_proxy.budget import on_plans  # few have any

    return tuple(on_plans.standings(ledger, config.plan_budgets, own, now))


def _accounts(ledger: BudgetReader, config: Config, own: Subject, now: int) -> list[Account]:
    """The accounts that may apply to this user's prompts with any agent and model; those of turns are empty."""
    met = [
        budget
        for budget in config.budgets
        if budget.window.name not in ("turn", "session") and budget.may_match(own, _UNKNOWN)
    ]
    accounts = accounts_of(ledger, [budget for budget in met if budget.per == "agent"], own, now)
    for budget in met:
        if budget.layer != "flag" and budget.per != "agent":
            accounts.append(account_of(budget, own, now, zone_info(budget.zone), ""))
    return accounts


def _fullness(standing: Standing) -> tuple[bool, bool, int, str]:
    """The fullest first, by what is left of what is allowed, held money not counted as left; before it what refuses."""
    used, shadow = standing.spent + standing.held, standing.account.budget.mode == "shadow"
    refuses = standing.account.enforced and HoldSize.of(standing.account.budget).within(standing.left) is None
    fullness = 10**6 if standing.allowed <= 0 else used * 10**6 // standing.allowed
    return shadow, not refuses, -fullness, standing.account.key

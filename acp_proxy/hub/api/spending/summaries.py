"""What users may spend in a period, and have spent: by the tightest of the limits that apply to them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from msgspec import Struct

from acp_proxy.core.budget import Account, Budget, Limit, Standing, account_of
from acp_proxy.core.scope import Subject
from acp_proxy.hub.api.desk import Desk
from acp_proxy.hub.api.spending.calls import OfUser, Period, Summary
from acp_proxy.hub.api.spending.caps import CURRENCY, WINDOWS, Cap, breadth, caps_of, cents
from acp_proxy.hub.api.spending.members import Member
from acp_proxy.text.times import zone_info

PERIODS: tuple[Period, ...] = ("daily", "weekly", "monthly")


class Row(Struct, frozen=True):
    """A member in a period."""

    member: Member
    period: Period


def begin_of_all(now: int) -> int:
    """When the first of the running periods began."""
    bounds = (window.bounds(now, zone_info("UTC")) for window in WINDOWS.values())
    return min(each.start for each in bounds if each.start is not None)


def current_caps(desk: Desk) -> list[Cap]:
    return caps_of(desk.policies.of(desk.ledger, desk.who.organisation).policy.budgets)


def summaries(desk: Desk, rows: Sequence[Row]) -> list[Summary]:
    """In the order of the rows. Raises LedgerError."""
    caps = current_caps(desk)
    applying = [applying_to(caps, row.member, row.period) for row in rows]
    accounts = [
        [account(desk, row.member.user, cap.budget) for cap in each] or [_without_limit(desk, row)]
        for row, each in zip(rows, applying, strict=True)
    ]
    standings = iter(desk.ledger.standing([one for each in accounts for one in each], desk.now))
    return [
        _summary(row, each, list(islice(standings, max(len(each), 1))))
        for row, each in zip(rows, applying, strict=True)
    ]


def applying_to(caps: Sequence[Cap], member: Member, period: Period) -> list[Cap]:
    """One's own first, then those of the teams, then that of everybody."""
    found = [cap for cap in caps if cap.period == period and cap.applies_to(member.user, member.teams)]
    return sorted(found, key=lambda cap: breadth(cap.scope))


def account(desk: Desk, user: str, budget: Budget) -> Account:
    """Of a user under a budget, now."""
    subject = Subject(desk.who.organisation, user, None, None, "", "")
    return account_of(budget, subject, desk.now, zone_info(budget.zone), "")


def _summary(row: Row, caps: Sequence[Cap], standings: Sequence[Standing]) -> Summary:
    member = row.member
    tight = sorted(zip(caps, standings, strict=False), key=lambda each: each[1].allowed)
    cap, standing = tight[0] if tight else (None, standings[0])
    return Summary(
        scope=OfUser(member.user),
        actor=member.actor,
        amount=None if cap is None else cents(standing.allowed),
        period=row.period,
        source=None if cap is None else cap.scope,
        spend_limit_id=None if cap is None else cap.id,
        period_to_date_spend=cents(standing.spent),
        groups=list(member.teams),
        spend_limit_ids=[each.id for each, _ in tight],
    )


def _without_limit(desk: Desk, row: Row) -> Account:
    """Only to ask what was spent: no policy has a budget without a name."""
    budget = Budget("", "hub", WINDOWS[row.period], Limit(0, CURRENCY), per="user")
    return account(desk, row.member.user, budget)

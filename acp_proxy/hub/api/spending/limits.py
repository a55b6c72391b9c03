"""Answers about spend limits: their list, their changes, and what holds for each user."""

from __future__ import annotations

from collections.abc import Sequence

from acp_proxy.hub.api.desk import ADMINISTRATOR, SEES_ALL, Answer, Desk, reads, writes
from acp_proxy.hub.api.policy import changed_by
from acp_proxy.hub.api.problems import RefusedError
from acp_proxy.hub.api.spending import calls
from acp_proxy.hub.api.spending.caps import (
    CURRENCY,
    Cap,
    breadth,
    caps_of,
    cents,
    kind_of,
    named,
    nano_of,
    table_of,
    told,
)
from acp_proxy.hub.api.spending.members import Member, members
from acp_proxy.hub.api.spending.paging import after_cursor, beside, cursor, size_of
from acp_proxy.hub.api.spending.summaries import (
    PERIODS,
    Row,
    applying_to,
    begin_of_all,
    current_caps,
    summaries,
)
from acp_proxy.hub.api.spending.trail import audit, time_text, times_of
from acp_proxy.ledger.hub.policy import Changes, Document, Table
from acp_proxy.policy import changed, understood


def listed(desk: Desk, asked: calls.Listing) -> calls.Page:
    times = times_of(desk)

    def made(cap: Cap) -> tuple[int, str]:
        return times.get(cap.budget.name, (0, 0))[0], cap.id

    caps = [cap for cap in current_caps(desk) if not asked.scope_types or kind_of(cap.scope) in asked.scope_types]
    rest = after_cursor(sorted(caps, key=made), made, asked.page, asked.scope_types)
    some, more = beside(rest, lambda cap: cap.id, asked)
    goes_on = more and asked.before_id is None
    return calls.Page(
        data=[_shown(cap, times) for cap in some],
        has_more=more,
        first_id=some[0].id if some else None,
        last_id=some[-1].id if some else None,
        next_page=cursor(made(some[-1]), asked.scope_types) if goes_on else None,
    )


def find(desk: Desk, asked: calls.ById) -> calls.SpendLimit:
    return _shown(_known(current_caps(desk), asked.id), times_of(desk))


def set_limit(desk: Desk, asked: calls.Setting) -> calls.SpendLimit:
    if asked.currency != CURRENCY:
        raise RefusedError(400, f"currency: expected {CURRENCY}; budgets of other currencies are set by /v1/policy")
    nano, table = nano_of(asked.amount), table_of(asked.scope, asked.period)
    who = _concerned(desk, asked.scope)

    def change(before: Document) -> Document:
        caps = caps_of(understood(before).budgets)
        _check_reached(caps, who, asked.period, nano, asked.scope)
        return _with_limit(before, caps, asked, {"limit": _limit(nano)}, table)

    kept = changed_by(desk, change)
    caps = caps_of(understood(kept.document).budgets)
    return _shown(next(cap for cap in caps if _is_of(cap, asked)), times_of(desk))


def delete(desk: Desk, asked: calls.ById) -> calls.Deleted:
    def change(before: Document) -> Document:
        cap = _known(caps_of(understood(before).budgets), asked.id)
        return changed(before, Changes(budgets={cap.budget.name: None}))

    changed_by(desk, change)
    return calls.Deleted(asked.id)


def effective(desk: Desk, asked: calls.Effective) -> calls.Summaries:
    size, filters = size_of(asked.limit), (asked.user_ids, asked.periods, asked.q)
    known = members(desk, begin_of_all(desk.now)).values()
    wanted = [member for member in known if _is_asked(member, asked)]
    rest = after_cursor(wanted, lambda member: (member.user,), asked.page, filters)
    some = rest[:size]
    periods = [period for period in PERIODS if not asked.periods or period in asked.periods]
    found = summaries(desk, [Row(member, period) for member in some for period in periods])
    return calls.Summaries(found, cursor((some[-1].user,), filters) if len(rest) > size else None)


def _check_reached(caps: Sequence[Cap], who: Member, period: calls.Period, nano: int, scope: calls.Scope) -> None:
    """Raises RefusedError for an amount that another limit of the same users keeps anybody from reaching."""
    for cap in applying_to(caps, who, period):
        if breadth(cap.scope) > breadth(scope) and cap.budget.limit.amount < nano:
            amount = cents(cap.budget.limit.amount)
            raise RefusedError(
                400, f"amount: the limit of {told(cap.scope)} is {amount} and applies too: raise that one first"
            )


def _with_limit(
    before: Document, caps: Sequence[Cap], asked: calls.Setting, limit: Table, otherwise: Table
) -> Document:
    same = [cap.budget.name for cap in caps if _is_of(cap, asked)]
    if len(same) > 1:
        raise RefusedError(
            400, f"scope: the policy has several such limits, {', '.join(same)}: change them by /v1/policy"
        )
    name = same[0] if same else named(asked.scope, asked.period)
    if not same and any(table.get("name") == name for table in before.budgets):
        raise RefusedError(400, f"scope: budget {name!r} of the policy is no spend limit: change it by /v1/policy")
    return changed(before, Changes(budgets={name: limit if same else otherwise | limit}))


def _concerned(desk: Desk, scope: calls.Scope) -> Member:
    """Somebody to whom a limit of this scope applies."""
    match scope:
        case calls.OfUser(user):
            known = members(desk, begin_of_all(desk.now)).get(user)
            return known or Member(calls.Actor(user), ())
        case calls.OfGroup(team):
            return Member(calls.Actor(""), (team,))
    return Member(calls.Actor(""), ())


def _is_of(cap: Cap, asked: calls.Setting) -> bool:
    return (cap.scope, cap.period) == (asked.scope, asked.period)


def _is_asked(member: Member, asked: calls.Effective) -> bool:
    if asked.user_ids and member.user not in asked.user_ids:
        return False
    actor = member.actor
    texts = (actor.user_id, actor.name or "", actor.email_address or "")
    return any(asked.q.casefold() in text.casefold() for text in texts)


def _known(caps: Sequence[Cap], id: str) -> Cap:
    for cap in caps:
        if cap.id == id:
            return cap
    raise RefusedError(404, f"no spend limit {id!r}")


def _limit(nano: int) -> Table:
    whole, cent = divmod(nano // 10**7, 100)
    return {"amount": f"{whole}.{cent:02}" if cent else str(whole), "currency": CURRENCY}


def _shown(cap: Cap, times: dict[str, tuple[int, int]]) -> calls.SpendLimit:
    created, updated = times.get(cap.budget.name, (None, None))
    return calls.SpendLimit(
        cap.id, cap.scope, cents(cap.budget.limit.amount), cap.period, time_text(created), time_text(updated)
    )


ANSWERS: list[Answer] = [
    reads(calls.LIST, listed, SEES_ALL),
    writes(calls.SET, set_limit, ADMINISTRATOR),
    reads(calls.EFFECTIVE, effective, SEES_ALL),
    reads(calls.AUDIT, audit, SEES_ALL),
    reads(calls.FIND, find, SEES_ALL),
    writes(calls.DELETE, delete, ADMINISTRATOR),
]

"""Answers about requests for more than a spend limit. To approve one gives a grant until its period ends."""

from __future__ import annotations

from acp_proxy.core.budget.requests import Decision, MoreRequest
from acp_proxy.hub.api import requests
from acp_proxy.hub.api.desk import ADMINISTRATOR, SEES_ALL, Answer, Desk, reads, writes
from acp_proxy.hub.api.problems import RefusedError
from acp_proxy.hub.api.spending import calls
from acp_proxy.hub.api.spending.caps import CURRENCY, Cap, cents, nano_of, told
from acp_proxy.hub.api.spending.members import Member, actor_of, members
from acp_proxy.hub.api.spending.paging import after_cursor, cursor, size_of
from acp_proxy.hub.api.spending.summaries import (
    Row,
    account,
    applying_to,
    begin_of_all,
    current_caps,
    summaries,
)
from acp_proxy.hub.store.requests import Requests
from acp_proxy.text.times import rfc3339, rfc3339_or_none

_PREFIX = "slir_"


def listed(desk: Desk, asked: calls.Asking) -> calls.IncreaseRequests:
    size, filters = size_of(asked.limit), (asked.statuses, asked.actor_ids)
    found = [
        (request, cap)
        for request, cap in _of_limits(desk, _requests(desk).all())
        if (not asked.statuses or request.state in asked.statuses)
        and (not asked.actor_ids or request.user in asked.actor_ids)
    ]
    rest = after_cursor(found, lambda each: _key(each[0]), asked.page, filters)
    some = rest[:size]
    more = cursor(_key(some[-1][0]), filters) if len(rest) > size else None
    known = members(desk, begin_of_all(desk.now))
    return calls.IncreaseRequests([_shown(desk, request, cap, known) for request, cap in some], more)


def find(desk: Desk, asked: calls.ById) -> calls.IncreaseRequest:
    return _told(desk, *_known(desk, asked.id))


def approve(desk: Desk, asked: calls.Approval) -> calls.IncreaseRequest:
    request, cap = _known(desk, asked.id)
    if asked.period not in (None, cap.period):
        raise RefusedError(400, f"period: the request is for a {cap.period} limit")
    if request.state != "pending":
        raise RefusedError(400, f"the request is {request.state} already")
    of_user = account(desk, request.user, cap.budget)
    (standing,) = desk.ledger.standing([of_user], desk.now)
    amount = nano_of(asked.amount)
    if amount <= standing.allowed:
        raise RefusedError(400, f"amount: expected more than the {cents(standing.allowed)} of now")
    _check_others(desk, request.user, cap, amount)
    decision = Decision(request.wish.id, approve=True, amount=amount - standing.allowed, until=of_user.resets_at)
    return _told(desk, requests.decide(desk, decision), cap)


def deny(desk: Desk, asked: calls.Denial) -> calls.IncreaseRequest:
    request, cap = _known(desk, asked.id)
    if request.state == "approved":
        raise RefusedError(400, "the request is approved already")
    if request.state == "pending":
        request = requests.decide(desk, Decision(request.wish.id, approve=False))
    return _told(desk, request, cap)


def _check_others(desk: Desk, user: str, cap: Cap, amount: int) -> None:
    """Raises RefusedError where another limit would go on to refuse."""
    member = members(desk, begin_of_all(desk.now)).get(user) or Member(calls.Actor(user), ())
    others = [each for each in applying_to(current_caps(desk), member, cap.period) if each.id != cap.id]
    standings = desk.ledger.standing([account(desk, user, each.budget) for each in others], desk.now)
    for other, standing in zip(others, standings, strict=True):
        if standing.allowed < amount:
            of = told(other.scope)
            raise RefusedError(
                400, f"amount: the limit of {of} is {cents(standing.allowed)} and applies too: raise that one first"
            )


def _of_limits(desk: Desk, found: list[MoreRequest]) -> list[tuple[MoreRequest, Cap]]:
    """With the spend limit that each is about; others are not this API's."""
    caps = {cap.budget.name: cap for cap in current_caps(desk)}
    return [
        (request, caps[request.wish.budget])
        for request in found
        if request.wish.layer == "hub" and request.wish.unit == CURRENCY and request.wish.budget in caps
    ]


def _known(desk: Desk, id: str) -> tuple[MoreRequest, Cap]:
    request = _requests(desk).find(id.removeprefix(_PREFIX)) if id.startswith(_PREFIX) else None
    found = _of_limits(desk, [] if request is None else [request])
    if not found:
        raise RefusedError(404, f"no request {id!r} about a spend limit; /v1/requests/search has all others")
    return found[0]


def _told(desk: Desk, request: MoreRequest, cap: Cap) -> calls.IncreaseRequest:
    return _shown(desk, request, cap, members(desk, begin_of_all(desk.now)))


def _shown(desk: Desk, request: MoreRequest, cap: Cap, known: dict[str, Member]) -> calls.IncreaseRequest:
    member = known.get(request.user)
    waits = request.state == "pending" and member is not None
    return calls.IncreaseRequest(
        id=f"{_PREFIX}{request.wish.id}",
        actor=member.actor if member else actor_of(desk, request.user),
        status=request.state,
        period=cap.period,
        created_at=rfc3339(request.at),
        resolved_at=rfc3339_or_none(request.decided_at),
        resolved_by=None if request.decided_by is None else actor_of(desk, request.decided_by),
        spend_summary=summaries(desk, [Row(member, cap.period)])[0] if waits and member else None,
    )


def _key(request: MoreRequest) -> tuple[int, str]:
    """The latest first."""
    return -request.at, request.wish.id


def _requests(desk: Desk) -> Requests:
    desk.policies.store(desk.ledger, desk.who.organisation)  # makes the tables
    return Requests(desk.ledger.tables, desk.who.organisation)


ANSWERS: list[Answer] = [
    reads(calls.REQUESTS, listed, SEES_ALL),
    reads(calls.REQUEST, find, SEES_ALL),
    writes(calls.APPROVE, approve, ADMINISTRATOR),
    writes(calls.DENY, deny, ADMINISTRATOR),
]

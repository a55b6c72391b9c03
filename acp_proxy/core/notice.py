"""Notices for webhooks, to people who are not in the session: values only, never content of a session.

The same thing has the same id wherever it is noticed, so that it is kept, and sent, once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct

from acp_proxy.core.budget import Account, Layer, Mode, Per, Standing
from acp_proxy.core.budget.charge import is_presumed
from acp_proxy.core.budget.plan_limits import PlanStanding
from acp_proxy.core.budget.requests import Wish
from acp_proxy.core.entry import Entry, Origin
from acp_proxy.core.plans import PlanState
from acp_proxy.core.windows import DAY

NoticeKind = Literal["threshold", "refusal", "stop", "unpriced", "ledger", "plan", "request", "test"]
KINDS: tuple[NoticeKind, ...] = (
    "threshold",
    "refusal",
    "stop",
    "unpriced",
    "ledger",
    "plan",
    "request",
)  # that a channel may want
Detail = Literal["used_up", "unpriced", "overage", "deny_next_tool", "cancel", "away", "back"]

_LONGEST = 200  # characters of a name, which may be anything that an agent reports


class Notice(Struct, frozen=True):
    """One notice. Times are Unix ns, amounts in `unit` like those of a `Standing`; None is unknown.

    A threshold belongs to a budget, not to the user who reached it: it has no user but its budget's own `value`.
    """

    id: str
    kind: NoticeKind
    organisation: str
    at: int
    detail: Detail | None = None  # of a refusal why, of a stop how, of a ledger what became of it
    budget: str | None = None  # its name
    layer: Layer | None = None
    per: Per | None = None
    value: str | None = None  # of the dimension that the budget is `per`
    unit: str | None = None
    spent: int | None = None
    held: int | None = None
    limit: int | None = None  # with what is granted
    percent: int | None = None  # the threshold
    mode: Mode | None = None  # the budget's
    window: str | None = None
    zone: str | None = None  # the budget's, IANA
    resets_at: int | None = None
    user: str | None = None
    team: str | None = None
    project: str | None = None
    agent: str | None = None
    model: str | None = None
    host: str | None = None
    count_plans: bool = False  # `spent` has list prices of what plans cover, which are not billed
    request: str | None = None  # the id of a request for more
    amount: int | None = None  # that it is for
    why: str | None = None
    link: str | None = None  # where it is decided on: a hub's own address, no name of anybody's


def threshold_reached(standing: Standing, percent: int, at: int) -> Notice:
    """Once in each window of a budget."""
    key = _id("threshold", _window_key(standing.account, at), percent)
    return Notice(key, "threshold", at=at, percent=percent, **_of_budget(standing))


def refused(standing: Standing, origin: Origin, model: str | None, at: int, *, unpriced: bool = False) -> Notice:
    """A prompt; once in each window for a user. With `unpriced` because its model has no price."""
    detail: Detail = "unpriced" if unpriced else "used_up"
    key = _id("refusal", detail, _window_key(standing.account, at), origin.user, model if unpriced else None)
    return Notice(key, "refusal", at=at, detail=detail, **_of_budget(standing), **_of_origin(origin, model))


def refused_by_plan(standing: PlanStanding, origin: Origin, model: str | None, at: int) -> Notice:
    """A prompt, by a budget on its user's plan; once in each window."""
    budget = standing.budget
    detail: Detail = "overage" if standing.reason == "overage" else "used_up"
    key = _id("refusal", detail, origin.organisation, budget.name, origin.user, standing.agent, standing.until)
    return Notice(
        key,
        "refusal",
        origin.organisation,
        at,
        detail=detail,
        budget=budget.name,
        layer=budget.layer,
        percent=budget.percent,
        mode=budget.mode,
        window=budget.window,
        resets_at=standing.until,
        **_of_origin(origin, model),
    )


def stopped(
    standing: Standing, origin: Origin, model: str | None, at: int, how: Literal["deny_next_tool", "cancel"]
) -> Notice:
    """A running turn; once in each window for a user."""
    key = _id("stop", how, _window_key(standing.account, at), origin.user)
    return Notice(key, "stop", at=at, detail=how, **_of_budget(standing), **_of_origin(origin, model))


def unpriced(origin: Origin, entry: Entry) -> Iterator[Notice]:
    """Models of a turn whose price is unknown; each once a day (UTC)."""
    if not entry.unpriced or is_presumed(entry):  # tokens that a killed turn held, for which no price was looked up
        return
    at = entry.ended_at
    for model in dict.fromkeys(line.model for line in entry.lines if line.cost is None and line.usage.total):
        key = _id("unpriced", origin.organisation, model, at // DAY)
        yield Notice(key, "unpriced", origin.organisation, at, **_of_origin(origin, model))


def plan_reached(organisation: str, state: PlanState, percent: int) -> Notice:
    """Once in each window of a user's plan."""
    told = state.told
    key = _id("plan", organisation, state.user, state.agent, told.window, told.resets_at or state.first_at, percent)
    return Notice(
        key,
        "plan",
        organisation,
        told.seen_at,
        percent=percent,
        window=told.window,
        resets_at=told.resets_at,
        user=_short(state.user),
        agent=_short(state.agent),
    )


def more_asked(organisation: str, user: str, team: str | None, wish: Wish, link: str | None, at: int) -> Notice:
    """A user asks for more than a budget allows."""
    return Notice(
        _id("request", organisation, wish.id),
        "request",
        organisation,
        at,
        budget=_short(wish.budget),
        layer=wish.layer,
        per=wish.per,
        value=_short(wish.value),
        unit=wish.unit,
        user=_short(user),
        team=_short(team),
        request=wish.id,
        amount=wish.amount,
        why=wish.why,
        link=link,
    )


def ledger_is(what: Literal["away", "back"], organisation: str, host: str, since: int, at: int) -> Notice:
    """The ledger that `host` reads is out of reach since a time, or is back."""
    return Notice(_id("ledger", what, organisation, host, since), "ledger", organisation, at, detail=what, host=host)


def a_test(organisation: str, host: str, at: int, mark: str) -> Notice:
    """A notice that tests a channel; `mark` makes it unique."""
    return Notice(_id("test", host, mark), "test", organisation, at, host=host)


def _id(*of: object) -> str:
    from hashlib import sha256  # with OpenSSL behind it, 5 ms

    return sha256(json.dumps(of, separators=(",", ":")).encode()).hexdigest()[:32]


def _window_key(account: Account, at: int) -> str:
    """Each turn has a window of its own under some budgets: a day is then long enough."""
    if account.budget.window.name != "turn":
        return account.notice_key
    whose = account.value or account.budget.owner
    return json.dumps([account.budget.layer, account.budget.name, whose, at // DAY])


def _of_budget(standing: Standing) -> dict[str, Any]:
    account, budget = standing.account, standing.account.budget
    return {
        "organisation": dict(account.filter.where)["organisation"],
        "budget": budget.name,
        "layer": budget.layer,
        "per": budget.per,
        "value": _short(account.value),
        "unit": account.unit,
        "spent": standing.spent,
        "held": standing.held,
        "limit": standing.allowed,
        "mode": budget.mode,
        "count_plans": budget.count_plans,
        "window": budget.window.text,
        "zone": budget.zone,
        "resets_at": account.resets_at,
    }


def _of_origin(origin: Origin, model: str | None) -> dict[str, Any]:
    names = {"user": origin.user, "team": origin.team, "project": origin.project, "agent": origin.agent, "model": model}
    return {name: _short(text) for name, text in names.items()}


def _short(text: str | None) -> str | None:
    return None if text is None else text.encode("utf-8", "replace").decode()[:_LONGEST]

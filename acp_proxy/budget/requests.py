"""`acp-proxy budget request`, `requests`, `approve` and `deny`: asking a team's hub for more, and deciding on it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, cast, get_args

from acp_proxy.budget import grants, with_unit
from acp_proxy.budget.central import known
from acp_proxy.core.budget import Limit, Per
from acp_proxy.core.budget.requests import Decision, MoreRequest, Wish
from acp_proxy.core.money import exact_text
from acp_proxy.ledger import open_ledger
from acp_proxy.ledger.hub_address import is_hub
from acp_proxy.report.formats import as_json_text
from acp_proxy.system.errors import UsageError
from acp_proxy.text import table
from acp_proxy.text.figures import clean
from acp_proxy.text.table import Column
from acp_proxy.text.times import Zone, rfc3339, rfc3339_or_none

if TYPE_CHECKING:
    from acp_proxy.budget.command import Place
    from acp_proxy.config import Config
    from acp_proxy.ledger.hub.ledger import HubLedger


def answered(arguments: argparse.Namespace, config: Config, place: Place) -> str:
    """Raises UsageError and LedgerError."""
    with _hub(config.ledger.url) as hub:
        match arguments.action:
            case "request":
                return _asked(hub, arguments, config, place)
            case "requests":
                found = _in_order(hub.requests(own=arguments.own))
                return as_json(found) if arguments.json else _listed(found, place)
        request = _named(hub.requests(own=False), arguments.id)
        decided = hub.decide(_decision(arguments, request, place.now))
        return _confirmed(decided, place.zone)


@contextmanager
def _hub(url: str) -> Iterator[HubLedger]:
    if not is_hub(url):
        raise UsageError("budget: requests for more need a hub; here acp-proxy budget grant allows more")
    with closing(open_ledger(url)) as ledger:
        yield cast("HubLedger", ledger)


def _asked(hub: HubLedger, arguments: argparse.Namespace, config: Config, place: Place) -> str:
    found = known(hub, config, place.cwd)
    budget = grants.named_budget(arguments.name, arguments.layer, found.budgets)
    values = {name: value for name in get_args(Per) if (value := getattr(arguments, f"for_{name}", None)) is not None}
    value = grants.value_of(budget, values, found.own)
    unit = budget.limit.unit
    amount, why = grants.amount_of(arguments.amount, unit), grants.checked_reason(arguments.reason)
    wish = Wish(os.urandom(5).hex(), budget.layer, budget.name, budget.per, value, amount, unit, why)
    kept = hub.ask_for_more(wish)
    return clean(f'Asked for {_amount(kept)} more of budget "{budget.name}": request {wish.id}.') + "\n"


def _decision(arguments: argparse.Namespace, request: MoreRequest, now: int) -> Decision:
    if arguments.action == "deny":
        return Decision(request.wish.id, approve=False, note=grants.checked_reason(arguments.reason))
    amount = None if arguments.amount is None else grants.amount_of(arguments.amount, request.wish.unit)
    note = "" if arguments.reason is None else grants.checked_reason(arguments.reason)
    until = grants.end_of(arguments.duration, now)
    return Decision(request.wish.id, approve=True, amount=amount, until=until, note=note)


def _named(found: Sequence[MoreRequest], id: str) -> MoreRequest:
    matching = [each for each in found if each.wish.id.startswith(id)]
    if len(matching) != 1 or not id:
        which = "no request" if not matching else f"{len(matching)} requests"
        raise UsageError(f"budget: {which} with the id {clean(id)!r}; acp-proxy budget requests lists them")
    return matching[0]


def _confirmed(decided: MoreRequest, zone: Zone) -> str:
    whose = f'{decided.user} of budget "{decided.wish.budget}"'
    if decided.state == "denied":
        return clean(f"Denied {_amount(decided)} more for {whose}.") + "\n"
    return clean(f"Granted {_amount(decided)} more to {whose} until {_moment(decided.until, zone)}.") + "\n"


def _in_order(found: Sequence[MoreRequest]) -> list[MoreRequest]:
    """What waits comes first, and of that what has waited longest."""
    waiting = [each for each in found if each.state == "pending"]
    return [*reversed(waiting), *(each for each in found if each.state != "pending")]


def _listed(found: Sequence[MoreRequest], place: Place) -> str:
    if not found:
        return "Nobody has asked for more.\n"
    columns = [
        Column("id", [each.wish.id for each in found], right=False, name=True),
        Column("user", [clean(each.user) for each in found], right=False, name=True),
        Column("team", [clean(each.team or "-") for each in found], right=False, name=True, spare=3),
        Column("budget", [clean(each.wish.budget) for each in found], right=False, name=True),
        Column("amount", [_amount(each, column=True) for each in found]),
        Column("asked", [_moment(each.at, place.zone) for each in found], right=False, spare=4),
        Column("state", [each.state for each in found], right=False),
        Column("until", [_moment(each.until, place.zone) for each in found], right=False, spare=2),
        Column("by", [clean(each.decided_by or "-") for each in found], right=False, name=True, spare=5),
        Column("reason", [clean(each.note or each.wish.why) for each in found], right=False, name=True, spare=1),
    ]
    if place.width is None:
        return table.plain(columns)
    return table.coloured(columns, (), None, place.width, place.environ)


def as_json(found: Sequence[MoreRequest]) -> str:
    return as_json_text({"requests": [_object(each) for each in found]})


def _object(request: MoreRequest) -> Mapping[str, object]:
    wish = request.wish
    return {
        "id": wish.id,
        "user": request.user,
        "team": request.team,
        "budget": wish.budget,
        "layer": wish.layer,
        "for": wish.value,
        "amount": exact_text(wish.amount, wish.unit),
        "unit": wish.unit,
        "reason": wish.why,
        "asked_at": rfc3339(request.at),
        "state": request.state,
        "decided_at": rfc3339_or_none(request.decided_at),
        "by": request.decided_by,
        "granted": None if request.amount is None else exact_text(request.amount, wish.unit),
        "expires_at": rfc3339_or_none(request.until),
        "note": request.note,
    }


def _amount(request: MoreRequest, *, column: bool = False) -> str:
    amount = request.amount or request.wish.amount
    return with_unit(amount, Limit(amount, request.wish.unit), column=column)


def _moment(at: int | None, zone: Zone) -> str:
    return "-" if at is None else zone.local(at).strftime("%Y-%m-%d %H:%M")

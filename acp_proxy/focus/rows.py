"""The ledger's sums as rows of FOCUS: by day, then by who and what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from acp_proxy.core.money import Money, summed
from acp_proxy.core.scope import PLAN
from acp_proxy.core.usage import NOTHING, Usage
from acp_proxy.focus.columns import FIRST, Version, columns_of
from acp_proxy.focus.costs import Charge, ListPrice, costs
from acp_proxy.ledger import LedgerReader, Query, Sums
from acp_proxy.report.periods import sums_by_day
from acp_proxy.report.seats import SeatOf, Seats
from acp_proxy.text.times import SECOND, Zone, rfc3339

_BY = ("user", "team", "project", "agent", "model", "kind", "usage_source", "cost_source", "billing")
_UNIT = "Tokens"
_ALWAYS: Mapping[str, Any] = {
    "BillingAccountType": "Organisation",
    "ChargeCategory": "Usage",
    "ChargeFrequency": "Usage-Based",
    "ConsumedUnit": _UNIT,
    "PricingUnit": _UNIT,
    "ServiceCategory": "AI and Machine Learning",
    "ServiceSubcategory": "Generative AI",
}
Row = dict[str, Any]


class Market(Struct, frozen=True):
    """What is known beside the ledger: who sells a model, None where not known, its public price, and what an agent's
    seat costs a month.
    """

    seller: Callable[[str], str | None]
    list_price: ListPrice
    seat: SeatOf = lambda _: None


def rows(
    ledger: LedgerReader, query: Query, organisation: str, zone: Zone, market: Market, version: Version = FIRST
) -> Iterator[Row]:
    """Each with the columns of its version, read as they are taken. Raises LedgerError."""
    where = (*query.where, ("organisation", organisation))
    columns, seats = columns_of(version), Seats(ledger, organisation, zone, market.seat)
    for day, found in sums_by_day(ledger, Query(query.since, query.until, where), zone, _BY):
        groups: dict[tuple[object, ...], list[Sums]] = {}
        for sums in found:
            groups.setdefault(sums.key, []).append(sums)
        for key in sorted(groups, key=_order):
            for row in _rows(day, zone, key, groups[key], organisation, market, seats):
                yield {name: row.get(name) for name in columns}


def _order(key: Sequence[object]) -> list[str]:
    return [str(part or "") for part in key]


def _rows(
    day: datetime,
    zone: Zone,
    key: tuple[object, ...],
    group: list[Sums],
    organisation: str,
    market: Market,
    seats: Seats,
) -> Iterator[Row]:
    """One for each currency; the tokens and turns stand in the first of them, so that they add up."""
    shared = {**_ALWAYS, **_period_columns(day, zone), **_who_columns(key, organisation, market.seller)}
    usage, turns = sum((sums.usage for sums in group), NOTHING), sum(sums.turns for sums in group)
    at_least = any(sums.cost_at_least for sums in group)
    found = sorted(summed(cost for sums in group for cost in sums.costs), key=lambda cost: cost.currency)
    amounts: Sequence[Money | None] = found or [None]
    for amount in amounts:
        money = _cost_columns(day, zone, key, usage, amount, market, alone=len(found) == 1 and not at_least)
        if amount is not None and key[-1] == PLAN:
            money = {**money, **_under_a_plan(seats, day, key, amount)}
        yield {**shared, **money, **_usage_columns(usage, turns), "x_CostAtLeast": at_least}
        usage, turns = NOTHING, 0


def _who_columns(
    key: tuple[object, ...], organisation: str, seller: Callable[[str], str | None]
) -> Mapping[str, object]:
    """The columns of user, provider and model. `key` has the values of `_BY`."""
    user, team, project, agent, model, kind, usage_source, cost_source, billing = key
    sold_by = (seller(str(model)) if model else None) or str(agent)
    tags = {"user": user, "team": team, "project": project, "agent": agent}
    return {
        "BillingAccountId": organisation,
        "BillingAccountName": organisation,
        "ChargeDescription": f"{model or 'unknown model'} in {agent}",
        "InvoiceIssuerName": sold_by,
        "ProviderName": sold_by,
        "PublisherName": sold_by,
        "ServiceName": str(agent),
        "ServiceProviderName": sold_by,
        "SkuId": model,
        "SubAccountId": team,
        "SubAccountName": team,
        "SubAccountType": None if team is None else "Team",
        "Tags": {name: value for name, value in tags.items() if value is not None},
        "x_Kind": kind,
        "x_Billing": billing,
        "x_UsageSource": usage_source,
        "x_CostSource": cost_source,
    }


def _usage_columns(usage: Usage, turns: int) -> Mapping[str, int]:
    return {
        "ConsumedQuantity": usage.total,
        "PricingQuantity": usage.total,
        "x_TokensInput": usage.input,
        "x_TokensCachedRead": usage.cached_read,
        "x_TokensCachedWrite": usage.cached_write,
        "x_TokensOutput": usage.output,
        "x_TokensThought": usage.thought,
        "x_Turns": turns,
    }


def _cost_columns(
    day: datetime,
    zone: Zone,
    key: tuple[object, ...],
    usage: Usage,
    billed: Money | None,
    market: Market,
    *,
    alone: bool,
) -> Mapping[str, str | None]:
    """FOCUS wants a cost in every row; where none is known 0 would be a lie, and the cell is empty."""
    if billed is None:
        return {}
    noon = int((day + timedelta(hours=12)).replace(tzinfo=zone.info).timestamp()) * SECOND
    user, team, _, agent, model, _, _, cost_source, _ = (None if part is None else str(part) for part in key)
    charge = Charge(day, noon, user, team, agent, model, cost_source, usage, billed)
    return {**costs(charge, market.list_price, alone=alone), "BillingCurrency": billed.currency}


def _under_a_plan(seats: Seats, day: datetime, key: Sequence[object], listed: Money) -> Mapping[str, str | None]:
    """Nothing is billed for it: it is a share of a seat, whose bill is another one."""
    share = seats.effective_cost(day, str(key[_BY.index("user")]), str(key[_BY.index("agent")]), listed)
    return {"BilledCost": "0", "ContractedCost": "0", "EffectiveCost": None if share is None else share.text}


def _period_columns(day: datetime, zone: Zone) -> Mapping[str, str]:
    """The day and the month of the time zone, in UTC, their ends exclusive."""
    month = day.replace(day=1)
    return {
        "BillingPeriodStart": _utc(month, zone),
        "BillingPeriodEnd": _utc((month + timedelta(days=32)).replace(day=1), zone),
        "ChargePeriodStart": _utc(day, zone),
        "ChargePeriodEnd": _utc(day + timedelta(days=1), zone),
    }


def _utc(local: datetime, zone: Zone) -> str:
    return rfc3339(int(local.replace(tzinfo=zone.info).timestamp()) * SECOND)

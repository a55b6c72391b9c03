"""Spend as rows of FOCUS 1.2, the FinOps Open Cost and Usage Specification, for chargeback.

A row is what one user, team, project, agent and model spent on one day of a time zone, from one source of figures in
one currency. Costs are what the ledger has, for nothing is negotiated or amortised here: billed, effective, contracted
and list cost are the same. Columns that begin with `x_` are our own, as FOCUS allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import orjson

from acp_proxy.core.money import Money, summed
from acp_proxy.core.usage import NOTHING, Usage
from acp_proxy.ledger import LedgerReader, Query, Sums
from acp_proxy.report.formats import json_in_pieces, without_controls
from acp_proxy.report.periods import sums_by_day
from acp_proxy.report.spreadsheet import csv_in_pieces, spreadsheet_text
from acp_proxy.text.times import SECOND, Zone, rfc3339

VERSION = "1.2"
COLUMNS = (
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingAccountType",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargeFrequency",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ContractedCost",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "RegionId",
    "RegionName",
    "ResourceId",
    "ResourceName",
    "ResourceType",
    "ServiceCategory",
    "ServiceName",
    "ServiceSubcategory",
    "SkuId",
    "SkuPriceId",
    "SubAccountId",
    "SubAccountName",
    "SubAccountType",
    "Tags",
    "x_TokensInput",
    "x_TokensCachedRead",
    "x_TokensCachedWrite",
    "x_TokensOutput",
    "x_TokensThought",
    "x_Turns",
    "x_Kind",
    "x_UsageSource",
    "x_CostSource",
    "x_CostAtLeast",
)
_BY = ("user", "team", "project", "agent", "model", "kind", "usage_source", "cost_source")
_UNIT = "Tokens"
_ALWAYS: Mapping[str, Any] = {
    **dict.fromkeys(COLUMNS),
    "BillingAccountType": "Organisation",
    "ChargeCategory": "Usage",
    "ChargeFrequency": "Usage-Based",
    "ConsumedUnit": _UNIT,
    "PricingUnit": _UNIT,
    "ServiceCategory": "AI and Machine Learning",
    "ServiceSubcategory": "Generative AI",
}
_COSTS = ("BilledCost", "ContractedCost", "EffectiveCost", "ListCost")

Row = dict[str, Any]


def rows(
    ledger: LedgerReader, query: Query, organisation: str, zone: Zone, seller: Callable[[str], str | None]
) -> Iterator[Row]:
    """By day, then by who and what; read as they are taken. `seller` says who sells a model, None where not known.

    Raises LedgerError.
    """
    where = (*query.where, ("organisation", organisation))
    for day, found in sums_by_day(ledger, Query(query.since, query.until, where), zone, _BY):
        groups: dict[tuple[object, ...], list[Sums]] = {}
        for sums in found:
            groups.setdefault(sums.key, []).append(sums)
        periods = _period_columns(day, zone)
        for key in sorted(groups, key=_order):
            yield from _rows(periods, key, groups[key], organisation, seller)


def as_csv(found: Iterable[Row]) -> Iterator[str]:
    """Piece by piece. Nothing known is an empty cell."""
    return csv_in_pieces(COLUMNS, ([_cell(name, row[name]) for name in COLUMNS] for row in found))


def as_json(found: Iterable[Row]) -> Iterator[str]:
    """Piece by piece. Costs are decimal strings: a number would be a float in whatever reads it."""
    return json_in_pieces({"focus": VERSION, "rows": []}, "rows", found)


def _order(key: Sequence[object]) -> list[str]:
    return [str(part or "") for part in key]


def _rows(
    periods: Mapping[str, str],
    key: tuple[object, ...],
    group: list[Sums],
    organisation: str,
    seller: Callable[[str], str | None],
) -> Iterator[Row]:
    """One for each currency; the tokens and turns stand in the first of them, so that they add up."""
    shared = {**_ALWAYS, **periods, **_who_columns(key, organisation, seller)}
    usage, turns = sum((sums.usage for sums in group), NOTHING), sum(sums.turns for sums in group)
    at_least = any(sums.cost_at_least for sums in group)
    found = sorted(summed(cost for sums in group for cost in sums.costs), key=lambda cost: cost.currency)
    costs: Sequence[Money | None] = found or [None]
    for cost in costs:
        yield {**shared, **_cost_columns(cost), **_usage_columns(usage, turns), "x_CostAtLeast": at_least}
        usage, turns = NOTHING, 0


def _who_columns(
    key: tuple[object, ...], organisation: str, seller: Callable[[str], str | None]
) -> Mapping[str, object]:
    """The columns of user, provider and model. `key` has the values of `_BY`."""
    user, team, project, agent, model, kind, usage_source, cost_source = key
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
        "SkuId": model,
        "SubAccountId": team,
        "SubAccountName": team,
        "SubAccountType": None if team is None else "Team",
        "Tags": {name: value for name, value in tags.items() if value is not None},
        "x_Kind": kind,
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


def _cost_columns(cost: Money | None) -> Mapping[str, str]:
    """FOCUS wants a cost in every row; where none is known 0 would be a lie, and the cell is empty."""
    if cost is None:
        return {}
    return {**dict.fromkeys(_COSTS, cost.text), "BillingCurrency": cost.currency}


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


def _cell(column: str, value: object) -> object:
    match value:
        case bool():
            return "true" if value else "false"
        case dict():
            return without_controls(orjson.dumps(value).decode())
        case str() if column not in _COSTS:  # an amount below zero is no formula
            return spreadsheet_text(value)
    return value

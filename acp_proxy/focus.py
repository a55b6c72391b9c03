"""Spend as rows of FOCUS 1.2, the FinOps Open Cost and Usage Specification, for whoever charges it back.

A row is what one user, team, project, agent and model spent on one day of a time zone, from one source of figures in
one currency. Costs are what the ledger has, for nothing is negotiated or amortised here: billed, effective, contracted
and list cost are the same. Columns that begin with `x_` are our own, as FOCUS allows.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import orjson

from acp_proxy.core.money import Money
from acp_proxy.core.usage import NOTHING, Usage
from acp_proxy.figures import clean
from acp_proxy.ledger import LedgerReader, Query, Sums
from acp_proxy.report.formats import as_json_text, without_controls
from acp_proxy.times import SECOND, Zone, rfc3339

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
_BY = ("quarter_hour", "user", "team", "project", "agent", "model", "kind", "usage_source", "cost_source")
_QUARTER_HOUR = 900 * SECOND
_UNIT = "Tokens"

Row = dict[str, Any]


def rows(
    ledger: LedgerReader, query: Query, organisation: str, zone: Zone, seller: Callable[[str], str | None]
) -> list[Row]:
    """By day, then by who and what. `seller` says who sells a model, None where that is not known.

    Raises LedgerError.
    """
    where = (*query.where, ("organisation", organisation))
    days: dict[tuple[object, ...], list[Sums]] = {}
    for sums in ledger.summed(Query(query.since, query.until, where), _BY):
        day = zone.local(int(sums.key[0] or 0) * _QUARTER_HOUR).replace(hour=0, minute=0, second=0, microsecond=0)
        days.setdefault((day.replace(tzinfo=None), *sums.key[1:]), []).append(sums)
    ordered = sorted(days.items(), key=lambda item: [str(part or "") for part in item[0]])
    return [row for key, group in ordered for row in _rows(key, group, organisation, zone, seller)]


def as_csv(found: Iterable[Row]) -> str:
    """Nothing known is an empty cell."""
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in found)
    return file.getvalue()


def as_json(found: Iterable[Row]) -> str:
    """Costs are decimal strings: a number would be a float in whatever reads it."""
    return as_json_text({"focus": VERSION, "rows": list(found)})


def _rows(
    key: tuple[object, ...], group: list[Sums], organisation: str, zone: Zone, seller: Callable[[str], str | None]
) -> Iterator[Row]:
    """One for each currency; the tokens stand in the first of them, so that they add up."""
    day, user, team, project, agent, model, kind, usage_source, cost_source = key
    assert isinstance(day, datetime)  # noqa: S101
    costs = _summed(group)
    usage = sum((sums.usage for sums in group), Usage())
    turns, at_least = sum(sums.turns for sums in group), any(sums.cost_at_least for sums in group)
    sold_by = (seller(str(model)) if model else None) or str(agent)
    tags = {"user": user, "team": team, "project": project, "agent": agent}
    for number, cost in enumerate(costs or [None]):
        shown = usage if number == 0 else NOTHING
        yield {
            **dict.fromkeys(COLUMNS),
            **_cost_columns(cost),
            **_period_columns(day, zone),
            "BillingAccountId": organisation,
            "BillingAccountName": organisation,
            "BillingAccountType": "Organisation",
            "ChargeCategory": "Usage",
            "ChargeDescription": f"{model or 'unknown model'} in {agent}",
            "ChargeFrequency": "Usage-Based",
            "ConsumedQuantity": shown.total,
            "ConsumedUnit": _UNIT,
            "InvoiceIssuerName": sold_by,
            "PricingQuantity": shown.total,
            "PricingUnit": _UNIT,
            "ProviderName": sold_by,
            "PublisherName": sold_by,
            "ServiceCategory": "AI and Machine Learning",
            "ServiceName": str(agent),
            "ServiceSubcategory": "Generative AI",
            "SkuId": model,
            "SubAccountId": team,
            "SubAccountName": team,
            "SubAccountType": None if team is None else "Team",
            "Tags": {name: value for name, value in tags.items() if value is not None},
            "x_TokensInput": shown.input,
            "x_TokensCachedRead": shown.cached_read,
            "x_TokensCachedWrite": shown.cached_write,
            "x_TokensOutput": shown.output,
            "x_TokensThought": shown.thought,
            "x_Turns": turns if number == 0 else 0,
            "x_Kind": kind,
            "x_UsageSource": usage_source,
            "x_CostSource": cost_source,
            "x_CostAtLeast": at_least,
        }


def _summed(group: Iterable[Sums]) -> list[Money]:
    amounts: dict[str, int] = {}
    for sums in group:
        for cost in sums.costs:
            amounts[cost.currency] = amounts.get(cost.currency, 0) + cost.nano
    return [Money(nano, currency) for currency, nano in sorted(amounts.items())]


def _cost_columns(cost: Money | None) -> Mapping[str, str | None]:
    """FOCUS wants a cost in every row; where none is known 0 would be a lie, and the cell is empty."""
    amount = None if cost is None else cost.text
    names = ("BilledCost", "ContractedCost", "EffectiveCost", "ListCost")
    return {**dict.fromkeys(names, amount), "BillingCurrency": None if cost is None else cost.currency}


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


def _cell(value: object) -> object:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case dict():
            return without_controls(orjson.dumps(value).decode())
        case str():
            text = clean(value)
            return f"'{text}" if text.startswith(("=", "+", "@", "-")) and not _is_number(text) else text
    return value


def _is_number(text: str) -> bool:
    return text[1:].replace(".", "", 1).isdigit()

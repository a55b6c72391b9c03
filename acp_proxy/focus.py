"""Spend as rows of FOCUS 1.2, the FinOps Open Cost and Usage Specification, for whoever charges it back.

A row is what one user, team, project, agent and model spent on one day of a time zone, from one source of figures in
one currency. Costs are what the ledger has, for nothing is negotiated or amortised here: billed, effective, contracted
and list cost are the same. Columns that begin with `x_` are our own, as FOCUS allows.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import orjson

from acp_proxy.core.money import Money
from acp_proxy.core.usage import NOTHING, Usage
from acp_proxy.figures import clean
from acp_proxy.ledger import LedgerReader, Query, Sums
from acp_proxy.report.formats import json_in_pieces, without_controls
from acp_proxy.report.periods import sums_by_day
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
_BY = ("user", "team", "project", "agent", "model", "kind", "usage_source", "cost_source")
_UNIT = "Tokens"
_AT_ONCE = 100  # rows in a piece of text

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
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for number, row in enumerate(found, 1):
        writer.writerow([_cell(row[name]) for name in COLUMNS])
        if not number % _AT_ONCE:
            yield file.getvalue()
            file.seek(0)
            file.truncate()
    yield file.getvalue()


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
    """One for each currency; the tokens stand in the first of them, so that they add up."""
    user, team, project, agent, model, kind, usage_source, cost_source = key
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
            **periods,
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
            return _text(value)
    return value


@lru_cache(maxsize=1024)  # the same few names in row after row
def _text(value: str) -> str:
    text = clean(value)
    return f"'{text}" if text.startswith(("=", "+", "@", "-")) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    return text[1:].replace(".", "", 1).isdigit()

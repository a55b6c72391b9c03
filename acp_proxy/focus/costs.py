"""The four costs of a row: what it costs by the public price, by the agreed one, as booked, and amortised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from msgspec import Struct

from acp_proxy.catalog import Catalog
from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage

COSTS = ("BilledCost", "ContractedCost", "EffectiveCost", "ListCost")
ListPrice = Callable[[str, Usage, int], Money | None]
"""A model's tokens and a moment (Unix ns) -> what they cost without an agreement; None where that is not known."""


class Charge(Struct, frozen=True):
    """What one row is about: what a user spent with an agent and a model on one day of a time zone."""

    day: datetime  # its local midnight, without a zone
    noon: int  # Unix ns
    user: str | None
    team: str | None
    agent: str | None
    model: str | None
    cost_source: str | None
    usage: Usage
    billed: Money


def effective_cost(charge: Charge) -> Money:
    """After amortisation of what was paid in advance. Nothing is: what was booked."""
    return charge.billed


def costs(charge: Charge, list_price: ListPrice, *, alone: bool) -> Mapping[str, str]:
    """`alone`: the tokens cost this amount and no other, so that prices apply to them."""
    listed = None
    if alone and charge.model and charge.cost_source == "computed" and charge.billed.currency == "USD":
        listed = list_price(charge.model, charge.usage, charge.noon)
    return {
        "BilledCost": charge.billed.text,
        "ContractedCost": charge.billed.text,
        "EffectiveCost": effective_cost(charge).text,
        "ListCost": (listed or charge.billed).text,
    }


def list_price(priced: Catalog, public: Catalog) -> ListPrice:
    """By the packaged prices, `public`, where `priced` has one of the user's own; else what was booked is that."""

    def price(model: str, usage: Usage, at: int) -> Money | None:
        found = priced.find(model)
        return public.price(model, usage, at).cost if found is not None and found.configured else None

    return price

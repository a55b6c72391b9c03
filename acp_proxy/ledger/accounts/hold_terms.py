"""The terms of a hold, and what of its amount a row does not charge by them."""

from __future__ import annotations

import json
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from acp_proxy.core.budget import Budget, counted
from acp_proxy.core.budget.charge import is_lost, is_presumed
from acp_proxy.core.entry import Entry, UsageLine
from acp_proxy.core.money import summed
from acp_proxy.ledger.accounts.standings import charged
from acp_proxy.system.decoding import json_decoder


class Terms(Struct, frozen=True, omit_defaults=True):
    """The terms of a hold that settling it needs, stored with it: a dead owner's settings are not available."""

    models: tuple[str, ...] | None = None  # whose missing prices it estimates; () is any, None for none
    rates: tuple[tuple[str, int], ...] = ()

    def units(self, own: str) -> Iterable[str]:
        return (*[currency for currency, _ in self.rates], own)


def terms_of(budget: Budget) -> str | None:
    """Its `Terms`; without rates the models alone, as versions read it that know none."""
    models = budget.scope.model if budget.limit.is_money and budget.on_unpriced == "estimate" else None
    if budget.rates:
        return msgspec.json.encode(Terms(models, budget.rates)).decode()
    return None if models is None else json.dumps(models)


def read_terms(text: str | None) -> Terms:
    """Of any model where it cannot be read: an error would come up whenever the ledger is opened."""
    if text is None:
        return Terms()
    try:
        if text.startswith("{"):
            return json_decoder(Terms).decode(text)
        return Terms(json_decoder(tuple[str, ...]).decode(text))
    except msgspec.MsgspecError:
        return Terms(())


def beyond_row(entry: Entry, amount: int, unit: str, text: str | None) -> int:
    """What is charged beyond a row for a hold of this amount and unit, with terms as stored."""
    return max(0, amount - _counted(entry, unit, text))


def _counted(entry: Entry, unit: str, text: str | None) -> int:
    """What the row charges by itself where it misses something; where it does not, more than any hold."""
    if is_lost(entry, unit):
        return 0
    terms = read_terms(text)
    if unit != "turns" and is_presumed(entry):
        return entry.usage.total if unit == "tokens" else _cost(entry.lines, unit, terms)
    if terms.models is None:
        return 2**63
    lines = [line for line in entry.lines if charged(terms.models, line.model)]
    if entry.cost_source == "parent" or not any(line.cost is None and line.usage.total for line in lines):
        return 2**63
    return _cost(lines, unit, terms)


def _cost(lines: Iterable[UsageLine], currency: str, terms: Terms) -> int:
    costs = summed(line.cost for line in lines if line.cost is not None)
    return counted({cost.currency: cost.nano for cost in costs}, currency, terms.rates)

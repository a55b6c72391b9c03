"""The policy of a hub: budgets and prices that its administrators set for everybody, as values and as a document.

A document has budgets as a `[[budget]]` of a configuration file has them, and prices as a `[prices."MODEL"]`: the same
checks hold. Reads and writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from acp_proxy.config.budgets import budgets_of
from acp_proxy.config.files import ConfigError, TomlFile
from acp_proxy.config.layers import of_file
from acp_proxy.config.values import Price
from acp_proxy.core.budget import Budget
from acp_proxy.core.budget.plan_limits import PlanBudget
from acp_proxy.ledger.hub.policy import Changes, Document, Table

MOST_BUDGETS, MOST_PRICES = 500, 1000
_NAMED = Path("policy")  # in place of a file, in errors


class Policy(Struct, frozen=True):
    """What a document says."""

    budgets: tuple[Budget, ...] = ()
    plan_budgets: tuple[PlanBudget, ...] = ()
    prices: Mapping[str, Price] = {}

    def replaces_nothing(self) -> bool:
        return not (self.budgets or self.plan_budgets or self.prices)


def policy_of(document: Document) -> Policy:
    """Raises ConfigError with one line for what is not as it must be."""
    if len(document.budgets) > MOST_BUDGETS or len(document.prices) > MOST_PRICES:
        raise ConfigError(f"policy: expected at most {MOST_BUDGETS} budgets and prices of {MOST_PRICES} models")
    found = budgets_of(TomlFile(_NAMED, "", {"budget": document.budgets}), "hub")
    return Policy(
        tuple(each for each in found if isinstance(each, Budget)),
        tuple(each for each in found if isinstance(each, PlanBudget)),
        _prices(document.prices),
    )


def understood(document: Document) -> Policy:
    """The same of what a newer hub has said: what is not known here is left out, and the hub holds to it."""
    budgets = [each for table in document.budgets for each in _one(table)]
    prices = {}
    for name, rates in document.prices.items():
        try:
            prices.update(_prices({name: rates}))
        except ConfigError:
            continue
    return Policy(
        tuple(each for each in budgets if isinstance(each, Budget)),
        tuple(each for each in budgets if isinstance(each, PlanBudget)),
        prices,
    )


def changed(document: Document, changes: Changes) -> Document:
    """With budgets set or, where one is None, removed, each by its name; and prices, each by its model.

    Keys of a budget that are not given stay as they were. Raises ConfigError for one that is not there.
    """
    budgets = {str(table.get("name")): table for table in document.budgets}
    for name, table in changes.budgets.items():
        if table is None:
            _take(budgets, name, "budget")
        else:
            budgets[name] = {**_without_none({**budgets.get(name, {}), **table}), "name": name}
    prices = dict(document.prices)
    for name, rates in changes.prices.items():
        if rates is None:
            _take(prices, name, "price of")
        else:
            prices[name] = rates
    return Document(list(budgets.values()), prices)


def differences(before: Document, after: Document) -> Iterator[tuple[str, str, Table | None, Table | None]]:
    """Of each budget and price that is another one: what it is, its name, before, and after."""
    named = [{str(table.get("name")): table for table in each.budgets} for each in (before, after)]
    for kind, (old, new) in (("budget", named), ("price", (before.prices, after.prices))):
        for name in dict.fromkeys((*old, *new)):
            if old.get(name) != new.get(name):
                yield kind, name, old.get(name), new.get(name)


def _one(table: Table) -> Iterable[Budget | PlanBudget]:
    try:
        return budgets_of(TomlFile(_NAMED, "", {"budget": [table]}), "hub")
    except ConfigError:
        return ()


def _prices(tables: Mapping[str, Table]) -> dict[str, Price]:
    found: dict[str, dict[str, Any]] = {}
    for key, value in of_file(TomlFile(_NAMED, "", {"prices": dict(tables)})).items():
        found.setdefault(key[1], {})[key[2]] = value
    return {name: Price(**rates) for name, rates in found.items()}


def _without_none(table: Table) -> Table:
    return {key: value for key, value in table.items() if value is not None}


def _take(tables: dict[str, Any], name: str, what: str) -> None:
    if tables.pop(name, None) is None:
        raise ConfigError(f"policy: there is no {what} {name!r}")

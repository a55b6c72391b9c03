"""Prices and context windows of models: data from scripts/build-catalog, overridden by the user's own.

Loaded by the first lookup or by `read`, never while an agent starts, and never from the network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core import models, pricing
from acp_proxy.core.pricing import CacheWrite, Priced, PriceRow, Rates, Step
from acp_proxy.core.usage import Usage

if TYPE_CHECKING:
    from acp_proxy.catalog.table import Table


CONFIGURATION = "configuration"  # the source of the user's prices


class OwnPrice(Protocol):
    """A `[prices."…"]`: US dollars per million tokens as decimal text, None where the user did not say."""

    @property
    def input(self) -> str | None: ...
    @property
    def output(self) -> str | None: ...
    @property
    def cached_read(self) -> str | None: ...
    @property
    def cached_write(self) -> str | None: ...
    @property
    def cached_write_1h(self) -> str | None: ...
    @property
    def context(self) -> int | None: ...


class Found(Struct, frozen=True):
    """The model that a reported id resolves to."""

    name: str
    row: PriceRow
    configured: bool = False  # the price is the user's own


class Catalog:
    """Implements `Pricer`. Remembers what the ids of its sessions resolved to, and changes by `reprice` alone."""

    def __init__(
        self,
        prices: Mapping[str, OwnPrice] | None = None,
        aliases: Mapping[str, str] | None = None,
        cache_write: CacheWrite = "5m",
    ) -> None:
        """The packaged table, under the user's prices, aliases (reported id → model) and kind of cache write.

        It is read when it is first asked.
        """
        self._prices = {models.canonical(name.strip()): price for name, price in (prices or {}).items()}
        self._sources: Mapping[str, str] = {}
        self._aliases = {name.strip().lower(): model for name, model in (aliases or {}).items()}
        self.cache_write: CacheWrite = cache_write
        self._resolved = lru_cache(maxsize=64)(self._resolve)  # 0.3 ms the first time, asked at every update

    def reprice(self, prices: Mapping[str, OwnPrice], sources: Mapping[str, str] | None = None) -> None:
        """Other prices in place of the user's, from the next question on; by name, where those come from elsewhere."""
        self._sources = {models.canonical(name.strip()): source for name, source in (sources or {}).items()}
        self._prices = {models.canonical(name.strip()): price for name, price in prices.items()}
        self._resolved.cache_clear()

    def read(self) -> None:
        """Read it now: at the first question its file may be another version's."""
        self._table  # noqa: B018  it is cached

    def price(self, model: str | None, usage: Usage, at: int, context: int | None = None) -> Priced:
        found = self.find(model)
        if found is None:
            return Priced(None, detail="model unknown" if model else "no model named")
        quote = pricing.quote(found.row, at, context, usage.prompt)
        priced = pricing.cost(quote.rates, usage, self.cache_write)
        return Priced(
            priced.cost,
            found.name,
            estimated=priced.cost is not None and (priced.estimated or quote.estimated),
            detail="; ".join((*quote.notes, priced.detail) if priced.detail else quote.notes),
            configured=found.configured and priced.cost is not None,  # else the agent's own cost stands
        )

    def window(self, model: str | None) -> int | None:
        found = self.find(model)
        return found.row.window if found else None

    def is_alias(self, model: str | None) -> bool:
        return model is not None and models.is_alias(model) and self.find(model) is None

    def concrete(self, model: str | None) -> str | None:
        """The fixed model that an id names, as far as that is known: an alias that resolves gives its row's model.

        One of a lab by its own name; what a gateway sells keeps the gateway's, whose price it has. What the user set a
        price for is called so that it has that price.
        """
        if model is None or not models.is_alias(model):
            return model
        found = self.find(model)
        if found is None:
            return None
        name = models.lab_and_model(found.name)[1]
        if not found.configured or self._has_price(name, found):
            return name
        return next((other for other in (found.name, self.meant(model)) if self._has_price(other, found)), name)

    def lab(self, model: str) -> str | None:
        """The maker of the model that an id names; None if unknown, or if only the seller is known."""
        found = self.find(model)
        return models.lab_and_model(found.name)[0] if found else None

    def find(self, model: str | None) -> Found | None:
        """The row that a reported id resolves to; None when there is none."""
        return self._resolved(model) if model and len(model) <= models.LONGEST else None

    def meant(self, model: str) -> str:
        """The id that the user's aliases name in place of this one; itself where there is no such alias."""
        alias = next((name for name in models.alias_names(model) if name in self._aliases), None)
        return model if alias is None else self._aliases[alias]

    @property
    def date(self) -> date:
        """The day up to which the table's sources were read."""
        return date.fromisoformat(self._table.date)

    @property
    def rows(self) -> Iterator[tuple[str, PriceRow]]:
        """All rows of the packaged table, by name."""
        return ((name, self._table.row(name)) for name in sorted(self._table.rows))

    def listed(self) -> dict[str, Found]:
        """The result of `find` for each row's name, and for each further model with a configured price or window."""
        found = {name: Found(name, row) for name, row in self.rows}
        for name in self._prices:
            if own := self.find(name):
                found[own.name if self.find(own.name) == own else name] = own
        return dict(sorted(found.items()))

    def _resolve(self, model: str) -> Found | None:
        meant = self.meant(model)
        return self._find(meant, models.window_hint(model) or models.window_hint(meant))

    def _has_price(self, model: str, of: Found) -> bool:
        found = self.find(model)
        return found is not None and found.configured and found.row.steps == of.row.steps

    def _find(self, model: str, window: int | None) -> Found | None:
        own = next((name for name in map(models.canonical, models.alias_names(model)) if name in self._prices), None)
        name = None
        for candidate in models.row_names(model):
            name = self._table.name(candidate)
            own = own or next((key for key in (candidate, name, _without_lab(name)) if key in self._prices), None)
            if name:  # also where the price is the user's: the row has the lab, and a window
                break
        if name is None:  # a lab's new model
            own = own or next((key for key in map(_without_lab, models.row_names(model)) if key in self._prices), None)
        row = self._table.row(name) if name else None
        if row and window:
            row = replace(row, window=window)
        if own is not None:
            return _configured(name or own, self._prices[own], row, self._sources.get(own, CONFIGURATION))
        return Found(name, row) if name and row else None

    @cached_property
    def _table(self) -> Table:
        from acp_proxy.catalog.table import Table

        return Table.read(Path(__file__).with_name("catalog.json").read_bytes())


def _without_lab(row: str | None) -> str | None:
    lab, name = models.lab_and_model(row or "")
    return name if lab else None


def _configured(name: str, price: OwnPrice, row: PriceRow | None, source: str) -> Found:
    """The user's rates as a whole, or only a window beside the catalog's rates."""
    rates = _rates_of(price)
    window = price.context or (row.window if row else None)
    if rates == Rates() and row:
        return Found(name, replace(row, window=window))
    return Found(name, PriceRow((Step(None, rates),), window, None, source), configured=rates != Rates())


def _rates_of(price: OwnPrice) -> Rates:
    return Rates.of(price.input, price.output, price.cached_read, price.cached_write, price.cached_write_1h)

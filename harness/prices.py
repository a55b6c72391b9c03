"""Prices that stay as they are, whatever the catalog says."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from acp_proxy.core.money import Money
from acp_proxy.core.pricing import Priced
from acp_proxy.core.usage import Usage


class FixedPrices(Struct, frozen=True):
    """A `Pricer` with nano-dollars per token: input, cached read, cached write, output and thinking."""

    rates: Mapping[str, tuple[int, int, int, int]]
    configured: frozenset[str] = frozenset()

    def price(self, model: str | None, usage: Usage, at: int, context: int | None = None) -> Priced:
        rate = self.rates.get(model or "")
        if rate is None:
            return Priced(None)
        tokens = (usage.input, usage.cached_read, usage.cached_write, usage.completion)
        nano = sum(count * per_token for count, per_token in zip(tokens, rate, strict=True))
        return Priced(Money(nano, "USD"), f"fixed/{model}", configured=model in self.configured)

    def window(self, model: str | None) -> int | None:
        return 200_000 if model in self.rates else None

    def is_alias(self, model: str | None) -> bool:
        return model in ("auto", "default", "opus")

    def concrete(self, model: str | None) -> str | None:
        return None if self.is_alias(model) else model


PRICES = FixedPrices(
    {"claude-opus-5-5": (4000, 200, 5000, 20000), "haiku": (1000, 50, 1250, 5000), "mock": (10, 1, 10, 100)}
)

"""What tokens cost. Stub of the interface that the meter uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from acp_proxy.core.money import Money
from acp_proxy.core.usage import Usage


@dataclass(frozen=True, slots=True)
class Priced:
    """`cost` is None when the model or one of its rates is unknown."""

    cost: Money | None
    row: str | None = None  # catalog row, e.g. "anthropic/claude-opus-5-5"
    estimated: bool = False
    detail: str = ""


class Pricer(Protocol):
    def price(self, model: str | None, usage: Usage, at: int, context: int | None = None) -> Priced:
        """The cost of `usage` at `at` (Unix ns). `context` is the largest context of a single request, in tokens."""

    def window(self, model: str | None) -> int | None:
        """The model's context window in tokens."""

    def is_alias(self, model: str | None) -> bool:
        """Whether the id names no fixed model (`default`, `auto`, bare `sonnet` ...)."""

"""The size of a running turn's hold: the usage of recent similar turns, within bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from acp_proxy.core.budget import Budget, Limit
from acp_proxy.core.money import NANO

RECENT = 50  # turns to look back on
_LEAST_MONEY = NANO // 100
_MOST_TOKENS = 20_000


class HoldSize(Struct, frozen=True):
    """In the limit's unit: a turn holds `wanted`, or what is left of it; with less than `floor` left, at least 1, none
    begins.
    """

    wanted: int
    floor: int

    @classmethod
    def of(cls, budget: Budget, own: Sequence[int] = (), agents: Sequence[int] = ()) -> HoldSize:
        """From what the last `RECENT` turns took, in the limit's unit and in any order; without those of unknown price.

        `own` are turns of the same agent, model and user, `agents` of the same agent. A size that is configured
        has no bounds, and may be below the floor of automatic ones.
        """
        floor, ceiling = _range(budget.limit)
        if budget.hold != "auto":
            wanted = max(budget.hold, 1)
            return cls(wanted, min(floor, wanted))
        recent = own or agents
        size = _p90(recent) if recent else budget.limit.amount // 100
        return cls(max(floor, min(size, ceiling)), floor)

    def within(self, left: int) -> int | None:
        """The amount to hold if `left` is left; None if that is too little."""
        return min(self.wanted, left) if left >= self.floor else None


def in_unit(budget: Budget, recent: Callable[[str], Sequence[int]]) -> Sequence[int]:
    """The usage of turns in the limit's unit, converted from all units that the budget counts."""
    if not budget.rates:  # as of nearly all: each prompt asks
        return recent(budget.limit.unit)
    return [budget.counted({unit: amount}) for unit in budget.units for amount in recent(unit)]


def _range(limit: Limit) -> tuple[int, int]:
    match limit.unit:
        case "turns":
            return 1, 1
        case "tokens":
            return 1, _MOST_TOKENS
    return _LEAST_MONEY, limit.amount // 10


def _p90(amounts: Sequence[int]) -> int:
    """The smallest amount that covers nine of ten: nearest rank, never between two amounts."""
    return sorted(amounts)[-(len(amounts) // 10) - 1]

"""What rows add to an account, and sums of that. Ledgers sum in SQL as well, and must get the same results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from acp_proxy.core.budget import Account, Budget, Standing
from acp_proxy.core.entry import Entry, UsageLine
from acp_proxy.core.money import Money, currency_code
from acp_proxy.core.scope import Scope


class Contribution(Struct, frozen=True, omit_defaults=True):
    """In an account's unit: what the unit does not need is not set."""

    nano: Mapping[str, int] = field(default_factory=dict)  # by currency
    tokens: int = 0
    turns: int = 0
    unpriced: int = 0  # rows with tokens whose price is unknown, or lines where only those of some models count
    untold: int = 0  # rows that are lower bounds, or models of them

    @classmethod
    def of(cls, unit: str, scope: Scope, entry: Entry, lines: Sequence[UsageLine]) -> Contribution:
        """Of a row, by those of its lines that count; of none nothing."""
        if not lines:
            return NOTHING
        models = len({line.model for line in lines}) if scope.model else 1
        match unit:
            case "turns":
                return cls(turns=int(entry.kind == "turn"))
            case "tokens":
                tokens = sum(line.usage.total for line in lines)
                return cls(tokens=tokens, untold=models if entry.usage_untold else 0)
        nano: dict[str, int] = {}
        for cost in (line.cost for line in lines if line.cost is not None):
            nano[cost.currency] = nano.get(cost.currency, 0) + cost.nano
        return cls(nano, unpriced=_unpriced(scope, entry, lines), untold=models if entry.cost_untold else 0)

    @classmethod
    def of_cost(cls, currency: str, nano: int) -> Contribution:
        """Rows of earlier versions have the currency as the agent spelled it."""
        return cls({currency_code(currency): nano})

    def __add__(self, other: Contribution) -> Contribution:
        if self is NOTHING or other is NOTHING:  # as most sums begin: what is frozen may be its own sum
            return other if self is NOTHING else self
        return self._plus(other, 1)

    def __sub__(self, other: Contribution) -> Contribution:
        return self._plus(other, -1)

    def _plus(self, other: Contribution, times: int) -> Contribution:
        nano = dict(self.nano)
        for currency, amount in other.nano.items():
            nano[currency] = nano.get(currency, 0) + amount * times
        return Contribution(
            nano,
            self.tokens + other.tokens * times,
            self.turns + other.turns * times,
            self.unpriced + other.unpriced * times,
            self.untold + other.untold * times,
        )

    def within(self, unit: str) -> Contribution:
        """What an account of this unit needs of it."""
        match unit:
            case "turns":
                return Contribution(turns=self.turns)
            case "tokens":
                return Contribution(tokens=self.tokens, untold=self.untold)
        return Contribution(self.nano, unpriced=self.unpriced, untold=self.untold)

    def counted(self, budget: Budget) -> int:
        """What a budget counts of it, in its unit."""
        match budget.limit.unit:
            case "turns":
                return self.turns
            case "tokens":
                return self.tokens
        return budget.counted(self.nano)

    def standing(self, account: Account, extra: int = 0, held: int = 0, granted: int = 0) -> Standing:
        """An account of which this is spent, and `extra` beyond the rows."""
        units = account.budget.units
        others = sorted((currency, nano) for currency, nano in self.nano.items() if currency not in units and nano)
        return Standing(
            account,
            self.counted(account.budget) + extra,
            held,
            granted,
            tuple(Money(nano, currency) for currency, nano in others),
            self.unpriced,
            self.untold,
        )


def _unpriced(scope: Scope, entry: Entry, lines: Sequence[UsageLine]) -> int:
    if not scope.model:
        return int(entry.unpriced)
    return 0 if entry.cost_source == "parent" else sum(line.cost is None and line.usage.total > 0 for line in lines)


NOTHING = Contribution()

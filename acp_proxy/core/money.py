"""Money as an integer number of nano-units (10**-9) with its currency; never a float, never mixed.

A currency is an ISO 4217 code ("USD", "EUR") or any other name ("credits"). It is compared, and converted only by a
budget that has a rate for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from decimal import Decimal

NANO = 1_000_000_000
COUNTED = ("tokens", "turns")  # the units of budgets that are no currency
_MOST = 2**63 - 1  # what a ledger column holds
_DIGITS = 12  # before the decimal point, of anything that fits it
_SIGNS = {"USD": "$", "EUR": "€", "GBP": "£"}


class Money(Struct, frozen=True):
    """`nano` 10**-9 units of `currency`."""

    nano: int
    currency: str

    @classmethod
    def of(cls, amount: Decimal | str | int, currency: str) -> Money:
        """From decimal text or an exact number of units, rounded half-even to a nano-unit.

        Raises ValueError for what is not a finite number or does not fit a ledger's column.
        """
        from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation  # 2 ms, and not for who only shows amounts

        try:
            exact = Decimal(amount)
        except (InvalidOperation, ValueError, TypeError) as error:
            raise ValueError(f"not an amount of money: {amount!r}") from error
        if not exact.is_finite():
            raise ValueError(f"not an amount of money: {amount!r}")
        if exact.adjusted() > _DIGITS:  # before anything is made of an exponent like that of 1e999999999
            raise ValueError(f"amount of money out of range: {amount!r}")
        nano = int((exact * NANO).to_integral_value(ROUND_HALF_EVEN))
        if abs(nano) > _MOST:
            raise ValueError(f"amount of money out of range: {amount!r}")
        return cls(nano, currency)

    @property
    def text(self) -> str:
        """Exact decimal text in units, without trailing zeros: `0.045989`, `3`, `-0.5`."""
        return decimal_text(self.nano)

    def plus(self, other: Money) -> Money:
        if other.currency != self.currency:
            raise ValueError(f"{self.currency} and {other.currency} are not added")
        return Money(self.nano + other.nano, self.currency)

    def minus(self, other: Money) -> Money:
        return self.plus(Money(-other.nano, other.currency))


def currency_code(name: str) -> str:
    """The one spelling of a currency: `usd`, `Usd` and ` USD` are `USD`. A name that is no ISO code keeps its case."""
    plain = name.strip()
    return plain.upper() if len(plain) == 3 and plain.isascii() and plain.isalpha() else plain


def rounded(number: int, step: int) -> int:
    """How many steps a number is, half to even; `step` is above 0."""
    steps, rest = divmod(number, step)
    return steps + (2 * rest > step or (2 * rest == step and steps % 2 == 1))


def decimal_text(nano: int) -> str:
    """Nano-units as exact decimal text in units."""
    sign = "-" if nano < 0 else ""
    units, rest = divmod(abs(nano), NANO)
    fraction = f"{rest:09d}".rstrip("0")
    return f"{sign}{units}.{fraction}" if fraction else f"{sign}{units}"


def is_money(unit: str) -> bool:
    """Whether amounts in a budget's unit are nano-units of the currency that it names; else it counts."""
    return unit not in COUNTED


def exact_text(amount: int, unit: str) -> str:
    """An amount in a budget's unit as exact decimal text, of a count too."""
    return decimal_text(amount) if is_money(unit) else str(amount)


def amount_text(money: Money, decimals: int = 9, *, column: bool = False) -> str:
    """As people read it, the same everywhere: `$1.25`, `-€0.057611`, `2.50 credits`.

    It has two to `decimals` places, in a column all of them. What would round to nothing is `<$0.0001`.
    """
    unit = 10**decimals
    shown = rounded(abs(money.nano), NANO // unit)
    below, minus = "", "-" if money.nano < 0 else ""
    if money.nano and not shown:
        below, shown = "<", 1
    fraction = f"{shown % unit:0{decimals}d}"
    if not column:
        fraction = fraction.rstrip("0").ljust(2, "0")
    figure = f"{shown // unit:,}.{fraction}"
    sign = _SIGNS.get(money.currency)
    return f"{below}{minus}{sign}{figure}" if sign else f"{below}{minus}{figure} {money.currency}"


def budget_text(amount: int, unit: str, allowed: int) -> str:
    """An amount of a budget as people read it, the finer the less is allowed: `$0.0576`; a count without its unit."""
    if not is_money(unit):
        return f"{amount:,}"
    return amount_text(Money(amount, unit), 2 if allowed >= 100 * NANO else 4 if allowed >= NANO // 10 else 9)


def summed(amounts: Iterable[Money]) -> tuple[Money, ...]:
    """One amount per currency, in the order in which the currencies first came."""
    sums: dict[str, int] = {}
    for amount in amounts:
        sums[amount.currency] = sums.get(amount.currency, 0) + amount.nano
    return tuple([Money(nano, currency) for currency, nano in sums.items()])


def plus(amounts: tuple[Money, ...], more: tuple[Money, ...]) -> tuple[Money, ...]:
    """Both together. Each has one amount per currency; mostly both have one, and the same."""
    if not amounts or not more:
        return amounts or more
    if len(amounts) == len(more) == 1 and amounts[0].currency == more[0].currency:
        return (Money(amounts[0].nano + more[0].nano, amounts[0].currency),)
    return summed((*amounts, *more))

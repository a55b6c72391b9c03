"""Rows of a bill added up as they are read, by all that tells them apart: a bill may have a million."""

from __future__ import annotations

from decimal import Decimal
from math import gcd

from acp_proxy.bills import BillLine, Part
from acp_proxy.core.money import Money, currency_code
from acp_proxy.core.usage import Usage

_Key = tuple[int, str | None, str | None, str | None, str | None, Part | None, str | None]
Tokens = tuple[int, int, int, int, int]  # uncached input, cached read, cached write, that for an hour, output
NO_TOKENS: Tokens = (0, 0, 0, 0, 0)
_PLACES = 9  # decimals of a unit that are kept


class Fold:
    """`add` takes one row; sums are exact, and the same in whatever order rows come."""

    def __init__(self) -> None:
        self._sums: dict[_Key, list[int]] = {}
        self._codes: dict[str, str] = {}

    def add(
        self,
        day: int,
        model: str | None = None,
        *,
        key: str | None = None,
        user: str | None = None,
        item: str | None = None,
        part: Part | None = None,
        tokens: Tokens = NO_TOKENS,
        amount: Decimal | None = None,
        currency: str = "USD",
        cents: bool = False,
    ) -> None:
        """Raises ValueError for an amount that is none."""
        nano = None if amount is None else nano_of(amount, _PLACES - 2 if cents else _PLACES)
        put(self.sums(day, model, key, user, item, part, None if amount is None else currency), tokens, nano)

    def sums(
        self,
        day: int,
        model: str | None,
        key: str | None,
        user: str | None,
        item: str | None = None,
        part: Part | None = None,
        currency: str | None = None,
    ) -> list[int]:
        """What `put` adds to, for who looks it up once for many rows. Rows without an amount have no currency."""
        code = None if currency is None else self._codes.get(currency) or self._code(currency)
        where = (day, model or None, key or None, user or None, item, part, code)
        found = self._sums.get(where)
        if found is None:
            found = self._sums[where] = [0] * 8
        return found

    def _code(self, currency: str) -> str:
        code = self._codes[currency] = currency_code(currency)
        return code

    def lines(self) -> tuple[BillLine, ...]:
        """By day, then by the rest of what tells them apart."""
        return tuple(_line(where, self._sums[where]) for where in sorted(self._sums, key=_order))


def put(sums: list[int], tokens: Tokens, nano: int | None) -> None:
    """One row, whose amount is in nano-units."""
    if tokens is not NO_TOKENS:
        uncached, read, write, write_1h, output = tokens
        sums[0] += uncached
        sums[1] += read
        sums[2] += write
        sums[3] += write_1h
        sums[4] += output
    if nano is not None:
        sums[5] += nano
        sums[6] += 1
        sums[7] = gcd(sums[7], nano)


def _order(where: _Key) -> tuple[object, ...]:
    return where[0], *(("", "") if part is None else ("x", part) for part in where[1:])


def nano_of(amount: Decimal, places: int = _PLACES) -> int:
    """As `Money.of`, which takes three times as long. Half-even, as the default context rounds. Raises ValueError."""
    if not amount.is_finite() or amount.adjusted() > _PLACES:
        raise ValueError(f"not an amount of money: {str(amount)[:40]}")
    return int(amount.scaleb(places).to_integral_value())


def _line(where: _Key, sums: list[int]) -> BillLine:
    day, model, key, user, item, part, currency = where
    uncached, read, write, write_1h, output, nano, amounts, divisor = sums
    amount = None if currency is None else Money(nano, currency)
    usage = Usage(uncached, read, write, output)
    return BillLine(day, model, key, user, item, part, usage, write_1h, amount, amounts, _decimals(divisor))


def _decimals(divisor: int) -> int:
    """With how many decimals amounts were given that are all divisible by that many nano-units."""
    return next((places for places in range(_PLACES) if divisor % 10 ** (_PLACES - places) == 0), _PLACES)

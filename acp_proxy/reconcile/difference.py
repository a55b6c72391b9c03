"""Bill less ledger, in one currency, split into causes whose amounts add up to it to the nano-unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, get_args

from msgspec import Struct

from acp_proxy.bills import Bill
from acp_proxy.core.money import Money
from acp_proxy.reconcile.cells import ALL, Cell, Cells, Names
from acp_proxy.reconcile.prices import cost, rates_on

Cause = Literal["unseen", "tokens", "price", "booked", "not_tokens", "unpriced"]
CAUSES: tuple[Cause, ...] = get_args(Cause)
"""Days of models that the ledger lacks; other tokens than billed; another price than the known one; another cost in the
ledger than its tokens have at known prices; what is billed beside tokens of a model; what has no known price."""


class Difference(Struct, frozen=True):
    """`parts` by `CAUSES`, without those that are 0."""

    whole: Money
    parts: tuple[tuple[Cause, Money], ...]


def difference(cells: Cells, bill: Bill, names: Names) -> Difference | None:
    """In the currency in which most was billed; None where nothing was. Only what is on the bill is compared."""
    billed: dict[str, int] = {}
    for line in bill.lines:
        if line.amount is not None:
            billed[line.amount.currency] = billed.get(line.amount.currency, 0) + line.amount.nano
    if not billed:
        return None
    currency = max(billed, key=lambda code: (billed[code], code))
    sums: dict[Cause, int] = dict.fromkeys(CAUSES, 0)
    for model, days in cells.by_model.items():
        for day, cell in days.items():
            for cause, nano in _of_cell(model, day, cell, bill, names, currency):
                sums[cause] += nano
    for line in bill.lines:
        is_in_a_cell = line.item is None and (names.one or names.of(line.model) is not None)
        if line.amount is not None and line.amount.currency == currency and not is_in_a_cell:
            sums["not_tokens"] += line.amount.nano
    parts = tuple((cause, Money(nano, currency)) for cause, nano in sums.items() if nano)
    return Difference(Money(sum(sums.values()), currency), parts)


def _of_cell(model: str, day: int, cell: Cell, bill: Bill, names: Names, currency: str) -> Iterator[tuple[Cause, int]]:
    """Each step goes from one amount to the next, so that nothing is left over."""
    billed, booked = _nano(cell.bill.costs, currency), _nano(cell.ledger.costs, currency)
    if not cell.rows:
        yield "unseen", billed - booked
        return
    known = currency == "USD" and model != ALL and day in bill.token_days & bill.money_days and not cell.unpriced
    rates = rates_on(names.catalog, model, day) if known else None
    of_bill, of_ledger = cost(rates, cell.bill), cost(rates, cell.ledger, names.catalog.cache_write)
    if of_bill is None or of_ledger is None:
        yield "unpriced", billed - booked
        return
    yield "price", billed - of_bill
    yield "tokens", of_bill - of_ledger
    yield "booked", of_ledger - booked


def _nano(amounts: Sequence[Money], currency: str) -> int:
    return sum(amount.nano for amount in amounts if amount.currency == currency)


def in_steps(whole: int, parts: Sequence[int], step: int) -> list[int]:
    """Each part as a multiple of `step`, so that together they are `whole` as one: by the largest remainders.

    `whole` is their sum. None is off by a step or more.
    """
    rounded = _half_up(whole, step)
    floors = [part // step for part in parts]
    left = rounded - sum(floors)
    order = sorted(range(len(parts)), key=lambda at: (-(parts[at] % step), at))
    for at in order[:left]:
        floors[at] += 1
    return [each * step for each in floors]


def _half_up(number: int, step: int) -> int:
    return (2 * number + step) // (2 * step)

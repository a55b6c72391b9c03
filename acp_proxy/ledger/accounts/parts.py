"""The statement that asks how accounts stand: rows of several kinds, each with all of these columns, by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from acp_proxy.core.budget.contribution import NOTHING, Contribution
from acp_proxy.core.money import NANO
from acp_proxy.ledger.statements import Statement


class Part(NamedTuple):
    """One row. Of what is spent the numbers are a `Contribution`, its money as units and nano-units."""

    what: str
    place: str  # which account: its index, or of a hold its key
    currency: str | None
    units: int | None  # of a hold: what others hold
    nano: int | None  # what the turn that asks does
    tokens: int | None  # the lowest limit that any was admitted under
    turns: int | None  # the highest
    unpriced: int | None
    untold: int | None
    text: str
    more: str

    @property
    def amount(self) -> int:
        return int(self.units or 0) * NANO + int(self.nano or 0)

    @property
    def contribution(self) -> Contribution:
        cost = Contribution.of_cost(self.currency, self.amount) if self.currency else NOTHING
        numbers = (int(number or 0) for number in (self.tokens, self.turns, self.unpriced, self.untold))
        return cost + Contribution({}, *numbers)


COLUMNS = ", ".join(Part._fields)
_NONE = {
    name: "0" if name in ("units", "nano", "tokens", "turns", "unpriced", "untold") else "''" for name in Part._fields
}


def columns(what: str, **given: str) -> str:
    """SQL for the columns of one kind; what is not given is empty."""
    return ", ".join((_NONE | given | {"what": f"'{what}'"}).values())


def union_all(parts: Iterable[Statement]) -> Statement:
    """Several queries as one statement, so that they see one snapshot."""
    texts, values = zip(*parts, strict=True)
    return _union(texts), list(chain.from_iterable(values))


@lru_cache(maxsize=64)  # with each prompt of the same budgets the same, and a database knows it by its hash
def _union(texts: tuple[str, ...]) -> str:
    return " UNION ALL ".join(texts)


def summed(of: str, number: str, untold: str, of_each: Mapping[str, str]) -> dict[str, str]:
    """SQL for the sums of contributions over parts of rows, as `Contribution.of` counts them.

    `of` is what has the dimensions of a row, `number` how many rows (or models of them) begin with that part,
    `untold` whether they are lower bounds; `of_each` has the units, nano, tokens and unpriced of a part.
    """
    return {
        **{name: f"sum({each})" for name, each in of_each.items()},
        "turns": f"sum(CASE WHEN {of}.kind = 'turn' THEN {number} ELSE 0 END)",
        "untold": f"sum(CASE WHEN {untold} THEN {number} ELSE 0 END)",
    }

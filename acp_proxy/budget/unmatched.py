"""Budgets whose scope matches no row of the organisation: it may be mistyped, and then they never count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from acp_proxy.core.budget import Budget
from acp_proxy.core.scope import DIMENSIONS, Dimension, fits
from acp_proxy.ledger import LedgerReader, Query


def names_nobody(budgets: Iterable[Budget], ledger: LedgerReader, organisation: str) -> Iterator[tuple[Budget, str]]:
    """Such a budget, and the values that match no row, except in dimensions for which no row has a value."""
    seen: dict[Dimension, set[str]] = {}
    for budget in budgets:
        for name in DIMENSIONS:
            patterns = budget.scope.of(name)
            if not patterns:
                continue
            if name not in seen:
                seen[name] = _seen(ledger, organisation, name)
            if seen[name] and not any(fits(pattern, value) for pattern in patterns for value in seen[name]):
                yield budget, f"no {name} in the ledger is {' or '.join(patterns)}"


def _seen(ledger: LedgerReader, organisation: str, name: Dimension) -> set[str]:
    rows = Query(where=(("organisation", organisation),))
    return {str(sums.key[0]) for sums in ledger.summed(rows, (name,)) if sums.key[0] is not None}

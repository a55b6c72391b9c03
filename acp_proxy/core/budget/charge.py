"""What a row of the ledger adds to an account. Ledgers sum in SQL, and must get the same results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core.budget import Account, Standing
from acp_proxy.core.budget.contribution import Contribution
from acp_proxy.core.entry import Entry, Origin, UsageLine
from acp_proxy.core.pricing import Priced
from acp_proxy.core.scope import DIMENSIONS, EVERYTHING, Scope
from acp_proxy.core.session_ids import booked
from acp_proxy.core.stop_reasons import CANCELLED, FAILED, LOST
from acp_proxy.core.usage import Usage
from acp_proxy.core.windows import Bounds

PRESUMED = "the proxy died during the turn: what it held"
"""The `detail` of a row that says what its turn held, because no process survived to report its usage."""

_BROKEN_OFF = LOST | {CANCELLED, FAILED}  # some agents tell of such a turn with the next


def charge(account: Account, origin: Origin, entry: Entry, *, hold: int = 0, process: str | None = None) -> int:
    """In the account's unit, 0 for a row that it does not count. `process` is the run of the proxy that made the row.

    By the row's start, and by the models that were used, whatever was expected at admission. Costs in currencies
    without a rate and unknown ones add nothing: a ledger reports them beside the sum. Only with `on_unpriced =
    "estimate"` a row that misses a price is charged at least its turn's `hold`. A lost turn, and one whose row is only
    presumed, is charged that in any case.
    """
    if account.filter.scope.leaves_out(origin.billing):
        return 0
    if is_lost(entry, account.unit):
        return hold
    lines = _lines(account, origin, entry, process)
    known = Contribution.of(account.unit, account.filter.scope, entry, lines).counted(account.budget)
    if account.unit == "turns":
        return known
    estimates = account.budget.limit.is_money and account.budget.on_unpriced == "estimate"
    presumed = is_presumed(entry) or (estimates and _misses_a_price(entry, lines))
    return max(known, hold) if presumed else known


def uncounted(account: Account, origin: Origin, entry: Entry, process: str | None = None) -> Standing:
    """The part of a row that an account does not count although `charge` counts the row, as a sum of only that.

    It is `untold` if nothing was reported of a turn that ran to its end.
    """
    lines = _lines(account, origin, entry, process)
    made = Contribution.of(account.unit, account.filter.scope, entry, lines).standing(account)
    told = entry.usage.total or entry.costs or entry.stop_reason in _BROKEN_OFF
    return replace(made, spent=0, unpriced=min(made.unpriced, 1), untold=int(made.untold > 0 and not told))


def is_lost(entry: Entry, unit: str) -> bool:
    """Whether a turn lost its client or agent before its usage in this unit was known: it will never be reported.

    Of a cost the tokens are not known. Tokens without a price are `on_unpriced`'s.
    """
    if unit == "turns" or entry.stop_reason not in LOST or entry.usage.total:
        return False
    return unit == "tokens" or not entry.costs


def is_presumed(entry: Entry) -> bool:
    """Whether a row has the least that its turn held of each unit: where a budget held more, it is charged more."""
    return entry.detail == PRESUMED


class SoFar(Struct, frozen=True):
    """What a running turn adds to an account, in its unit; `estimated` marks a lower bound from its tokens."""

    amount: int
    estimated: bool = False


def charge_so_far(
    account: Account, told: Mapping[str, int], model: str | None, lower_bound: Usage, priced: Priced | None
) -> SoFar:
    """The best figure known in mid-turn: the agent's own cost, else the lowest price of its tokens.

    `told` is that cost in nano-units by currency, of models in the account's scope; `lower_bound` is of what was
    used, and `priced` its price for the session's `model`. A configured price wins, as it does when the turn is booked.
    Turns are counted when they are held, and never while they run.
    """
    if account.unit == "turns":
        return SoFar(0)
    concerned = account.filter.scope.accepts("model", model)
    if account.unit == "tokens":
        return SoFar(lower_bound.total if concerned else 0, estimated=True)
    price = priced.cost if priced else None
    by_tokens = account.budget.counted({price.currency: price.nano}) if price else 0
    if (cost := account.budget.counted(told)) and not (by_tokens and priced and priced.configured):
        return SoFar(cost)
    return SoFar(by_tokens if concerned else 0, estimated=True)


def _misses_a_price(entry: Entry, lines: Iterable[UsageLine]) -> bool:
    return entry.cost_source != "parent" and any(line.cost is None and line.usage.total for line in lines)


def _lines(account: Account, origin: Origin, entry: Entry, process: str | None) -> list[UsageLine]:
    """The lines of the row that are in the account's window, subject and scope."""
    for dimension, value in account.filter.where:
        match dimension:
            case "session":
                own: str | None = booked(entry.session)
            case "turn":
                own = entry.id
            case "process":
                own = process
            case _:
                own = getattr(origin, dimension)
        if own != value:
            return []
    return lines_in(account.filter.scope, account.bounds, origin, entry)


def lines_in(scope: Scope, bounds: Bounds, origin: Origin, entry: Entry) -> list[UsageLine]:
    """The lines of a row that count in a window and a scope; none if its start or origin does not match."""
    if not bounds.cover(entry.started_at) or scope.leaves_out(origin.billing):
        return []
    if scope == EVERYTHING:
        return list(entry.lines)
    if not all(
        scope.accepts(dimension, getattr(origin, dimension)) for dimension in DIMENSIONS if dimension != "model"
    ):
        return []
    return [line for line in entry.lines if scope.accepts("model", line.model)]

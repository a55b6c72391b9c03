"""What the calls of a completed turn cost. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from acp_proxy.books import Call
from acp_proxy.core.entry import CostSource, Entry, UsageLine
from acp_proxy.core.meter.model_rows import split, weights_of
from acp_proxy.core.money import Money
from acp_proxy.core.pricing import Priced, Pricer
from acp_proxy.core.usage import NOTHING, Usage
from acp_proxy.importing.turns import used


class Bill(Struct, frozen=True):
    """Lines of a row with their costs."""

    lines: tuple[UsageLine, ...]
    source: CostSource
    detail: str = ""


class _Share(Struct, frozen=True):
    """The calls of one model."""

    model: str | None
    usage: Usage
    priced: Priced
    told: Money | None  # by the agent's book; None unless it tells the cost of each call


def bill_of(entry: Entry, calls: Sequence[Call], pricer: Pricer, *, to_come: bool) -> Bill | None:
    """What the agent told of the turn's cost stands; without that a call costs what it would if it was imported.

    None where that is still `to_come` from the agent, with a later turn.
    """
    by_model: dict[str | None, list[Call]] = {}
    for call in calls:
        by_model.setdefault(call.model, []).append(call)
    shares = [_share(model, some, pricer) for model, some in by_model.items()]
    configured = any(share.priced.configured for share in shares)
    if entry.cost_source == "agent" and entry.costs and not configured:
        return Bill(_told(entry, shares), "agent")
    if to_come and not configured:
        return None
    if not configured and all(share.told for share in shares):
        return Bill(tuple(UsageLine(share.model, share.usage, share.told) for share in shares), "agent")
    return _computed(shares)


def _share(model: str | None, calls: Sequence[Call], pricer: Pricer) -> _Share:
    each = [pricer.price(model, call.usage, call.at, call.usage.prompt) for call in calls]
    first = each[0]
    priced = Priced(
        _sum([price.cost for price in each]),
        first.row,
        any(price.estimated for price in each),
        "; ".join(dict.fromkeys(price.detail for price in each if price.detail)),
        first.configured,
    )
    return _Share(model, used(calls), priced, _sum([call.cost for call in calls]))


def _sum(costs: Sequence[Money | None]) -> Money | None:
    """None unless all are known, and of one currency."""
    known = [cost for cost in costs if cost is not None]
    if len(known) < len(costs) or len({cost.currency for cost in known}) != 1:
        return None
    return Money(sum(cost.nano for cost in known), known[0].currency)


def _told(entry: Entry, shares: Sequence[_Share]) -> tuple[UsageLine, ...]:
    """The same money, over the models as they used tokens."""
    weights = weights_of([share.priced.cost for share in shares], [share.usage for share in shares])
    first, *others = entry.costs
    lines = [
        UsageLine(share.model, share.usage, cost, share.priced.row)
        for share, cost in zip(shares, split(first, weights), strict=True)
    ]
    return (*lines, *(UsageLine(shares[0].model, NOTHING, other) for other in others))


def _computed(shares: Sequence[_Share]) -> Bill:
    lines = tuple(UsageLine(share.model, share.usage, share.priced.cost, share.priced.row) for share in shares)
    known, estimated = any(line.cost for line in lines), any(share.priced.estimated for share in shares)
    source: CostSource = "unknown" if not known else "estimated" if estimated else "computed"
    details = dict.fromkeys(share.priced.detail for share in shares if share.priced.detail)
    return Bill(lines, source, "; ".join(details))

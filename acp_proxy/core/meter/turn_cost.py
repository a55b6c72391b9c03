"""What a turn cost: configured prices over the agent's own cost over the catalog, and never two of them.

The agent's own cost is wider than a turn's tokens: it pays subagents and titles too, and after a load what was spent
unseen.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.core.entry import CostSource, UsageLine
from acp_proxy.core.meter.agent_cost import Increase
from acp_proxy.core.meter.model_rows import Share, split, weights_of
from acp_proxy.core.meter.readers.reader import TurnUsage
from acp_proxy.core.money import Money, plus
from acp_proxy.core.pricing import Priced, Pricer
from acp_proxy.core.usage import NOTHING


class Bill(Struct, frozen=True):
    """Lines with their costs. `unseen` was spent before the turn, `ahead` is still to come in the agent's cost.

    `perhaps`: the same of an agent that never told one, and may. With `instead` the user's prices stand in place of
    what the agent has still to tell.
    """

    lines: tuple[UsageLine, ...]
    source: CostSource
    detail: str = ""
    unseen: Money | None = None
    ahead: Money | None = None
    perhaps: Money | None = None
    extra_paid: bool = False  # the agent's cost holds what subagents and titles cost
    instead: bool = False
    by_user: bool = False  # the user's prices stand, whatever the agent tells


class Prices(Struct, frozen=True):
    """The prices that hold for one turn."""

    pricer: Pricer
    at: int
    context: int | None  # of the turn's largest call

    def of(self, shares: Sequence[Share]) -> list[Priced]:
        return [self.pricer.price(model, usage, self.at, self.context) for model, usage in shares]

    def most_of(self, shares: Sequence[Share]) -> list[Priced]:
        """Where caches are not told apart: what is written to one may cost more than other input."""
        written = [(model, replace(usage, input=0, cached_write=usage.input)) for model, usage in shares]
        return [max(both, key=_nano) for both in zip(self.of(shares), self.of(written), strict=True)]

    def beside(self, shares: Sequence[Share]) -> list[Priced]:
        """Of calls with a context of their own, which nobody tells."""
        return [self.pricer.price(model, usage, self.at) for model, usage in shares]


def turn_bill(
    own: Sequence[Share],
    beside: Sequence[Share],
    used: TurnUsage,
    increase: Increase,
    prices: Prices,
    *,
    told: bool,
    untold: bool,
    saved_at_end: bool,
    hides_cache: bool,
) -> Bill:
    """`told`: the agent reports its cost, if not with this turn then with a later one.

    `untold`: it may do so as well, but never did.
    `saved_at_end`: what it grew by since a load may be counted from more than it went on from, and be too small.
    `hides_cache`: it does not tell how much of the input went into a cache or came from there.
    """
    priced = prices.of(own) if used.priceable else [Priced(None)] * len(own)
    configured = _by_user(own, priced)
    if increase.before is not None or increase.unsure:
        told_price = _total(priced) if used.usage.total and used.source in ("agent", "partial") else None
        increase = _settled(increase, _price_of_all(beside, used, priced, prices), told_price)
    if not used.usage.total and all(price.configured for price in priced):
        # Of its own calls nothing is told but what is beside them, and the agent's cost.
        models = {model for model, _ in own}
        known = [share for share in beside if share[0] in models] if increase.amounts else beside
        configured = _by_user(known, prices.beside(known))
    doubt = ""
    if increase.amounts and not configured:
        most = prices.most_of(own) if hides_cache and increase.carried_over else priced
        price, anew = _paid(beside, used, most, increase, prices), increase.baseless or increase.doubted
        if not ((saved_at_end or anew) and price is not None and _lacks(increase.amounts[0], price)):
            return _agents(own, priced, increase, price if increase.carried_over and not increase.unsure else None)
        doubt = "the agent's cost " + ("does not tell all of it" if anew else "went on from an older value")
    to_come = told and not increase.reported and not configured
    instead = (told or untold) and configured and not increase.reported
    if not used.usage.total:
        by_agent = told and beside and not configured
        source: CostSource = "unknown" if used.source == "none" else "agent" if by_agent else "computed"
        return Bill(unpaid_lines(own), source, extra_paid=to_come, instead=instead, by_user=configured)
    ahead = _total(priced) if to_come and not increase.baseless else None
    perhaps = _total(priced) if untold and not configured else None
    lines, source, detail = _computed(own, priced, estimated=used.source == "estimated")
    detail = "; ".join(filter(None, (doubt, increase.unsure, detail)))
    return Bill(
        lines, source, detail, ahead=ahead, perhaps=perhaps, extra_paid=to_come, instead=instead, by_user=configured
    )


def computed_lines(shares: Sequence[Share], prices: Prices) -> tuple[tuple[UsageLine, ...], CostSource]:
    """Lines of what was used beside a turn, and not paid with it."""
    priced = prices.beside(shares)
    lines, source, _ = _computed(shares, priced, estimated=False)
    return lines, source


def unpaid_lines(shares: Sequence[Share]) -> tuple[UsageLine, ...]:
    """Lines whose cost is in another row."""
    return tuple([UsageLine(model, usage) for model, usage in shares])


def _by_user(shares: Sequence[Share], priced: Sequence[Priced]) -> bool:
    return any(price.configured and usage.total for price, (_, usage) in zip(priced, shares, strict=True))


def _paid(
    beside: Sequence[Share], used: TurnUsage, priced: Sequence[Priced], increase: Increase, prices: Prices
) -> Money | None:
    """What all that the first cost since a load pays for has as its price; None where that is not all known.

    Also of one whose counter has begun anew in mid-turn, or may have.
    """
    first = increase.carried_over or increase.baseless or increase.doubted
    return _price_of_all(beside, used, priced, prices) if first else None


def _price_of_all(beside: Sequence[Share], used: TurnUsage, priced: Sequence[Priced], prices: Prices) -> Money | None:
    """The price of all tokens of a turn; None where it may have used more than is told, or a price is not known."""
    if used.usage.total and used.source == "agent":
        return _total([*priced, *prices.beside(beside)])
    return None


def _settled(increase: Increase, price: Money | None, least: Money | None) -> Increase:
    """The increase of a counter of which it is not certain where it began, by the price of the turn's tokens.

    The beginning that fits the `price` is the right one. Where none fits, the one that is closer to it may be wrong.
    Without a price, and of an agent that is known to begin a fork with its parent's cost, the increase stands, unless
    it is below what the tokens that were told cost at `least`.
    """
    if price is None:
        if increase.before is not None and least is not None and _is_below(increase.amounts, least):
            return replace(increase, amounts=plus(increase.amounts, (increase.before,)))
        return increase
    before = () if increase.before is None else (increase.before,)
    both = [amounts for amounts in (increase.amounts, plus(increase.amounts, before)) if len(amounts) == 1]
    for amounts in both:
        if _fits(amounts[0], price):
            return replace(increase, amounts=amounts, unsure="")
    same = [amounts for amounts in both if amounts[0].currency == price.currency]
    if increase.unsure and same:
        return replace(increase, amounts=min(same, key=lambda amounts: _distance(amounts[0], price)))
    return increase


def _distance(amount: Money, price: Money) -> int:
    """How many times one is the other, in thousandths."""
    smaller, larger = sorted((amount.nano, price.nano))
    return larger * 1000 // max(1, smaller)


def _is_below(amounts: Sequence[Money], price: Money) -> bool:
    """Whether they are less than the price by more than two price lists are apart."""
    return all(amount.currency == price.currency for amount in amounts) and (
        sum(amount.nano for amount in amounts) * 100 < price.nano * 99
    )


def _fits(amount: Money, price: Money) -> bool:
    """Whether they are the same but for one in a thousand: closer than two price lists come by chance."""
    return amount.currency == price.currency and abs(amount.nano - price.nano) * 1000 <= price.nano


def _agents(own: Sequence[Share], priced: Sequence[Priced], increase: Increase, carried: Money | None) -> Bill:
    amount, *others = increase.amounts
    unseen = _unseen(amount, carried) if carried is not None else None
    if unseen is not None:
        amount, unseen = amount.minus(unseen), increase.beyond_presumed(unseen)
    parts = split(amount, weights_of([price.cost for price in priced], [usage for _, usage in own]))
    lines = [
        UsageLine(model, usage, cost, price.row) for (model, usage), cost, price in zip(own, parts, priced, strict=True)
    ]
    lines += [UsageLine(own[0][0], NOTHING, other) for other in others]
    return Bill(
        tuple(lines),
        "estimated" if increase.unsure else "agent",
        increase.unsure,
        unseen=unseen if unseen and unseen.nano else None,
        extra_paid=True,
    )


def _unseen(amount: Money, total: Money) -> Money | None:
    """What a carried-over cost holds beyond the turn's price; a difference of 1 % is two price lists, not spend."""
    if total.currency != amount.currency or (amount.nano - total.nano) * 100 <= total.nano:
        return None
    return amount.minus(total)


def _lacks(amount: Money, total: Money) -> bool:
    """Whether it is less than that, by more than two price lists are apart."""
    return total.currency == amount.currency and (total.nano - amount.nano) * 100 > total.nano


def _computed(
    shares: Sequence[Share], priced: Sequence[Priced], *, estimated: bool
) -> tuple[tuple[UsageLine, ...], CostSource, str]:
    """Lines by their prices, where these come from, and what had to be assumed. One pass: a turn's last line waits."""
    known = False
    lines: list[UsageLine] = []
    details: dict[str, None] = {}
    for (model, usage), price in zip(shares, priced, strict=True):
        lines.append(UsageLine(model, usage, price.cost, price.row))
        known = known or price.cost is not None
        estimated = estimated or price.estimated
        if price.detail:
            details[price.detail] = None
    source: CostSource = "unknown" if not known else "estimated" if estimated else "computed"
    return tuple(lines), source, "; ".join(details)


def _nano(price: Priced) -> int:
    return -1 if price.cost is None else price.cost.nano


def _total(priced: Sequence[Priced]) -> Money | None:
    """None when one price is unknown, or when they are of several currencies."""
    costs = [price.cost for price in priced if price.cost is not None]
    if len(costs) < len(priced) or not costs or any(cost.currency != costs[0].currency for cost in costs):
        return None
    return Money(sum(cost.nano for cost in costs), costs[0].currency)

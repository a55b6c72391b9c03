"""Where the same tokens cost otherwise: by the bill, by the list, or in the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from acp_proxy.bills import Bill
from acp_proxy.catalog import Catalog
from acp_proxy.core.money import Money
from acp_proxy.reconcile.cells import ALL, Cell
from acp_proxy.reconcile.prices import Fit, cost, decimal, dollars, fit, rates_on
from acp_proxy.reconcile.said import Finding, money_text

Days = Mapping[int, Cell]
_NOTICED = 200  # a part of so many: less is long contexts and rounding


def priced_findings(model: str, days: Days, bill: Bill, catalog: Catalog) -> Iterator[Finding]:
    """Of days that the bill has both tokens and amounts of."""
    both = {day: cell for day, cell in days.items() if day in bill.token_days & bill.money_days}
    yield from _other_currency(model, both)
    billed = {day: cell for day, cell in both.items() if cell.bill.tokens or dollars(cell)}
    has_both = any(cell.bill.tokens for cell in billed.values()) and any(map(dollars, billed.values()))
    found = fit(catalog, model, billed) if has_both and model != ALL else None
    if found is not None:
        yield _price(model, billed, found)
    elif has_both and model != ALL:
        yield from _rounding(model, billed, catalog)
    hour = _for_an_hour(model, both, catalog)
    if hour is not None:
        yield hour
    yield from _booked_otherwise(model, both, catalog)


def _other_currency(model: str, days: Days) -> Iterator[Finding]:
    theirs = {cost.currency for cell in days.values() for cost in cell.bill.costs}
    ours = {cost.currency for cell in days.values() for cost in cell.ledger.costs}
    if theirs and ours and not theirs & ours:
        says = (
            f"{model}: billed in {', '.join(sorted(theirs))}, in the ledger in {', '.join(sorted(ours))}: not compared"
        )
        yield Finding("currency", says, model)


def _price(model: str, days: Days, found: Fit) -> Finding:
    tokens = sum(cell.bill.tokens for cell in days.values())
    billed = Money(found.billed, "USD")
    blended = money_text(0, (Money(round(Fraction(found.billed * 10**6, tokens)), "USD"),))
    if found.listed is None:
        says = (
            f"{model}: no price is known; billed {money_text(0, (billed,))}, {blended} per million tokens of all kinds"
        )
    else:
        times = decimal(found.factor or Fraction(0), 4)
        says = (
            f"{model}: billed {money_text(0, (billed,))}, {times} times the known price of "
            f"{money_text(0, (Money(found.listed, 'USD'),))}, {blended} per million tokens of all kinds"
        )
    if found.entry is None:
        says += "; not one price for all days (long contexts, batches, other tiers)"
    more = Money(found.billed - (found.listed or 0), "USD")
    return Finding("price", says, model, tuple(sorted(days)), tokens, (more,), found.entry)


def _rounding(model: str, days: Days, catalog: Catalog) -> Iterator[Finding]:
    """Amounts of a bill that have fewer decimals than what they are the sum of."""
    off = sum(dollars(cell) - (cost(rates_on(catalog, model, day), cell.bill) or 0) for day, cell in days.items())
    if off and max(cell.decimals for cell in days.values()) < 9:
        says = f"{model}: {money_text(0, (Money(off, 'USD'),))} because the bill rounds its amounts"
        yield Finding("rounding", says, model, costs=(Money(off, "USD"),))


def _for_an_hour(model: str, days: Days, catalog: Catalog) -> Finding | None:
    """What the other kind of cache write costs, where the ledger went by its assumption."""
    assumed, tokens, more = catalog.cache_write, 0, 0
    for day, cell in days.items():
        if not cell.rows:  # nothing was assumed
            continue
        rates = rates_on(catalog, model, day)
        as_billed, as_assumed = cost(rates, cell.bill), cost(rates, cell.bill, assumed)
        if as_billed is None or as_assumed is None or rates is None or rates.cached_write_1h is None:
            continue
        more += as_billed - as_assumed
        tokens += cell.bill.cached_write_1h if assumed == "5m" else cell.bill.usage.cached_write
    listed, spent = _booked(model, days, catalog)
    if not more or (abs(spent - listed) * 2 >= abs(more) and (spent > listed) == (more > 0)):
        return None  # the agents told their costs, which are right
    other = "1h" if assumed == "5m" else "5m"
    long, than = ("an hour", "more") if other == "1h" else ("five minutes", "less")
    says = (
        f"{model}: {tokens:,} tokens were written to the cache for {long}, which costs "
        f"{money_text(0, (Money(abs(more), 'USD'),))} {than} than the ledger assumes: "
        f'[pricing] cache_write = "{other}" if all are'
    )
    return Finding("cache_write", says, model, tuple(sorted(days)), tokens, (Money(more, "USD"),))


def _booked(model: str, days: Days, catalog: Catalog) -> tuple[int, int]:
    """The ledger's tokens at known prices, and what it has for them, in nano-dollars."""
    listed = spent = 0
    for day, cell in days.items():
        listed += cost(rates_on(catalog, model, day), cell.ledger, catalog.cache_write) or 0
        spent += sum(cost.nano for cost in cell.ledger.costs if cost.currency == "USD")
    return listed, spent


def _booked_otherwise(model: str, days: Days, catalog: Catalog) -> Iterator[Finding]:
    """Costs in the ledger that are not its tokens at known prices."""
    listed, spent = _booked(model, days, catalog)
    unpriced = any(cell.unpriced for cell in days.values())
    if unpriced or not listed or not spent or abs(spent - listed) * _NOTICED <= listed:
        return
    says = (
        f"{model}: the ledger has {money_text(0, (Money(spent, 'USD'),))} for tokens that cost "
        f"{money_text(0, (Money(listed, 'USD'),))} at known prices: agents told their costs, contexts were long, "
        "or prices were others when turns ended"
    )
    yield Finding("booked", says, model, costs=(Money(spent - listed, "USD"),))

"""All pages of a provider's answer as one bill."""

from __future__ import annotations

from acp_proxy.bills import Bill, BillError, By, date_of, read
from acp_proxy.reconcile.api.listings import ApiOf, listings
from acp_proxy.reconcile.api.pages import Ask, pages


def fetched(provider: ApiOf, days: range, by: By, ask: Ask) -> Bill:
    """Of these days of UTC (since 1970). Raises BillError."""
    found = [file for each in listings(provider, days, by) for file in pages(each, ask)]
    bill = read(provider, found, {})
    if other := sorted(day for day in bill.days if day not in days):
        raise BillError(f"expected an answer about {date_of(days[0])} to {date_of(days[-1])}, not {date_of(other[0])}")
    return bill

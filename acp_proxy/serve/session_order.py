"""The sessions of the page and their order; any order other than the latest first is computed in memory."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest

from msgspec import Struct

from acp_proxy.ledger import LedgerReader, Query, SessionInfo, Sums
from acp_proxy.report import currencies_of, line_of, sums_of_all

SORTS = ("last", "started", "turns", "tokens", "cost", "context")


class Wanted(Struct, frozen=True):
    """Sessions that have such `rows`, of which their figures are; the rest is as docs/serve.md has it."""

    most: int
    rows: Query = Query()
    sort: str = "last"  # of `SORTS`; the latest, or the highest, come first
    find: str | None = None
    before: str | None = None  # only of those sorted by their last row


def ranked(ledger: LedgerReader, query: Query, wanted: Wanted) -> tuple[list[SessionInfo], bool]:
    """The first of all sessions with such rows, and whether there are more. Raises LedgerError."""
    total = line_of("total", sums_of_all(ledger, query))
    currencies = currencies_of(total.costs, lambda: ledger.summed(query, ("currency",)))
    found = [each for each in ledger.session_sums(query) if _is_called(each[0], wanted.find)]
    best = nlargest(wanted.most, found, key=lambda each: _place(wanted.sort, each[0], each[1], currencies))
    return [session for session, _ in best], len(found) > wanted.most


def _is_called(session: SessionInfo, find: str | None) -> bool:
    """Whether a text is in its title, user or project, in any case."""
    names = (session.title, session.origin.user, session.origin.project)
    return find is None or any(find.casefold() in name.casefold() for name in names if name)


def _place(sort: str, session: SessionInfo, sums: Sums, currencies: Sequence[str]) -> tuple[object, ...]:
    """The sort key. Currencies are not compared: sessions with the first one come first, those without a cost last."""
    last = (session.ended_at, session.session)
    match sort:
        case "started":
            return session.started_at, *last
        case "turns":
            return sums.turns, *last
        case "tokens":
            return sums.usage.total, *last
        case "context":
            used, size = session.context_used, session.context_size
            return -1 if used is None or not size else used / size, *last
    amounts = {cost.currency: cost.nano for cost in sums.costs}
    return *((currency in amounts, amounts.get(currency, 0)) for currency in currencies), sums.usage.total, *last

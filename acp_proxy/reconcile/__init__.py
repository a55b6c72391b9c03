"""A provider's bill beside the ledger: how much of it the meter has seen, and why the rest differs. Renders nothing.

Days are those of UTC on both sides. Only models that are on the bill are compared, and nothing that a plan covered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.bills import Bill, By, Provider, date_of
from acp_proxy.catalog import Catalog
from acp_proxy.core.money import Money
from acp_proxy.core.scope import PLAN
from acp_proxy.core.windows import DAY
from acp_proxy.ledger import LedgerReader, Query, Sums, captures
from acp_proxy.ledger.captures import Capture, Cause, Day, Detail
from acp_proxy.ledger.statements import Run
from acp_proxy.reconcile.cells import Cells, Line, Names, Side, ledger_side, table
from acp_proxy.reconcile.difference import Difference, difference
from acp_proxy.reconcile.findings import found_in
from acp_proxy.reconcile.said import Finding, money_text
from acp_proxy.system.errors import UsageError

_MOST_DAYS, _MOST_CAUSES = 400, 100  # that are kept


class Reconciliation(Struct, frozen=True):
    by: By
    provider: Provider
    since: int  # Unix ns, of the first day of the bill
    until: int
    lines: tuple[Line, ...]
    total: Line
    findings: tuple[Finding, ...]  # the gravest kinds first
    difference: Difference | None  # None where the bill has no amounts
    days: tuple[Line, ...] = ()  # whatever the lines are by


def reconcile(
    bill: Bill, ledger: LedgerReader, catalog: Catalog, organisation: str, by: By, people: Mapping[str, str]
) -> Reconciliation:
    """`people` are users of the ledger by what the bill calls them or their keys.

    Raises LedgerError, and UsageError for a bill that does not tell apart what is asked for.
    """
    if not bill.days:
        raise UsageError("reconcile: expected a bill of at least one day; these files have none")
    if by != "day" and not any(getattr(line, by) for line in bill.lines):
        raise UsageError(f"reconcile: --by {by}: the bill names none; expected one that was asked for by {by}")
    since, until = min(bill.days) * DAY, (max(bill.days) + 1) * DAY
    ours = (("organisation", organisation),)
    every = ledger.summed(Query(since, until, ours), ("day", "model", "user", "billing"))
    sums = [replace(each, key=each.key[:3]) for each in every if each.key[3] != PLAN]
    everything = next(iter(ledger.summed(Query(where=ours), ())), None)
    names = Names(catalog, bill)
    cells = replace(Cells.of(bill, sums, names), days_of_ledger=frozenset(int(each.key[0] or 0) for each in every))
    lines, total = table(bill, sums, names, by, people)
    began = None if everything is None else everything.started_at // DAY
    findings = found_in(cells, bill, names, began)
    found = (*findings, *_who(lines, by), *_under_plans([each for each in every if each.key[3] == PLAN], bill, names))
    days = lines if by == "day" else table(bill, sums, names, "day", {})[0]
    return Reconciliation(by, bill.provider, since, until, lines, total, found, difference(cells, bill, names), days)


def _capture_of(found: Reconciliation, now: int) -> Capture:
    """What is kept of it: all of the bill, in the currency in which most was billed."""
    total = found.total
    most = max(total.bill.costs, key=lambda cost: cost.nano, default=Money(0, "USD"))
    seen = _in(most.currency, total.ledger.costs)
    tokens = total.bill.tokens, total.ledger.tokens
    return Capture(found.provider, found.since, found.until, now, *tokens, most.currency, most.nano, seen)


def _detail_of(found: Reconciliation, currency: str) -> Detail:
    """The last days, and causes that name no user and no key."""
    ordinals = {date_of(day): day for day in range(found.since // DAY, found.until // DAY)}
    days = [
        Day(
            ordinals[line.key],
            line.bill.tokens,
            line.ledger.tokens,
            _in(currency, line.bill.costs),
            _in(currency, line.ledger.costs),
        )
        for line in found.days
        if line.key in ordinals
    ]
    causes = [
        Cause(each.kind, each.says, each.tokens, _in(currency, each.costs))
        for each in found.findings
        if each.kind not in ("user_unseen", "key_unseen")
    ]
    return Detail(tuple(days[-_MOST_DAYS:]), tuple(causes[:_MOST_CAUSES]))


def noted(found: Reconciliation, organisation: str, now: int) -> Callable[[Run], None]:
    """What keeps it in a transaction, in place of what was kept of this provider before."""
    capture = _capture_of(found, now)
    return partial(
        captures.note, organisation=organisation, capture=capture, detail=_detail_of(found, capture.currency)
    )


def _in(currency: str, costs: Iterable[Money]) -> int:
    """Nano-units."""
    return sum(cost.nano for cost in costs if cost.currency == currency)


def _under_plans(sums: Sequence[Sums], bill: Bill, names: Names) -> list[Finding]:
    """What was left out because it is billed to nobody."""
    side = Side()
    for each in sums:
        if names.is_theirs(each.key[1] if isinstance(each.key[1], str) else None):
            side = side.plus(ledger_side(each, bill))
    if not side.tokens and not side.costs:
        return []
    says = f"left out: {money_text(side.tokens, side.costs)} in the ledger under a plan, which is on no bill"
    return [Finding("under_plan", says, None, (), side.tokens, side.costs)]


def _who(lines: tuple[Line, ...], by: By) -> list[Finding]:
    """Users and keys that the ledger never saw."""
    if by not in ("user", "key"):
        return []
    return [
        Finding(
            f"{by}_unseen",
            f"{by} {line.key}: nothing in the ledger; --map {line.key}=USER says whose it is",
            tokens=line.bill.tokens,
            costs=line.bill.costs,
        )
        for line in lines
        if line.key != "none" and line.bill.tokens and not line.ledger.tokens
    ]


__all__ = ["Finding", "Line", "Reconciliation", "noted", "reconcile"]

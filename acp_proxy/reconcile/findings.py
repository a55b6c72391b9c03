"""Why bill and ledger differ, as far as that can be told: one finding a cause, with what it is about and how much."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from acp_proxy.bills import Bill, date_of
from acp_proxy.core.money import Money, summed
from acp_proxy.core.usage import Usage
from acp_proxy.reconcile.cells import ALL, Cell, Cells, Names, Side, runs_over
from acp_proxy.reconcile.priced import priced_findings
from acp_proxy.reconcile.prices import cost, rates_on
from acp_proxy.reconcile.said import Finding, days_text, money_text
from acp_proxy.text.figures import counted

Days = Mapping[int, Cell]


def found_in(cells: Cells, bill: Bill, names: Names, began: int | None) -> list[Finding]:
    """What was not seen, then what was priced otherwise, then what is uncertain. `began`: the ledger's first day."""
    if began is None:
        return [Finding("ledger_empty", "the ledger has no row; --ledger PATH names another one")]
    silent = _silent(cells)
    before = {day for day in silent if day < began}
    seen = {model: _without(days, silent) for model, days in cells.by_model.items()}
    return [
        *_of_days(cells, "before_ledger", before, f"the ledger begins on {date_of(began)}; what was billed before"),
        *_of_days(cells, "day_unseen", silent - before, "the ledger has nothing at all on"),
        *_models_unseen(seen),
        *_each(seen, lambda model, days: _tokens(model, days, names)),
        *_each(cells.by_model, lambda model, days: priced_findings(model, days, bill, names.catalog)),
        *_items(cells),
        *_each(seen, _uncertain),
        *_only_in_ledger(cells, names),
    ]


class _Gap(Struct, frozen=True):
    """Tokens by which a day's bill exceeds the ledger, after what ran over midnight is put where the bill has it."""

    by_day: Mapping[int, int]
    moved: int


def _each(of: Mapping[str, Days], findings: Callable[[str, Days], Iterable[Finding]]) -> Iterator[Finding]:
    for model, days in of.items():
        if days:
            yield from findings(model, days)


def _silent(cells: Cells) -> set[int]:
    """Days on which something was billed and nothing ran, not even from the day before."""
    billed = {day for days in cells.by_model.values() for day, cell in days.items() if _is_billed(cell)}
    late = {day + 1 for days in cells.by_model.values() for day, cell in days.items() if runs_over(cell, day)}
    return billed - cells.days_of_ledger - late


def _is_billed(cell: Cell) -> bool:
    return bool(cell.bill.tokens or any(cost.nano for cost in cell.bill.costs))


def _without(days: Days, others: set[int]) -> Days:
    return {day: cell for day, cell in days.items() if day not in others}


def _of_days(cells: Cells, kind: str, days: set[int], says: str) -> Iterator[Finding]:
    if not days:
        return
    found = [cell for of in cells.by_model.values() for day, cell in of.items() if day in days]
    tokens, costs = _sum(found)
    about = f"{says} {days_text(days)}" if kind == "day_unseen" else says
    yield Finding(kind, f"{about}: {money_text(tokens, costs)}", None, tuple(sorted(days)), tokens, costs)


def _sum(cells: Iterable[Cell]) -> tuple[int, tuple[Money, ...]]:
    some = list(cells)
    return sum(cell.bill.tokens for cell in some), summed(cost for cell in some for cost in cell.bill.costs)


def _models_unseen(seen: Mapping[str, Days]) -> Iterator[Finding]:
    for model, days in seen.items():
        billed = {day: cell for day, cell in days.items() if _is_billed(cell)}
        if not billed or not _is_unseen(days):
            continue
        tokens, costs = _sum(billed.values())
        why = "another program used it, or an agent that bypasses acp-proxy"
        says = f"{model}: {money_text(tokens, costs)}, and nothing in the ledger: {why}"
        yield Finding("model_unseen", says, model, tuple(sorted(billed)), tokens, costs)


def _is_unseen(days: Days) -> bool:
    return not any(cell.rows for cell in days.values())


def _tokens(model: str, days: Days, names: Names) -> Iterator[Finding]:
    """What of a model was seen only in part, or not by the bill."""
    if _is_unseen(days):
        return
    gap = _gap(days)
    if gap.moved:
        why = "the ledger has a turn on the day of its start"
        says = f"{model}: {gap.moved:,} tokens of turns that ran over midnight (UTC): {why}"
        yield Finding("midnight", says, model, (), gap.moved)
    more = {day: tokens for day, tokens in gap.by_day.items() if tokens > 0}
    less = {day: -tokens for day, tokens in gap.by_day.items() if tokens < 0}
    if more:
        costs = _listed(model, {day: days[day] for day in more}, names)
        says = f"{model}: calls that the ledger has not, on {days_text(more)}: {money_text(sum(more.values()), costs)}"
        yield Finding("tokens_unseen", says, model, tuple(sorted(more)), sum(more.values()), costs)
    if less:
        tokens = sum(less.values())
        says = (
            f"{model}: the ledger has {counted(tokens, 'token')} more than the bill on {days_text(less)}: "
            "of another account or a plan, or estimated"
        )
        yield Finding("ledger_more", says, model, tuple(sorted(less)), tokens)
    if not more and not less and (told := _told_apart(days)):
        says = f"{model}: {told:,} tokens are of another kind in the ledger, such as input that was read from a cache"
        yield Finding("told_apart", says, model, (), told)
    if assumed := sum(cell.assumed for cell in days.values()):
        says = (
            f"{model}: the bill does not tell what was read from or written to a cache: "
            f"{counted(assumed, 'token')} taken as the ledger has them"
        )
        yield Finding("told_apart", says, model, (), assumed)


def _gap(days: Days) -> _Gap:
    by_day = {day: days[day].bill.tokens - days[day].ledger.tokens for day in sorted(days)}
    moved = 0
    for day in by_day:
        if by_day[day] < 0 < by_day.get(day + 1, 0) and runs_over(days[day], day):
            late = min(-by_day[day], by_day[day + 1])
            by_day[day] += late
            by_day[day + 1] -= late
            moved += late
    return _Gap(by_day, moved)


def _listed(model: str, days: Days, names: Names) -> tuple[Money, ...]:
    """What is missing in the ledger, at known prices; nothing where there are none."""
    total = 0
    for day, cell in days.items():
        bill, ledger = cell.bill, cell.ledger
        written = max(0, bill.usage.cached_write + bill.cached_write_1h - ledger.usage.cached_write)
        hour = min(bill.cached_write_1h, written)
        missing = bill.usage.minus(ledger.usage)
        usage = Usage(missing.input, missing.cached_read, written - hour, missing.output)
        nano = cost(rates_on(names.catalog, model, day), Side(usage, hour))
        if nano is None:
            return ()
        total += nano
    return (Money(total, "USD"),)


def _told_apart(days: Days) -> int:
    """How many tokens stand in another counter, over all days."""
    bill, ledger = Side(), Side()
    for cell in days.values():
        bill, ledger = bill.plus(cell.bill), ledger.plus(cell.ledger)
    whole = Usage(
        bill.usage.input, bill.usage.cached_read, bill.usage.cached_write + bill.cached_write_1h, bill.usage.output
    )
    return whole.minus(ledger.usage).total


def _items(cells: Cells) -> Iterator[Finding]:
    if cells.items:
        costs = summed(cost for each in cells.items.values() for cost in each)
        named = ", ".join(f"{item} {money_text(0, costs)}" for item, costs in sorted(cells.items.items()))
        yield Finding("not_tokens", f"billed beside tokens, which the ledger does not see: {named}", costs=costs)


def _uncertain(model: str, days: Days) -> Iterator[Finding]:
    rows = sum(cell.rows for cell in days.values())
    for kind, count, says in (
        ("estimated", sum(cell.estimated for cell in days.values()), "are estimated"),
        ("at_least", sum(cell.at_least for cell in days.values()), "are a lower bound of what was used"),
        ("unpriced", sum(cell.unpriced for cell in days.values()), "have no price"),
    ):
        if count:
            yield Finding(kind, f"{model}: {count:,} of {counted(rows, 'row')} of the ledger {says}", model)


def _only_in_ledger(cells: Cells, names: Names) -> Iterator[Finding]:
    for model, side in sorted(cells.not_billed.items()):
        if side.tokens or side.costs:
            says = f"{model}: {money_text(side.tokens, side.costs)} in the ledger, and not on this bill"
            yield Finding("not_billed", says, model, (), side.tokens, side.costs)
    if cells.unnamed.tokens and not (names.one and ALL in cells.by_model):
        side = cells.unnamed
        says = (
            f"{money_text(side.tokens, side.costs)} in the ledger of no fixed model, which may be on this bill: "
            "[aliases] gives such models a name"
        )
        yield Finding("unnamed", says, None, (), side.tokens, side.costs)

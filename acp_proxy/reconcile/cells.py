"""Both sides added up: as lines of a table, and by day and model for what explains their differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from acp_proxy.bills import Bill, BillLine, By, Part, date_of
from acp_proxy.catalog import Catalog
from acp_proxy.core.models import is_alias, lab_and_model, without_lab
from acp_proxy.core.money import Money, plus
from acp_proxy.core.pricing import CacheWrite
from acp_proxy.core.usage import NOTHING, Usage
from acp_proxy.core.windows import DAY
from acp_proxy.ledger import Sums

ALL = "all models"  # where the bill tells none apart


class Side(Struct, frozen=True):
    """Tokens and money of one side. Thinking is inside `output`; what is written for an hour is beside `usage`."""

    usage: Usage = NOTHING
    cached_write_1h: int = 0
    costs: tuple[Money, ...] = ()

    @property
    def tokens(self) -> int:
        return self.usage.total + self.cached_write_1h

    def plus(self, other: Side) -> Side:
        return Side(
            self.usage + other.usage, self.cached_write_1h + other.cached_write_1h, plus(self.costs, other.costs)
        )


class Line(Struct, frozen=True):
    key: str
    bill: Side = Side()
    ledger: Side = Side()

    def plus(self, other: Line) -> Line:
        return Line(self.key, self.bill.plus(other.bill), self.ledger.plus(other.ledger))


class Cell(Struct):
    """One model on one day."""

    bill: Side = Side()
    ledger: Side = Side()
    parts: dict[Part, int] = field(default_factory=dict)  # nano-units billed, by kind of tokens
    amounts: int = 0  # as of a `BillLine`
    decimals: int = 0
    rows: int = 0
    estimated: int = 0
    at_least: int = 0
    unpriced: int = 0
    ended_at: int = 0  # Unix ns, of the ledger's last row
    assumed: int = 0  # tokens of `bill` that are of a cache because they are so in the ledger


class Names:
    """Models of both sides by one name: that of the catalog's row without its lab, else their own."""

    def __init__(self, catalog: Catalog, bill: Bill) -> None:
        self.catalog = catalog
        self._provider = bill.provider
        self._known: dict[str | None, str | None] = {}
        named = {name for line in bill.lines if (name := self.of(line.model))}
        self.one = not named  # nothing is told apart
        self.billed = named or {ALL}

    def of(self, model: str | None) -> str | None:
        """None for what names no fixed model."""
        if model not in self._known:
            found = self.catalog.find(model)
            name = lab_and_model(found.name)[1] if found else without_lab(model) if model else None
            self._known[model] = None if not found and model and is_alias(model) else name
        return self._known[model]

    def in_ledger(self, model: str | None) -> str | None:
        """The name under which a model of the ledger is compared."""
        return ALL if self.one and self.is_theirs(model) else self.of(model)

    def is_theirs(self, model: str | None) -> bool:
        """Whether the provider of the bill sells it, as far as that is known."""
        if self._provider in ("anthropic", "openai"):
            return model is not None and self.catalog.lab(model) == self._provider
        return model is not None


class Cells(Struct, frozen=True):
    by_model: Mapping[str, Mapping[int, Cell]]  # models of the bill, by day
    days_of_ledger: frozenset[int]  # those with any row
    items: Mapping[str, tuple[Money, ...]]  # what is billed beside tokens
    not_billed: Mapping[str, Side]  # the provider's models that only the ledger has
    unnamed: Side  # what the ledger has of no fixed model

    @classmethod
    def of(cls, bill: Bill, sums: Sequence[Sums], names: Names) -> Cells:
        cells: dict[str, dict[int, Cell]] = {name: {} for name in sorted(names.billed)}
        items: dict[str, tuple[Money, ...]] = {}
        for line in bill.lines:
            name = ALL if names.one else names.of(line.model)
            if line.item is not None and line.amount is not None:
                items[line.item] = plus(items.get(line.item, ()), (line.amount,))
            elif name is not None:
                _add_bill(cells[name].setdefault(line.day, Cell()), line)
        not_billed: dict[str, Side] = {}
        unnamed = Side()
        for each in sums:
            day, model, _ = each.key
            name = names.in_ledger(model if isinstance(model, str) else None)
            side = ledger_side(each, bill)
            if name is None:
                unnamed = unnamed.plus(side)
            elif name in cells:
                _add_ledger(cells[name].setdefault(int(day or 0), Cell()), each, side)
            elif names.is_theirs(str(model)):
                not_billed[name] = not_billed.get(name, Side()).plus(side)
        if not bill.tells_caches:
            for of_model in cells.values():
                for cell in of_model.values():
                    _assume_caches(cell, names.catalog.cache_write)
        days = frozenset(int(each.key[0] or 0) for each in sums)
        return cls(cells, days, items, not_billed, unnamed)


def table(
    bill: Bill, sums: Iterable[Sums], names: Names, by: By, people: Mapping[str, str]
) -> tuple[tuple[Line, ...], Line]:
    """Lines by their keys, days by time and all else by what was billed, and their total."""
    lines: dict[str, Line] = {}
    for line in bill.lines:
        side = Side(line.usage, line.cached_write_1h, () if line.amount is None else (line.amount,))
        _put(lines, Line(_bill_key(line, by, names, people), bill=side))
    for each in sums:
        day, model, user = each.key
        name = names.in_ledger(model if isinstance(model, str) else None)
        if name in names.billed:
            key = {"day": date_of(int(day or 0)), "model": str(name)}.get(by, str(user))
            _put(lines, Line(key, ledger=ledger_side(each, bill)))
    found = sorted(lines.values(), key=lambda line: line.key if by == "day" else _rank(line))
    total = Line("total")
    for each_line in found:
        total = total.plus(each_line)
    return tuple(found), total


def ledger_side(sums: Sums, bill: Bill) -> Side:
    """What of it the bill is about: on a day that it has no amounts of, costs are not compared."""
    day, used = sums.key[0], sums.usage
    usage = Usage(used.input, used.cached_read, used.cached_write, used.completion)
    return Side(usage if day in bill.token_days else NOTHING, 0, sums.costs if day in bill.money_days else ())


def _bill_key(line: BillLine, by: By, names: Names, people: Mapping[str, str]) -> str:
    match by:
        case "day":
            return date_of(line.day)
        case "model":
            return names.of(line.model) or (f"({line.item})" if line.item else "none")
    name = line.user if by == "user" else line.key
    return people.get(name, name) if name else "none"


def _rank(line: Line) -> tuple[object, ...]:
    return (-sum(cost.nano for cost in line.bill.costs), -line.bill.tokens, line.key)


def _put(lines: dict[str, Line], line: Line) -> None:
    lines[line.key] = lines[line.key].plus(line) if line.key in lines else line


def _add_bill(cell: Cell, line: BillLine) -> None:
    costs = () if line.amount is None else (line.amount,)
    cell.bill = cell.bill.plus(Side(line.usage, line.cached_write_1h, costs))
    cell.amounts += line.amounts
    cell.decimals = max(cell.decimals, line.decimals)
    if line.part and line.amount:
        cell.parts[line.part] = cell.parts.get(line.part, 0) + line.amount.nano


def _add_ledger(cell: Cell, sums: Sums, side: Side) -> None:
    cell.ledger = cell.ledger.plus(side)
    cell.rows += sums.rows
    cell.estimated += sums.estimated
    cell.at_least += sums.partial + sums.without_usage
    cell.unpriced += sums.unpriced
    cell.ended_at = max(cell.ended_at, sums.ended_at)


def _assume_caches(cell: Cell, written_for: CacheWrite) -> None:
    """As much of a prompt was of a cache as in the ledger: else all of it would be priced as if nothing was."""
    of_bill, of_ledger = cell.bill.usage, cell.ledger.usage
    read = min(of_bill.input, of_ledger.cached_read)
    written = min(of_bill.input - read, of_ledger.cached_write)
    hour = written if written_for == "1h" else 0
    usage = Usage(of_bill.input - read - written, read, written - hour, of_bill.output)
    cell.bill = Side(usage, hour, cell.bill.costs)
    cell.assumed = read + written


def runs_over(cell: Cell, day: int) -> bool:
    """Whether a row of the day ended in the next one: the ledger has all of it on the day of its start."""
    return cell.ended_at >= (day + 1) * DAY

"""How much of what agents used a relay has seen: relayed rows beside those that `acp-proxy import` found.

An import leaves out what was relayed, so its rows are what went around acp-proxy.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from acp_proxy.books.agents import family
from acp_proxy.core.entry import IMPORT
from acp_proxy.core.money import Money, plus, summed
from acp_proxy.ledger import LedgerReader, Query
from acp_proxy.report import Line, report
from acp_proxy.report.formats import as_json_text
from acp_proxy.text import table
from acp_proxy.text.figures import clean, cost_text, decimals_of, percent_text, tokens_text
from acp_proxy.text.table import Column
from acp_proxy.text.times import Zone, rfc3339_or_none

BY = ("agent", "day", "week", "month", "project", "user", "team", "model")
IMPORTED = ("client", IMPORT)
"""The condition of a query on rows that an import made."""
IMPORTED_KIND = "call"
"""The kind of row that every import makes, and only imports: sums by kind tell whether there was one, rows unread."""
_MORE = "docs/import.md"


class Covered(Struct, frozen=True):
    """Tokens and costs of one key. `imported` is None where nothing was imported: what went around is unknown."""

    key: str
    relayed: int
    relayed_costs: tuple[Money, ...]
    imported: int | None = None
    imported_costs: tuple[Money, ...] = ()

    @property
    def total(self) -> int:
        return self.relayed + (self.imported or 0)


def coverage(ledger: LedgerReader, by: str, query: Query, zone: Zone) -> list[Covered]:
    """`by` is one of BY. Raises LedgerError."""
    of_import = replace(query, where=(*query.where, IMPORTED))
    return covered(report(ledger, by, query, zone).lines, report(ledger, by, of_import, zone).lines, by)


def covered(every: Iterable[Line], imported: Iterable[Line], by: str) -> list[Covered]:
    """Of all lines by one key, and of those that are only of what was imported."""
    found = _by_key(imported, by)
    return [_covered(key, line, found.get(key)) for key, line in _by_key(every, by).items()]


def together(lines: Iterable[Covered]) -> Covered:
    """Of those of which it is known what went around."""
    total = Covered("total", 0, (), 0)
    for line in lines:
        if line.imported is not None:
            total = Covered(
                "total",
                total.relayed + line.relayed,
                plus(total.relayed_costs, line.relayed_costs),
                (total.imported or 0) + line.imported,
                plus(total.imported_costs, line.imported_costs),
            )
    return total


def plain(lines: list[Covered], by: str) -> str:
    """For people."""
    if all(line.imported is None for line in lines):
        return f"Nothing was imported from that time: `acp-proxy import` reads what agents recorded ({_MORE}).\n"
    shown = [*lines, together(lines)]
    decimals = decimals_of(cost for line in shown for cost in (*line.relayed_costs, *line.imported_costs))
    columns = [
        Column(by, [clean(line.key) for line in shown], right=False, name=True),
        Column("seen", [_share(line) for line in shown]),
        Column("relayed", [tokens_text(line.relayed) for line in shown]),
        Column("around it", ["?" if line.imported is None else tokens_text(line.imported) for line in shown]),
        Column("cost relayed", [cost_text(line.relayed_costs, decimals) for line in shown]),
        Column("cost around it", [cost_text(line.imported_costs, decimals) for line in shown]),
    ]
    unknown = any(line.imported is None for line in lines)
    note = f"?: nothing was imported of it, and it is not in the total · {_MORE}"
    return table.plain(columns, [note] if unknown else [])


def as_json(lines: list[Covered], by: str, query: Query, zone: Zone) -> str:
    return as_json_text(
        {
            "by": by,
            "since": rfc3339_or_none(query.since),
            "until": rfc3339_or_none(query.until),
            "timezone": zone.name,
            "rows": [as_object(line) for line in lines],
            "total": as_object(together(lines)),
        }
    )


def as_object(line: Covered) -> dict[str, object]:
    """Exact figures; null for what is unknown."""
    known = line.imported is not None and line.total > 0
    return {
        "key": line.key,
        "relayed": {"tokens": line.relayed, "cost": {cost.currency: cost.text for cost in line.relayed_costs}},
        "imported": None
        if line.imported is None
        else {"tokens": line.imported, "cost": {cost.currency: cost.text for cost in line.imported_costs}},
        "seen": round(line.relayed / line.total, 6) if known else None,
    }


def _share(line: Covered) -> str:
    return "?" if line.imported is None else percent_text(line.relayed, line.total)


def _by_key(lines: Iterable[Line], by: str) -> dict[str, Line]:
    found: dict[str, Line] = {}
    for key, line in ((family(line.key) if by == "agent" else line.key, line) for line in lines):
        known = found.get(key)
        found[key] = line if known is None else _added(known, line)
    return found


def _added(line: Line, other: Line) -> Line:
    return replace(line, usage=line.usage + other.usage, costs=plus(line.costs, other.costs))


def _covered(key: str, every: Line, imported: Line | None) -> Covered:
    if imported is None:
        return Covered(key, every.usage.total, every.costs)
    left = [Money(-cost.nano, cost.currency) for cost in imported.costs]
    costs = tuple(cost for cost in summed([*every.costs, *left]) if cost.nano)
    return Covered(key, every.usage.total - imported.usage.total, costs, imported.usage.total, imported.costs)

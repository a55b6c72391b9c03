"""A report for spreadsheets: CSV of what `formats` has as JSON. No cell is taken for a formula."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from acp_proxy.core.entry import Origin
from acp_proxy.core.money import Money
from acp_proxy.ledger import Row
from acp_proxy.report import Line, Report
from acp_proxy.report.formats import details
from acp_proxy.text.figures import clean
from acp_proxy.text.times import milliseconds

_CSV = (
    "key",
    "turns",
    "input",
    "cached_read",
    "cached_write",
    "output",
    "thought",
    "total",
    "cost_USD",
    "unpriced_turns",
    "partial_turns",
    "estimated_turns",
    "turns_without_usage",
)
_CSV_DETAILS: Mapping[str, tuple[str, ...]] = {
    "session": (
        "session",
        "agent",
        "title",
        "project",
        "started_at",
        "ended_at",
        "context_used",
        "context_size",
        "user",
        "team",
    ),
    "turn": (
        "session",
        "agent",
        "agent_version",
        "client",
        "user",
        "team",
        "project",
        "model",
        "kind",
        "started_at",
        "ended_at",
        "stop_reason",
        "message_id",
        "usage_source",
        "cost_source",
        "context_used",
        "context_size",
    ),
}
Cells = tuple[object, ...]

_AT_ONCE = 100  # rows in a piece of CSV
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last are wide, for East Asian locales
_PACKAGE = re.compile(r"@[\w.-]+/[\w.-]+")  # from npm: many agents are called so


def as_csv(report: Report) -> Iterator[str]:
    """A header and a line for each row. What is known of a report's kind is in the header whatever its rows are.

    `cost_USD` is always there, other currencies come last, so that every other column keeps its place.
    """
    others = sorted({*report.currencies} - {"USD"})
    listed = sorted(cost.currency for cost in report.total.not_billed)  # under plans
    header = [*_CSV, *_CSV_DETAILS.get(report.by, ()), *(f"cost_{clean(currency)}" for currency in others)]
    header += [f"not_billed_{clean(currency)}" for currency in listed]
    return csv_in_pieces(
        header,
        (
            (
                *_figure_cells(line),
                *_detail_cells(line),
                *(_cost(line.costs, currency) for currency in others),
                *(_cost(line.not_billed, currency) for currency in listed),
            )
            for line in report.lines
        ),
    )


def csv_in_pieces(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """The CSV of rows, of which there may be any number. None is an empty cell."""
    import csv

    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    for number, row in enumerate(rows, 1):
        writer.writerow(row)
        if not number % _AT_ONCE:
            yield file.getvalue()
            file.seek(0)
            file.truncate()
    yield file.getvalue()


@lru_cache(maxsize=1024)  # the same few names in row after row
def spreadsheet_text(text: str) -> str:
    """Text that a spreadsheet would take for a formula is quoted: titles and model names are not ours."""
    plain = clean(text)
    return f"'{plain}" if plain.startswith(_FORMULA) and not _PACKAGE.fullmatch(plain) else plain


def _figure_cells(line: Line) -> Cells:
    usage = line.usage
    return (
        spreadsheet_text(line.key),
        line.turns,
        usage.input,
        usage.cached_read,
        usage.cached_write,
        usage.output,
        usage.thought,
        usage.total,
        _cost(line.costs, "USD"),
        line.unpriced,
        line.partial,
        line.estimated,
        line.without_usage,
    )


def _cost(costs: Iterable[Money], currency: str) -> str | None:
    for cost in costs:
        if cost.currency == currency:
            return cost.text
    return None


def _detail_cells(line: Line) -> Cells:
    if isinstance(line.about, Row):
        return _turn_cells(line.about)
    return tuple(spreadsheet_text(value) if isinstance(value, str) else value for value in details(line).values())


def _turn_cells(row: Row) -> Cells:
    """As in `formats`; of these a report has a million."""
    entry = row.entry
    return (
        spreadsheet_text(entry.session),
        *_origin_cells(row.origin),
        entry.model and spreadsheet_text(entry.model),
        entry.kind,
        milliseconds(entry.started_at),
        milliseconds(entry.ended_at),
        entry.stop_reason and spreadsheet_text(entry.stop_reason),
        entry.message_id and spreadsheet_text(entry.message_id),
        entry.usage_source,
        entry.cost_source,
        entry.context_used,
        entry.context_size,
    )


@lru_cache(maxsize=1024)
def _origin_cells(origin: Origin) -> Cells:
    cells = (origin.agent, origin.agent_version, origin.client, origin.user, origin.team, origin.project)
    return tuple(cell and spreadsheet_text(cell) for cell in cells)

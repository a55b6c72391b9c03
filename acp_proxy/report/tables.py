"""A report for people: with colours and a bar per row in a terminal, or plain aligned text for a pipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from acp_proxy.core.money import summed
from acp_proxy.report import Line, Report
from acp_proxy.report.columns import figures_of
from acp_proxy.text import table
from acp_proxy.text.figures import AT_LEAST, cost_text, counted, decimals_of
from acp_proxy.text.table import Bars, Part

_MORE = "docs/counting.md"
AT_ONCE = 5000  # lines of a table that are in memory


def plain(report: Report) -> Iterator[str]:
    parts = parts_of(report)
    return table.plain_parts(next(parts), parts, _notes(report))


def coloured(report: Report, width: int, environ: Mapping[str, str]) -> Iterator[str]:
    """For a terminal of `width` columns, in colours unless the environment has `NO_COLOR`."""
    parts = _parts(report)
    return table.coloured_parts(next(parts), parts, _notes(report), width, environ)


def parts_of(report: Report, *, but: str | None = None) -> Iterator[Part]:
    """The same without bars, and without the column of that title."""
    lines = iter(report.lines)
    some = list(islice(lines, AT_ONCE))
    figures = [figure for figure in figures_of(report, some) if figure.title != but]
    while True:
        yield Part([figure.of(some) for figure in figures])
        if not (some := list(islice(lines, AT_ONCE))):
            return


def _parts(report: Report) -> Iterator[Part]:
    """So many lines at a time. Those of the first one cost most, and say how the table is laid out."""
    lines = iter(report.lines)
    some = list(islice(lines, AT_ONCE))
    figures = figures_of(report, some)
    sizes = partial(_size, currency=next(iter(report.currencies), None))
    longest = max(map(sizes, some), default=0) or 1
    while True:
        yield Part([figure.of(some) for figure in figures], _bars(list(map(sizes, some)), longest))
        if not (some := list(islice(lines, AT_ONCE))):
            return


def _size(line: Line, currency: str | None) -> int:
    """The cost in the commonest currency; where no cost is known of any line, the tokens."""
    if currency is None:
        return line.usage.total
    return max(0, sum(cost.nano for cost in line.costs if cost.currency == currency))


def _bars(sizes: Sequence[int], longest: int) -> Bars:
    return lambda width: [("bar", table.bar_text(size, longest, width)) for size in sizes]


def _notes(report: Report) -> list[str]:
    return notes(report.total, [f"{report.omitted:,} more not shown"] if report.omitted else [])


def notes(total: Line, before: Sequence[str] = ()) -> list[str]:
    """What the figures do not include, on one line with a link; empty if they are complete."""
    counts = (
        (total.cost_at_least, f"{AT_LEAST}at least: cost of {{}} not all known"),
        (total.unpriced, "no price: {} (`acp-proxy prices show MODEL`)"),
        (total.partial, "tokens at least: {}"),
        (total.estimated, "estimated: {}"),
        (total.without_usage, "no usage reported: {}"),
    )
    found = [note.format(counted(count, "row")) for count, note in counts if count]
    said = " · ".join([*before, *_under_plans(total), *found])
    return [f"{said} · {_MORE}"] if found else [said] if said else []


def list_price(line: Line) -> str:
    """What of a cost nobody is billed, to stand behind it."""
    if not line.not_billed:
        return ""
    if summed(line.not_billed) == summed(line.costs):
        return " (list price, not billed)"
    amount = cost_text(line.not_billed, decimals_of(line.costs))
    return f" ({amount} of it at list price, not billed)"


def _under_plans(total: Line) -> list[str]:
    """What the costs are called that nobody is billed."""
    if not total.not_billed:
        return []
    amount = cost_text(total.not_billed, decimals_of(total.not_billed))
    return [f"list price, not billed: {amount} under a plan"]

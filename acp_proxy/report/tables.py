"""A report for people: with colours and a bar per row in a terminal, or plain aligned text for a pipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from acp_proxy import table
from acp_proxy.figures import AT_LEAST, counted
from acp_proxy.report import Line, Report
from acp_proxy.report.columns import columns, currencies


def plain(report: Report) -> str:
    return table.plain(columns(report), notes(report.total))


def coloured(report: Report, width: int, environ: Mapping[str, str]) -> str:
    """For a terminal of `width` columns, in colours unless the environment has `NO_COLOR`."""
    return table.coloured(columns(report), notes(report.total), lambda room: _bars(report.lines, room), width, environ)


def empty(*, filtered: bool) -> str:
    if filtered:
        return "Nothing in the ledger matches.\n"
    return "Nothing in the ledger yet. Put `acp-proxy run --` before an agent's command, and work with it.\n"


def _bars(lines: Sequence[Line], width: int) -> list[tuple[str, str]]:
    """As long as the cost in the commonest currency; where no cost is known, as the tokens."""
    common = currencies(lines)[:1]
    sizes = [
        max(0, sum(cost.nano for cost in line.costs if cost.currency in common)) if common else line.usage.total
        for line in lines
    ]
    longest = max(sizes, default=0) or 1
    return [("bar", table.bar_text(size, longest, width)) for size in sizes]


def notes(total: Line) -> list[str]:
    """What the figures leave out."""
    notes = (
        (total.cost_at_least, f"{AT_LEAST}at least: the cost of {{}} is unknown or incomplete"),
        (total.unpriced, "no price is known for {}: `acp-proxy prices show MODEL` tells, [prices] sets one"),
        (total.partial, "tokens at least: the agent reported only a part of {}"),
        (total.estimated, "estimated: {}"),
        (total.without_usage, "no usage was reported for {}"),
    )
    return [note.format(counted(count, "row")) for count, note in notes if count]

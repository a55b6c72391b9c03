"""A report for people: with colours and a bar per row, fitted to a terminal, or plain aligned text for a pipe.

The table is laid out here: a general library took 1.6 ms a row, and a year has many turns.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence

from acp_proxy.figures import AT_LEAST, aligned, counted, cut, padded, width_of
from acp_proxy.report import Line, Report
from acp_proxy.report.columns import Column, columns, currencies

_GAP = "  "
_BAR = (6, 24)  # a bar's least and greatest width
_SHORT_NAME = 20  # to how much names are cut before whole columns go
_EIGHTHS = " ▏▎▍▌▋▊▉"
_STYLES = {"head": "2", "total": "1", "note": "2", "bar": "36", "yellow": "33", "orange": "38;5;208", "red": "31"}


def plain(report: Report) -> str:
    """No colour, no bars, no lines: for `grep`, `awk` and mail."""
    shown = columns(report)
    rows = [_titles(shown), *zip(*(column.cells for column in shown), strict=True), _totals(shown)]
    notes = "".join(f"{note}\n" for note in _notes(report.total))
    return aligned(rows, [column.right for column in shown]) + (f"\n{notes}" if notes else "")


def coloured(report: Report, width: int, environ: Mapping[str, str]) -> str:
    """For a terminal of `width` columns, in colours unless the environment has `NO_COLOR`."""
    shown, widths, bar = _fitted(columns(report), width)
    if _needed(widths) > width:  # no table fits
        return "".join(f"{cut(line, width)}\n" for line in plain(report).splitlines())
    paint = _uncoloured if environ.get("NO_COLOR") else _painted
    body = [_painted_cells(column, wide, paint) for column, wide in zip(shown, widths, strict=True)]
    if bar:
        body.append([paint("bar", text) for text in _bars(report.lines, bar)])
    shape = [(wide, column.right) for column, wide in zip(shown, widths, strict=True)]
    lines = [
        paint("head", _row(_titles(shown), shape)),
        *map(_GAP.join, zip(*body, strict=True)),
        paint("total", _row(_totals(shown), shape)),
    ]
    notes = [paint("note", line) for note in _notes(report.total) for line in textwrap.wrap(note, width)]
    return "\n".join([*lines, *(["", *notes] if notes else []), ""])


def empty(*, filtered: bool) -> str:
    if filtered:
        return "Nothing in the ledger matches.\n"
    return "Nothing in the ledger yet. Put `acp-proxy run --` before an agent's command, and work with it.\n"


def _titles(shown: Sequence[Column]) -> list[str]:
    return [column.title for column in shown]


def _totals(shown: Sequence[Column]) -> list[str]:
    return [column.total for column in shown]


def _row(cells: Sequence[str], shape: Sequence[tuple[int, bool]]) -> str:
    texts = (padded(cut(cell, wide), wide, right=right) for cell, (wide, right) in zip(cells, shape, strict=True))
    return _GAP.join(texts)


def _painted_cells(column: Column, width: int, paint: Callable[[str, str], str]) -> list[str]:
    levels = column.levels or [""] * len(column.cells)
    return [
        paint(level, padded(cut(cell, width), width, right=column.right))
        for cell, level in zip(column.cells, levels, strict=True)
    ]


def _painted(style: str, text: str) -> str:
    code = _STYLES.get(style)
    return f"\x1b[{code}m{text}\x1b[0m" if code else text


def _uncoloured(_: str, text: str) -> str:
    return text


def _fitted(shown: list[Column], width: int) -> tuple[list[Column], list[int], int]:
    """The columns that a terminal has room for, their widths, and that of the bars (0 for none).

    First the bars get shorter, then names are cut, then columns go, then the bars, then names are cut to nothing.
    """
    sized = [(column, max(map(width_of, (column.title, column.total, *column.cells)))) for column in shown]
    while True:
        shown, wide = [column for column, _ in sized], [needed for _, needed in sized]
        room = width - _needed(wide) - len(_GAP)
        if room >= _BAR[0]:
            return shown, wide, min(room, _BAR[1])
        names = [index for index, column in enumerate(shown) if column.name]
        if sum(max(0, wide[index] - _SHORT_NAME) for index in names) >= _BAR[0] - room:
            return shown, _shortened(wide, names, _BAR[0] - room), _BAR[0]
        spare = max(column.spare for column in shown)
        if not spare:
            return shown, _shortened(wide, names, max(0, _needed(wide) - width)), 0
        sized = [(column, needed) for column, needed in sized if column.spare != spare]


def _needed(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _shortened(widths: list[int], names: Sequence[int], missing: int) -> list[int]:
    """Takes from the widest name first, a column at a time."""
    shorter = list(widths)
    for _ in range(missing):
        widest = max(names, key=lambda index: shorter[index])
        shorter[widest] = max(1, shorter[widest] - 1)
    return shorter


def _bars(lines: Sequence[Line], width: int) -> list[str]:
    """As long as the cost in the commonest currency; where no cost is known, as the tokens."""
    common = currencies(lines)[:1]
    sizes = [
        max(0, sum(cost.nano for cost in line.costs if cost.currency in common)) if common else line.usage.total
        for line in lines
    ]
    longest = max(sizes, default=0) or 1
    eighths = (size * width * 8 // longest for size in sizes)
    return ["█" * (count // 8) + _EIGHTHS[count % 8].strip() for count in eighths]


def _notes(total: Line) -> list[str]:
    """What the figures leave out."""
    notes = (
        (total.cost_at_least, f"{AT_LEAST}at least: the cost of {{}} is unknown or incomplete"),
        (total.unpriced, "no price is known for {}: `acp-proxy prices show MODEL` tells, [prices] sets one"),
        (total.partial, "tokens at least: the agent reported only a part of {}"),
        (total.estimated, "estimated: {}"),
        (total.without_usage, "no usage was reported for {}"),
    )
    return [note.format(counted(count, "row")) for count, note in notes if count]

"""A report for people: coloured, with a bar per row and fitted to a terminal, or plain aligned text for a pipe.

Rounds for display. Titles and model names are cleaned of what could control the terminal.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from acp_proxy.core.entry import Entry
from acp_proxy.figures import (
    AT_LEAST,
    aligned,
    clean,
    context_level,
    cost_text,
    counted,
    cut,
    decimals_of,
    tokens_text,
    width_of,
)
from acp_proxy.ledger import Row, SessionInfo
from acp_proxy.report import Line, Report
from acp_proxy.times import Zone

_GAP = 2  # columns between columns
_BAR = (6, 24)  # a bar's least and greatest width
_NAME = (20, 48)  # to how much a name may be cut to make room, and how long it ever gets
_STYLES = {"yellow": "yellow", "orange": "dark_orange", "red": "red"}


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    cell: Callable[[Line], str]
    right: bool = True
    spare: int = 0  # the highest goes first where a terminal is too narrow; 0 stays
    name: bool = False  # may be cut
    style: Callable[[Line], str] = lambda _: ""
    total: bool = True  # the last line has a figure for it


def plain(report: Report) -> str:
    """No colour, no bars, no lines: for `grep`, `awk` and mail."""
    columns = _columns(report)
    rows = [[column.title for column in columns]]
    rows += [[_cell(column, line) for column in columns] for line in report.lines]
    rows.append([_total(column, report.total) for column in columns])
    return aligned(rows, [column.right for column in columns]) + _footer(report)


def coloured(report: Report, width: int) -> str:
    """For a terminal of `width` columns, with escape sequences as the environment allows them (`NO_COLOR`, `TERM`)."""
    from rich.bar import Bar
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    columns, widths, bar = _fitted(report, width)
    table = Table(
        box=None, pad_edge=False, padding=(0, _GAP, 0, 0), show_footer=True, header_style="dim", footer_style="bold"
    )
    for column, wide in zip(columns, widths, strict=True):
        total = _total(column, report.total)
        table.add_column(column.title, total, justify="right" if column.right else "left", width=wide, no_wrap=True)
    if bar:
        table.add_column("", width=bar, no_wrap=True)
    sizes = _sizes(report.lines)
    for line, size in zip(report.lines, sizes, strict=True):
        cells = [
            Text(cut(_cell(column, line), wide), column.style(line))
            for column, wide in zip(columns, widths, strict=True)
        ]
        table.add_row(*cells, *([Bar(max(sizes), 0, size, width=bar, color="cyan")] if bar else []))
    console = Console(file=io.StringIO(), force_terminal=True, width=width, highlight=False)
    with console.capture() as captured:
        console.print(table)
        console.print(Text(_footer(report), "dim"), end="")
    return captured.get()


def empty(filtered: bool) -> str:
    if filtered:
        return "Nothing in the ledger matches.\n"
    return "Nothing in the ledger yet. Put `acp-proxy run --` before an agent's command, and work with it.\n"


def _columns(report: Report) -> list[_Column]:
    one_each = report.by == "turn"
    return [
        *_names(report),
        *([] if one_each else [_Column("turns", lambda line: tokens_text(line.turns))]),
        _Column("prompt", lambda line: tokens_text(line.usage.prompt), spare=4),
        _Column("cached", _cached, spare=6),
        _Column("completion", lambda line: tokens_text(line.usage.completion), spare=5),
        _Column("total", lambda line: tokens_text(line.usage.total)),
        *([_CONTEXT] if report.by in ("session", "turn") else []),
        *_costs(report.lines),
    ]


def _costs(lines: Sequence[Line]) -> list[_Column]:
    """A column for each currency, the commonest first."""
    decimals = decimals_of(cost for line in lines for cost in line.costs)
    currencies = _currencies(lines)
    if len(currencies) < 2:
        return [_Column("cost", lambda line: cost_text(line.costs, decimals, at_least=line.cost_at_least > 0))]
    return [_Column(clean(currency)[:12], partial(_cost, currency, currencies[0], decimals)) for currency in currencies]


def _cost(currency: str, first: str, decimals: int, line: Line) -> str:
    costs = [cost for cost in line.costs if cost.currency == currency]
    if costs or (not line.costs and currency == first):
        return cost_text(costs, decimals, at_least=line.cost_at_least > 0)
    return ""


def _currencies(lines: Sequence[Line]) -> list[str]:
    counts = Counter(cost.currency for line in lines for cost in line.costs)
    return sorted(counts, key=lambda currency: (-counts[currency], currency))


def _names(report: Report) -> list[_Column]:
    """What a line is about; the first column is where the last line says "total"."""
    started = _Column("started", lambda line: _started(line, report.zone), right=False)
    agent = _Column("agent", _agent, right=False, name=True, spare=1, total=False)
    match report.by:
        case "session":
            return [started, _Column("session", _title, right=False, name=True, total=False), agent]
        case "turn":
            model = _Column("model", _model, right=False, name=True, total=False)
            return [started, agent, model, _Column("kind", _kind, right=False, spare=3, total=False)]
    return [_Column(report.by, lambda line: line.key, right=False, name=True)]


def _started(line: Line, zone: Zone) -> str:
    match line.about:
        case Row(entry=Entry(started_at=at)) | SessionInfo(started_at=at):
            return zone.local(at).strftime("%Y-%m-%d %H:%M")
    return line.key


def _title(line: Line) -> str:
    return (line.about.title or line.about.session) if isinstance(line.about, SessionInfo) else ""


def _agent(line: Line) -> str:
    """Without the organisation that npm's names begin with."""
    return line.about.origin.agent.rpartition("/")[2] if line.about else ""


def _model(line: Line) -> str:
    return line.about.entry.model or "unknown" if isinstance(line.about, Row) else ""


def _kind(line: Line) -> str:
    """With how it ended, where that was not the ordinary way."""
    if not isinstance(line.about, Row):
        return ""
    entry = line.about.entry
    return entry.kind if entry.stop_reason in (None, "end_turn") else f"{entry.kind}, {entry.stop_reason}"


def _cached(line: Line) -> str:
    """How much of the prompt was read from a cache."""
    prompt = line.usage.prompt
    return f"{line.usage.cached_read / prompt:.0%}" if prompt else "-"


def _filled(line: Line) -> tuple[int, int] | None:
    """Used and size of the context."""
    match line.about:
        case Row(entry=Entry(context_used=int(used), context_size=int(size))) if size:
            return used, size
        case SessionInfo(context_used=int(used), context_size=int(size)) if size:
            return used, size
    return None


def _context(line: Line) -> str:
    filled = _filled(line)
    return f"{filled[0] * 100 // filled[1]}%" if filled else "-"


def _context_style(line: Line) -> str:
    filled = _filled(line)
    return _STYLES.get(context_level(*filled), "") if filled else ""


_CONTEXT = _Column("context", _context, spare=2, style=_context_style, total=False)


def _cell(column: _Column, line: Line) -> str:
    return cut(clean(column.cell(line)), _NAME[1]) if column.name else column.cell(line)


def _total(column: _Column, total: Line) -> str:
    return column.cell(total) if column.total else ""


def _fitted(report: Report, width: int) -> tuple[list[_Column], list[int], int]:
    """The columns that a terminal has room for, their widths, and that of the bars (0 for none).

    First the bars get shorter, then names are cut, then columns go.
    """
    columns = _columns(report)
    while True:
        widths = [_width(column, report) for column in columns]
        room = width - sum(widths) - _GAP * len(widths)
        if room >= _BAR[0]:
            return columns, widths, min(room, _BAR[1])
        missing = _BAR[0] - room
        names = [index for index, column in enumerate(columns) if column.name]
        if sum(widths[index] - _NAME[0] for index in names if widths[index] > _NAME[0]) >= missing:
            return columns, _shortened(widths, names, missing), _BAR[0]
        spare = max(column.spare for column in columns)
        if not spare:
            return columns, _shortened(widths, names, max(0, -room - _GAP)), 0
        columns = [column for column in columns if column.spare != spare]


def _shortened(widths: list[int], names: Sequence[int], missing: int) -> list[int]:
    """Takes from the widest name first, a column at a time."""
    shorter = list(widths)
    for _ in range(missing):
        widest = max(names, key=lambda index: shorter[index])
        shorter[widest] = max(1, shorter[widest] - 1)
    return shorter


def _width(column: _Column, report: Report) -> int:
    cells = [column.title, _total(column, report.total), *(_cell(column, line) for line in report.lines)]
    return max(map(width_of, cells))


def _sizes(lines: Sequence[Line]) -> list[float]:
    """What the bars show: the cost in the currency that most lines have; where none is known, tokens."""
    currencies = _currencies(lines)
    if not currencies:
        return [float(line.usage.total) for line in lines]
    return [float(sum(max(0, c.nano) for c in line.costs if c.currency == currencies[0])) for line in lines]


def _footer(report: Report) -> str:
    """What the figures leave out, a line each."""
    total = report.total
    notes = [
        (total.cost_at_least, f"{AT_LEAST}at least: the cost of {{}} is unknown or incomplete"),
        (total.unpriced, "no price is known for {}: `acp-proxy prices show MODEL` tells, [prices] sets one"),
        (total.partial, "tokens at least: the agent reported only a part of {}"),
        (total.estimated, "estimated: {}"),
        (total.without_usage, "no usage was reported for {}"),
    ]
    lines = [note.format(counted(count, "row")) + "\n" for count, note in notes if count]
    return "\n" + "".join(lines) if lines else ""

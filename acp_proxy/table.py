"""A table for people: columns of text, aligned plainly for a pipe, or with colours and bars, fitted to a terminal.

It is laid out here: a general library took 1.6 ms a row, and a year has many turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from acp_proxy.figures import aligned, cut, padded, width_of

Bars = Callable[[int], Sequence[tuple[str, str]]]  # a width -> for each line a style, and a bar that is no wider

_GAP = "  "
_BAR = (6, 24)  # a bar's least and greatest width
_SHORT_NAME = 20  # to how much names are cut before whole columns go
_EIGHTHS = " ▏▎▍▌▋▊▉"
_STYLES = {"head": "2", "total": "1", "note": "2", "bar": "36", "yellow": "33", "orange": "38;5;208", "red": "31"}


class Column(Struct, frozen=True):
    title: str
    cells: Sequence[str]  # one a line
    total: str = ""  # the last line has these, where any column has one
    right: bool = True
    name: bool = False  # may be cut to make room
    spare: int = 0  # the highest goes first where there is no room; 0 stays
    levels: Sequence[str] = ()  # one a line: the style that colours it


def plain(columns: Sequence[Column], notes: Sequence[str] = ()) -> str:
    """No colour, no bars, no lines: for `grep`, `awk` and mail."""
    rows = [_titles(columns), *zip(*(column.cells for column in columns), strict=True), *_totals(columns)]
    return aligned(rows, [column.right for column in columns]) + "".join(
        f"{note}\n" for note in (["", *notes] if notes else [])
    )


def coloured(
    columns: Sequence[Column], notes: Sequence[str], bars: Bars | None, width: int, environ: Mapping[str, str]
) -> str:
    """For a terminal of `width` columns, in colours unless the environment has `NO_COLOR`."""
    shown, widths, bar = _fitted(columns, width, bars is not None)
    if _needed(widths) > width:  # no table fits
        return "".join(f"{cut(line, width)}\n" for line in plain(columns, notes).splitlines())
    paint = painter(environ)
    body = [_painted_cells(column, wide, paint) for column, wide in zip(shown, widths, strict=True)]
    if bars and bar:
        body.append([paint(style, text) for style, text in bars(bar)])
    shape = [(wide, column.right) for column, wide in zip(shown, widths, strict=True)]
    lines = [
        paint("head", _row(_titles(shown), shape)),
        *map(_GAP.join, zip(*body, strict=True)),
        *(paint("total", _row(totals, shape)) for totals in _totals(shown)),
    ]
    wrapped = [paint("note", line) for note in notes for line in _wrapped(note, width)]
    return "\n".join([*lines, *(["", *wrapped] if wrapped else []), ""])


def bar_text(part: int, whole: int, width: int) -> str:
    """A bar of `width` columns for the whole, drawn to an eighth of a column."""
    count = part * width * 8 // whole
    return "█" * (count // 8) + _EIGHTHS[count % 8].strip()


def _wrapped(text: str, width: int) -> list[str]:
    """At spaces; unlike `textwrap` it knows signs that take two columns."""
    lines: list[str] = []
    for word in text.split(" "):
        if lines and width_of(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(cut(word, width))
    return lines


def _titles(columns: Sequence[Column]) -> list[str]:
    return [column.title for column in columns]


def _totals(columns: Sequence[Column]) -> list[list[str]]:
    """One row, or none."""
    totals = [column.total for column in columns]
    return [totals] if any(totals) else []


def _row(cells: Sequence[str], shape: Sequence[tuple[int, bool]]) -> str:
    texts = (padded(cut(cell, wide), wide, right=right) for cell, (wide, right) in zip(cells, shape, strict=True))
    return _GAP.join(texts)


def _painted_cells(column: Column, width: int, paint: Callable[[str, str], str]) -> list[str]:
    levels = column.levels or [""] * len(column.cells)
    return [
        paint(level, padded(cut(cell, width), width, right=column.right))
        for cell, level in zip(column.cells, levels, strict=True)
    ]


def painter(environ: Mapping[str, str]) -> Callable[[str, str], str]:
    """A style and a text -> the text in that style, or as it is where the environment has `NO_COLOR`."""
    return _uncoloured if environ.get("NO_COLOR") else _painted


def _painted(style: str, text: str) -> str:
    code = _STYLES.get(style)
    return f"\x1b[{code}m{text}\x1b[0m" if code else text


def _uncoloured(_: str, text: str) -> str:
    return text


def _fitted(columns: Sequence[Column], width: int, with_bars: bool) -> tuple[list[Column], list[int], int]:
    """The columns that a terminal has room for, their widths, and that of the bars (0 for none).

    First the bars get shorter, then names are cut, then columns go, then the bars, then names are cut to nothing.
    """
    gap, least, most = (len(_GAP), *_BAR) if with_bars else (0, 0, 0)
    sized = [(column, max(map(width_of, (column.title, column.total, *column.cells)))) for column in columns]
    while True:
        shown, wide = [column for column, _ in sized], [needed for _, needed in sized]
        room = width - _needed(wide) - gap
        if room >= least:
            return shown, wide, min(room, most)
        names = [index for index, column in enumerate(shown) if column.name]
        if sum(max(0, wide[index] - _SHORT_NAME) for index in names) >= least - room:
            return shown, _shortened(wide, names, least - room), least
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

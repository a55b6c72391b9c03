"""A table for people: columns of text, aligned plainly for a pipe, or with colours and bars, fitted to a terminal.

It is laid out here: a general library took 1.6 ms a row, and a year has many turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct

from acp_proxy.text.figures import cut, cut_apart, padded, width_of

Bars = Callable[[int], Sequence[tuple[str, str]]]  # a width -> for each line a style, and a bar that is no wider

_GAP = "  "
_BAR = (6, 24)  # a bar's least and greatest width
_SHORT_NAME, _SHORTEST_NAME = 20, 8  # to how much names are cut before whole columns go, and before the last ones do
_EIGHTHS = " ▏▎▍▌▋▊▉"
_STYLES = {"head": "2", "total": "1", "note": "2", "bar": "36", "yellow": "33", "orange": "38;5;208", "red": "31"}


class Column(Struct, frozen=True):
    """`spare` says in which order columns go where there is no room, the highest first: 0 stays, and what is below 0
    goes last, when names would be cut to almost nothing.
    """

    title: str
    cells: Sequence[str]  # one a line
    total: str = ""  # the last line has these, where any column has one
    right: bool = True
    name: bool = False  # may be cut to make room
    spare: int = 0
    levels: Sequence[str] = ()  # one a line: the style that colours it
    otherwise: str = ""  # a note in its place where there is no room


class Part(Struct, frozen=True):
    """Some lines of a table: its columns, with their cells and no others."""

    columns: Sequence[Column]
    bars: Bars | None = None


def plain(columns: Sequence[Column], notes: Sequence[str] = ()) -> str:
    """No colour, no bars, no lines: for `grep`, `awk` and mail."""
    return "".join(plain_parts(Part(columns), (), notes))


def coloured(
    columns: Sequence[Column], notes: Sequence[str], bars: Bars | None, width: int, environ: Mapping[str, str]
) -> str:
    """For a terminal of `width` columns, in colours unless the environment has `NO_COLOR`."""
    return "".join(coloured_parts(Part(columns, bars), (), notes, width, environ))


def plain_parts(first: Part, more: Iterable[Part], notes: Sequence[str]) -> Iterator[str]:
    """A table of which only a part is in memory: the first one says how wide columns are; longer cells stick out."""
    columns = first.columns
    shape = list(zip(_widths(columns), [column.right for column in columns], strict=True))
    yield _aligned([[title] for title in _titles(columns)], shape)
    for part in chain([first], more):
        yield _aligned([column.cells for column in part.columns], shape)
    for total in _totals(columns):
        yield _aligned([[cell] for cell in total], shape)
    yield "".join(f"{note}\n" for note in (["", *notes] if notes else []))


def coloured_parts(
    first: Part, more: Iterable[Part], notes: Sequence[str], width: int, environ: Mapping[str, str]
) -> Iterator[str]:
    """`plain_parts` for a terminal; longer cells are cut."""
    columns = first.columns
    shown, widths, bar = _fitted(columns, width, first.bars is not None)
    if _needed(widths) > width:  # no table fits
        for text in plain_parts(first, more, notes):
            yield "".join(f"{cut(line, width)}\n" for line in text.splitlines())
        return
    notes = [*notes, *(column.otherwise for at, column in enumerate(columns) if column.otherwise and at not in shown)]
    paint = painter(environ)
    shape = [(wide, columns[index].right) for index, wide in zip(shown, widths, strict=True)]
    titles, totals = _titles(columns), _totals(columns)
    yield paint("head", _row([titles[index] for index in shown], shape)) + "\n"
    for part in chain([first], more):
        body = [_painted_cells(part.columns[index], wide, paint) for index, wide in zip(shown, widths, strict=True)]
        if part.bars and bar:
            body.append([paint(style, text) for style, text in part.bars(bar)])
        yield "".join(f"{_GAP.join(cells)}\n" for cells in zip(*body, strict=True))
    for total in totals:
        yield paint("total", _row([total[index] for index in shown], shape)) + "\n"
    wrapped = [paint("note", line) for note in notes for line in _wrapped(note, width)]
    yield "".join(f"{line}\n" for line in (["", *wrapped] if wrapped else []))


def fits(columns: Sequence[Column], width: int) -> bool:
    """Whether a terminal has room for the columns that stay, with no name cut."""
    return _needed(_widths([column for column in columns if not column.spare])) <= width


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


def _aligned(columns: Iterable[Sequence[str]], shape: Sequence[tuple[int, bool]]) -> str:
    """Lines of the cells of columns; of a column at a time, for a report has thousands of cells."""
    padding = [_padded(cells, wide, right=right) for cells, (wide, right) in zip(columns, shape, strict=True)]
    return "".join([f"{_GAP.join(cells).rstrip()}\n" for cells in zip(*padding, strict=True)])


def _padded(cells: Sequence[str], width: int, *, right: bool) -> list[str]:
    if all(map(str.isascii, cells)):
        return [cell.rjust(width) for cell in cells] if right else [cell.ljust(width) for cell in cells]
    return [padded(cell, width, right=right) for cell in cells]


def _widths(columns: Sequence[Column]) -> list[int]:
    return [_widest((column.title, column.total, *column.cells)) for column in columns]


def _widest(cells: Sequence[str]) -> int:
    return max(map(len if all(map(str.isascii, cells)) else width_of, cells))


def _row(cells: Sequence[str], shape: Sequence[tuple[int, bool]]) -> str:
    texts = (padded(cut(cell, wide), wide, right=right) for cell, (wide, right) in zip(cells, shape, strict=True))
    return _GAP.join(texts)


def _painted_cells(column: Column, width: int, paint: Callable[[str, str], str]) -> list[str]:
    levels = column.levels or [""] * len(column.cells)
    return [
        paint(level, padded(cell, width, right=column.right))
        for cell, level in zip(cut_apart(column.cells, width), levels, strict=True)
    ]


def painter(environ: Mapping[str, str]) -> Callable[[str, str], str]:
    """A style and a text -> the text in that style, or as it is where the environment has `NO_COLOR`."""
    return _uncoloured if environ.get("NO_COLOR") else _painted


def _painted(style: str, text: str) -> str:
    code = _STYLES.get(style)
    return f"\x1b[{code}m{text}\x1b[0m" if code else text


def _uncoloured(_: str, text: str) -> str:
    return text


def _fitted(columns: Sequence[Column], width: int, with_bars: bool) -> tuple[list[int], list[int], int]:
    """Which columns a terminal has room for, their widths, and that of the bars (0 for none).

    First the bars get shorter, then names are cut, then columns go, then the bars, then names are cut further, then the
    last columns go, then names are cut to nothing.
    """
    gap, least, most = (len(_GAP), *_BAR) if with_bars else (0, 0, 0)
    needed = _widths(columns)
    shown = list(range(len(columns)))
    while True:
        wide = [needed[index] for index in shown]
        room = width - _needed(wide) - gap
        if room >= least:
            return shown, wide, min(room, most)
        names = [at for at, index in enumerate(shown) if columns[index].name]
        if sum(max(0, wide[at] - _SHORT_NAME) for at in names) >= least - room:
            return shown, _shortened(wide, names, least - room), least
        spare = max(columns[index].spare for index in shown)
        if spare <= 0:
            missing, kept = max(0, _needed(wide) - width), [index for index in shown if columns[index].spare == 0]
            if kept == shown or sum(max(0, wide[at] - _SHORTEST_NAME) for at in names) >= missing:
                return shown, _shortened(wide, names, missing), 0
            shown, gap, least, most = kept, 0, 0, 0
            continue
        shown = [index for index in shown if columns[index].spare != spare]


def _needed(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _shortened(widths: list[int], names: Sequence[int], missing: int) -> list[int]:
    """Takes from the widest name first, a column at a time."""
    shorter = list(widths)
    for _ in range(missing if names else 0):
        widest = max(names, key=lambda index: shorter[index])
        shorter[widest] = max(1, shorter[widest] - 1)
    return shorter

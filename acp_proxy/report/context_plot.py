"""A session's context as a small plot of text: a column for each row of the ledger, as high as the context is full.

The scale ends at the next of a few round shares of the window, for most sessions fill little of a large one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from acp_proxy.report.context import Point
from acp_proxy.text.figures import context_level

HEIGHT = 5  # lines
TOPS = (5, 10, 25, 50, 100)  # percent of the window
_LABEL = 5  # characters
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_UNKNOWN = "·"

Paint = Callable[[str, str], str]  # a style and a text -> the text in that style


def context_plot(points: Sequence[Point], width: int, paint: Paint) -> list[str]:
    """Lines no wider than `width`; none where no context is known. Where rows share a column its fullest is shown."""
    room = width - _LABEL - 1
    if room < 1 or not any(_is_known(point) for point in points):
        return []
    columns = [_fullest(shared) for shared in _shared(points, room)]
    top = _top(columns)
    labels = (f"{top:3}% ", *[" " * _LABEL] * (HEIGHT - 2), "  0% ")
    lines = [
        f"{label}│" + "".join(_cell(column, HEIGHT - 1 - line, top, paint) for column in columns)
        for line, label in enumerate(labels)
    ]
    marks = "".join("▾" if any(point.compacted for point in shared) else " " for shared in _shared(points, room))
    if marks.strip():
        lines.insert(0, " " * (_LABEL + 1) + marks.rstrip() + ("  ▾ compacted" if len(marks) + 13 < room else ""))
    return lines


def _is_known(point: Point) -> bool:
    return point.used is not None and bool(point.size)


def _shared(points: Sequence[Point], room: int) -> list[Sequence[Point]]:
    """Points by column, in their order."""
    count = min(room, len(points))
    return [points[number * len(points) // count : (number + 1) * len(points) // count] for number in range(count)]


def _fullest(shared: Sequence[Point]) -> tuple[int, int] | None:
    """Used and size, None where no point says both."""
    known = [(point.used or 0, point.size) for point in shared if point.used is not None and point.size]
    return max(known, key=lambda pair: pair[0] / pair[1], default=None)


def _top(columns: Sequence[tuple[int, int] | None]) -> int:
    """Percent at which the scale ends; a context that its agent says to be over its window ends there, too."""
    return next(
        (top for top in TOPS if all(used * 100 <= size * top for used, size in filter(None, columns))), TOPS[-1]
    )


def _cell(column: tuple[int, int] | None, line: int, top: int, paint: Paint) -> str:
    """The cell of one column on a line; line 0 is the lowest."""
    if column is None:
        return _UNKNOWN if line == 0 else " "
    used, size = column
    eighths = min(used, size) * HEIGHT * 8 * 100 // (size * top)
    if line == 0 and used > 0:
        eighths = max(eighths, 1)  # a little is not nothing
    level = context_level(used, size)
    return paint("bar" if level == "normal" else level, _EIGHTHS[max(0, min(8, eighths - 8 * line))])

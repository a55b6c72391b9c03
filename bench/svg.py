"""Pictures of figures as SVG: bars of ratios on a logarithmic scale, and lines of growth."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

OWN = "#00695c"
OTHERS = ("#b26a00", "#5e5aa8", "#9c3d54", "#3f7cac", "#7a7a7a", "#6b8e23", "#8d6e63", "#455a64")
_INK, _FAINT = "#333", "#ddd"
_WIDTH, _LETTER = 760, 6.6  # pixels; a letter of 12 px, about
_EVEN = 1.0  # the ratio that bars begin at

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Bar:
    """`value` is None for what could not be measured."""

    name: str
    value: float | None
    own: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    text: str
    logarithmic: bool = True
    lowest: float | None = None  # where the axis begins at the latest
    highest: float | None = None  # where it ends at the earliest


def bars(title: str, groups: Mapping[str, Sequence[Bar]], note: str) -> str:
    """A group of bars for each figure; they begin at 1: what is less goes to the left."""
    left, right, top, row, gap = 130, 60, 40, 15, 30
    values = [bar.value for group in groups.values() for bar in group if bar.value] + [_EVEN]
    scale = _Scale(Axis(""), values, left, _WIDTH - right)
    grid, parts, y = list[str](), list[str](), float(top)
    for name, group in groups.items():
        parts.append(_text(8, y + 16, name, weight=600))
        y += gap
        began = y
        for bar in group:
            parts += _bar(bar, y, row, scale)
            y += row
        y += 6
        for tick in scale.ticks:  # not through the names of groups
            grid.append(_line(scale.at(tick), began, scale.at(tick), y, _INK if tick == _EVEN else _FAINT))
    labels = [_text(scale.at(tick), y + 16, f"{_short(tick)}×", anchor="middle") for tick in scale.ticks]
    return _picture(title, y + 44, [*grid, *parts, *labels, _text(8, y + 36, note)])


def lines(title: str, x: Axis, y: Axis, series: Mapping[str, Points]) -> str:
    """A line with a dot for each point where there are few. The first one stands out."""
    left, right, height = 64, 16, 260
    legend = _legend(list(series))
    top = 76 + max((row for *_, row in legend), default=0)
    found = [point for points in series.values() for point in points]
    across = _Scale(x, [point[0] for point in found], left, _WIDTH - right)
    up = _Scale(y, [point[1] for point in found], top + height, top)
    parts = [_line(left, up.at(tick), _WIDTH - right, up.at(tick), _FAINT) for tick in up.ticks]
    parts += [_text(left - 8, up.at(tick) + 4, _short(tick), anchor="end") for tick in up.ticks]
    parts += [_text(across.at(tick), top + height + 18, _short(tick), anchor="middle") for tick in across.ticks]
    parts += [_text(left, top + height + 38, x.text), _text(8, top - 10, y.text)]
    for number, (name, at, row) in reversed(list(enumerate(legend))):  # the first one's line above the others
        colour, dashes = _look(number)
        parts += [_line(at, 46 + row, at + 14, 46 + row, colour, 3, dashes), _text(at + 18, 50 + row, name)]
        parts += _curve([(across.at(one), up.at(other)) for one, other in series[name]], colour, dashes)
    return _picture(title, top + height + 50, parts)


def _legend(names: Sequence[str]) -> list[tuple[str, float, float]]:
    """Each name, and where it stands: to the right, and down from the first row."""
    places, at, row = [], 8.0, 0.0
    for name in names:
        wide = len(name) * _LETTER + 32
        if at + wide > _WIDTH and at > 8:
            at, row = 8.0, row + 18
        places.append((name, at, row))
        at += wide
    return places


class _Scale:
    """Values as pixels between `start` and `end`, with round ticks; a logarithmic one goes by powers of ten."""

    def __init__(self, axis: Axis, values: Sequence[float], start: float, end: float) -> None:
        self._start, self._end, self._logarithmic = start, end, axis.logarithmic
        low = min([*values, *([] if axis.lowest is None else [axis.lowest])], default=0)
        high = max([*values, *([] if axis.highest is None else [axis.highest])], default=1)
        if axis.logarithmic:
            positive = [value for value in (*values, axis.lowest, axis.highest) if value]
            self._low = 1.0 * math.floor(math.log10(min(positive, default=1)) + 1e-9)
            self._high = max(math.ceil(math.log10(max(positive, default=10)) - 1e-9), self._low + 1.0)
            self.ticks = [10.0**power for power in range(int(self._low), int(self._high) + 1)]
        else:
            step = _step((high - min(low, 0)) / 5)
            self._low, self._high = math.floor(min(low, 0) / step) * step, math.ceil(high / step) * step
            self.ticks = [self._low + step * number for number in range(round((self._high - self._low) / step) + 1)]

    def at(self, value: float) -> float:
        place = math.log10(max(value, 10.0**self._low)) if self._logarithmic else value
        return self._start + (place - self._low) / (self._high - self._low) * (self._end - self._start)


def _step(least: float) -> float:
    """1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least or 1))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * 0.999)


def _bar(bar: Bar, y: float, row: float, scale: _Scale) -> Iterator[str]:
    yield _text(122, y + row - 4, bar.name, anchor="end", weight=600 if bar.own else 400)
    if bar.value is None:
        yield _text(scale.at(_EVEN) + 6, y + row - 4, "not measured", colour="#888")
        return
    one, other = sorted((scale.at(_EVEN), scale.at(bar.value)))
    colour = OWN if bar.own else "#9aa5ab"
    yield f'<rect x="{one:.1f}" y="{y + 2:.1f}" width="{max(other - one, 1):.1f}" height="{row - 4}" fill="{colour}"/>'
    yield _text(other + 5, y + row - 4, ratio_text(bar.value))


def ratio_text(value: float) -> str:
    if 0 < value <= 0.1:
        return f"1/{1 / value:.0f}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def _curve(points: Points, colour: str, dashes: str) -> Iterator[str]:
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    yield f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>'
    if len(points) <= 12:
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points)


def _look(number: int) -> tuple[str, str]:
    """A colour, and dashes where that one was taken before."""
    if number == 0:
        return OWN, ""
    again, one = divmod(number - 1, len(OTHERS))
    return OTHERS[one], _DASHES[min(again, len(_DASHES) - 1)]


def _short(value: float) -> str:
    """10000 as 10⁴, for it is narrow."""
    if value >= 10_000 or 0 < value < 0.001:
        power = math.floor(math.log10(value) + 1e-9)
        factor = value / 10**power
        return f"{'' if math.isclose(factor, 1) else f'{factor:.3g}·'}10{str(power).translate(_RAISED)}"
    return f"{value:g}"


_DASHES = ("", ' stroke-dasharray="5 3"', ' stroke-dasharray="1.5 2.5"')
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _line(x: float, y: float, to_x: float, to_y: float, colour: str, width: int = 1, dashes: str = "") -> str:
    return f'<path d="M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}" stroke="{colour}" stroke-width="{width}"{dashes}/>'


def _text(x: float, y: float, text: str, *, anchor: str = "start", weight: int = 400, colour: str = _INK) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" fill="{colour}">'
        f"{escape(text)}</text>"
    )


def _picture(title: str, height: float, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" font-family="sans-serif" '
        f'font-size="12">\n<title>{escape(title)}</title>\n<rect width="{_WIDTH}" height="{height:.0f}" fill="#fff"/>'
    )
    return "\n".join(
        [head, _text(8, 28, title, weight=700).replace("<text", '<text font-size="14"'), *parts, "</svg>\n"]
    )
